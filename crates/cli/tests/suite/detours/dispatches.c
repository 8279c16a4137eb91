// A machine of four instructions: with a switch, and with jumps of three kinds.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ADD, DOUBLE, AGAIN, HALT };
static const char program[] = {ADD, DOUBLE, ADD, AGAIN, HALT};

__attribute__((noipa)) long by_switch(long rounds)
{
    long x = 0;
    for (const char *at = program;; at++) {
        switch (*at * 3) {
        case 3 * ADD: x += 1; break;               // switch add
        case 3 * DOUBLE: x = x * 2 % 1009; break;  // switch double
        case 3 * AGAIN:
            if (--rounds > 0)                      // switch again
                at = program - 1;
            break;
        case 3 * HALT: return x;                   // switch halt
        case 1: x += 7; break;
        case 2: x += 8; break;
        case 4: x += 9; break;
        case 5: x -= 3; break;
        }
    }
}

__attribute__((noipa)) long by_table(long rounds)
{
    static void *const table[] = {&&add, &&twice, &&again, &&halt};
    const char *at = program;
    long x = 0;
    goto *table[*at];
add:
    x += 1; // table add
    goto *table[*++at];
twice:
    x = x * 2 % 1009; // table double
    goto *table[*++at];
again:
    if (--rounds > 0) // table again
        at = program - 1;
    goto *table[*++at];
halt:
    return x; // table halt
}

// Nothing in the file says where these jumps lead.
__attribute__((noipa)) long by_arithmetic(long rounds)
{
    static const int offsets[] = {&&add - &&halt + 1000, &&twice - &&halt + 1000,
                                  &&again - &&halt + 1000, 1000};
    static volatile int secret = 1000;
    const char *at = program;
    long x = 0;
    char **table = malloc(4 * sizeof *table);
    for (int i = 0; i < 4; i++)
        table[i] = (char *)&&halt + offsets[i] - secret;
    goto *table[*at];
add:
    x += 1; // arithmetic add
    goto *table[*++at];
twice:
    x = x * 2 % 1009; // arithmetic double
    goto *table[*++at];
again:
    if (--rounds > 0) // arithmetic again
        at = program - 1;
    goto *table[*++at];
halt:
    free(table);
    return x; // arithmetic halt
}

static void *in_a_thread(void *rounds)
{
    return (void *)by_arithmetic((long)rounds);
}

int main(int argc, char **argv)
{
    long rounds = 500, x = 0;
    pthread_t threads[8];
    int count = argc > 2 ? atoi(argv[2]) : 0;
    for (int i = 0; i < count; i++)
        pthread_create(&threads[i], 0, in_a_thread, (void *)rounds);
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], 0);
    if (!strcmp(argv[1], "switch"))
        x = by_switch(rounds);
    if (!strcmp(argv[1], "table"))
        x = by_table(rounds);
    if (!strcmp(argv[1], "arithmetic"))
        x = by_arithmetic(rounds);
    printf("%ld\n", x);
    return 0;
}
