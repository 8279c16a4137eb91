//~ routes: lines
//~ args: 15
//~ optimised: -O2, -O3
#include <stdio.h>
#include <stdlib.h>

static long made;

static long fibonacci(int n) {
    made++;                                     //~ 1973
    if (n < 2)                                  //~ 1973
        return n;                               //~ 987
    return fibonacci(n - 1) + fibonacci(n - 2); //~ 986
}

// The last call is a jump.
static int depth(int n, int so_far) {
    if (n == 0)                                 //~ 16
        return so_far;                          //~ 1
    return depth(n - 1, so_far + (n & 3));      //~ 15
}

int main(int argc, char **argv) {
    int n = atoi(argv[1]);                      //~ 1
    printf("%ld %d %ld\n", fibonacci(n), depth(n, 0), made); //~ 1
    return argc - 2;                            //~ 1
}
