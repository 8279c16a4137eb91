//~ routes: asm patch csource
#include <setjmp.h>

static jmp_buf here;

int main(void) {                        //~ 1
    volatile int sum = 0;               //~ 1
    switch (setjmp(here)) {
    case 0:
        sum += 1;                       //~ 1
        longjmp(here, 1);               //~ 1
    case 1:
        sum += 10;                      //~ 1
        longjmp(here, 2);               //~ 1
    default:
        sum += 100;                     //~ 1
    }
    return sum != 111;                  //~ 1
}
