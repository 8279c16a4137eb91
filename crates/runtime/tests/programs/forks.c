// A parent counts 3000000 times while its child counts 2000000 times; the child's own child
// counts 1000000 times. HOW says how children are made.
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "counted.h"

#ifndef HOW
#define HOW fork()
#endif

static int child(void) {
    int pid = HOW;
#ifdef BEHIND_LIBC
    AFTER_FORK();
#endif
    return pid;
}

int main(void) {
    ENTER();
    COUNT(0);
    int pid = child();
    if (pid == 0) {
        int grandchild = child();
        if (grandchild == 0) {
            COUNT_LOOP(3, 1000000);
            exit(0);
        }
        COUNT_LOOP(2, 2000000);
        printf("%d\n", grandchild);
        waitpid(grandchild, NULL, 0);
        fflush(stdout);
        _exit(0);
    }
    COUNT_LOOP(1, 3000000);
    waitpid(pid, NULL, 0);
    printf("%d\n", pid);
    return 0;
}
