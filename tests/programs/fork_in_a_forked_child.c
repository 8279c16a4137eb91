//~ routes: asm patch csource
#include <sys/wait.h>
#include <unistd.h>

int main(void) {                        //~ 1
    for (int i = 0; i < 3; i++) {
        pid_t child = fork();           //~ 7
        if (child > 0)                  //~ 14
            waitpid(child, 0, 0);       //~ 7
    }
    _exit(0);                           //~ 8
}
