//~ routes: asm patch
//~ status: 5
#include <unistd.h>

static int alive;

struct Counted {
    Counted() {                         //~ 3
        alive++;                        //~ 3
    }                                   //~ 3
    ~Counted() {                        //~ 3
        if (--alive == 0)               //~ 3
            _exit(5);                   //~ 1
    }                                   //~ 2
};

static Counted one, two, three;

int main() {                            //~ 1
    return alive != 3;                  //~ 1
}
