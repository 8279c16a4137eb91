// Counts in main and in a thread that stays, then says "ready" and waits for its input to end.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "counted.h"

static pthread_barrier_t counted;

static void *work(void *nothing) {
    ENTER();
    COUNT_LOOP(1, 1000);
    pthread_barrier_wait(&counted);
    pause();
    return nothing;
}

int main(void) {
    pthread_t thread;
    char byte;
    ENTER();
    COUNT(0);
    pthread_barrier_init(&counted, NULL, 2);
#ifdef BEFORE_THREAD
    BEFORE_THREAD;
#endif
    pthread_create(&thread, NULL, work, NULL);
    pthread_barrier_wait(&counted);
    puts("ready");
    fflush(stdout);
    return read(0, &byte, 1) == 0 ? 0 : 1;
}
