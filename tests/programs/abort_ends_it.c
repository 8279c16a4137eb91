//~ routes: asm patch csource
//~ status: 134
#include <stdlib.h>

static void check(int n) {              //~ 3
    if (n == 2)                         //~ 3
        abort();                        //~ 1
}                                       //~ 2

int main(void) {                        //~ 1
    for (int i = 0; i < 10; i++)
        check(i);                       //~ 3
    return 0;                           //~ 0
}
