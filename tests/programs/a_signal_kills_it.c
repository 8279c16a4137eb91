//~ routes: asm patch csource
//~ status: 137
#include <signal.h>

static void work(int n) {               //~ 3
    if (n == 2)                         //~ 3
        raise(SIGKILL);                 //~ 1
}                                       //~ 2

int main(void) {                        //~ 1
    for (int i = 0; i < 5; i++)
        work(i);                        //~ 3
    return 0;                           //~ 0
}
