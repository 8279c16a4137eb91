// Counts 1000000 times, then dies as HOW says; or says "ready" and counts on until it is killed.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "counted.h"

int main(void) {
    ENTER();
    COUNT_LOOP(0, 1000000);
    puts("ready");
    fflush(stdout);
    HOW;
    return 1;
}
