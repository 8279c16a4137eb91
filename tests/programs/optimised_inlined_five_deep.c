//~ routes: lines
//~ args: 21
//~ optimised: -O1, -O2, -O3
#include <stdio.h>
#include <stdlib.h>

static int hits[4];

static inline int fifth(int x) {
    hits[x & 3]++;                              //~ 63
    return x * 3;                               //~ 63
}
static inline int fourth(int x) {
    if (x & 1)                                  //~ 63
        return fifth(x) + 1;                    //~ 31
    return fifth(x + 2);                        //~ 32
}
static inline int third(int x) {
    int y = fourth(x);                          //~ 63
    return y ^ x;                               //~ 63
}
static inline int second(int x) {
    return third(x) + 7;                        //~ 63
}
static inline int first(int x) {
    int sum = 0;                                //~ 21
    for (int i = 0; i < 3; i++)                 //~ 84
        sum += second(x + i);                   //~ 63
    return sum;                                 //~ 21
}

int main(int argc, char **argv) {
    int rounds = atoi(argv[1]);                 //~ 1
    int all = 0;                                //~ 1
    for (int i = 0; i < rounds; i++)            //~ 22
        all += first(i);                        //~ 21
    printf("%d %d\n", all, hits[1]);            //~ 1
    return argc - 2;                            //~ 1
}
