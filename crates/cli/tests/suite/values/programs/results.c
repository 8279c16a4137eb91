//~ fib: fib(ret)
//~ sign: sign(ret)
//~ hops: hop(ret)
//~ hopped: sum ret in hop
//~ last: last(ret)
//~ nothing: never_called(ret)
//~ low: low(i32(ret))
//~ byte: low(u8(ret) + 1)
//~ before: low+0x0(i32(edi))
//~ after: after low+0x0(i32(eax))
#include "seen.h"

__attribute__((noipa)) long fib(long n)
{
    long result = n < 2 ? n : fib(n - 1) + fib(n - 2);
    saw("fib", NUMBER, result, 0);
    return result;
}

/* Several places where it returns. */
__attribute__((noipa)) long sign(long n)
{
    if (n < 0)
        return -1;
    if (n > 0)
        return 1;
    return 0;
}

__attribute__((noipa)) long last(long n)
{
    return n * 3;
}

__attribute__((noipa)) long never_called(long n)
{
    return n;
}

/* What is in the upper half of the register is nobody's business: the sign is in the lower one. */
int low(int n);
__asm__(".text; .type low, @function; low: .cfi_startproc; lea -3(%rdi), %eax; bts $40, %rax; ret\n"
        ".cfi_endproc; .size low, . - low");

/* Written out, because compilers would make what they like of it: it jumps to `last`, or returns. */
long hop(long n);
__asm__(".text; .type hop, @function; hop: .cfi_startproc; test $1, %dil; jz 1f; jmp last\n"
        "1: lea 5(%rdi), %rax; ret; .cfi_endproc; .size hop, . - hop");

int main(void)
{
    long sum = fib(15);
    for (long n = -4; n < 9; n++) {
        long found = sign(n);
        saw("sign", NUMBER, n < 0 ? -1 : n > 0, 0);
        saw("low", NUMBER, (int)n - 3, 0);
        saw("before", NUMBER, (int)n, 0);
        saw("after", NUMBER, (int)n - 3, 0);
        saw("byte", NUMBER, (unsigned char)((int)n - 3) + 1, 0);
        sum += low(n);
        saw("hops", n & 1 ? JUMPED : NUMBER, n & 1 ? 0 : n + 5, 0);
        saw("hopped", n & 1 ? JUMPED : NUMBER, 0, n & 1 ? 0 : n + 5);
        sum += found + hop(n);
        if (n & 1)
            saw("last", NUMBER, n * 3, 0);
    }
    saw("last", NUMBER, 21, 0);
    last(7);
    tell();
    return sum == 1;
}
