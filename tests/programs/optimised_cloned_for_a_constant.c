//~ routes: lines
//~ args: 30
//~ optimised: -O2, -O3, gcc -O3 -fipa-cp-clone
#include <stdio.h>
#include <stdlib.h>

static int seen;

// Called with 3 in one place and with 8 in another: gcc makes a copy for each.
static __attribute__((noinline)) int spread(int value, int width) {
    int sum = 0;                                //~ 60
    for (int i = 0; i < width; i++) {           //~ 390
        sum += value >> i;                      //~ 330
        seen++;                                 //~ 330
    }
    if (width == 3)                             //~ 60
        sum++;                                  //~ 30
    return sum;                                 //~ 60
}

int main(int argc, char **argv) {
    int rounds = atoi(argv[1]);                 //~ 1
    int all = 0;                                //~ 1
    for (int i = 0; i < rounds; i++) {          //~ 31
        all += spread(i, 3);                    //~ 30
        all ^= spread(i * 5, 8);                //~ 30
    }
    printf("%d %d\n", all, seen);               //~ 1
    return argc - 2;                            //~ 1
}
