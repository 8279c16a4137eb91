//~ routes: lines
//~ args: 128
//~ optimised: -O1, -O2, -O3
#include <stdio.h>
#include <stdlib.h>

static int vowels, marks;

__attribute__((noinline)) int classify(int letter) {
    switch (letter) {                           //~ 128
    case 'a': case 'e': case 'i': case 'o': case 'u':
        vowels++;                               //~ 5
        return 2;                               //~ 5
    case '!': case ',': case '.': case ':': case ';': case '?':
        marks++;                                //~ 6
        return 1;                               //~ 6
    default:
        return 0;                               //~ 117
    }
}

int main(int argc, char **argv) {
    int rounds = atoi(argv[1]);                 //~ 1
    int all = 0;                                //~ 1
    for (int i = 0; i < rounds; i++)            //~ 129
        all += classify(i);                     //~ 128
    printf("%d %d %d\n", all, vowels, marks);   //~ 1
    return argc - 2;                            //~ 1
}
