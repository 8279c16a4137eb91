#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

typedef long step(void *);
extern step w0, w1, w2, w3, leaf, nothing, calls_nothing, hops, hopped, zero, roomy, also_roomy, last,
    follows;

static step *volatile by_pointer[] = {w0, w1, w2, w3, leaf, hops, zero,
                                      roomy, also_roomy, last, follows, calls_nothing};

static void *work(void *rounds)
{
    long sum = 0, self;
    void *target = &self;
    self = 1;
    for (long i = 0; i < (long)rounds; i++) {
        for (unsigned j = 0; j < sizeof by_pointer / sizeof *by_pointer; j++)
            sum += by_pointer[j](j < 4 ? (void *)&target : (void *)i);
        sum += calls_nothing((void *)i);
        nothing(0);
    }
    return (void *)(sum & 0xff);
}

int main(int argc, char **argv)
{
    int threads = atoi(argv[1]);
    long rounds = atol(argv[2]);
    pthread_t all[16];
    for (int i = 0; i < threads; i++)
        pthread_create(&all[i], 0, work, (void *)rounds);
    for (int i = 0; i < threads; i++)
        pthread_join(all[i], 0);
    work((void *)rounds);
    puts(argc > 2 ? "done" : "");
    return 0;
}
