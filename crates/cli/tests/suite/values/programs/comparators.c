//~ left: compare(i32[arg1])
//~ right: compare(*b)
//~ order: compare(i32[arg1] < i32[arg2])
//~ result: compare(ret)
#include <stdlib.h>
#include "seen.h"

__attribute__((noipa)) long compare(const int *a, const int *b)
{
    saw("left", NUMBER, *a, 0);
    saw("right", NUMBER, *b, 0);
    saw("order", NUMBER, *a < *b, 0);
    long result = *a - *b;
    saw("result", NUMBER, result, 0);
    return result;
}

int main(void)
{
    unsigned long seed = 5;
    int all[400];
    for (int i = 0; i < 400; i++)
        all[i] = (int)(dice(&seed) % 30) - 15;
    qsort(all, 400, sizeof *all, (int (*)(const void *, const void *))compare);
    tell();
    return 0;
}
