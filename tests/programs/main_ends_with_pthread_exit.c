//~ routes: asm patch csource
//~ flags: -pthread
#include <pthread.h>

static pthread_t first;

static void *work(void *unused) {               //~ 1
    pthread_join(first, 0);                     //~ 1
    return unused;                              //~ 1
}

int main(void) {                                //~ 1
    pthread_t thread;
    first = pthread_self();                     //~ 1
    pthread_create(&thread, 0, work, 0);        //~ 1
    pthread_exit(0);                            //~ 1
}
