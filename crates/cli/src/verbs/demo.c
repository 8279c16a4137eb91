/* A search for the largest number: how often does it find a larger one? */
#include <stdio.h>
#include <stdlib.h>

enum { HOW_MANY = 100000 };

static int numbers[HOW_MANY];

static int place_of_largest(const int *among, int how_many)
{
    int best = 0;

    for (int i = 1; i < how_many; i++)
        if (among[i] > among[best])
            best = i;
    return best;
}

int main(void)
{
    int place;

    srand(1984);
    for (int i = 0; i < HOW_MANY; i++)
        numbers[i] = rand();

    place = place_of_largest(numbers, HOW_MANY);
    if (place < 0)
        puts("this line never runs");
    printf("the largest of %d numbers is number %d\n", HOW_MANY, place);
    return 0;
}
