//~ routes: patch
//~ calls: handler 4
#include <setjmp.h>
#include <signal.h>

static sigjmp_buf back;
static volatile int faults;

static void handler(int number) {               //~ 4
    faults++;                                   //~ 4
    siglongjmp(back, 1);                        //~ 4
}

static int peek(volatile int *where) {          //~ 5
    return *where;                              //~ 5
}

int main(void) {                                //~ 1
    signal(SIGSEGV, handler);                   //~ 1
    int here = 3;                               //~ 1
    for (volatile int i = 0; i < 4; i++)
        if (sigsetjmp(back, 1) == 0)            //~ 8
            peek((int *)8);                     //~ 4
    return peek(&here) != 3 || faults != 4;     //~ 1
}
