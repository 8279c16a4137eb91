//~ routes: asm patch
//~ calls: inner 3
extern "C" void inner(int n) {          //~ 3
    if (n > 0)                          //~ 3
        throw n;                        //~ 2
}                                       //~ 1

static void middle(int n) {             //~ 3
    inner(n);                           //~ 3
    n++;                                //~ 1
}                                       //~ 1

static void outer(int n) {              //~ 3
    middle(n);                          //~ 3
    n++;                                //~ 1
}                                       //~ 1

int main() {                            //~ 1
    int caught = 0;                     //~ 1
    for (int i = 0; i < 3; i++) {
        try {
            outer(i);                   //~ 3
            caught += 10;               //~ 1
        } catch (int n) {
            caught += n;                //~ 2
        }
    }
    return caught != 13;                //~ 1
}
