// A thread that found no place makes a child, which has memory again, and comes to a library it
// has not been to. Nothing is exact any more; but nothing breaks, and the header says so.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include "counted.h"

void work(long rounds);

static struct rlimit before, none;

static void *lost(void *status) {
    ENTER();
    COUNT_LOOP(1, 1000);
    pid_t pid = fork();
    if (pid == 0) {
        if (setrlimit(RLIMIT_AS, &before) != 0) _exit(6);
        work(1000);
        COUNT_LOOP(1, 1000);
        exit(0);
    }
    waitpid(pid, (int *)status, 0);
    work(1000);
    COUNT_LOOP(1, 1000);
    return NULL;
}

int main(void) {
    pthread_attr_t attributes;
    pthread_t thread;
    int status = 5;
    ENTER();
    COUNT(0);
    char *stack = aligned_alloc(4096, 65536);
    pthread_attr_init(&attributes);
    if (pthread_attr_setstack(&attributes, stack, 65536) != 0) return 2;
    getrlimit(RLIMIT_AS, &before);
    none = before;
    none.rlim_cur = 0;
    if (setrlimit(RLIMIT_AS, &none) != 0) return 3;
    if (pthread_create(&thread, &attributes, lost, &status) != 0) return 4;
    pthread_join(thread, NULL);
    setrlimit(RLIMIT_AS, &before);
    work(10);
    COUNT(0);
    return status;
}
