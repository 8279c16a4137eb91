//~ routes: lines
//~ args: 90
//~ optimised: -O1, -O2, -O3
#include <stdio.h>
#include <stdlib.h>

static int found;

__attribute__((noinline)) int rank(int code) {
    switch (code) {                             //~ 90
    case 3:
        found += 2;                             //~ 15
        return 1;                               //~ 15
    case 1000:
        found -= 7;                             //~ 15
        break;                                  //~ 15
    case -40000:
        return found;                           //~ 15
    case 777777:
        found ^= 1;                             //~ 15
        /* fall through */
    case 12:
        found++;                                //~ 30
        break;                                  //~ 30
    default:
        return -1;                              //~ 15
    }
    return found & 15;                          //~ 45
}

int main(int argc, char **argv) {
    static const int codes[6] = {3, 1000, -40000, 777777, 12, 13};
    int rounds = atoi(argv[1]);                 //~ 1
    int all = 0;                                //~ 1
    for (int i = 0; i < rounds; i++)            //~ 91
        all += rank(codes[i % 6]);              //~ 90
    printf("%d\n", all);                        //~ 1
    return argc - 2;                            //~ 1
}
