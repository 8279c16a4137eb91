/* Asks wherever it can be hard: in loops, in recursion, in a signal handler, behind a jump out of
   three frames, in a thread, in a child. What it asks changes nothing about what it does. */
#include "headcount.h"
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST = 200 };
static long long answers[MOST];
static volatile int asked;
static volatile int sink;
static jmp_buf out;

static void ask(void)
{
    int place = asked;
    asked = place + 1;
    answers[place] = headcount_query("instructions");
}

__attribute__((noinline)) static int fib(int n)
{
    if (n == 3)
        ask();
    return n < 2 ? n : fib(n - 1) + fib(n - 2);
}

__attribute__((noinline)) static int deep(int n)
{
    if (n == 0) {
        ask();
        longjmp(out, 1);
    }
    return deep(n - 1) + 1;
}

static void handler(int signal)
{
    for (int i = 0; i < 3; i++)
        sink += signal;
    ask();
    sink++;
}

/* Until whoever made us waits for us, and executes nothing. */
static void let_them_wait(void)
{
    usleep(500000);
}

static void *threaded(void *unused)
{
    let_them_wait();
    for (int i = 0; i < 10; i++)
        ask();
    return unused;
}

static void tell(const char *whose)
{
    for (int i = 0; i < asked; i++)
        printf("%s %lld\n", whose, answers[i]);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    int has_threads = argc > 1 && strcmp(argv[1], "alone");
    for (int i = 0; i < 20; i++) {
        sink += i;
        if (i % 3 == 0)
            ask();
    }
    fib(8);
    signal(SIGUSR1, handler);
    raise(SIGUSR1);
    if (!setjmp(out))
        deep(3);
    ask();
    raise(SIGUSR1);
    if (has_threads) {
        pthread_t thread;
        pthread_create(&thread, 0, threaded, 0);
        pthread_join(thread, 0);
        ask();
        if (fork() == 0) {
            let_them_wait();
            ask();
            fib(5);
            ask();
            tell("child");
            _exit(0);
        }
        wait(0);
        ask();
    }
    tell("parent");
    return 0;
}
