//~ routes: patch
//~ unstepped: it ignores SIGTRAP
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void) {                                                //~ 1
    struct sigaction action, old;
    if (signal(SIGTRAP, SIG_IGN) != SIG_DFL)                    //~ 1
        return 1;                                               //~ 0
    for (int i = 0; i < 4; i++)
        raise(SIGTRAP);                                         //~ 4
    kill(getpid(), SIGTRAP);                                    //~ 1
    sigaction(SIGTRAP, 0, &action);                             //~ 1
    if (action.sa_handler != SIG_IGN)                           //~ 1
        return 2;                                               //~ 0
    pid_t child = fork();                                       //~ 1
    if (child == 0) {                                           //~ 2
        raise(SIGTRAP);                                         //~ 1
        _exit(7);                                               //~ 1
    }
    int status;
    waitpid(child, &status, 0);                                 //~ 1
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 7)         //~ 1
        return 3;                                               //~ 0
    if (signal(SIGTRAP, SIG_DFL) != SIG_IGN)                    //~ 1
        return 4;                                               //~ 0
    child = fork();                                             //~ 1
    if (child == 0)                                             //~ 2
        raise(SIGTRAP);                                         //~ 1
    waitpid(child, &status, 0);                                 //~ 1
    return !WIFSIGNALED(status) || WTERMSIG(status) != SIGTRAP; //~ 1
}
