//~ adc: LINE:adc(rcx)
//~ loaded: LINE:adc(rax & 0xff)
//~ dec: LINE:dec(rdx)
//~ jnz: LINE:jnz(log2(rcx))
//~ kept: LINE:kept(rdi - rsi)
//~ quotients: LINE:kept(rdi / (rsi | 1))
//~ all: LINE:all((rcx + rdx + rbx + rbp + rsi + rdi + r8 + r9 + r10 + r11 + r12 + r13 + r14 + r15) >> 58)
//~ red: LINE:red([rsp - 8] + [rsp - 128])
//~ rep: LINE:rep(rcx)
//~ one: LINE:one(rcx & 15)
//~ middle: LINE:middle(edi)
//~ tiny: tiny(arg1)
//~ smaller: smaller(arg1 * 2)
//~ down: LINE:down(rdi)
#include "seen.h"

long carries(unsigned long *to, const unsigned long *from, long words);
unsigned long flags(long one, long other), plain_flags(long one, long other);
void all(unsigned long *registers, long rounds);
long red_zone(long one, long other);
void fill(char *to, long bytes, int with);
void one(long rounds);
long middle(long n);
void tiny(long n), smaller(long n);
long down(long n);

/* What `all` does in one round. */
static void all_again(unsigned long *r)
{
    for (int i = 1; i < 13; i += 2) {
        r[i] += r[i + 1];
        r[i + 1] ^= r[i + 2];
    }
    r[13] += r[14];
    unsigned long sum = 0;
    for (int i = 1; i < 15; i++)
        sum += r[i];
    saw("all", NUMBER, sum >> 58, 0);
    r[14] ^= r[1];
}

static int carries_are_right(unsigned long *seed)
{
    enum { WORDS = 20 };
    unsigned long to[WORDS], from[WORDS], expected[WORDS], carry = 0;
    for (int i = 0; i < WORDS; i++) {
        to[i] = dice(seed) % 2 ? -1ul - dice(seed) % 3 : dice(seed);
        from[i] = dice(seed) % 3;
        unsigned __int128 sum = (unsigned __int128)to[i] + from[i] + carry;
        expected[i] = sum;
        carry = sum >> 64;
        saw("adc", NUMBER, i, 0);
        saw("loaded", NUMBER, from[i] & 0xff, 0);
        saw("dec", NUMBER, WORDS - i, 0);
        saw("jnz", NUMBER, 63 - __builtin_clzl(i + 1), 0);
    }
    return carries(to, from, WORDS) == carry && !memcmp(to, expected, sizeof to);
}

int main(void)
{
    unsigned long seed = 7;
    for (int i = 0; i < 100; i++)
        if (!carries_are_right(&seed))
            return 3;
    long ends[] = {0, 1, -1, 5, -5, 1l << 62, -1l - (1ul << 63 >> 1), -3};
    for (int i = 0; i < 64; i++) {
        long a = ends[i % 8], b = ends[i / 8];
        saw("kept", NUMBER, (unsigned long)a - (unsigned long)b, 0);
        saw("quotients", NUMBER, a / (b | 1), 0);
        if (flags(a, b) != plain_flags(a, b))
            return 4;
    }
    unsigned long registers[15], again[15];
    for (int i = 0; i < 15; i++)
        registers[i] = again[i] = dice(&seed) << 32 | dice(&seed);
    all(registers, 300);
    for (int i = 0; i < 300; i++)
        all_again(again);
    if (memcmp(registers + 1, again + 1, sizeof again - sizeof *again))
        return 5;
    char bytes[64] = {0};
    for (long i = 0; i < 50; i++) {
        saw("red", NUMBER, i % 6 * 3, 0);
        if (red_zone(i % 6, i % 6 * 2) != i % 6 * 3)
            return 6;
        saw("rep", NUMBER, i % 5, 0);
        fill(bytes + i, i % 5, 'x');
        saw("tiny", NUMBER, i % 3, 0);
        tiny(i % 3);
        saw("smaller", NUMBER, i * 2, 0);
        smaller(i);
        saw("middle", NUMBER, i + 1, 0);
        if ((i + 1) & 1)
            saw("middle", NUMBER, i + 2, 0);
        middle(i);
        saw("down", NUMBER, -i, 0);
        if (down(-i) != -i)
            return 7;
    }
    for (long i = 1; i < 40; i++) {
        for (long left = i; left; left--)
            saw("one", NUMBER, left & 15, 0);
        one(i);
    }
    tell();
    return bytes[1] != 'x' || bytes[0];
}
