//~ routes: lines
//~ args: 90
//~ optimised: -O2, -O3
#include <stdio.h>
#include <stdlib.h>

__attribute__((noinline)) int weigh(const int *row, int bias) {
    int sum = bias;                             //~ 90
    for (int i = 0; i < 5; i++) {               //~ 540
        int here = row[i] ^ sum;                //~ 450
        if (here & 1)                           //~ 450
            sum += here;                        //~ 225
        else
            sum -= 3;                           //~ 225
    }
    return sum;                                 //~ 90
}

int main(int argc, char **argv) {
    static int row[5] = {1, 2, 3, 4, 5};
    int rounds = atoi(argv[1]);                 //~ 1
    int all = 0;                                //~ 1
    for (int i = 0; i < rounds; i++)            //~ 91
        all += weigh(row, i);                   //~ 90
    printf("%d\n", all);                        //~ 1
    return argc - 2;                            //~ 1
}
