//~ routes: patch
//~ varies: handler wait_for
#include <signal.h>
#include <sys/time.h>

static volatile sig_atomic_t ticks;

static void handler(int number) {
    ticks++;
}

static void wait_for(int wanted) {
    while (ticks < wanted) {
    }
}

static int work(int rounds) {               //~ 1
    int sum = 0;                            //~ 1
    for (int i = 0; i < rounds; i++)
        sum += i & 1;                       //~ 600
    return sum;                             //~ 1
}

int main(void) {                            //~ 1
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    sigaction(SIGALRM, &action, 0);         //~ 1
    struct itimerval every = {{0, 10000}, {0, 10000}}, never = {0};
    setitimer(ITIMER_REAL, &every, 0);      //~ 1
    wait_for(3);                            //~ 1
    int sum = work(600);                    //~ 1
    setitimer(ITIMER_REAL, &never, 0);      //~ 1
    return sum != 300;                      //~ 1
}
