// Three instructions fail; a handler checks where, and steps over them.
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <ucontext.h>
#include <unistd.h>

extern char segv_at[], segv_end[], fpe_at[], fpe_end[], ill_at[], ill_end[];
static volatile int wrong, seen;

static void repair(int signal, siginfo_t *info, void *context)
{
    greg_t *rip = &((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
    char *at = segv_at, *end = segv_end, *address = (char *)0x18;
    if (signal == SIGFPE)
        at = address = fpe_at, end = fpe_end;
    if (signal == SIGILL)
        at = address = ill_at, end = ill_end;
    wrong += (char *)*rip != at || (char *)info->si_addr != address;
    seen++;
    *rip = (greg_t)end;
}

__attribute__((noipa)) int segv(int x)
{
    __asm__ volatile("segv_at: movl $1, 0x18(%0)\nsegv_end:" : : "r"(0L) : "memory");
    return x + 1; // goes on
}

__attribute__((noipa)) int fpe(int x)
{
    int high = 0, low = 1;
    __asm__ volatile("fpe_at: divl %2\nfpe_end:" : "+a"(low), "+d"(high) : "r"(0) : "cc");
    return x + low; // goes on
}

__attribute__((noipa)) int ill(int x)
{
    __asm__ volatile("ill_at: ud2\nill_end:");
    return x + 1; // goes on
}

int main(void)
{
    struct sigaction action = {.sa_sigaction = repair, .sa_flags = SA_SIGINFO};
    int sum = 0;
    sigaction(SIGSEGV, &action, 0);
    sigaction(SIGFPE, &action, 0);
    sigaction(SIGILL, &action, 0);
    for (int i = 0; i < 100; i++)
        sum += segv(0) + fpe(0) + ill(0);
    if (wrong || seen != 300 || sum != 300)
        printf("%d wrong, %d seen, %d\n", wrong, seen, sum);
    return wrong || seen != 300 || sum != 300;
}
