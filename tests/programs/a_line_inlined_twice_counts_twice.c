//~ routes: asm patch
static inline __attribute__((always_inline)) int weigh(int n) {
    if (n & 1)                          //~ 11
        return n * 3;                   //~ 5
    return n;
}

int main(void) {                        //~ 1
    int sum = 0;                        //~ 1
    for (int i = 0; i < 4; i++)
        sum += weigh(i);                //~ 4
    for (int i = 0; i < 7; i++)
        sum -= weigh(i);                //~ 7
    return sum == 12345;                //~ 1
}
