// Starts ./tiny so many times.
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

__attribute__((noipa)) static int start(void)
{
    int status;
    pid_t child = fork();
    if (child == 0) {
        execl("./tiny", "tiny", (char *)0);
        _exit(1);
    }
    waitpid(child, &status, 0);
    return WEXITSTATUS(status);
}

int main(int argc, char **argv)
{
    for (int i = 0; i < atoi(argv[1]); i++)
        if (start() != 5)
            return 1;
    return 0;
}
