// A number that only looks like an address: it lies in the midst of an instruction that nothing but
// a table of jumps leads to. The program must not be able to move.
#include <stdio.h>

int chosen(unsigned);
unsigned number(void);

__asm__(".globl chosen\n.type chosen, @function\n"
        "chosen: cmp $3, %edi\n ja 1f\n mov %edi, %eax\n jmp *table(,%rax,8)\n"
        "0: mov $1, %eax\n ret\n"
        "2: mov $2, %eax\n ret\n"
        "3: mov $0x55, %ecx\n movups %xmm1, -0x20(%rsp)\n mov %ecx, %eax\n ret\n"
        "1: xor %eax, %eax\n ret\n"
        ".size chosen, . - chosen\n"
        ".globl number\n.type number, @function\n"
        "number: mov $3b + 4, %eax\n ret\n"
        ".size number, . - number\n"
        ".section .rodata\n.balign 8\n"
        "table: .quad 0b, 2b, 2b, 3b\n"
        ".text\n");

int main(void) {
    printf("%d %d\n", chosen(0), chosen(9));
    printf("%d\n", number() != 0);
    printf("%d %d\n", chosen(3), chosen(1));
    return 0;
}
