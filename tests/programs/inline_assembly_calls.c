//~ routes: asm patch csource
//~ asm-refuses: by_assembly
//~ calls: callee 3
//~ status: 4
#include <stdlib.h>

static int seen;

__attribute__((used)) static void callee(void) {    //~ 3
    if (++seen == 3)                                //~ 3
        exit(4);                                    //~ 1
}                                                   //~ 2

__attribute__((noinline)) static void by_assembly(void) {   //~ 3
    __asm__ volatile("subq $128, %%rsp\n\t"         //~ 3
                     "call callee\n\t"
                     "addq $128, %%rsp"
                     :
                     :
                     : "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "memory", "cc");
    seen += 0;                                      //~ 2
}

int main(void) {                                    //~ 1
    for (int i = 0; i < 5; i++)
        by_assembly();                              //~ 3
    return 0;                                       //~ 0
}
