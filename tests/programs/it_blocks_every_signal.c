//~ routes: patch
//~ unstepped: it blocks SIGTRAP
//~ calls: handler 1
#include <signal.h>
#include <unistd.h>

static volatile int handled, worked;

static void handler(int number) {               //~ 1
    handled++;                                  //~ 1
}                                               //~ 1

static void work(void) {                        //~ 3
    for (int i = 0; i < 5; i++)
        worked += i;                            //~ 15
}                                               //~ 3

static int is_blocked(void) {                   //~ 4
    sigset_t set;
    sigprocmask(SIG_BLOCK, 0, &set);            //~ 4
    return sigismember(&set, SIGTRAP);          //~ 4
}                                               //~ 4

static int is_pending(void) {                   //~ 3
    sigset_t set;
    sigpending(&set);                           //~ 3
    return sigismember(&set, SIGTRAP);          //~ 3
}                                               //~ 3

int main(void) {                                //~ 1
    struct sigaction action = {.sa_handler = handler}, now;
    sigaction(SIGTRAP, &action, 0);             //~ 1
    if (is_blocked())                           //~ 1
        return 1;                               //~ 0
    sigset_t all, before;
    sigfillset(&all);                           //~ 1
    sigprocmask(SIG_SETMASK, &all, &before);    //~ 1
    work();                                     //~ 1
    if (!is_blocked() || is_pending())          //~ 1
        return 2;                               //~ 0
    raise(SIGTRAP);                             //~ 1
    raise(SIGTRAP);                             //~ 1
    work();                                     //~ 1
    if (handled || !is_blocked())               //~ 1
        return 3;                               //~ 0
    if (!is_pending())                          //~ 1
        return 4;                               //~ 0
    sigaction(SIGTRAP, 0, &now);                //~ 1
    if (now.sa_handler != handler)              //~ 1
        return 5;                               //~ 0
    sigprocmask(SIG_SETMASK, &before, &all);    //~ 1
    if (!sigismember(&all, SIGTRAP))            //~ 1
        return 6;                               //~ 0
    work();                                     //~ 1
    if (handled != 1)                           //~ 1
        return 7;                               //~ 0
    return is_blocked() || is_pending();        //~ 1
}
