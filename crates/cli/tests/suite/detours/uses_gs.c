// Has a use of its own for the register that copies count by.
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static long mine[1 << 12] = {42, 43};

__attribute__((noipa)) void visit(void)
{
    mine[2]++;
}

__attribute__((noipa)) static void by_instruction(void)
{
#ifdef INSTRUCTION
    __asm__ volatile("wrgsbase %0" : : "r"(mine));
#endif
}

__attribute__((noipa)) static void by_call(void)
{
    syscall(SYS_arch_prctl, 0x1001 /* ARCH_SET_GS */, mine);
}

int main(int argc, char **argv)
{
    long sum = 0;
    if (!strcmp(argv[1], "instruction"))
        by_instruction();
    if (!strcmp(argv[1], "call"))
        by_call();
    visit();
    for (int i = 0; i < 1 << 12; i++)
        sum += mine[i];
    printf("%ld\n", sum);
    return 0;
}
