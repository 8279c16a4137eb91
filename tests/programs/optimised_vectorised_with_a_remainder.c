//~ routes: lines
//~ args: 1003
//~ optimised: -O2, -O3, -O3 -funroll-loops
#include <stdio.h>
#include <stdlib.h>

static int numbers[2000];
static int squares[2000];

__attribute__((noinline)) long sum(const int *from, int length) {
    long all = 0;                               //~ 1
    for (int i = 0; i < length; i++)            //~ 1004
        all += from[i];                         //~ 1003
    return all;                                 //~ 1
}

__attribute__((noinline)) void square(int *to, const int *from, int length) {
    for (int i = 0; i < length; i++) {          //~ 1004
        int number = from[i];                   //~ 1003
        to[i] = number * number;                //~ 1003
    }
}

int main(int argc, char **argv) {
    int length = atoi(argv[1]);                 //~ 1
    for (int i = 0; i < length; i++)            //~ 1004
        numbers[i] = i % 13;                    //~ 1003
    square(squares, numbers, length);           //~ 1
    printf("%ld\n", sum(squares, length));      //~ 1
    return argc - 2;                            //~ 1
}
