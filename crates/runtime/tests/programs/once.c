// One thread: counter 0 once, counter 1 a million times. Says which descriptor is the next.
#include <fcntl.h>
#include <stdio.h>
#include "counted.h"

int main(void) {
    ENTER();
    COUNT(0);
    COUNT_LOOP(1, 1000000);
    printf("%d\n", open("/dev/null", O_RDONLY));
    return 0;
}
