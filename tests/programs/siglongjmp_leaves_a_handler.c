//~ routes: asm patch csource
#include <setjmp.h>
#include <signal.h>

static sigjmp_buf home;
static volatile int tries;

static void handler(int number) {       //~ 3
    tries += number == SIGUSR1;         //~ 3
    siglongjmp(home, 1);                //~ 3
}

static void attempt(void) {             //~ 4
    if (tries < 3)                      //~ 4
        raise(SIGUSR1);                 //~ 3
}                                       //~ 1

int main(void) {                        //~ 1
    signal(SIGUSR1, handler);           //~ 1
    sigsetjmp(home, 1);
    attempt();                          //~ 4
    return tries != 3;                  //~ 1
}
