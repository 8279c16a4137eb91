// Threads go through one function, each so many times.
#include <pthread.h>
#include <stdlib.h>

static long rounds;

__attribute__((noipa)) static long hot(long x)
{
    if (x % 3 == 0)   // all
        return x + 1; // thirds
    return x - 1;     // others
}

static void *work(void *unused)
{
    long sum = 0;
    for (long i = 0; i < rounds; i++)
        sum += hot(i); // all
    return (void *)sum;
}

int main(int argc, char **argv)
{
    int count = atoi(argv[1]);
    pthread_t threads[64];
    rounds = atol(argv[2]);
    for (int i = 0; i < count; i++)
        pthread_create(&threads[i], 0, work, 0);
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], 0);
    return 0;
}
