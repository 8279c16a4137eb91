//~ routes: patch
//~ flags: -pthread
//~ unstepped: SIGTRAP is its own
//~ calls: handler 7
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

static atomic_int raised, from_breakpoint;

static void handler(int number, siginfo_t *info, void *context) {   //~ 7
    if (info->si_code == SI_KERNEL)                                 //~ 7
        from_breakpoint++;                                          //~ 2
    else
        raised++;                                                   //~ 5
}                                                                   //~ 7

static void *send(void *main_thread) {                              //~ 1
    pthread_kill(*(pthread_t *)main_thread, SIGTRAP);               //~ 1
    return 0;                                                       //~ 1
}

int main(void) {                                                    //~ 1
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};
    sigaction(SIGTRAP, &action, 0);                                 //~ 1
    for (int i = 0; i < 3; i++)
        raise(SIGTRAP);                                             //~ 3
    for (int i = 0; i < 2; i++)
        __asm__ volatile("int3");                                   //~ 2
    kill(getpid(), SIGTRAP);                                        //~ 1
    pthread_t self = pthread_self(), other;                         //~ 1
    pthread_create(&other, 0, send, &self);                         //~ 1
    pthread_join(other, 0);                                         //~ 1
    sigaction(SIGTRAP, 0, &action);                                 //~ 1
    if (action.sa_sigaction != handler)                             //~ 1
        return 2;                                                   //~ 0
    return raised != 5 || from_breakpoint != 2;                     //~ 1
}
