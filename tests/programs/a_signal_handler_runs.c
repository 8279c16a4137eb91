//~ routes: asm patch csource
//~ calls: handler 4
#include <signal.h>

static volatile sig_atomic_t seen;

static void handler(int number) {       //~ 4
    if (number == SIGUSR1)              //~ 4
        seen += 1;                      //~ 3
    else
        seen += 10;                     //~ 1
}                                       //~ 4

int main(void) {                        //~ 1
    signal(SIGUSR1, handler);           //~ 1
    signal(SIGUSR2, handler);           //~ 1
    for (int i = 0; i < 3; i++)
        raise(SIGUSR1);                 //~ 3
    raise(SIGUSR2);                     //~ 1
    return seen != 13;                  //~ 1
}
