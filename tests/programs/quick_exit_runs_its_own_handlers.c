//~ routes: asm patch csource
//~ status: 6
#include <stdlib.h>

static int seen;

static void quick(void) {               //~ 2
    seen++;                             //~ 2
}                                       //~ 2

static void slow(void) {                //~ 0
    seen = 100;                         //~ 0
}

int main(void) {                        //~ 1
    atexit(slow);                       //~ 1
    at_quick_exit(quick);               //~ 1
    at_quick_exit(quick);               //~ 1
    quick_exit(6);                      //~ 1
    return 0;
}
