// So many threads, one after the other: made by the C library, or by the system call itself.
#define _GNU_SOURCE
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static char stack[1 << 16] __attribute__((aligned(16)));
static volatile int running;

__attribute__((noipa)) void visit(void)
{
    running = running; // visit
}

static void *once(void *unused)
{
    visit();
    return unused;
}

// The child goes on with another stack in the midst of this function, and ends there.
__attribute__((noipa)) static long raw_clone(long flags, char *top, volatile int *tid)
{
    register volatile int *child_tid __asm__("r10") = tid;
    register long tls __asm__("r8") = 0;
    long result = SYS_clone;
    __asm__ volatile("syscall\n\t"
                     "test %%rax, %%rax\n\t"
                     "jnz 1f\n\t"
                     "xor %%ebp, %%ebp\n\t"
                     "call visit\n\t"
                     "mov $60, %%eax\n\t"
                     "xor %%edi, %%edi\n\t"
                     "syscall\n\t"
                     "hlt\n"
                     "1:"
                     : "+a"(result)
                     : "D"(flags), "S"(top), "d"(0L), "r"(child_tid), "r"(tls)
                     : "rcx", "r11", "memory");
    return result;
}

int main(int argc, char **argv)
{
    int count = atoi(argv[2]);
    for (int i = 0; i < count; i++) {
        if (!strcmp(argv[1], "library")) {
            pthread_t thread;
            if (pthread_create(&thread, 0, once, 0))
                return 1;
            pthread_join(thread, 0);
            continue;
        }
        int flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD |
                    CLONE_SYSVSEM | CLONE_CHILD_CLEARTID;
        running = 1;
        if (raw_clone(flags, stack + sizeof stack, &running) < 0)
            return 1;
        while (running)
            syscall(SYS_futex, &running, FUTEX_WAIT, 1, 0, 0, 0);
    }
    return 0;
}
