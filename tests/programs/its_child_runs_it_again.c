//~ routes: asm patch csource
//~ args: 2
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv) {                       //~ 3
    int left = atoi(argv[argc - 1]);                    //~ 3
    if (left == 0)                                      //~ 3
        return 0;                                       //~ 1
    if (fork() == 0) {
        char next[] = {'0' + left - 1, 0};
        execl("/proc/self/exe", argv[0], next, NULL);   //~ 2
        _exit(9);                                       //~ 0
    }
    int status = 1;                                     //~ 2
    wait(&status);                                      //~ 2
    return status;                                      //~ 2
}
