// A handler leaves a loop by a jump, three hundred times; then two contexts take turns.
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <sys/time.h>
#include <ucontext.h>

static sigjmp_buf out;
static volatile unsigned long begun, done, turns, early;
static volatile int is_in;
static ucontext_t here, there;
static char stack[1 << 16];

static void leave(int signal)
{
    early += !is_in;
    is_in = 0;
    siglongjmp(out, 1);
}

__attribute__((noipa)) void leaf(void)
{
    __asm__ volatile("");
}

__attribute__((noipa)) void spin(void)
{
    is_in = 1;
    for (;;) {
        begun++;
        leaf();
        done++;
    }
}

__attribute__((noipa)) void take_turns(void)
{
    for (;;) {
        turns++; // turns
        swapcontext(&there, &here);
    }
}

int main(void)
{
    struct sigaction action = {.sa_handler = leave};
    struct itimerval soon = {{0, 0}, {0, 1000}};
    sigaction(SIGALRM, &action, 0);
    for (volatile int i = 0; i < 300; i++)
        if (!sigsetjmp(out, 1)) {
            setitimer(ITIMER_REAL, &soon, 0);
            spin();
        }
    getcontext(&there);
    there.uc_stack.ss_sp = stack;
    there.uc_stack.ss_size = sizeof stack;
    makecontext(&there, take_turns, 0);
    for (int i = 0; i < 10000; i++)
        swapcontext(&here, &there); // turns
    printf("%lu %lu %lu\n", done, begun, early);
    return turns != 10000;
}
