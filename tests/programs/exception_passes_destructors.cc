//~ routes: asm patch
static int destroyed;

struct Guard {
    ~Guard() {                          //~ 6
        destroyed++;                    //~ 6
    }                                   //~ 6
};

static void inner(bool fail) {          //~ 2
    Guard guard;
    if (fail)                           //~ 2
        throw 1;                        //~ 1
    destroyed += 100;                   //~ 1
}

static void middle(bool fail) {         //~ 2
    Guard guard;
    inner(fail);
    destroyed += 100;                   //~ 1
}

static void outer(bool fail) {          //~ 2
    Guard guard;
    middle(fail);
    destroyed += 100;                   //~ 1
}

int main() {                            //~ 1
    outer(false);                       //~ 1
    try {
        outer(true);                    //~ 1
        return 1;                       //~ 0
    } catch (int) {
        destroyed += 1000;              //~ 1
    }
    return destroyed != 1306;           //~ 1
}
