//~ routes: patch
//~ calls: child 3
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile int shared;

static int child(void *argument) {                              //~ 3
    shared += 1;                                                //~ 3
    return *(int *)argument;                                    //~ 3
}                                                               //~ 3

int main(void) {                                                //~ 1
    static char stack[65536] __attribute__((aligned(16)));
    int status, wanted[] = {5, 6, 7};
    int flags[] = {CLONE_VM | SIGCHLD, SIGCHLD, CLONE_VM | CLONE_VFORK | SIGCHLD};
    for (int i = 0; i < 3; i++) {
        pid_t pid = clone(child, stack + sizeof stack, flags[i], &wanted[i]);   //~ 3
        if (waitpid(pid, &status, 0) != pid)                    //~ 3
            return 1;                                           //~ 0
        if (WEXITSTATUS(status) != wanted[i])                   //~ 3
            return 2;                                           //~ 0
    }
    return shared != 2;                                         //~ 1
}
