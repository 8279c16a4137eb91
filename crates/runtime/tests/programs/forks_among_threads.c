// Six threads; each makes a child 50 times, and short-lived threads all the while. Everybody
// counts: 6 * 50 * 1000 in the children (counter 1, and as much in a thread of each child,
// counter 2), 6 * 50 * 1000 in the short-lived threads (counter 3).
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#include "counted.h"

static void *in_child(void *nothing) {
    ENTER();
    COUNT_LOOP(2, 1000);
    return nothing;
}

static void *short_lived(void *nothing) {
    ENTER();
    COUNT_LOOP(3, 1000);
    return nothing;
}

static void *work(void *nothing) {
    ENTER();
    for (int i = 0; i < 50; i++) {
        pthread_t thread;
        int status;
        if (pthread_create(&thread, NULL, short_lived, NULL) != 0) abort();
        pid_t pid = fork();
        if (pid == 0) {
            pthread_t own;
            COUNT_LOOP(1, 1000);
            if (pthread_create(&own, NULL, in_child, NULL) != 0) _exit(1);
            pthread_join(own, NULL);
            _exit(0);
        }
        pthread_join(thread, NULL);
        if (waitpid(pid, &status, 0) != pid || status != 0) abort();
    }
    return nothing;
}

int main(void) {
    pthread_t threads[6];
    for (int i = 0; i < 6; i++) pthread_create(&threads[i], NULL, work, NULL);
    for (int i = 0; i < 6; i++) pthread_join(threads[i], NULL);
    return 0;
}
