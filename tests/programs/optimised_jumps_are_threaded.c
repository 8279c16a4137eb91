//~ routes: lines
//~ args: aabbbacaab
//~ optimised: -O1, -O2, -O3
#include <stdio.h>

enum state { OUTSIDE, IN_A, IN_B };

// What the state is follows from where it was set, so that tests of it are jumped over.
__attribute__((noinline)) int runs(const char *text) {
    enum state state = OUTSIDE;                 //~ 1
    int found = 0;                              //~ 1
    for (; *text; text++) {                     //~ 11
        if (state == OUTSIDE) {                 //~ 10
            if (*text == 'a')                   //~ 2
                state = IN_A;                   //~ 2
            else if (*text == 'b')              //~ 0
                state = IN_B;                   //~ 0
        } else if (state == IN_A) {             //~ 8
            if (*text != 'a') {                 //~ 5
                found++;                        //~ 3
                state = *text == 'b' ? IN_B : OUTSIDE; //~ 3
            }
        } else {
            if (*text != 'b') {                 //~ 3
                found += 10;                    //~ 1
                state = *text == 'a' ? IN_A : OUTSIDE; //~ 1
            }
        }
    }
    if (state != OUTSIDE)                       //~ 1
        found += 100;                           //~ 1
    return found;                               //~ 1
}

int main(int argc, char **argv) {
    printf("%d\n", runs(argv[1]));              //~ 1
    return argc - 2;                            //~ 1
}
