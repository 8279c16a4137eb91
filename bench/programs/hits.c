/* Calls an empty function as often as it is told to. */
#include <stdlib.h>

__attribute__((noinline)) void hit(void) { __asm__ volatile(""); }

int main(int argc, char **argv) {
    for (long left = argc > 1 ? atol(argv[1]) : 0; left > 0; left--)
        hit();
    return 0;
}
