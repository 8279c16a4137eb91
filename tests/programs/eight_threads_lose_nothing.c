//~ routes: asm patch csource
//~ flags: -pthread
//~ calls: step 800
#include <pthread.h>

static void step(long *sum) {                               //~ 800
    *sum += 1;                                              //~ 800
}                                                           //~ 800

static void *work(void *rounds) {                           //~ 8
    long sum = 0;                                           //~ 8
    for (long i = 0; i < (long)rounds; i++)
        step(&sum);                                         //~ 800
    return (void *)sum;                                     //~ 8
}                                                           //~ 8

int main(void) {                                            //~ 1
    pthread_t threads[8];
    long total = 0;                                         //~ 1
    for (int i = 0; i < 8; i++)
        pthread_create(&threads[i], 0, work, (void *)100);  //~ 8
    for (int i = 0; i < 8; i++) {
        void *sum;
        pthread_join(threads[i], &sum);                     //~ 8
        total += (long)sum;                                 //~ 8
    }
    return total != 800;                                    //~ 1
}
