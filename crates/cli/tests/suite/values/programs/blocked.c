//~ memory: look(u8[arg1])
//~ quotient: look(100 / arg2)
#include <signal.h>
#include <string.h>
#include "seen.h"

__attribute__((noipa)) long look(unsigned char *at, long by)
{
    return by;
}

static volatile sig_atomic_t handled;

static void handler(int number)
{
    handled++;
}

static void looks(void)
{
    saw("memory", UNREADABLE, 0, 0);
    saw("quotient", UNREADABLE, 0, 0);
    look(0, 0);
}

/* What the program does with these signals is its own business, and stays as it is. */
int main(void)
{
    int signals[] = {SIGSEGV, SIGFPE};
    for (int i = 0; i < 2; i++) {
        struct sigaction action = {.sa_handler = handler}, found;
        sigset_t set, now;
        sigaction(signals[i], &action, 0);
        sigemptyset(&set);
        sigaddset(&set, signals[i]);
        sigprocmask(SIG_BLOCK, &set, 0);
        looks();
        sigprocmask(SIG_BLOCK, 0, &now);
        if (!sigismember(&now, signals[i]))
            return 3;
        sigaction(signals[i], 0, &found);
        if (found.sa_handler != handler)
            return 4;
        raise(signals[i]);
        looks();
        if (handled)
            return 5;
        sigprocmask(SIG_UNBLOCK, &set, 0);
        if (handled != 1)
            return 6;
        handled = 0;
        signal(signals[i], SIG_IGN);
        looks();
        sigaction(signals[i], 0, &found);
        if (found.sa_handler != SIG_IGN)
            return 7;
        raise(signals[i]);
    }
    tell();
    return 0;
}
