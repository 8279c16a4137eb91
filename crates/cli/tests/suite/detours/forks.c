// Children and parents work, in memory of their own and in common.
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;
static volatile long sum;

__attribute__((noipa)) void in_parent(int rounds)
{
    for (int i = 0; i < rounds; i++)
        sum += i; // parent
}

__attribute__((noipa)) void in_child(int rounds)
{
    for (int i = 0; i < rounds; i++)
        sum += i; // child
}

// What a child does that has its parent's memory must not change the parent's stack.
__attribute__((noipa)) static pid_t by_vfork(char **argv)
{
    pid_t child = vfork();
    if (child == 0) {
        in_child(7);
        execv("/proc/self/exe", argv);
        _exit(1);
    }
    return child;
}

int main(int argc, char **argv)
{
    char *again[] = {argv[0], "again", 0};
    int count = atoi(argv[2 < argc ? 2 : 0]);
    if (!strcmp(argv[1], "again"))
        return in_child(3), 0;
    for (int i = 0; i < count; i++) {
        pid_t child = -1;
        int status = 1;
        if (!strcmp(argv[1], "fork")) {
            child = fork();
            if (child == 0) {
                in_child(10);
                _exit(0);
            }
        } else if (!strcmp(argv[1], "vfork")) {
            child = by_vfork(again);
        } else if (!strcmp(argv[1], "spawn")) {
            posix_spawn(&child, "/proc/self/exe", 0, 0, again, environ);
        }
        in_parent(20);
        if (waitpid(child, &status, 0) != child || status != 0)
            return 1;
    }
    return 0;
}
