// A signal comes right before an instruction that stores the flags, among the first bytes of its
// function. They are stored as they are: nobody goes step by step.

#define _GNU_SOURCE
#include <signal.h>
#include <ucontext.h>

__asm__(".text\n"
        ".type pushes, @function\n"
        "pushes:\n"
        "  movb (%rdi), %al\n"
        "  pushfq\n"
        "  popq %rax\n"
        "  ret\n"
        ".size pushes, . - pushes\n");

long pushes(const char *from);

static volatile int ticks;

static void tick(int signal)
{
    (void)signal;
    ticks++;
}

/// Goes on behind the two bytes that cannot be run. The other signal waits until then.
static void skip(int signal, siginfo_t *info, void *context)
{
    (void)signal;
    (void)info;
    ((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP] += 2;
    raise(SIGUSR1);
}

int main(void)
{
    const long trap = 0x100;
    struct sigaction ticks_on = {.sa_handler = tick};
    struct sigaction skips = {.sa_sigaction = skip, .sa_flags = SA_SIGINFO};
    sigaddset(&skips.sa_mask, SIGUSR1);
    sigaction(SIGUSR1, &ticks_on, 0);
    sigaction(SIGSEGV, &skips, 0);
    for (int i = 0; i < 10; i++)
        if (pushes(0) & trap)
            return 1;
    return ticks != 10;
}
