//~ routes: patch
//~ calls: pick 160
//~ calls: slide 160
int pick(long n);
int slide(long n);

// Slots of eight bytes, as libffi has them; and a row of equal instructions, entered anywhere.
__asm__(".text\n"
        "\t.type pick, @function\n"
        "pick:\n"
        "\tleaq .Lslots(%rip), %rax\n"
        "\tleaq (%rax,%rdi,8), %rax\n"
        "\tjmp *%rax\n"
        "\t.balign 8\n"
        ".Lslots:\n"
        "\tmovl $3, %eax\n\tret\n\t.balign 8\n"
        "\tmovl %edi, %eax\n\tret\n\t.balign 8\n"
        "\tleal 1(%rdi), %eax\n\tret\n\t.balign 8\n"
        "\txorl %eax, %eax\n\tret\n\t.balign 8\n"
        "\tmovl %edi, %eax\n\tret\n\t.balign 8\n"
        "\tmovl %edi, %eax\n\tret\n\t.balign 8\n"
        "\tmovl %edi, %eax\n\tret\n\t.balign 8\n"
        "\tleal 2(%rdi), %eax\n\tret\n"
        "\t.size pick, . - pick\n"
        "\t.type slide, @function\n"
        "slide:\n"
        "\txorl %ecx, %ecx\n"
        "\tleaq .Lend(%rip), %rax\n"
        "\tleaq (%rdi,%rdi,2), %rdi\n"
        "\tsubq %rdi, %rax\n"
        "\tjmp *%rax\n"
        "\t.rept 8\n"
        "\tleal 1(%rcx), %ecx\n"
        "\t.endr\n"
        ".Lend:\tmovl %ecx, %eax\n"
        "\tret\n"
        "\t.size slide, . - slide\n");

int main(void) {                                        //~ 1
    int sum = 0;                                        //~ 1
    for (int round = 0; round < 20; round++)
        for (long n = 0; n < 8; n++)
            sum += pick(n) + slide(n);                  //~ 160
    return sum != 20 * (3 + 1 + 3 + 0 + 4 + 5 + 6 + 9 + 28);    //~ 1
}
