// A counted library: work() counts `rounds` times in counter 2.
#include "counted.h"

void work(long rounds);
void work(long rounds) {
    ENTER();
    COUNT_LOOP(2, rounds);
}
