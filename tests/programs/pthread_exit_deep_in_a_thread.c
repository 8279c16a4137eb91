//~ routes: asm patch csource
//~ flags: -pthread
#include <pthread.h>

static void deep(long n) {                                      //~ 4
    if (n > 1)                                                  //~ 4
        pthread_exit((void *)n);                                //~ 2
}                                                               //~ 2

static void *work(void *n) {                                    //~ 4
    deep((long)n);                                              //~ 4
    return 0;                                                   //~ 2
}

int main(void) {                                                //~ 1
    long total = 0;                                             //~ 1
    for (long i = 0; i < 4; i++) {
        pthread_t thread;
        void *result;
        pthread_create(&thread, 0, work, (void *)i);            //~ 4
        pthread_join(thread, &result);                          //~ 4
        total += (long)result;                                  //~ 4
    }
    return total != 5;                                          //~ 1
}
