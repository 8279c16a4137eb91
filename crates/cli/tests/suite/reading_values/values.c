#include <stdio.h>
#include <stdlib.h>

int __attribute__((noipa)) take(int n)
{
    return n * 2;
}

/* 16 nine hundred times, 32 ninety times and some more, 7 nine times, 100 twice, -1 once. */
int main(int argc, char **argv)
{
    int more = argc > 1 ? atoi(argv[1]) : 0;
    long sum = 0;
    for (int i = 0; i < 900; i++)
        sum += take(16);
    for (int i = 0; i < 90 + more; i++)
        sum += take(32);
    for (int i = 0; i < 9; i++)
        sum += take(7);
    sum += take(100) + take(100);
    sum += take(-1);
    printf("%ld\n", sum);
    return 0;
}
