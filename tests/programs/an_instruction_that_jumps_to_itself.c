//~ routes: patch
//~ varies: forever
#include <setjmp.h>
#include <signal.h>
#include <sys/time.h>

static sigjmp_buf back;

static void handler(int number) {                       //~ 1
    siglongjmp(back, 1);                                //~ 1
}

static void forever(void) {                             //~ 1
    struct itimerval soon = {{0, 0}, {0, 5000}};
    setitimer(ITIMER_REAL, &soon, 0);                   //~ 1
    __asm__ volatile("1: jmp 1b");
}

static void count_down(long rounds) {                   //~ 2
    __asm__ volatile("1: loop 1b" : "+c"(rounds));      //~ 2
}                                                       //~ 2

int main(void) {                                        //~ 1
    count_down(1);                                      //~ 1
    count_down(40);                                     //~ 1
    signal(SIGALRM, handler);                           //~ 1
    if (sigsetjmp(back, 1) == 0)                        //~ 2
        forever();                                      //~ 1
    return 0;                                           //~ 1
}
