//~ routes: lines
//~ args: 1003
//~ optimised: -O2, -O3, -O2 -funroll-loops
#include <stdio.h>
#include <stdlib.h>

static unsigned char bytes[2000];

// Each step needs the one before, so that the loop cannot be vectorised.
__attribute__((noinline)) unsigned digest(const unsigned char *from, int length) {
    unsigned sum = 7;                           //~ 1
    for (int i = 0; i < length; i++)            //~ 1004
        sum = sum * 31 + from[i];               //~ 1003
    return sum;                                 //~ 1
}

int main(int argc, char **argv) {
    int length = atoi(argv[1]);                 //~ 1
    for (int i = 0; i < length; i++)            //~ 1004
        bytes[i] = i * 7;                       //~ 1003
    printf("%u\n", digest(bytes, length));      //~ 1
    return argc - 2;                            //~ 1
}
