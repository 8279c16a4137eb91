//~ routes: lines
//~ args: 33
//~ optimised: -O2, -O3, -Os
#include <stdio.h>
#include <stdlib.h>

static int stock[10];

__attribute__((noinline)) static int apples(int place, int by) {
    if (place < 5)                              //~ 33
        stock[place] += by;                     //~ 18
    return stock[place];                        //~ 33
}

__attribute__((noinline)) static int pears(int place, int by) {
    if (place < 5)                              //~ 66
        stock[place] += by;                     //~ 38
    return stock[place];                        //~ 66
}

int main(int argc, char **argv) {
    int rounds = atoi(argv[1]);                 //~ 1
    int all = 0;                                //~ 1
    for (int i = 0; i < rounds; i++) {          //~ 34
        all += apples(i % 10, 3);               //~ 33
        all += pears(i * 2 % 10, i);            //~ 33
        all -= pears(i * 3 % 10, 1);            //~ 33
    }
    printf("%d\n", all);                        //~ 1
    return argc - 2;                            //~ 1
}
