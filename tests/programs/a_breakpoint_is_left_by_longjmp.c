//~ routes: asm patch csource
//~ calls: handler 2
#include <setjmp.h>
#include <signal.h>

static sigjmp_buf home;
static volatile int caught;

static void handler(int number) {           //~ 2
    caught += number == SIGTRAP ? 1 : 10;
    siglongjmp(home, 1);                    //~ 2
}

static void stop_at(int n) {                //~ 5
    if (n == 2)                             //~ 5
        __asm__ volatile("int3");           //~ 1
    if (n == 3)                             //~ 4
        __builtin_trap();
}                                           //~ 3

int main(void) {                            //~ 1
    signal(SIGTRAP, handler);               //~ 1
    signal(SIGILL, handler);                //~ 1
    for (volatile int i = 0; i < 5; i++)
        if (sigsetjmp(home, 1) == 0)
            stop_at(i);                     //~ 5
    return caught != 11;                    //~ 1
}
