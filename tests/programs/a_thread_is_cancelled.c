//~ routes: asm patch csource
//~ flags: -pthread
#include <pthread.h>
#include <unistd.h>

static pthread_barrier_t ready;
static int cleaned;

static void cleanup(void *unused) {             //~ 1
    (void)unused;
    cleaned++;                                  //~ 1
}                                               //~ 1

static void wait_for_ever(void) {               //~ 1
    pthread_barrier_wait(&ready);               //~ 1
    sleep(1000);                                //~ 1
    cleaned = 100;                              //~ 0
}                                               //~ 0

static void *work(void *unused) {               //~ 1
    pthread_cleanup_push(cleanup, 0);
    wait_for_ever();                            //~ 1
    pthread_cleanup_pop(0);
    return unused;                              //~ 0
}

int main(void) {                                //~ 1
    pthread_t thread;
    void *result;
    pthread_barrier_init(&ready, 0, 2);         //~ 1
    pthread_create(&thread, 0, work, 0);        //~ 1
    pthread_barrier_wait(&ready);               //~ 1
    pthread_cancel(thread);                     //~ 1
    pthread_join(thread, &result);              //~ 1
    return result != PTHREAD_CANCELED || cleaned != 1;
}
