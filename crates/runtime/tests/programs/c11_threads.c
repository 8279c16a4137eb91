// Four C11 threads of 1000000 rounds.
#include <stddef.h>
#include <threads.h>
#include "counted.h"

static int work(void *nothing) {
    ENTER();
    COUNT_LOOP(0, 1000000);
    return nothing != NULL;
}

int main(void) {
    thrd_t threads[4];
    for (int i = 0; i < 4; i++)
        if (thrd_create(&threads[i], work, NULL) != thrd_success) return 1;
    for (int i = 0; i < 4; i++) thrd_join(threads[i], NULL);
    return 0;
}
