// Eight threads add to what belongs to their processor, by a sequence that the kernel begins again
// when it takes the thread away in the middle: rseq(2).
#define _GNU_SOURCE
#include <linux/rseq.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/rseq.h>

static long sums[4096][8];

__attribute__((noipa)) static void add(void)
{
    char *mine = (char *)__builtin_thread_pointer() + __rseq_offset;
    __asm__ volatile(".pushsection __rseq_cs, \"aw\"\n"
                     ".balign 32\n"
                     "3: .long 0, 0\n"
                     ".quad 1f, 2f - 1f, 4f\n"
                     ".popsection\n"
                     "5: leaq 3b(%%rip), %%rax\n"
                     "movq %%rax, 8(%0)\n"
                     "1: movl 4(%0), %%eax\n"
                     "shlq $6, %%rax\n"
                     "addq %1, %%rax\n"
                     "movq (%%rax), %%rcx\n"
                     "incq %%rcx\n"
                     ".rept 100\n"
                     "nop\n"
                     ".endr\n"
                     "movq %%rcx, (%%rax)\n"
                     "2: jmp 6f\n"
                     ".byte 0x0f, 0xb9, 0x3d\n"
                     ".long 0x53053053\n"
                     "4: jmp 5b\n"
                     "6:\n"
                     :
                     : "r"(mine), "r"(sums)
                     : "rax", "rcx", "cc", "memory");
}

static void *work(void *unused)
{
    for (int i = 0; i < 1000000; i++)
        add();
    return unused;
}

int main(void)
{
    pthread_t threads[8];
    long sum = 0;
    if (__rseq_size == 0)
        return 77;
    for (int i = 0; i < 8; i++)
        pthread_create(&threads[i], 0, work, 0);
    for (int i = 0; i < 8; i++)
        pthread_join(threads[i], 0);
    for (int i = 0; i < 4096; i++)
        sum += sums[i][0];
    printf("%ld\n", sum);
    return 0;
}
