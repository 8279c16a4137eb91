// A thread is made when no memory can be mapped any more: it runs, uncounted. The stack is there
// already; it is the smallest one that threads may have.
#define _GNU_SOURCE
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/resource.h>
#include "counted.h"

static void *work(void *ran) {
    ENTER();
    COUNT_LOOP(1, 1000);
    ENTER();
    *(int *)ran = 1;
    return NULL;
}

int main(void) {
    struct rlimit none = {0, 0};
    pthread_attr_t attributes;
    pthread_t thread;
    int ran = 0;
    ENTER();
    COUNT(0);
    char *stack = aligned_alloc(4096, 16384);
    pthread_attr_init(&attributes);
    if (pthread_attr_setstack(&attributes, stack, 16384) != 0) return 2;
#ifndef ENOUGH
    if (setrlimit(RLIMIT_AS, &none) != 0) return 3;
#endif
    (void)none;
    if (pthread_create(&thread, &attributes, work, &ran) != 0) return 4;
    pthread_join(thread, NULL);
    return ran ? 0 : 5;
}
