//~ routes: asm patch csource
//~ status: 1
#include <stdio.h>
#include <stdlib.h>

static _Noreturn void fail(const char *why) {   //~ 1
    fputs(why, stderr);                         //~ 1
    exit(1);                                    //~ 1
}

static int checked(int n) {                     //~ 3
    if (n < 3)                                  //~ 3
        return n;                               //~ 2
    fail("");                                   //~ 1
}

int main(void) {                                //~ 1
    int sum = 0;                                //~ 1
    for (int i = 1;; i++)
        sum += checked(i);                      //~ 3
}
