//~ routes: asm patch csource
//~ asm-uncertain: fault
//~ status: 8
#include <signal.h>
#include <unistd.h>

static void handler(int number) {       //~ 1
    _exit(number == SIGSEGV ? 8 : 9);
}

static void fault(volatile int *where) {    //~ 1
    *where = 1;
}

int main(void) {                        //~ 1
    signal(SIGSEGV, handler);           //~ 1
    fault(0);                           //~ 1
    return 0;                           //~ 0
}
