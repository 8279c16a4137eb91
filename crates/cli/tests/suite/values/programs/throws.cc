//~ middle: middle(long)(arg1)
//~ returned: middle(long)(ret)
//~ thrower: thrower(long)(log2(arg1))
//~ caught: LINE:caught(found)
#include <stdexcept>
#include <string>
#include "seen.h"

struct Guard {
    long n;
    ~Guard();
};
__attribute__((noipa)) Guard::~Guard() {}

__attribute__((noipa)) long thrower(long n)
{
    if (n % 3 == 0)
        throw n;
    if (n % 5 == 0)
        throw std::runtime_error("five");
    return n * 2;
}

__attribute__((noipa)) long middle(long n)
{
    Guard guard{n};
    return thrower(n) + 1;
}

__attribute__((noipa)) void note(long n) {}

static void round(long n)
{
    saw("middle", NUMBER, n, 0);
    int power = -1;
    for (unsigned long rest = n; rest; rest >>= 1)
        power++;
    saw("thrower", NUMBER, power, 0);
    try {
        long found = middle(n);
        saw("returned", NUMBER, found, 0);
    } catch (long found) {
        saw("caught", NUMBER, found, 0);
        note(found); //@caught
    } catch (std::exception &) {
    }
}

int main()
{
    for (long n = 0; n < 60; n++)
        round(n);
    tell();
}
