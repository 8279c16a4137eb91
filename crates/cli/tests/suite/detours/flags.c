// A function that changes no flags, and callers that count on it, as Go's compiler does where it
// has something cleared (runtime.duffzero). They call it at its beginning and in its midst. And one
// that answers by a flag.
#include <stdio.h>

char room[512];

__asm__(".text\n"
        ".globl clear, clear_half\n"
        ".type clear, @function\n"
        "clear:\n"
        ".rept 16\n movups %xmm0, (%rdi)\n lea 16(%rdi), %rdi\n .endr\n"
        "clear_half:\n"
        ".rept 16\n movups %xmm0, (%rdi)\n lea 16(%rdi), %rdi\n .endr\n"
        "ret\n"
        ".size clear, . - clear\n"
        // Adds to a number that it is handed: 1 if two others are equal, 2 if the first is less.
        ".globl compare\n"
        ".type compare, @function\n"
        "compare:\n"
        "mov %edx, %eax\n"
        "lea room(%rip), %rcx\n"
        "cmp %esi, %edi\n"
        "mov %rcx, %rdi\n"
        "call clear\n"
        "jne 1f\n"
        "lea 1(%eax), %eax\n"
        "1: mov %rcx, %rdi\n"
        "call clear_half\n"
        "jge 2f\n"
        "mov %rcx, %rdi\n"
        "call clear_half\n"
        "call clear_half\n" // There is no room for a detour to this one.
        "jge 2f\n"
        "lea 2(%eax), %eax\n"
        "2: ret\n"
        ".size compare, . - compare\n"
        // Answers by a flag.
        ".type odd, @function\n"
        "odd:\n"
        "test $1, %edi\n"
        "mov %edi, %edx\n"
        "ret\n"
        ".size odd, . - odd\n"
        ".globl half\n"
        ".type half, @function\n"
        "half:\n"
        "call odd\n"
        "jz 1f\n"
        "lea -1(%rdx), %edx\n"
        "1: mov %edx, %eax\n"
        "shr %eax\n"
        "ret\n"
        ".size half, . - half\n"
        // Does not ask for it.
        ".globl same\n"
        ".type same, @function\n"
        "same:\n"
        "call odd\n"
        "mov %edx, %eax\n"
        "ret\n"
        ".size same, . - same\n");

int compare(int one, int other, int sum);
int half(int x);
int same(int x);

int main(void)
{
    int sum = 0;
    for (int i = 0; i < 1000; i++)
        sum = compare(i % 5, 2, sum); // equal 200 times, less 400 times
    int halves = same(0);
    for (int i = 0; i < 1000; i++)
        halves += half(i);
    printf("%d %d\n", sum, halves);
}
