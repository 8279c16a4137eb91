//~ routes: asm patch csource
//~ flags: -pthread -Wl,-z,now
//~ calls: make_key 1
#include <pthread.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_key_t key;
static int destroyed;

static void destroy(void *value) {              //~ 5
    pthread_mutex_lock(&lock);                  //~ 5
    destroyed += *(int *)value;                 //~ 5
    pthread_mutex_unlock(&lock);                //~ 5
}                                               //~ 5

static void make_key(void) {                    //~ 1
    pthread_key_create(&key, destroy);          //~ 1
}                                               //~ 1

static void *work(void *value) {                //~ 5
    pthread_once(&once, make_key);              //~ 5
    pthread_setspecific(key, value);            //~ 5
    return 0;                                   //~ 5
}

int main(void) {                                //~ 1
    pthread_t threads[5];
    int values[] = {1, 2, 3, 4, 5};             //~ 1
    for (int i = 0; i < 5; i++)
        pthread_create(&threads[i], 0, work, &values[i]);   //~ 5
    for (int i = 0; i < 5; i++)
        pthread_join(threads[i], 0);            //~ 5
    return destroyed != 15;                     //~ 1
}
