//~ routes: patch
//~ calls: handler 1
#define _GNU_SOURCE
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static int to_parent[2], to_child[2];

static void handler(int number) {                   //~ 1
    // Only now may the other side write.
    write(to_child[1], "!", 1);                     //~ 1
}                                                   //~ 1

static void interrupt(pid_t parent) {               //~ 1
    char byte;
    kill(parent, SIGUSR1);                          //~ 1
    read(to_child[0], &byte, 1);                    //~ 1
    write(to_parent[1], &byte, 1);                  //~ 1
    _exit(0);                                       //~ 1
}

int main(void) {                                    //~ 1
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    sigaction(SIGUSR1, &action, 0);                 //~ 1
    pipe(to_parent);                                //~ 1
    pipe(to_child);                                 //~ 1
    pid_t parent = getpid();                        //~ 1
    if (fork() == 0)                                //~ 2
        interrupt(parent);                          //~ 1
    char byte = 0;                                  //~ 1
    long count = read(to_parent[0], &byte, 1);      //~ 1
    wait(0);                                        //~ 1
    return count != 1 || byte != '!';               //~ 1
}
