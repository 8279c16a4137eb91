//~ routes: lines
//~ args: 80
//~ optimised: -O1, -O2, -O3
#include <stdio.h>
#include <stdlib.h>

// All arms are values: a table of those, with no code for any arm.
__attribute__((noinline)) int days(int month) {
    switch (month) {                            //~ 80
    case 1: return 28;                          //~ 8
    case 3:
    case 5:
    case 8: return 30;                          //~ 24
    case 9: return 11;                          //~ 8
    case 2: return 17;                          //~ 8
    default: return 31;                         //~ 32
    }
}

// Arms with work in them: a table of jumps.
__attribute__((noinline)) int work(int kind, int x) {
    switch (kind) {                             //~ 80
    case 0: x += 3; break;                      //~ 8
    case 1: x *= 5; break;                      //~ 8
    case 2: x -= x / 7; break;                  //~ 8
    case 3: x ^= 0x55; break;                   //~ 8
    case 4: x <<= 2; break;                     //~ 8
    case 5: fflush(stdout); break;              //~ 8
    case 6: return x;                           //~ 8
    case 7: break;
    default: x = -x;                            //~ 16
    }
    return x + 1;                               //~ 72
}

int main(int argc, char **argv) {
    int rounds = atoi(argv[1]);                 //~ 1
    int all = 0;                                //~ 1
    for (int i = 0; i < rounds; i++)            //~ 81
        all += days(i % 10) + work(i % 10, i);  //~ 80
    printf("%d\n", all);                        //~ 1
    return argc - 2;                            //~ 1
}
