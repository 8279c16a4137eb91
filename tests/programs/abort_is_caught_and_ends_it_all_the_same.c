//~ routes: asm patch csource
//~ status: 134
#include <signal.h>
#include <stdlib.h>

static volatile int seen;

static void handler(int number) {       //~ 1
    seen = number;                      //~ 1
}                                       //~ 1

int main(void) {                        //~ 1
    signal(SIGABRT, handler);           //~ 1
    abort();                            //~ 1
    return 0;
}
