//~ keys: work(arg1)
//~ sums: sum arg2 in work(arg1 & 1)
//~ results: work(ret)
//~ line: LINE:here(x)
#include <stdlib.h>
#include "seen.h"

__attribute__((noipa)) long turn(long x)
{
    return x ^ 5;
}

__attribute__((noipa)) long work(long x, long y)
{
    y += turn(x); //@here
    return y & 7;
}

static void *thread(void *number)
{
    enum { KEYS = 97 };
    long counts[KEYS] = {0}, sums[2] = {0}, results[8] = {0};
    unsigned long seed = (unsigned long)number;
    for (int i = 0; i < 20000; i++) {
        long x = dice(&seed) % KEYS, y = (long)(dice(&seed) % 1000) - 500;
        counts[x]++;
        sums[x & 1] += y;
        results[(y + (x ^ 5)) & 7]++;
        work(x, y);
    }
    for (long x = 0; x < KEYS; x++) {
        saw_often("keys", NUMBER, x, counts[x], 0);
        saw_often("line", NUMBER, x, counts[x], 0);
        saw_often("sums", NUMBER, x & 1, counts[x], x < 2 ? sums[x] : 0);
    }
    for (int x = 0; x < 8; x++)
        saw_often("results", NUMBER, x, results[x], 0);
    return 0;
}

int main(int argc, char **argv)
{
    pthread_t all[64];
    long many = atoi(argv[1]);
    for (long i = 0; i < many; i++)
        pthread_create(&all[i], 0, thread, (void *)(i + 1));
    for (long i = 0; i < many; i++)
        pthread_join(all[i], 0);
    tell();
    return 0;
}
