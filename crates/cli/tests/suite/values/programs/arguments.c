//~ first: take(arg1)
//~ seventh: take(arg7 + 2 * arg8)
//~ negative: take(-arg2)
//~ powers: take(log2(arg3))
//~ widths: take(linear(arg4, 16))
//~ within: take(range(arg4, -20..30))
//~ sums: sum arg5 in take(arg1 & 3)
//~ all: sum arg5 in take
//~ pointed: take(i32[arg6 + 4])
#include "seen.h"

__attribute__((noipa))
long take(long a, long b, long c, long d, long e, int *f, long g, long h)
{
    return a + b + c + d + e + f[1] + g + h;
}

int main(void)
{
    unsigned long seed = 1;
    long sum = 0;
    for (int i = 0; i < 3000; i++) {
        long a = dice(&seed) % 40, b = dice(&seed) % 9, c = dice(&seed) >> dice(&seed) % 32;
        long d = (long)(dice(&seed) % 100) - 50, e = (long)dice(&seed) - (1l << 30);
        int f[2] = {0, (int)(dice(&seed) % 5) - 2};
        long g = dice(&seed) % 3, h = dice(&seed) % 3;
        if (i % 100 == 0)
            c = i % 200 ? 0 : -1;
        saw("first", NUMBER, a, 0);
        saw("seventh", NUMBER, g + 2 * h, 0);
        saw("negative", NUMBER, -b, 0);
        int power = -1;
        for (unsigned long rest = c; rest; rest >>= 1)
            power++;
        saw("powers", NUMBER, power, 0);
        long begin = d;
        while (begin % 16)
            begin--;
        saw("widths", NUMBER, begin, 0);
        saw("within", d < -20 ? BELOW : d >= 30 ? ABOVE : NUMBER, d < -20 || d >= 30 ? 0 : d, 0);
        saw("sums", NUMBER, a & 3, e);
        saw("all", NUMBER, 0, e);
        saw("pointed", NUMBER, f[1], 0);
        sum += take(a, b, c, d, e, f, g, h);
    }
    tell();
    return sum == 1;
}
