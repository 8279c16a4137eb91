//~ routes: patch
//~ unstepped: it stops itself
//~ calls: wake 3
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int is_stopped(pid_t pid) {
    char name[32], line[512] = "";
    snprintf(name, sizeof name, "/proc/%d/stat", pid);
    FILE *file = fopen(name, "r");
    fgets(line, sizeof line, file);
    fclose(file);
    char state = strrchr(line, ')')[2];
    return state == 'T' || state == 't';
}

static void wake(pid_t parent) {        //~ 3
    while (!is_stopped(parent))
        usleep(1000);
    // A breakpoint is a stop too, but a short one.
    usleep(20000);                      //~ 3
    kill(parent, SIGCONT);              //~ 3
    _exit(0);                           //~ 3
}

int main(void) {                        //~ 1
    pid_t parent = getpid();            //~ 1
    for (int i = 0; i < 3; i++) {
        if (fork() == 0)                //~ 6
            wake(parent);               //~ 3
        raise(SIGSTOP);                 //~ 3
        wait(0);                        //~ 3
    }
    return 0;                           //~ 1
}
