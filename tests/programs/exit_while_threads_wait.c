//~ routes: asm patch csource
//~ varies: work pause@plt
//~ flags: -pthread
//~ status: 2
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

static pthread_barrier_t ready;

static void *work(void *unused) {               //~ 3
    pthread_barrier_wait(&ready);               //~ 3
    for (;;)
        pause();
    return unused;
}

int main(void) {                                //~ 1
    pthread_barrier_init(&ready, 0, 4);         //~ 1
    for (int i = 0; i < 3; i++) {
        pthread_t thread;
        pthread_create(&thread, 0, work, 0);    //~ 3
    }
    pthread_barrier_wait(&ready);               //~ 1
    exit(2);                                    //~ 1
}
