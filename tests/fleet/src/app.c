/* Sorts numbers that it makes up; release 2 has a better way. */
#include <stdio.h>
#include <stdlib.h>

static unsigned long state = 1;

static unsigned next(void)
{
    state = state * 6364136223846793005ul + 1442695040888963407ul;
    return (unsigned)(state >> 33);
}

static void insert(unsigned *all, int at, int gap)
{
    unsigned value = all[at];
    while (at >= gap && all[at - gap] > value) {
        all[at] = all[at - gap];
        at -= gap;
    }
    all[at] = value;
}

static void sort(unsigned *all, int number)
{
#if RELEASE > 1
    for (int gap = number / 2; gap > 1; gap /= 2) {
        for (int at = gap; at < number; at++)
            insert(all, at, gap);
    }
#endif
    for (int at = 1; at < number; at++)
        insert(all, at, 1);
}

static int complain(const char *program)
{
    fprintf(stderr, "%s: how many?\n", program);
    return 2;
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return complain(argv[0]);
    int number = atoi(argv[1]);
    unsigned *all = malloc(number * sizeof *all);
    for (int at = 0; at < number; at++)
        all[at] = next();
    sort(all, number);
    if (number > 1 && all[0] > all[1]) {
        puts("not sorted");
        return 1;
    }
    printf("%u\n", all[number / 2]);
    free(all);
    return 0;
}
