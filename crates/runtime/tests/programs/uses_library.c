// Eight threads count in the program and in a library, 500000 times each, in turns of 1000.
// Then a child does the same, with one thread.
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#include "counted.h"

void work(long rounds);

static void *both(void *nothing) {
    ENTER();
    for (int i = 0; i < 500; i++) {
        COUNT_LOOP(1, 1000);
        work(1000);
    }
    return nothing;
}

int main(void) {
    pthread_t threads[8];
    int status;
    ENTER();
    for (int i = 0; i < 8; i++) pthread_create(&threads[i], NULL, both, NULL);
    for (int i = 0; i < 8; i++) pthread_join(threads[i], NULL);
    pid_t pid = fork();
    if (pid == 0) {
        both(NULL);
        exit(0);
    }
    waitpid(pid, &status, 0);
    return status != 0;
}
