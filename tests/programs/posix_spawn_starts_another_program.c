//~ routes: asm patch csource
#include <spawn.h>
#include <sys/wait.h>

int main(void) {                                            //~ 1
    char *const argv[] = {"true", 0};
    int status = 1;                                         //~ 1
    for (int i = 0; i < 2; i++) {
        pid_t child;
        posix_spawn(&child, "/bin/true", 0, 0, argv, 0);    //~ 2
        waitpid(child, &status, 0);                         //~ 2
    }
    return status;                                          //~ 1
}
