#include <stdlib.h>
int volatile sink;
__attribute__((noinline)) int pick(int n) {
    switch (n) {
    case 0: return rand() + 3;
    case 1: sink = 7; return 9;
    case 2: sink = n; return rand() * 5;
    case 3: return sink + 1;
    case 4: sink = 12; return sink * 31;
    case 5: return rand() / 3;
    case 6: abort();
    case 7: sink++; sink++; return 2;
    default: return -1;
    }
}
int main(int argc, char **argv) { return pick(argc); }
