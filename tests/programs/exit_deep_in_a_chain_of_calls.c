//~ routes: asm patch csource
//~ status: 3
//~ calls: third 2
#include <stdlib.h>

static void third(int end) {            //~ 2
    if (end)                            //~ 2
        exit(3);                        //~ 1
}                                       //~ 1

static void second(int end) {           //~ 2
    third(end);                         //~ 2
    if (end)                            //~ 1
        exit(4);                        //~ 0
}                                       //~ 1

static void first(void) {               //~ 1
    for (int i = 0; i < 5; i++) {
        second(i == 1);                 //~ 2
        int after = i;                  //~ 1
        (void)after;
    }
    exit(5);                            //~ 0
}

int main(void) {                        //~ 1
    first();                            //~ 1
    return 0;                           //~ 0
}
