// Carry flags that pass from block to block, where probes are.
#include <stdio.h>
#include <string.h>

// The sum of two numbers of so many words: `adc` in a loop that keeps the carry.
__attribute__((noipa)) static long add(unsigned long *to, const unsigned long *from, long words) {
    long carry;
    __asm__("clc\n"
            "1: jrcxz 2f\n"
            "mov (%[from]), %%rax\n"
            "adc %%rax, (%[to])\n"
            "lea 8(%[from]), %[from]\n"
            "lea 8(%[to]), %[to]\n"
            "lea -1(%%rcx), %%rcx\n"
            "jmp 1b\n"
            "2: sbb %[carry], %[carry]\n"
            : [carry] "=&r"(carry), [to] "+r"(to), [from] "+r"(from), "+c"(words)
            :
            : "rax", "cc", "memory");
    return carry;
}

// As a C library compares: by what a subtraction leaves, behind a jump.
__attribute__((noipa)) static int compare(unsigned long a, unsigned long b) {
    int result;
    __asm__("xor %[result], %[result]\n"
            "sub %[b], %[a]\n"
            "jne 1f\n"
            "jmp 2f\n"
            "1: sbb %[result], %[result]\n"
            "or $1, %[result]\n"
            "2:\n"
            : [result] "=&r"(result), [a] "+r"(a)
            : [b] "r"(b)
            : "cc");
    return result;
}

int main(void) {
    unsigned long a[40], b[40];
    memset(a, 0xff, sizeof a);
    memset(b, 0x11, sizeof b);
    long sum = 0;
    for (int i = 0; i < 300; i++) {
        sum += 3 * add(a, b, i % 41) + compare(a[i % 40], b[i % 40]) + 2 * compare(i % 3, 1);
        b[i % 40] *= 0x9e3779b97f4a7c15;
    }
    printf("%ld %lx %lx\n", sum, a[0], a[39]);
    return 0;
}
