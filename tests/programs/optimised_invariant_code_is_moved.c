//~ routes: lines
//~ args: 40
//~ optimised: -O1, -O2, -O3
#include <stdio.h>
#include <stdlib.h>

static int table[100];

__attribute__((noinline)) long scaled(int length, int width, int *scale) {
    long sum = 0;                               //~ 1
    for (int i = 0; i < length; i++) {          //~ 41
        int factor = *scale * width + 3;        //~ 40
        int offset = factor / (width + 1);      //~ 40
        if (width > 2)                          //~ 40
            sum += table[i] * factor;           //~ 40
        else
            sum -= offset;                      //~ 0
        sum ^= offset;                          //~ 40
    }
    return sum;                                 //~ 1
}

int main(int argc, char **argv) {
    int length = atoi(argv[1]);                 //~ 1
    int scale = argc + 5;                       //~ 1
    for (int i = 0; i < 100; i++)               //~ 101
        table[i] = i * i;                       //~ 100
    printf("%ld\n", scaled(length, argc + 7, &scale)); //~ 1
    return argc - 2;                            //~ 1
}
