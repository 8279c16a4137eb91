//~ routes: asm patch csource
#include <ucontext.h>

static ucontext_t home, away;
static int steps;

static void wander(void) {                          //~ 1
    for (;;) {
        steps++;                                    //~ 3
        swapcontext(&away, &home);
    }
}

int main(void) {                                    //~ 1
    static char stack[65536];
    getcontext(&away);
    away.uc_stack.ss_sp = stack;                    //~ 1
    away.uc_stack.ss_size = sizeof stack;           //~ 1
    makecontext(&away, wander, 0);                  //~ 1
    for (int i = 0; i < 3; i++)
        swapcontext(&home, &away);                  //~ 3
    return steps != 3;                              //~ 1
}
