//~ routes: asm patch csource
#include <sys/wait.h>
#include <unistd.h>

static int work(int n) {                //~ 8
    return n + 1;                       //~ 8
}                                       //~ 8

int main(void) {                        //~ 1
    int n = work(0);                    //~ 1
    pid_t child = fork();               //~ 1
    if (child == 0) {                   //~ 2
        while (n < 5)
            n = work(n);                //~ 4
        return n;                       //~ 1
    }
    while (n < 4)
        n = work(n);                    //~ 3
    int status;
    waitpid(child, &status, 0);         //~ 1
    return WEXITSTATUS(status) != 5;    //~ 1
}
