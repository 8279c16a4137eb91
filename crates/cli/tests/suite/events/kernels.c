// Small kernels that state their events, counted by hand. Each function is called once; where it says
// loads or bytes, the return is among them: one load of 8 bytes.
#include <immintrin.h>
#include <stdio.h>

enum { N = 64, M = 16 };
float x[N], y[N], sums[N];
double a[M][M], b[M][M], c[M][M];
char from[N], to[N];
int lock, tickets;

// 2 flops for each of M * M * M products.
//= matrix flops=8192 flops_64=8192 flops_32=0 branches=4368 taken=4095 backward=4095
__attribute__((noinline)) void matrix(void)
{
    for (int i = 0; i < M; i++)
        for (int j = 0; j < M; j++) {
            double sum = 0;
            for (int k = 0; k < M; k++)
                sum += a[i][k] * b[k][j];
            c[i][j] = sum;
        }
}

//= scalar flops=128 flops_32=128 loads=129 bytes_read=520 stores=0 branches=64 taken=63 backward=63
__attribute__((noinline)) float scalar(void)
{
    float sum = 0;
    for (int i = 0; i < N; i++)
        sum += x[i] * y[i];
    return sum;
}

// A quarter of the loads, and the same bytes and operations.
//= sse flops=128 flops_32=128 loads=33 bytes_read=520 stores=1 bytes_written=16 branches=16
__attribute__((noinline)) void sse(void)
{
    __m128 sum = _mm_setzero_ps();
    for (int i = 0; i < N; i += 4)
        sum = _mm_add_ps(sum, _mm_mul_ps(_mm_loadu_ps(x + i), _mm_loadu_ps(y + i)));
    _mm_storeu_ps(sums, sum);
}

// Fused, 8 lanes: an eighth of the loads.
//= avx2 flops=128 flops_32=128 loads=17 bytes_read=520 stores=1 bytes_written=32 taken=7
__attribute__((noinline, target("avx2,fma"))) void avx2(void)
{
    __m256 sum = _mm256_setzero_ps();
    for (int i = 0; i < N; i += 8)
        sum = _mm256_fmadd_ps(_mm256_loadu_ps(x + i), _mm256_loadu_ps(y + i), sum);
    _mm256_storeu_ps(sums, sum);
}

// A mask selects the lanes.
//= masked flops<=64 flops_32<=64 loads=5 bytes_read=264 stores<=4 bytes_written<=256
__attribute__((noinline, target("avx512f"))) void masked(__mmask16 lanes)
{
    for (int i = 0; i < N; i += 16) {
        __m512 old = _mm512_loadu_ps(x + i);
        _mm512_mask_storeu_ps(sums + i, lanes, _mm512_mask_add_ps(old, lanes, old, old));
    }
}

//= bytes loads=65 stores=64 bytes_read=72 bytes_written=64 flops=0
__attribute__((noinline)) void bytes(void)
{
    for (int i = 0; i < N; i++)
        to[i] = from[i];
}

// How many bytes it moves is for a register to say.
//= string loads>=1 stores>=0 bytes_read>=8 bytes_written>=0 branches=0
__attribute__((noinline)) void string(char *d, const char *s, long n)
{
    __asm__ volatile("rep movsb" : "+D"(d), "+S"(s), "+c"(n) : : "memory");
}

//= x87 flops=64 flops_80=64 flops_32=0
__attribute__((noinline)) long double x87(void)
{
    long double sum = 0;
    for (int i = 0; i < N; i++)
        sum += x[i];
    return sum;
}

__attribute__((noinline)) int is_digit(char it)
{
    return it >= '0' && it <= '9';
}

// Fifteen characters and the zero at the end.
//= parse calls=16 indirect=0 returns=1 syscalls=0
__attribute__((noinline)) int parse(const char *text)
{
    int sum = 0, number = 0;
    for (;; text++) {
        if (is_digit(*text)) {
            number = 10 * number + *text - '0';
            continue;
        }
        sum += number;
        number = 0;
        if (!*text)
            return sum;
    }
}

// 12345 has five digits: a quotient and a remainder in one.
//= digits divisions=5
__attribute__((noinline)) int digits(unsigned number, unsigned base)
{
    int sum = 0;
    for (; number; number /= base)
        sum += number % base;
    return sum;
}

//= counter atomics=20 fences=10 syscalls=0
__attribute__((noinline)) void counter(void)
{
    for (int i = 0; i < 10; i++) {
        while (__atomic_exchange_n(&lock, 1, __ATOMIC_ACQUIRE))
            ;
        __atomic_fetch_add(&tickets, 1, __ATOMIC_RELAXED);
        _mm_mfence();
        __atomic_store_n(&lock, 0, __ATOMIC_RELEASE);
    }
}

// One of four times the first jumps, and 99 times the second.
//= jumping branches=200 taken=124 backward=99 jumps=1 loads=1 stores=0
__asm__("    .globl jumping\n"
        "    .type jumping, @function\n"
        "jumping:\n"
        "    mov $100, %ecx\n"
        "    jmp 1f\n"
        "    .p2align 4\n"
        "1:  test $3, %cl\n"
        "    jz 2f\n"
        "    inc %eax\n"
        "2:  dec %ecx\n"
        "    jnz 1b\n"
        "    ret\n"
        "    .size jumping, . - jumping\n");
void jumping(void);

static int one(int it) { return it + 1; }
static int two(int it) { return it + 2; }
static int (*const table[])(int) = { one, two };

//= chosen calls=10 indirect=10
__attribute__((noinline)) int chosen(int it)
{
    for (int i = 0; i < 10; i++)
        it = table[it & 1](it);
    return it;
}

//= kernel syscalls=7 calls=0
__attribute__((noinline)) void kernel(void)
{
    for (int i = 0; i < 7; i++) {
        long number = 110; // getppid
        __asm__ volatile("syscall" : "+a"(number) : : "rcx", "r11", "memory");
    }
}

int main(void)
{
    volatile long double used;
    matrix();
    used = scalar();
    sse();
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        avx2();
    if (__builtin_cpu_supports("avx512f"))
        masked(0x0ff0);
    bytes();
    string(to, from, N);
    used = x87();
    printf("%d\n", parse("12,345,6,78,901"));
    printf("%d\n", digits(12345, 10));
    counter();
    jumping();
    used = chosen(0);
    kernel();
}
