// 2000 threads, one after another, each counts 1000 times.
#include <pthread.h>
#include <stddef.h>
#include "counted.h"

static void *work(void *nothing) {
    ENTER();
    COUNT(0);
    COUNT_LOOP(1, 1000);
    return nothing;
}

int main(void) {
    for (int i = 0; i < 2000; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, work, NULL) != 0) return 1;
        pthread_join(thread, NULL);
    }
    return 0;
}
