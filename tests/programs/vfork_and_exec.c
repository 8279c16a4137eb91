//~ routes: asm patch csource
#include <sys/wait.h>
#include <unistd.h>

static int started;

static void start(char *const argv[]) {     //~ 3
    pid_t child = vfork();
    if (child == 0) {                       //~ 6
        started++;                          //~ 3
        execv(argv[0], argv);               //~ 3
        _exit(127);                         //~ 1
    }
    waitpid(child, 0, 0);                   //~ 3
}                                           //~ 3

int main(void) {                            //~ 1
    char *const good[] = {"/bin/true", 0};
    char *const bad[] = {"/no/such/file", 0};
    start(good);                            //~ 1
    start(bad);                             //~ 1
    start(good);                            //~ 1
    return started != 3;                    //~ 1
}
