//~ routes: lines
//~ args: 1001
//~ optimised: -O3, -O3 -funroll-loops
#include <stdio.h>
#include <stdlib.h>

static int numbers[2000];
static int results[2000];

__attribute__((noinline)) void fold(int length) {
    for (int i = 0; i < length; i++) {          //~ 1002
        int it = numbers[i];                    //~ 1001
        if (it > 6)                             //~ 1001
            it = 13 - it;                       //~ 462
        results[i] = it;                        //~ 1001
    }
}

int main(int argc, char **argv) {
    int length = atoi(argv[1]);                 //~ 1
    for (int i = 0; i < length; i++)            //~ 1002
        numbers[i] = i % 13;                    //~ 1001
    fold(length);                               //~ 1
    int all = 0;                                //~ 1
    for (int i = 0; i < length; i++)            //~ 1002
        all += results[i] * (i & 3);            //~ 1001
    printf("%d\n", all);                        //~ 1
    return argc - 2;                            //~ 1
}
