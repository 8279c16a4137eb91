/* Counts in a file, in threads that never end: see signals.S. */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

void spin(unsigned long *counters, unsigned long first);

static unsigned long *counters;

static void *thread(void *number)
{
    spin(counters + 8 * (long)number, 0);
    return 0;
}

int main(int argc, char **argv)
{
    long many = atoi(argv[1]);
    int file = open("counters", O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (ftruncate(file, 64 * many))
        return 1;
    counters = mmap(0, 64 * many, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    puts("started");
    fflush(stdout);
    for (long i = 1; i < many; i++) {
        pthread_t other;
        pthread_create(&other, 0, thread, (void *)i);
    }
    thread(0);
}
