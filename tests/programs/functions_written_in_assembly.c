//~ routes: asm patch
//~ calls: twice 4
//~ calls: sum_to 4
int twice(int n);
int sum_to(int n);

__asm__(".text\n"
        "\t.globl twice\n"
        "\t.type twice, @function\n"
        "twice:\n"
        "\tleal (%rdi,%rdi), %eax\n"
        "\tret\n"
        "\t.size twice, . - twice\n"
        "\t.type sum_to, @function\n"
        "sum_to:\n"
        "\txorl %eax, %eax\n"
        "\tmovl %edi, %ecx\n"
        "1:\taddl %ecx, %eax\n"
        "\tloop 1b\n"
        "\tret\n"
        "\t.size sum_to, . - sum_to\n");

int main(void) {                        //~ 1
    int sum = 0;                        //~ 1
    for (int i = 1; i < 5; i++)
        sum += twice(i) + sum_to(i);    //~ 4
    return sum != 40;                   //~ 1
}
