//~ routes: asm patch csource
static int n;

static void add(int m) { n += m; }              //~ 7

int main(void) {                                //~ 1
    add(1); add(2); add(3);                     //~ 1
    for (int i = 0; i < 4; i++) add(i);
    if (n > 5) { n = 0; }
    return n;                                   //~ 1
}
