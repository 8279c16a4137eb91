//~ spin: LINE:spin(rsi)
//~ turn: LINE:turn(rsi)
//~ handler: handler(arg1)
//~ deep: deep(arg1)
//~ back: deep(ret)
#include <setjmp.h>
#include <signal.h>
#include <sys/time.h>
#include "seen.h"

void spin(unsigned long *counters, unsigned long first);
void turn(unsigned long *counters, unsigned long first, long rounds);

static unsigned long spun[8], turned[8], handled;
static volatile int leaves;
static sigjmp_buf behind;

__attribute__((noipa)) void handler(int number)
{
    handled++;
    /* It interrupts what it does itself. */
    turn(turned, handled & 7, 20);
    if (leaves) {
        leaves = 0;
        siglongjmp(behind, 1);
    }
}

long deep(long n);
/* So that it stays recursive. */
static long (*volatile deeper)(long) = deep;

/* Of those who are left by `longjmp`, nobody returns. */
__attribute__((noipa)) long deep(long n)
{
    if (n == 7)
        longjmp(behind, 1);
    if (n > 0)
        return deeper(n - 2) + 1;
    return 0;
}

int main(void)
{
    struct itimerval often = {{0, 300}, {0, 300}}, never = {{0, 0}, {0, 0}};
    signal(SIGALRM, handler);
    setitimer(ITIMER_REAL, &often, 0);
    turn(turned, 3, 500000);
    for (volatile int i = 0; i < 40; i++)
        if (!sigsetjmp(behind, 1)) {
            leaves = 1;
            spin(spun, i & 7);
        }
    setitimer(ITIMER_REAL, &never, 0);
    for (int i = 0; i < 8; i++) {
        saw_often("spin", NUMBER, i, spun[i], 0);
        saw_often("turn", NUMBER, i, turned[i], 0);
    }
    saw_often("handler", NUMBER, SIGALRM, handled, 0);
    for (volatile long n = 0; n < 12; n++) {
        if (!setjmp(behind))
            deep(n);
        for (long left = n; left > -2; left -= 2) {
            saw("deep", NUMBER, left, 0);
            if (left == 7)
                break;
        }
        if (n % 2 == 0 || n < 7)
            for (long depth = 0; depth <= (n + 1) / 2; depth++)
                saw("back", NUMBER, depth, 0);
    }
    tell();
    return 0;
}
