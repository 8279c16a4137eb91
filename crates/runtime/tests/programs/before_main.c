// Counted before any set-up: an early constructor without a check counts in place (counter 0),
// and an early one with a check (counter 1). Then main (counter 2).
#include "counted.h"

static void without_check(void) { COUNT_LOOP(0, 100); }
__attribute__((constructor(101))) static void early(void) {
    ENTER();
    COUNT_LOOP(1, 10);
}
__attribute__((section(".preinit_array"), used)) static void (*first)(void) = without_check;

int main(void) {
    ENTER();
    COUNT(2);
    return 0;
}
