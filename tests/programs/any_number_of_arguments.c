//~ routes: asm patch csource
#include <stdarg.h>

static double sum(const char *kinds, ...) {     //~ 2
    double total = 0;                           //~ 2
    va_list args;
    va_start(args, kinds);
    for (; *kinds; kinds++)
        if (*kinds == 'i')                      //~ 12
            total += va_arg(args, int);
        else
            total += va_arg(args, double);
    va_end(args);
    return total;                               //~ 2
}

int main(void) {                                //~ 1
    double n = sum("iiiiiiii", 1, 2, 3, 4, 5, 6, 7, 8);     //~ 1
    double m = sum("idid", 1, 0.5, 2, 0.5);                 //~ 1
    return n != 36 || m != 4;
}
