// Foreign memory lies where lanes would be (WHAT says where), before a thread needs one. The
// thread counts 1000 times all the same, and the foreign memory keeps its contents.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include "counted.h"

extern char counters[] __asm__("counted_here");

static void *work(void *nothing) {
    ENTER();
    COUNT_LOOP(1, 1000);
    return nothing;
}

int main(void) {
    ENTER();
    COUNT(0);
    uintptr_t mine = (uintptr_t)counters & -4096;
    enum { LANES = 20 };
    char *obstacles[LANES];
    for (int i = 0; i < LANES; i++) {
        char *where = (char *)(mine - ((64ul << 30) + ((i + 1ul) << 26)));
        obstacles[i] = mmap(where, 4096, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
        if (obstacles[i] != where) return 2;
        memset(where, 0x5a, 4096);
    }
    pthread_t thread;
    pthread_create(&thread, NULL, work, NULL);
    pthread_join(thread, NULL);
    for (int i = 0; i < LANES; i++)
        for (int j = 0; j < 4096; j++)
            if (obstacles[i][j] != 0x5a) return 3;
    return 0;
}
