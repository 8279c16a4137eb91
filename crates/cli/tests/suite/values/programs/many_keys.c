//~ low: work(arg1 & 0xff)
//~ sums: sum arg1 in work
//~ bits: work(arg1 >> 15)
#include <stdlib.h>
#include "seen.h"

__attribute__((noipa)) long work(long n)
{
    return n;
}

static void *thread(void *number)
{
    unsigned long first = (unsigned long)number;
    long sum = 0;
    for (unsigned long i = 0; i < 200000; i++) {
        /* Every thread in an order of its own. */
        long n = (i * 48271 + first * 7919) % 200000;
        work(n);
        sum += n;
    }
    for (int i = 0; i < 256; i++)
        saw_often("low", NUMBER, i, 200000 / 256 + (i < 200000 % 256), 0);
    for (int i = 0; i <= 200000 >> 15; i++)
        saw_often("bits", NUMBER, i, i < 200000 >> 15 ? 1 << 15 : 200000 & 0x7fff, 0);
    saw_often("sums", NUMBER, 0, 200000, sum);
    return 0;
}

int main(int argc, char **argv)
{
    pthread_t all[64];
    long many = atoi(argv[1]);
    for (long i = 0; i < many; i++)
        pthread_create(&all[i], 0, thread, (void *)i);
    for (long i = 0; i < many; i++)
        pthread_join(all[i], 0);
    tell();
    return 0;
}
