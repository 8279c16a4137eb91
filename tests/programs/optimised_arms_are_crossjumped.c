//~ routes: lines
//~ args: 50
//~ optimised: -O2, -Os
#include <stdio.h>
#include <stdlib.h>

static unsigned pool[4];

__attribute__((noinline)) void stir(unsigned by) {
    pool[by & 3] += by;                         //~ 35
}

__attribute__((noinline)) unsigned choose(unsigned value) {
    unsigned before = pool[0];                  //~ 50
    if (value % 3 == 0) {                       //~ 50
        before += 5;                            //~ 17
        stir(value);                            //~ 17
        pool[3] = before;                       //~ 17
        return before * 9;                      //~ 17
    }
    if (value % 3 == 1) {                       //~ 33
        before ^= value;                        //~ 17
        stir(value);                            //~ 17
        pool[3] = before;                       //~ 17
        return before * 9;                      //~ 17
    }
    return before;                              //~ 16
}

int main(int argc, char **argv) {
    unsigned rounds = atoi(argv[1]);            //~ 1
    unsigned all = 0;                           //~ 1
    for (unsigned i = 0; i < rounds; i++)       //~ 51
        all += choose(i);                       //~ 50
    stir(all & 0);
    printf("%u\n", all);                        //~ 1
    return argc - 2;                            //~ 1
}
