//~ routes: asm patch
//~ calls: jump 4
static void *home[5];
static volatile int n;

static void jump(void) {                //~ 4
    __builtin_longjmp(home, 1);
}

__attribute__((noinline)) static int go(void) {
    if (__builtin_setjmp(home) == 0) {
        n++;                            //~ 1
        jump();                         //~ 1
    }
    n += 10;                            //~ 4
    if (n < 40)                         //~ 4
        jump();                         //~ 3
    return n;                           //~ 1
}

int main(void) {                        //~ 1
    return go() != 41;                  //~ 1
}
