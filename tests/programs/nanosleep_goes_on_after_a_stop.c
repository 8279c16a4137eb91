//~ routes: patch
//~ unstepped: it stops and goes on
#define _GNU_SOURCE
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void interrupt(pid_t parent) {               //~ 1
    kill(parent, SIGSTOP);                          //~ 1
    kill(parent, SIGCONT);                          //~ 1
    _exit(0);                                       //~ 1
}

int main(void) {                                    //~ 1
    pid_t parent = getpid();                        //~ 1
    if (fork() == 0)                                //~ 2
        interrupt(parent);                          //~ 1
    struct timespec time = {0, 50000000};
    int result = nanosleep(&time, 0);               //~ 1
    wait(0);                                        //~ 1
    return result;                                  //~ 1
}
