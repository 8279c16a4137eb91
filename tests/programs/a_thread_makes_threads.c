//~ routes: asm patch csource
//~ flags: -pthread
//~ calls: work 15
#include <pthread.h>
#include <stdatomic.h>

static atomic_int born;

static void *work(void *depth) {                                    //~ 15
    pthread_t threads[2];
    born++;                                                         //~ 15
    if (depth == 0)                                                 //~ 15
        return 0;                                                   //~ 8
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], 0, work, (char *)depth - 1);    //~ 14
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], 0);                                //~ 14
    return 0;                                                       //~ 7
}                                                                   //~ 15

int main(void) {                                                    //~ 1
    work((void *)3);                                                //~ 1
    return born != 15;                                              //~ 1
}
