//~ routes: asm patch csource
//~ calls: handler 3
#define _GNU_SOURCE
#include <stdlib.h>
#include <signal.h>
#include <sys/mman.h>

static char *page;

static void handler(int number, siginfo_t *info, void *context) {   //~ 3
    if (info->si_addr != page + 8)                                  //~ 3
        _Exit(9);                                                   //~ 0
    mprotect(page, 4096, PROT_READ | PROT_WRITE);                   //~ 3
}                                                                   //~ 3

static void store(long value) {                                     //~ 3
    *(volatile long *)(page + 8) = value;                           //~ 3
}                                                                   //~ 3

int main(void) {                                                    //~ 1
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};
    sigaction(SIGSEGV, &action, 0);                                 //~ 1
    page = mmap(0, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);    //~ 1
    for (int i = 1; i <= 3; i++) {
        mprotect(page, 4096, PROT_READ);                            //~ 3
        store(i);                                                   //~ 3
    }
    return *(long *)(page + 8) != 3;                                //~ 1
}
