//~ routes: asm patch csource
//~ flags: -pthread
#include <pthread.h>
#include <stdatomic.h>

static atomic_long total;
static pthread_barrier_t start;

static void *work(void *rounds) {                           //~ 8
    pthread_barrier_wait(&start);                           //~ 8
    for (long i = 0; i < (long)rounds; i++)
        total++;                                            //~ 1200
    return 0;                                               //~ 8
}

int main(void) {                                            //~ 1
    pthread_t threads[8];
    pthread_barrier_init(&start, 0, 8);                     //~ 1
    for (int i = 0; i < 8; i++)
        pthread_create(&threads[i], 0, work, (void *)150);  //~ 8
    for (int i = 0; i < 8; i++)
        pthread_join(threads[i], 0);                        //~ 8
    return total != 1200;                                   //~ 1
}
