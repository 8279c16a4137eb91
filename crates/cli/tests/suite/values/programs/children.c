//~ work: work(arg1)
//~ results: sum ret in work
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#include "seen.h"

__attribute__((noipa)) long work(long n)
{
    return n * 3 - 10;
}

static void works(long n)
{
    saw("work", NUMBER, n, 0);
    saw("results", NUMBER, 0, n * 3 - 10);
    work(n);
}

static void *thread(void *n)
{
    for (int i = 0; i < 200; i++)
        works((long)n);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc > 1) {
        /* Who has been started by `exec` says nothing: its parent does. */
        for (long n = 0; n < atol(argv[1]); n++)
            work(n);
        _exit(0);
    }
    for (long n = 0; n < 10; n++)
        works(n);
    for (long child = 0; child < 5; child++)
        if (!fork()) {
            works(100 + child);
            if (!fork()) {
                works(200);
                _exit(0);
            }
            wait(0);
            pthread_t other;
            pthread_create(&other, 0, thread, (void *)child);
            works(5);
            pthread_join(other, 0);
            if (child == 3)
                abort();
            _exit(0);
        }
    for (long child = 1; child < 6; child++) {
        char many[8];
        sprintf(many, "%ld", child * 3);
        for (long n = 0; n < child * 3; n++) {
            saw("work", NUMBER, n, 0);
            saw("results", NUMBER, 0, n * 3 - 10);
        }
        works(1000);
        if (!vfork()) {
            /* In its parent's memory. */
            work(2000);
            execl("/proc/self/exe", "it", many, (char *)0);
            _exit(1);
        }
        saw("work", NUMBER, 2000, 0);
        saw("results", NUMBER, 0, 2000 * 3 - 10);
    }
    while (wait(0) > 0)
        ;
    tell();
    return 0;
}
