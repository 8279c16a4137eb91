// Makes a routine that counts down, and calls it until it has had ten times the time of `own`.
// The calls are long: asking for the time is where a busy machine takes the processor away.
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return time.tv_sec + time.tv_nsec / 1e9;
}

__attribute__((noipa)) static long own(long rounds) {
    long sum = 0;
    while (rounds--)
        sum += rounds ^ sum;
    return sum;
}

int main(void) {
    // mov %rdi, %rax; 1: dec %rax; jnz 1b; ret
    static const unsigned char code[] = {0x48, 0x89, 0xf8, 0x48, 0xff, 0xc8, 0x75, 0xfb, 0xc3};
    void *made = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(made, code, sizeof code);
    mprotect(made, 4096, PROT_READ | PROT_EXEC);
    double begin = now(), in_own = 0, in_made = 0;
    int calls = 0;
    while (in_own + in_made < 1) {
        begin = now();
        if (in_own * 10 < in_made) {
            own(2000000);
            calls++;
            in_own += now() - begin;
        } else {
            ((void (*)(long))made)(20000000);
            in_made += now() - begin;
        }
    }
    printf("%d\n", calls);
    return 0;
}
