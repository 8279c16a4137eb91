//~ routes: lines
//~ args: 25
//~ optimised: -O2, -O3
#include <stdio.h>
#include <stdlib.h>

struct box {
    int width, height, depth;
    char label[100];
};

// Only two fields are read, so they are passed instead of the box (isra).
static __attribute__((noinline)) int area(const struct box *box, int unused) {
    int width = box->width;                     //~ 25
    if (width > 10)                             //~ 25
        width = 10 + (width & 1);               //~ 14
    return width * box->height;                 //~ 25
}

int main(int argc, char **argv) {
    int rounds = atoi(argv[1]);                 //~ 1
    struct box box = {0, 3, 4, "box"};          //~ 1
    int all = 0;                                //~ 1
    for (int i = 0; i < rounds; i++) {          //~ 26
        box.width = i;                          //~ 25
        all += area(&box, i);                   //~ 25
    }
    printf("%d\n", all);                        //~ 1
    return argc - 2;                            //~ 1
}
