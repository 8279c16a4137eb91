//~ memory: look(u8[arg1])
//~ quotient: look(100 / arg2)
//~ rest: look(1000 % arg2)
//~ summed: sum u32[arg1] in look(arg2)
//~ chain: look(u8[u64[arg3]])
//~ ranged: look(range(u8[arg1], 10..20))
//~ kept: look(arg2 * 2)
//~ overflow: look(arg4 / arg2)
#include <limits.h>
#include <signal.h>
#include "seen.h"

__attribute__((noipa)) long look(unsigned char *at, long by, long *chain, long big)
{
    return (long)at + by + (long)chain + big;
}

static volatile sig_atomic_t handled;

static void handler(int number)
{
    handled++;
}

int main(void)
{
    signal(SIGSEGV, handler);
    signal(SIGFPE, handler);
    signal(SIGBUS, SIG_IGN);
    unsigned char bytes[8] = {3, 12, 200, 19, 10, 9, 20, 1};
    unsigned char *places[] = {0, bytes, bytes + 1, (void *)-8, bytes + 2, (void *)(1ul << 63),
                               bytes + 3, bytes + 4, (void *)1};
    long good = (long)(bytes + 2), bad = 8;
    unsigned long seed = 2;
    long sum = 0;
    for (int i = 0; i < 400; i++) {
        unsigned char *at = places[dice(&seed) % 9];
        long by = (long)(dice(&seed) % 5) - 2;
        int is_bad = at < bytes || at > bytes + 8;
        unsigned word = 0;
        if (!is_bad)
            memcpy(&word, at, sizeof word);
        saw("memory", is_bad, is_bad ? 0 : *at, 0);
        saw("quotient", by == 0, by ? 100 / by : 0, 0);
        saw("rest", by == 0, by ? 1000 % by : 0, 0);
        /* Without the amount there is no key. */
        saw("summed", is_bad, is_bad ? 0 : by, word);
        saw("chain", i % 3 == 0, i % 3 == 0 ? 0 : 200, 0);
        int kind = is_bad ? UNREADABLE : *at < 10 ? BELOW : *at >= 20 ? ABOVE : NUMBER;
        saw("ranged", kind, kind ? 0 : *at, 0);
        saw("kept", NUMBER, by * 2, 0);
        long big = i % 2 ? LONG_MIN : 6;
        int none = by == 0 || (by == -1 && big == LONG_MIN);
        saw("overflow", none, none ? 0 : big / by, 0);
        sum += look(at, by, i % 3 == 0 ? &bad : &good, big);
    }
    /* Nobody but the program itself raises these. */
    if (handled)
        return 3;
    raise(SIGSEGV);
    raise(SIGFPE);
    if (handled != 2)
        return 4;
    tell();
    return sum == 1;
}
