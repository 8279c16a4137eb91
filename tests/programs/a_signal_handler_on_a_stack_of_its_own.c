//~ routes: asm patch csource
//~ calls: handler 7
#define _GNU_SOURCE
#include <signal.h>

static volatile int seen;

static void handler(int number) {               //~ 7
    seen++;                                     //~ 7
    if (seen < 5)                               //~ 7
        raise(number);                          //~ 4
}                                               //~ 7

int main(void) {                                //~ 1
    static char memory[65536];
    stack_t stack = {.ss_sp = memory, .ss_size = sizeof memory};
    sigaltstack(&stack, 0);                     //~ 1
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_ONSTACK | SA_NODEFER};
    sigaction(SIGUSR1, &action, 0);             //~ 1
    for (int i = 0; i < 3; i++)
        raise(SIGUSR1);                         //~ 3
    return seen != 7;                           //~ 1
}
