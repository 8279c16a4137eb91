// It goes one step into a function that is too short for a jump in front of its call, and has
// nothing but filler behind it. A handler sees where that leads: to one of its instructions.

#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <ucontext.h>

__asm__(".text\n"
        ".p2align 5, 0xcc\n"
        ".type swaps, @function\n"
        "swaps:\n"
        "  xchgq %rdx, %rax\n"
        "  call nothing\n"
        "  xchgq %rdx, %rax\n"
        "  ret\n"
        ".size swaps, . - swaps\n"
        ".p2align 5, 0xcc\n"
        ".type nothing, @function\n"
        "nothing:\n"
        "  ret\n"
        ".size nothing, . - nothing\n"
        ".p2align 5, 0xcc\n"
        // Calls it, and has the processor trap behind its first instruction.
        ".type steps_into, @function\n"
        "steps_into:\n"
        "  movq %rsp, %rcx\n"
        "  movl %ss, %eax\n"
        "  pushq %rax\n"
        "  pushq %rcx\n"
        "  pushfq\n"
        "  orq $0x100, (%rsp)\n"
        "  movl %cs, %eax\n"
        "  pushq %rax\n"
        "  pushq %rdi\n"
        "  iretq\n"
        ".size steps_into, . - steps_into\n");

void swaps(void);
void steps_into(void (*function)(void));

static volatile int steps;

static void stepped(int signal, siginfo_t *info, void *context)
{
    (void)signal;
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    uintptr_t at = registers[REG_RIP] - (uintptr_t)swaps;
    if (info->si_code != TRAP_TRACE || (at != 0 && at != 2))
        _Exit(2);
    registers[REG_EFL] &= ~0x100;
    steps++;
}

int main(void)
{
    struct sigaction action = {.sa_sigaction = stepped, .sa_flags = SA_SIGINFO};
    sigaction(SIGTRAP, &action, 0);
    swaps();
    for (int i = 0; i < 10; i++)
        steps_into(swaps);
    return steps != 10;
}
