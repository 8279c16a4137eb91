//~ routes: asm patch
static int ticks;

static void tick(void) {                //~ 0
    ticks++;                            //~ 0
}

static void maybe(int n) {              //~ 3
    if (n)                              //~ 3
        tick();                         //~ 0
    return;                             //~ 3
}

int main(void) {                        //~ 1
    for (int i = 0; i < 3; i++)
        maybe(0);                       //~ 3
    return ticks;                       //~ 1
}
