// Looks at where it is, by itself, a thousand times a second.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <execinfo.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <ucontext.h>

extern char __executable_start[], etext[];
static volatile int ticks, elsewhere, lost;
volatile unsigned long sum;

static void tick(int signal, siginfo_t *info, void *context)
{
    ucontext_t *at = context;
    char *rip = (char *)at->uc_mcontext.gregs[REG_RIP];
    void *frames[20];
    int count = backtrace(frames, 20), has_main = 0;
    ticks++;
    elsewhere += rip < __executable_start || rip >= etext;
    for (int i = 0; i < count; i++) {
        Dl_info where;
        if (!dladdr(frames[i], &where))
            elsewhere++;
        else if (where.dli_sname && !strcmp(where.dli_sname, "main"))
            has_main = 1;
    }
    lost += !has_main;
}

__attribute__((noipa)) void hot(unsigned long i)
{
    if (i % 7 == 0)
        sum += i; // sevenths
}

int main(void)
{
    struct sigaction action = {.sa_sigaction = tick, .sa_flags = SA_SIGINFO | SA_RESTART};
    struct itimerval every = {{0, 1000}, {0, 1000}}, never = {{0, 0}, {0, 0}};
    void *frames[20];
    backtrace(frames, 20);
    sigaction(SIGPROF, &action, 0);
    setitimer(ITIMER_PROF, &every, 0);
    for (unsigned long i = 0; i < 70000000; i++)
        hot(i); // all
    setitimer(ITIMER_PROF, &never, 0);
    if (ticks < 20 || elsewhere || lost)
        printf("%d ticks, %d elsewhere, %d lost\n", ticks, elsewhere, lost);
    return ticks < 20 || elsewhere || lost;
}
