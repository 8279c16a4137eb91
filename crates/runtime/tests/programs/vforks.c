// vfork and exec, 100 times; the child counts too, in its parent's memory: 100 and 100.
#define _GNU_SOURCE
#include <sys/wait.h>
#include <unistd.h>
#include "counted.h"

__attribute__((noinline)) static void in_child(void) {
    ENTER();
    COUNT(1);
    execl("/bin/true", "true", (char *)0);
    _exit(9);
}

int main(void) {
    ENTER();
    for (int i = 0; i < 100; i++) {
        int status;
        COUNT(0);
        pid_t pid = vfork();
        if (pid == 0) in_child();
        AFTER_FORK();
        if (waitpid(pid, &status, 0) != pid || status != 0) return 1;
    }
    return 0;
}
