// THREADS threads at once, each counts ROUNDS times, and main too: (THREADS + 1) * ROUNDS.
#include <pthread.h>
#include <stdio.h>
#include "counted.h"

#ifndef THREADS
#define THREADS 8
#endif
#ifndef ROUNDS
#define ROUNDS 10000000
#endif

static pthread_barrier_t all_here;

static void *work(void *nothing) {
    ENTER();
    COUNT(0);
    pthread_barrier_wait(&all_here);
    COUNT_LOOP(1, ROUNDS);
    return nothing;
}

int main(void) {
    static pthread_t threads[THREADS];
    ENTER();
    pthread_barrier_init(&all_here, NULL, THREADS + 1);
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, work, NULL) != 0) return 1;
    work(NULL);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    return 0;
}
