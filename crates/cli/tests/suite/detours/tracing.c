/* Programs that trace others, or themselves, as debuggers and sanitizers do. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile long sum;

__attribute__((noinline)) void before(void) { sum++; }
__attribute__((noinline)) void after(void) { sum++; }

static void times(int count, void (*work)(void))
{
    while (count-- > 0)
        work();
}

static void must(long result, const char *what)
{
    if (result < 0) {
        printf("%s: %s\n", what, strerror(errno));
        fflush(stdout);
        _exit(1);
    }
}

/* A child asks to be traced; its parent sees it stop, and lets it go on. */
static int asked(void)
{
    pid_t child = fork();
    if (child == 0) {
        times(10, before);
        must(ptrace(PTRACE_TRACEME, 0, 0, 0), "traceme");
        raise(SIGSTOP);
        times(100, after);
        _exit(7);
    }
    int status;
    must(waitpid(child, &status, 0), "wait");
    printf("stopped %d\n", WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP);
    must(ptrace(PTRACE_CONT, child, 0, 0), "go on");
    must(waitpid(child, &status, 0), "wait again");
    times(30, before);
    printf("ended %d\n", WEXITSTATUS(status));
    return 0;
}

static void trace(pid_t tid)
{
    int status;
    must(ptrace(PTRACE_ATTACH, tid, 0, 0), "attach");
    must(waitpid(tid, &status, __WALL), "wait for it");
    must(ptrace(PTRACE_DETACH, tid, 0, 0), "detach");
}

static volatile int done;
static pid_t target;

static int look(void *unused)
{
    (void)unused;
    trace(target);
    done = 1;
    return 0;
}

/* A child in the same memory, which nobody may trace, looks at its parent. */
static int untraced(void)
{
    static char stack[1 << 16];
    target = getpid();
    times(40, before);
    int flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_UNTRACED;
    pid_t child = clone(look, stack + sizeof stack, flags, NULL);
    must(child, "clone");
    prctl(PR_SET_PTRACER, child, 0, 0, 0);
    while (!done)
        sched_yield();
    must(waitpid(child, NULL, __WALL), "wait");
    times(5, after);
    puts("looked at");
    return 3;
}

static volatile int is_over;

static void *busy(void *count)
{
    while (!is_over)
        ++*(volatile long *)count;
    return NULL;
}

/* A child looks at its parent, all of whose threads are busy. */
static int attached(void)
{
    pthread_t threads[4];
    volatile long counts[4] = {0};
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, busy, (void *)&counts[i]);
    times(20, before);
    pid_t parent = getpid();
    int gate[2];
    must(pipe(gate), "pipe");
    pid_t child = fork();
    if (child == 0) {
        char byte;
        must(read(gate[0], &byte, 1), "read");
        trace(parent);
        times(15, before);
        _exit(0);
    }
    prctl(PR_SET_PTRACER, child, 0, 0, 0);
    must(write(gate[1], "x", 1), "write");
    int status;
    must(waitpid(child, &status, 0), "wait");
    long then[4];
    for (int i = 0; i < 4; i++)
        then[i] = counts[i];
    times(50, after);
    int alive = 0;
    for (int tries = 0; tries < 2000 && alive < 4; tries++) {
        usleep(5000);
        alive = 0;
        for (int i = 0; i < 4; i++)
            alive += counts[i] > then[i];
    }
    is_over = 1;
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    printf("%d threads go on, %d\n", alive, status);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc < 2)
        return 2;
    switch (argv[1][0]) {
    case 'a': return asked();
    case 'u': return untraced();
    default: return attached();
    }
}
