// Timer signals all the time, whose handler counts (counter 2), while threads come and go
// (1000 of 1000 rounds, counter 1). Prints how often the handler ran.
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <unistd.h>
#include "counted.h"

static long handled;

static void handler(int number) {
    (void)number;
    ENTER();
    COUNT(2);
    __atomic_fetch_add(&handled, 1, __ATOMIC_RELAXED);
}

static void *work(void *nothing) {
    ENTER();
    COUNT_LOOP(1, 1000);
    return nothing;
}

int main(void) {
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    struct itimerval often = {{0, 50}, {0, 50}}, never = {{0, 0}, {0, 0}};
    ENTER();
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
    for (int i = 0; i < 250; i++) {
        pthread_t threads[4];
        for (int j = 0; j < 4; j++) {
            if (pthread_create(&threads[j], NULL, work, NULL) != 0) return 1;
            pthread_kill(threads[j], SIGALRM);
        }
        for (int j = 0; j < 4; j++) pthread_join(threads[j], NULL);
    }
    setitimer(ITIMER_REAL, &never, NULL);
    printf("%ld\n", handled);
    return 0;
}
