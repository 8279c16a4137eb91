//~ routes: lines
//~ args: 64
//~ optimised: -O2, -O3
#include <stdio.h>
#include <stdlib.h>

static int errors;

__attribute__((cold, noinline)) static void complain(int what) {
    errors += what;                             //~ 8
}

__attribute__((noinline)) int checked(int value) {
    if (value % 16 == 5) {                      //~ 64
        complain(value);                        //~ 4
        complain(-1);                           //~ 4
        value = 0;                              //~ 4
    }
    if (__builtin_expect(value > 1000, 0))      //~ 64
        abort();                                //~ 0
    return value + 1;                           //~ 64
}

int main(int argc, char **argv) {
    int rounds = atoi(argv[1]);                 //~ 1
    int all = 0;                                //~ 1
    for (int i = 0; i < rounds; i++)            //~ 65
        all += checked(i);                      //~ 64
    printf("%d %d\n", all, errors);             //~ 1
    return argc - 2;                            //~ 1
}
