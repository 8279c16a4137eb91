//~ routes: asm patch
//~ calls: _ZThn16_N4Both5valueEv 3
//~ calls: _ZN4Both5valueEv 4
struct One {
    int one = 1;
    virtual int number() {              //~ 0
        return one;                     //~ 0
    }
    virtual ~One() = default;
};

struct Other {
    int other = 2;
    virtual int value() {               //~ 1
        return other;                   //~ 1
    }
    virtual ~Other() = default;
};

struct Both : One, Other {
    int value() override {              //~ 7
        return one + other;             //~ 4
    }
};

static int use(Other &it) {             //~ 4
    return it.value();                  //~ 4
}

int main() {                            //~ 1
    Both both;
    Other other;
    int sum = both.value();             //~ 1
    for (int i = 0; i < 3; i++)
        sum += use(both);               //~ 3
    sum += use(other);                  //~ 1
    return sum != 14;
}
