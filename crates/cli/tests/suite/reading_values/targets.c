#include <stdio.h>

static int __attribute__((noinline)) add(int n) { return n + 1; }
static int __attribute__((noinline)) twice(int n) { return n * 2; }
static int __attribute__((noinline)) half(int n) { return n / 2; }

typedef int operation(int);

/* 1000 times: 900 to add, 90 to twice, 10 to half. */
static operation *volatile operations[] = { add, twice, half };

static int __attribute__((noinline)) apply(int round)
{
    operation *it = operations[(round % 10 == 0) + (round % 100 == 0)];
    return it(round) + 3;
}

/* The same, but the call is a jump: 4 to add, 1 to twice. */
static int __attribute__((noinline)) hand_over(int round)
{
    return operations[round == 2](round);
}

int main(void)
{
    long sum = 0;
    for (int round = 0; round < 1000; round++)
        sum += apply(round);
    for (int round = 0; round < 5; round++)
        sum += hand_over(round);
    printf("%ld\n", sum);
    return 0;
}
