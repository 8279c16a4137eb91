//~ routes: asm patch csource
#include <stdlib.h>

static int key(const void *one, const void *other) {    //~ 3
    int left = *(const int *)one;                       //~ 3
    int right = *(const int *)other;                    //~ 3
    return left - right;                                //~ 3
}                                                       //~ 3

int main(void) {                                        //~ 1
    int numbers[] = {1, 2, 4, 8, 16, 32, 64};
    int wanted = 16;                                    //~ 1
    int *found = bsearch(&wanted, numbers, 7, sizeof *numbers, key);    //~ 1
    return found != &numbers[4];                        //~ 1
}
