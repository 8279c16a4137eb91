//~ routes: lines
//~ args: 300
//~ optimised: -O1, -O2, -O3
#include <stdio.h>
#include <stdlib.h>

__attribute__((noinline)) unsigned clamp(unsigned value, unsigned most) {
    if (value > most)                           //~ 300
        value = most;                           //~ 99
    return value;                               //~ 300
}

__attribute__((noinline)) int sign(int value) {
    int result = 0;                             //~ 300
    if (value < 0)                              //~ 300
        result = -1;                            //~ 100
    else if (value > 0)                         //~ 200
        result = 1;                             //~ 199
    return result;                              //~ 300
}

int main(int argc, char **argv) {
    int rounds = atoi(argv[1]);                 //~ 1
    int all = 0;                                //~ 1
    for (int i = 0; i < rounds; i++) {          //~ 301
        all += clamp(i, 200);                   //~ 300
        all += sign(i - 100);                   //~ 300
    }
    printf("%d\n", all);                        //~ 1
    return argc - 2;                            //~ 1
}
