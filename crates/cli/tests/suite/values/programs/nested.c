//~ own: LINE:inner(q)
//~ outer: LINE:inner(k)
//~ element: LINE:inner(table[q % 3])
//~ outermost: LINE:innermost(k * 10 + m)
//~ argument: inner(m)
#include "seen.h"

__attribute__((noipa)) void use(long n) {}

/* Functions in functions, as Ada and Pascal have them. */
static int outer(int rounds)
{
    int k = 7;
    short table[3] = {1, -2, 3};
    int inner(int m)
    {
        saw("argument", NUMBER, m, 0);
        int q = m + k;
        int innermost(void)
        {
            saw("outermost", NUMBER, k * 10 + m, 0);
            use(k); //@innermost
            return k + m;
        }
        q += innermost() & 1;
        k++;
        saw("own", NUMBER, q, 0);
        saw("outer", NUMBER, k, 0);
        saw("element", NUMBER, table[q % 3], 0);
        use(q); //@inner
        return q + table[q % 3];
    }
    int sum = 0;
    for (int i = 0; i < rounds; i++)
        sum += inner(i);
    return sum;
}

int main(void)
{
    int sum = outer(5) + outer(9);
    tell();
    return sum == 1;
}
