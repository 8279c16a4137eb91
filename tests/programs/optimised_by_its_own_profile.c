//~ routes: lines
//~ args: 200
//~ optimised: gcc -O2 -fprofile-use, gcc -O3 -fprofile-use
#include <stdio.h>
#include <stdlib.h>

static int table[256];

// The profile says which arm is hot, which calls are worth inlining, and how long loops are.
static int rare(int x) {
    int sum = 0;                                //~ 4
    for (int i = 0; i < x; i++)                 //~ 304
        sum += table[i & 255] ^ i;              //~ 300
    return sum;                                 //~ 4
}

static int usual(int x) {
    table[x & 255] += 3;                        //~ 196
    return table[(x + 1) & 255] + x;            //~ 196
}

int main(int argc, char **argv) {
    int rounds = atoi(argv[1]);                 //~ 1
    int all = 0;                                //~ 1
    for (int i = 0; i < rounds; i++) {          //~ 201
        if (i % 50 == 0)                        //~ 200
            all += rare(i);                     //~ 4
        else
            all += usual(i);                    //~ 196
    }
    if (all < 0)                                //~ 1
        printf("%s", "less than nothing\n");    //~ 0
    printf("%d\n", all);                        //~ 1
    return argc - 2;                            //~ 1
}
