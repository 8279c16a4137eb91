// Makes system calls in three threads until it is killed, interrupted by a timer, with children by
// `vfork` and by `fork`.
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static void handler(int signal)
{
    (void)signal;
    syscall(SYS_getuid);
}

static void *work(void *unused)
{
    for (;;) {
        syscall(SYS_getppid);
        syscall(600);
    }
    return unused;
}

int main(void)
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    struct itimerval often = {{0, 500}, {0, 500}};
    pthread_t thread;
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
    for (int i = 0; i < 2; i++)
        pthread_create(&thread, NULL, work, NULL);
    puts("started");
    fflush(stdout);
    for (int i = 0;; i++) {
        syscall(SYS_gettid);
        usleep(300);
        if (i % 50 == 0 && !vfork()) {
            syscall(SYS_getpgrp);
            _exit(0);
        }
        if (i % 50 == 1 && !fork())
            _exit(0);
        while (waitpid(-1, NULL, WNOHANG) > 0)
            ;
    }
}
