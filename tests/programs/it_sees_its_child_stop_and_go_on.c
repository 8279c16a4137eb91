//~ routes: patch
//~ unstepped: its child stops itself
#define _GNU_SOURCE
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static int to_child[2];

static void stop_and_go_on(int rounds) {                        //~ 1
    for (int i = 0; i < rounds; i++) {
        char byte;
        raise(SIGSTOP);                                         //~ 2
        read(to_child[0], &byte, 1);                            //~ 2
    }
    _exit(4);                                                   //~ 1
}

int main(void) {                                                //~ 1
    pipe(to_child);                                             //~ 1
    pid_t child = fork();                                       //~ 1
    if (child == 0)                                             //~ 2
        stop_and_go_on(2);                                      //~ 1
    int status;
    for (int i = 0; i < 2; i++) {
        if (waitpid(child, &status, WUNTRACED) != child)        //~ 2
            return 1;                                           //~ 0
        if (!WIFSTOPPED(status) || WSTOPSIG(status) != SIGSTOP) //~ 2
            return 2;                                           //~ 0
        kill(child, SIGCONT);                                   //~ 2
        if (waitpid(child, &status, WCONTINUED) != child)       //~ 2
            return 3;                                           //~ 0
        if (!WIFCONTINUED(status))                              //~ 2
            return 4;                                           //~ 0
        write(to_child[1], "!", 1);                             //~ 2
    }
    waitpid(child, &status, 0);                                 //~ 1
    return !WIFEXITED(status) || WEXITSTATUS(status) != 4;      //~ 1
}
