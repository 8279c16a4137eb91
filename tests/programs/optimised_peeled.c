//~ routes: lines
//~ args: 50
//~ optimised: -O2, gcc -O3 -fpeel-loops
#include <stdio.h>
#include <stdlib.h>

static int marks[64];

// What is stored in the first round is different from all the rest: that one is peeled off.
__attribute__((noinline)) int first_is_other(int length, int start) {
    int before = -1;                            //~ 3
    int changes = 0;                            //~ 3
    for (int i = start; i < length; i++) {      //~ 150
        if (before < 0)                         //~ 147
            changes = 100;                      //~ 3
        else if (marks[i] != before)            //~ 144
            changes++;                          //~ 144
        before = marks[i];                      //~ 147
    }
    return changes;                             //~ 3
}

int main(int argc, char **argv) {
    int length = atoi(argv[1]);                 //~ 1
    for (int i = 0; i < length; i++)            //~ 51
        marks[i] = i;                           //~ 50
    int all = 0;                                //~ 1
    for (int start = 0; start < 3; start++)     //~ 4
        all += first_is_other(length, start);   //~ 3
    printf("%d\n", all);                        //~ 1
    return argc - 2;                            //~ 1
}
