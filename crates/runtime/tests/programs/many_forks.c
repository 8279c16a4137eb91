// Forks 3000 children, one after another; each counts 100 times in counter 1.
#include <sys/wait.h>
#include <unistd.h>
#include "counted.h"

int main(void) {
    ENTER();
    for (int i = 0; i < 3000; i++) {
        COUNT(0);
        pid_t pid = fork();
        if (pid < 0) return 1;
        if (pid == 0) {
            COUNT_LOOP(1, 100);
            _exit(0);
        }
        waitpid(pid, 0, 0);
    }
    return 0;
}
