// A child made by clone() begins in a function of its own, and never comes back to the place of
// the call: the mark that this thread has been here is taken away before the call.
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include "counted.h"

static char stack[1 << 16] __attribute__((aligned(16)));

static int child(void *nothing) {
    ENTER();
    COUNT_LOOP(2, 2000000);
    return nothing != NULL;
}

int main(void) {
    int status;
    ENTER();
    COUNT(0);
    BEFORE_CLONE();
    int pid = clone(child, stack + sizeof stack, SIGCHLD | FLAGS, NULL);
    AFTER_FORK();
    ENTER();
    COUNT_LOOP(1, 3000000);
    if (waitpid(pid, &status, 0) != pid) return 1;
    printf("%d\n", pid);
    return status;
}
