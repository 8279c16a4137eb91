//~ routes: asm patch
//~ calls: resolve 1
//~ calls: chosen 4
static int chosen(int n) {              //~ 4
    return n + 1;                       //~ 4
}                                       //~ 4

static int (*resolve(void))(int) {
    return chosen;
}

int add(int n) __attribute__((ifunc("resolve")));

int main(void) {                        //~ 1
    int n = 0;                          //~ 1
    for (int i = 0; i < 4; i++)
        n = add(n);                     //~ 4
    return n != 4;                      //~ 1
}
