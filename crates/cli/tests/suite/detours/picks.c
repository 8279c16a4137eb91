// A function that is picked when the program starts, and work in a loop.
#include <stdio.h>

#ifdef PICKS
static int picked(int x) { return x + 1; }
static int passed_over(int x) { return x - 1; }
static int (*pick(void))(int) { return picked ? picked : passed_over; }
int plus(int x) __attribute__((ifunc("pick")));
#else
__attribute__((noipa)) int picked(int x) { return x + 1; }
#define plus picked
#endif

__attribute__((noipa)) int work(int rounds)
{
    int sum = 0;
    for (int i = 0; i < rounds; i++)
        sum = plus(sum); // all
    return sum;
}

int main(void)
{
    printf("%d\n", work(1000));
    return 0;
}
