//~ routes: asm patch csource
//~ asm-uncertain: load
//~ status: 139
static int *nowhere;

static int load(int *from) {            //~ 2
    int value = 1;                      //~ 2
    value += *from;
    return value;                       //~ 1
}

int main(void) {                        //~ 1
    int here = 2;                       //~ 1
    load(&here);                        //~ 1
    load(nowhere);                      //~ 1
    return 0;                           //~ 0
}
