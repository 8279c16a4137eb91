/* Writes down everything that a process gets from the one that started it. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

extern char **environ;
static FILE *out;

static void words(int argc, char **argv)
{
    for (int i = 0; i < argc; i++)
        fprintf(out, "word %d: %s\n", i, argv[i]);
    /* The shell's name for what it starts. */
    for (char **it = environ; *it; it++)
        if (strncmp(*it, "_=", 2) != 0)
            fprintf(out, "variable %s\n", *it);
}

static void descriptors(void)
{
    for (int it = 0; it < 300; it++) {
        char name[64], file[PATH_MAX] = "";
        if (it == fileno(out) || fcntl(it, F_GETFD) == -1)
            continue;
        sprintf(name, "/proc/self/fd/%d", it);
        readlink(name, file, sizeof file - 1);
        /* Pipes and sockets are new every time. */
        file[strcspn(file, "[")] = 0;
        fprintf(out, "descriptor %d: %x %x at %ld, %s\n", it, fcntl(it, F_GETFD),
                fcntl(it, F_GETFL), (long)lseek(it, 0, SEEK_CUR), file);
    }
}

static void limits(void)
{
    for (int it = 0; it < RLIM_NLIMITS; it++) {
        struct rlimit limit;
        getrlimit(it, &limit);
        fprintf(out, "limit %d: %lx %lx\n", it, (long)limit.rlim_cur, (long)limit.rlim_max);
    }
}

static void signals(void)
{
    sigset_t blocked, pending;
    sigprocmask(SIG_BLOCK, 0, &blocked);
    sigpending(&pending);
    for (int it = 1; it < 65; it++) {
        struct sigaction action;
        if (sigaction(it, 0, &action) != 0)
            continue;
        fprintf(out, "signal %d:%s%s%s\n", it,
                action.sa_handler == SIG_IGN ? " ignored" : "",
                sigismember(&blocked, it) == 1 ? " blocked" : "",
                sigismember(&pending, it) == 1 ? " pending" : "");
    }
    struct itimerval timer;
    getitimer(ITIMER_REAL, &timer);
    fprintf(out, "timer %d\n", timer.it_value.tv_sec != 0 || timer.it_value.tv_usec != 0);
}

static void scheduling(void)
{
    struct sched_param parameter;
    cpu_set_t processors;
    sched_getparam(0, &parameter);
    sched_getaffinity(0, sizeof processors, &processors);
    fprintf(out, "nice %d\n", getpriority(PRIO_PROCESS, 0));
    fprintf(out, "processors %d\n", CPU_COUNT(&processors));
    fprintf(out, "policy %d %d\n", sched_getscheduler(0), parameter.sched_priority);
    fprintf(out, "priority of input and output %ld\n", syscall(SYS_ioprio_get, 1, 0));
    fprintf(out, "timer slack %d\n", prctl(PR_GET_TIMERSLACK));
}

static void attributes(void)
{
    int death = -1, adopts = -1, counter = -1;
    prctl(PR_GET_PDEATHSIG, &death);
    prctl(PR_GET_CHILD_SUBREAPER, &adopts);
    prctl(PR_GET_TSC, &counter);
    fprintf(out, "death signal %d, adopts %d, time stamp counter %d\n", death, adopts, counter);
    fprintf(out, "dumpable %d\n", prctl(PR_GET_DUMPABLE));
    fprintf(out, "no large pages %d\n", prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0));
    fprintf(out, "no new privileges %d\n", prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0));
    fprintf(out, "capabilities %d %d\n", prctl(PR_GET_KEEPCAPS), prctl(PR_GET_SECUREBITS));
    fprintf(out, "personality %x\n", personality(0xffffffff));
    fprintf(out, "umask %o\n", umask(0));
}

static void places(void)
{
    static const char *const links[] = {
        "cwd", "root", "exe", "ns/cgroup", "ns/ipc", "ns/mnt", "ns/net", "ns/pid", "ns/time",
        "ns/user", "ns/uts"};
    for (unsigned it = 0; it < sizeof links / sizeof *links; it++) {
        char name[64], where[PATH_MAX] = "";
        sprintf(name, "/proc/self/%s", links[it]);
        readlink(name, where, sizeof where - 1);
        fprintf(out, "%s: %s\n", links[it], where);
    }
    int terminal = open("/dev/tty", O_RDONLY | O_CLOEXEC);
    fprintf(out, "terminal %d, session %d, leads %d\n", terminal >= 0, getsid(0),
            getpgrp() == getpid());
    fprintf(out, "secure %lu\n", getauxval(AT_SECURE));
}

static void lines(const char *path, const char *const *wanted)
{
    char line[4096];
    FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof line, file))
        for (const char *const *it = wanted; *it; it++)
            if (strncmp(line, *it, strlen(*it)) == 0)
                fprintf(out, "%s", line);
    if (file)
        fclose(file);
}

int main(int argc, char **argv)
{
    static const char *const all[] = {"", 0};
    static const char *const kept[] = {
        "Name", "Umask", "Uid", "Gid", "Groups", "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb",
        "Seccomp", "Speculation", "Cpus", "Mems", "THP", 0};
    /* What is opened here must not take the place of what is missing. */
    int file = open(argv[1], O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    int high = fcntl(file, F_DUPFD_CLOEXEC, 12);
    close(file);
    out = fdopen(high, "w");
    words(argc, argv);
    descriptors();
    limits();
    signals();
    scheduling();
    attributes();
    places();
    lines("/proc/self/status", kept);
    lines("/proc/self/oom_score_adj", all);
    lines("/proc/self/cgroup", all);
    return fflush(out) == 0 ? 5 : 1;
}
