//~ routes: lines
//~ args: 1003
//~ optimised: -O3 -funroll-loops, clang -O2 -mllvm -unroll-count=8 -mllvm -unroll-runtime
#include <stdio.h>
#include <stdlib.h>

struct node {
    struct node *next;
    int value;
};

static struct node nodes[2000];

__attribute__((noinline)) long walk(const struct node *at, int steps) {
    long sum = 0;                               //~ 1
    while (steps-- > 0) {                       //~ 1004
        sum += at->value;                       //~ 1003
        at = at->next;                          //~ 1003
    }
    return sum;                                 //~ 1
}

int main(int argc, char **argv) {
    int steps = atoi(argv[1]);                  //~ 1
    for (int i = 0; i < 2000; i++) {            //~ 2001
        nodes[i].next = &nodes[(i * 7 + 1) % 2000]; //~ 2000
        nodes[i].value = i;                     //~ 2000
    }
    printf("%ld\n", walk(nodes, steps));        //~ 1
    return argc - 2;                            //~ 1
}
