// Threads and processes at once.
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static char **arguments;

__attribute__((noipa)) void visit(int x)
{
    volatile int y = x;
}

__attribute__((noipa)) void visits(int count)
{
    for (int i = 0; i < count; i++)
        visit(i);
}

static void *work(void *count)
{
    visits((long)count);
    return 0;
}

static void *work_by_children(void *unused)
{
    for (int i = 0; i < 50; i++) {
        pid_t child = fork();
        if (child == 0) {
            visits(10);
            _exit(0);
        }
        waitpid(child, 0, 0);
    }
    return unused;
}

static void *begin_again(void *unused)
{
    char *again[] = {arguments[0], "again", 0};
    visits(5);
    execv("/proc/self/exe", again);
    return unused;
}

static int in_common_memory(void *unused)
{
    visits(10);
    return 0;
}

int main(int argc, char **argv)
{
    pthread_t threads[8];
    arguments = argv;
    if (!strcmp(argv[1], "again"))
        visits(100);
    if (!strcmp(argv[1], "fork")) {
        for (int i = 0; i < 4; i++)
            pthread_create(&threads[i], 0, work, (void *)20000);
        for (int i = 4; i < 8; i++)
            pthread_create(&threads[i], 0, work_by_children, 0);
        for (int i = 0; i < 8; i++)
            pthread_join(threads[i], 0);
    }
    if (!strcmp(argv[1], "exec")) {
        pthread_create(&threads[0], 0, begin_again, 0);
        pause();
    }
    if (!strcmp(argv[1], "share"))
        for (int i = 0; i < 50; i++) {
            char *stack = malloc(65536);
            pid_t child = clone(in_common_memory, stack + 65536, CLONE_VM | SIGCHLD, 0);
            visits(10);
            waitpid(child, 0, 0);
            free(stack);
        }
    return 0;
}
