//~ routes: asm patch csource
//~ calls: deep 4
#include <setjmp.h>

static jmp_buf home;
static int rounds;

static void deep(int n) {               //~ 4
    if (n)                              //~ 4
        longjmp(home, n);               //~ 3
}                                       //~ 1

static void middle(int n) {             //~ 4
    deep(n);                            //~ 4
    rounds += 10;                       //~ 1
}                                       //~ 1

static void shallow(int n) {            //~ 4
    middle(n);                          //~ 4
    rounds += 100;                      //~ 1
}                                       //~ 1

int main(void) {                        //~ 1
    int came = setjmp(home);
    rounds++;                           //~ 4
    shallow(3 - came > 0 ? came + 1 : 0);
    return rounds != 114;               //~ 1
}
