//~ routes: asm patch
//~ status: 134
static void thrower(int n) {            //~ 2
    if (n == 1)                         //~ 2
        throw n;                        //~ 1
}                                       //~ 1

static void caller(int n) noexcept {    //~ 2
    thrower(n);                         //~ 2
}                                       //~ 1

int main() {                            //~ 1
    for (int i = 0; i < 3; i++)
        caller(i);                      //~ 2
    return 0;                           //~ 0
}
