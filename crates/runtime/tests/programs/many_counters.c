// A million counters; some are counted before any set-up, far from each other.
#define COUNTERS 1000000
#include "counted.h"

static void early(void) {
    COUNT(0);
    COUNT(511);
    COUNT(512);
    COUNT_LOOP(777777, 10);
    COUNT(999999);
}
__attribute__((section(".preinit_array"), used)) static void (*first)(void) = early;

int main(void) {
    ENTER();
    early();
    return 0;
}
