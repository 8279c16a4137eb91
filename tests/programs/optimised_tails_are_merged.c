//~ routes: lines
//~ args: 60
//~ optimised: -O1, -O2, -Os
#include <stdio.h>
#include <stdlib.h>

static int log_of[8];
static int last;

__attribute__((noinline)) int handle(int kind, int value) {
    switch (kind) {                             //~ 60
    case 0:
        log_of[0] += value;                     //~ 15
        last = value;                           //~ 15
        return 0;                               //~ 15
    case 1:
        log_of[1] -= value;                     //~ 15
        last = value;                           //~ 15
        return 0;                               //~ 15
    case 2:
        if (value > 30) {                       //~ 15
            last = value;                       //~ 7
            return 0;                           //~ 7
        }
        log_of[2]++;                            //~ 8
        return 1;                               //~ 8
    default:
        return 1;                               //~ 15
    }
}

int main(int argc, char **argv) {
    int rounds = atoi(argv[1]);                 //~ 1
    int all = 0;                                //~ 1
    for (int i = 0; i < rounds; i++)            //~ 61
        all += handle(i % 4, i);                //~ 60
    printf("%d %d %d\n", all, last, log_of[1]); //~ 1
    return argc - 2;                            //~ 1
}
