//~ routes: asm patch csource
//~ args: 3
//~ status: 5
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv) {                   //~ 4
    int left = atoi(argv[argc - 1]);                //~ 4
    if (left == 0)                                  //~ 4
        return 5;                                   //~ 1
    char next[12];
    sprintf(next, "%d", left - 1);                  //~ 3
    execl("/proc/self/exe", argv[0], next, NULL);   //~ 3
    return 1;                                       //~ 0
}
