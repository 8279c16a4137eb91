//~ routes: asm patch csource
//~ status: 3
//~ calls: before 1
//~ calls: after 1
#include <unistd.h>

static int ready;

__attribute__((constructor)) static void before(void) {     //~ 1
    ready = 3;                                              //~ 1
}                                                           //~ 1

__attribute__((destructor)) static void after(void) {       //~ 1
    if (ready == 4)                                         //~ 1
        _exit(3);                                           //~ 1
}                                                           //~ 0

int main(void) {                                            //~ 1
    ready++;                                                //~ 1
    return 1;                                               //~ 1
}                                                           //~ 1
