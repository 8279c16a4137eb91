//~ routes: lines
//~ args: 45
//~ optimised: gcc -O2 -flto, gcc -O3 -flto -fwhole-program, gcc -O2 -fwhole-program, clang -O2 -flto -fuse-ld=lld
#include <stdio.h>
#include <stdlib.h>

int total;

// Anybody could call these, but for the linker, which sees that nobody does.
int halve(int x) {
    total++;                                    //~ 36
    return x / 2;                               //~ 36
}

int steps(int x) {
    int n = 0;                                  //~ 45
    while (x > 1 && n < 50) {                   //~ 81
        if (x % 2)                              //~ 36
            x--;                                //~ 9
        x = halve(x);                           //~ 36
        n++;                                    //~ 36
    }
    return n;                                   //~ 45
}

int never_called(int x) {
    return steps(x) + 1;                        //~ 0
}

int main(int argc, char **argv) {
    int rounds = atoi(argv[1]);                 //~ 1
    int all = 0;                                //~ 1
    for (int i = 0; i < rounds; i++)            //~ 46
        all += steps(i % 5);                    //~ 45
    printf("%d %d\n", all, total);              //~ 1
    return argc - 2;                            //~ 1
}
