//~ routes: asm patch csource
//~ status: 9
#include <stdlib.h>

static int order;

static void never(void) {               //~ 1
    order += 100;                       //~ 1
}                                       //~ 1

static void last(void) {                //~ 1
    exit(order == 12 ? 9 : 1);
}

static void second(void) {              //~ 1
    order = order * 10 + 2;             //~ 1
}                                       //~ 1

static void first(void) {               //~ 1
    order = 1;                          //~ 1
}                                       //~ 1

int main(void) {                        //~ 1
    atexit(never);                      //~ 1
    atexit(last);                       //~ 1
    atexit(second);                     //~ 1
    atexit(first);                      //~ 1
    return 0;                           //~ 1
}
