//~ routes: patch
//~ flags: -rdynamic -fno-optimize-sibling-calls
//~ unstepped: so many steps inside of libraries take too long
#include <execinfo.h>
#include <stdio.h>
#include <string.h>
#include <stdlib.h>

static int found;

__attribute__((noinline)) int look(const char *wanted) {
    void *frames[32];
    int depth = backtrace(frames, 32);
    char **names = backtrace_symbols(frames, depth);
    for (int i = 0; i < depth; i++)
        found += strstr(names[i], wanted) != 0;
    free(names);
    return depth;
}

__attribute__((noinline)) int deeper(int left) {     //~ 4
    if (left == 0)                                   //~ 4
        return look("deeper") + 1;                   //~ 1
    return deeper(left - 1) + 1;                     //~ 3
}                                                    //~ 4

int main(void) {                                     //~ 1
    int depth = deeper(3) - 4;                       //~ 1
    return depth < 6 || found != 4;                  //~ 1
}
