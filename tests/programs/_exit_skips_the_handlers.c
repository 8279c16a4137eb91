//~ routes: asm patch csource
//~ status: 4
#include <stdlib.h>
#include <unistd.h>

static void handler(void) {             //~ 0
    _exit(9);                           //~ 0
}

static void leave(int status) {         //~ 1
    _exit(status);                      //~ 1
}

int main(void) {                        //~ 1
    atexit(handler);                    //~ 1
    leave(4);                           //~ 1
    return 0;                           //~ 0
}
