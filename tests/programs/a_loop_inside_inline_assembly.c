//~ routes: asm patch csource
//~ asm-refuses: sum_to
static int sum_to(int n) {              //~ 2
    int sum = 0;                        //~ 2
    __asm__("1: addl %1, %0\n\t"
            "decl %1\n\t"
            "jnz 1b"
            : "+r"(sum), "+r"(n)
            :
            : "cc");
    return sum;                         //~ 2
}                                       //~ 2

int main(void) {                        //~ 1
    int ten = sum_to(4);                //~ 1
    int one = sum_to(1);                //~ 1
    return ten != 10 || one != 1;
}
