//~ routes: asm patch
//~ flags: -O2 -fno-inline -fno-ipa-icf -fno-ipa-cp -fno-ipa-sra
//~ calls: ping 11
//~ calls: pong 10
//~ calls: last 1
int pong(volatile int *n);

__attribute__((noinline, noipa)) int last(volatile int *n) {
    return *n;
}

__attribute__((noinline, noipa)) int ping(volatile int *n) {
    if (*n == 0)
        return last(n);
    *n -= 1;
    return pong(n);
}

__attribute__((noinline, noipa)) int pong(volatile int *n) {
    return ping(n);
}

int main(void) {
    volatile int n = 10;
    return ping(&n);
}
