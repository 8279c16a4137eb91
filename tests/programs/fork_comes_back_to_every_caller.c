//~ routes: asm patch csource
//~ calls: deeper 3
#include <sys/wait.h>
#include <unistd.h>

static pid_t make_child(void) {         //~ 1
    pid_t child = fork();               //~ 1
    return child;                       //~ 2
}                                       //~ 2

static pid_t deeper(int levels) {       //~ 3
    if (levels == 0)                    //~ 3
        return make_child();            //~ 1
    pid_t child = deeper(levels - 1);   //~ 2
    return child;                       //~ 4
}                                       //~ 6

int main(void) {                        //~ 1
    pid_t child = deeper(2);            //~ 1
    if (child == 0)                     //~ 2
        return 3;                       //~ 1
    int status;
    waitpid(child, &status, 0);         //~ 1
    return WEXITSTATUS(status) != 3;    //~ 1
}
