//~ routes: asm patch
static int is_odd(int n) {              //~ 7
    __asm__ goto("testl $1, %0\n\t"
                 "jnz %l1"
                 :
                 : "r"(n)
                 : "cc"
                 : odd);
    return 0;                           //~ 4
odd:
    return 1;                           //~ 3
}                                       //~ 7

int main(void) {                        //~ 1
    int sum = 0;                        //~ 1
    for (int i = 0; i < 7; i++)
        sum += is_odd(i);               //~ 7
    return sum != 3;                    //~ 1
}
