//~ routes: asm patch csource
//~ calls: handler 6
#define _GNU_SOURCE
#include <signal.h>
#include <unistd.h>

static volatile int seen, wrong;

static void handler(int number, siginfo_t *info, void *context) {   //~ 6
    int expected = seen < 4 ? seen * 11 : (seen - 4) * 7;           //~ 6
    int from = seen < 4 ? SIGRTMIN : SIGRTMIN + 1;                  //~ 6
    if (info->si_value.sival_int != expected || number != from)     //~ 6
        wrong++;                                                    //~ 0
    seen++;                                                         //~ 6
}                                                                   //~ 6

int main(void) {                                                    //~ 1
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};
    sigfillset(&action.sa_mask);                                    //~ 1
    sigdelset(&action.sa_mask, SIGTRAP);                            //~ 1
    sigset_t both, before;
    sigemptyset(&both);                                             //~ 1
    for (int i = 0; i < 2; i++) {
        sigaddset(&both, SIGRTMIN + i);                             //~ 2
        sigaction(SIGRTMIN + i, &action, 0);                        //~ 2
    }
    sigprocmask(SIG_BLOCK, &both, &before);                         //~ 1
    for (int i = 0; i < 2; i++)
        sigqueue(getpid(), SIGRTMIN + 1, (union sigval){.sival_int = i * 7});   //~ 2
    for (int i = 0; i < 4; i++)
        sigqueue(getpid(), SIGRTMIN, (union sigval){.sival_int = i * 11});      //~ 4
    sigprocmask(SIG_SETMASK, &before, 0);                           //~ 1
    return seen != 6 || wrong;                                      //~ 1
}
