//~ routes: asm patch csource
//~ args: 3 2 3 9
//~ status: 11
#include <stdlib.h>

int main(int argc, char **argv) {       //~ 1
    int n = 0;                          //~ 1
    for (int i = 1; i < argc; i++)
        switch (atoi(argv[i])) {        //~ 4
        case 3:
            n += 3;                     //~ 2
        case 2:
            n += 2;                     //~ 3
            break;                      //~ 3
        case 1:
            n += 100;                   //~ 0
        default:
            n -= 1;                     //~ 1
        }
    return n;                           //~ 1
}
