//~ routes: asm patch csource
//~ calls: grow 31
#include <sys/wait.h>
#include <unistd.h>

static int grow(int left) {                         //~ 31
    int leaves = 0;                                 //~ 31
    if (left == 0)                                  //~ 31
        return 1;                                   //~ 16
    for (int i = 0; i < 2; i++) {
        if (fork() == 0)                            //~ 60
            _exit(grow(left - 1));                  //~ 30
        int status;
        wait(&status);                              //~ 30
        leaves += WEXITSTATUS(status);              //~ 30
    }
    return leaves;                                  //~ 15
}                                                   //~ 31

int main(void) {                                    //~ 1
    return grow(4) != 16;                           //~ 1
}
