#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#define APART __attribute__((noipa))

// Executes about 4 instructions a round.
APART static long work(long rounds) {
    long sum = 0;
    while (rounds--)
        sum += rounds ^ sum;
    return sum;
}
APART static long cheap(void) { return work(1) + 1; }
APART static long dear(void) { return work(1000) + 1; }
APART static long last(long n) { return work(n + 1); }
APART static long fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
APART static long odd(int n);
APART static long even(int n) { return n == 0 ? 1 : odd(n - 1) + work(3); }
APART static long odd(int n) { return n == 0 ? 0 : even(n - 1) + work(5); }

static jmp_buf place;
APART static void deep(int n) {
    work(10);
    if (n == 0)
        longjmp(place, 1);
    deep(n - 1);
    work(1);
}
APART static void jumper(void) {
    for (volatile int i = 0; i < 5; i++)
        if (setjmp(place) == 0)
            deep(7);
        else
            work(20);
}

APART static void handler(int signal) { work(signal); }
APART static void signals(void) {
    for (int i = 0; i < 4; i++) {
        raise(SIGUSR1);
        work(7);
    }
}

static ucontext_t outside, inside;
APART static void steps(void) {
    for (int i = 0; i < 4; i++) {
        work(11);
        swapcontext(&inside, &outside);
    }
}
APART static void coroutine(void) {
    static char stack[1 << 16];
    getcontext(&inside);
    inside.uc_stack.ss_sp = stack;
    inside.uc_stack.ss_size = sizeof stack;
    inside.uc_link = &outside;
    makecontext(&inside, steps, 0);
    for (int i = 0; i < 5; i++) {
        swapcontext(&outside, &inside);
        work(13);
    }
}

APART static void *thread(void *rounds) {
    work((long)rounds);
    return NULL;
}
APART static int compare(const void *a, const void *b) {
    work(2);
    return *(const int *)a - *(const int *)b;
}

int main(void) {
    long (*volatile pointers[])(void) = {cheap, dear};
    long sum = 0;
    for (int i = 0; i < 30; i++)
        sum += cheap() + dear() + pointers[i % 3 == 0]();
    sum += last(50) + fib(12) + even(9);
    jumper();
    signal(SIGUSR1, handler);
    signals();
    coroutine();
    pthread_t threads[3];
    for (long i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, thread, (void *)(i * 100));
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    int numbers[] = {5, 3, 9, 1, 7};
    qsort(numbers, 5, sizeof *numbers, compare);
    fflush(stdout);
    if (fork() == 0) {
        work(500);
        _exit(0);
    }
    wait(NULL);
    printf("%ld %d\n", sum, numbers[0]);
    return 0;
}
