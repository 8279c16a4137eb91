// Gives up what it does not need, and then makes threads and a child.
#define _GNU_SOURCE
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static long rounds;

__attribute__((noipa)) void visit(long x)
{
    volatile long y = x;
}

static void *work(void *unused)
{
    for (long i = 0; i < rounds; i++)
        visit(i);
    return unused;
}

// From now on, whoever opens a file is killed.
static int open_no_more(void)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {4, filter};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

int main(int argc, char **argv)
{
    struct rlimit no_files = {3, 3};
    pthread_t threads[4];
    int status = 1, failed = 0;
    rounds = atol(argv[2]);
    if (!strcmp(argv[1], "files"))
        failed = setrlimit(RLIMIT_NOFILE, &no_files);
    if (!strcmp(argv[1], "calls"))
        failed = open_no_more();
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], 0, work, 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], 0);
    if (fork() == 0) {
        work(0);
        _exit(0);
    }
    wait(&status);
    return failed || status != 0;
}
