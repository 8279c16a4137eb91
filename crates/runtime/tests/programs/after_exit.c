// The last destructor of all, after the runtime's own: makes a child and a thread, and all of
// them count.
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>
#include "counted.h"

static void *in_thread(void *nothing) {
    ENTER();
    COUNT_LOOP(2, 1000);
    return nothing;
}

static void last(void) {
    pthread_t thread;
    ENTER();
    COUNT_LOOP(1, 1000);
    pid_t pid = fork();
    if (pid == 0) {
        COUNT_LOOP(3, 1000);
        _exit(0);
    }
    waitpid(pid, NULL, 0);
    pthread_create(&thread, NULL, in_thread, NULL);
    pthread_join(thread, NULL);
}
__attribute__((section(".fini_array.00000"), used)) static void (*very_last)(void) = last;

int main(void) {
    ENTER();
    COUNT(0);
    return 0;
}
