//~ routes: asm patch csource
//~ calls: fibonacci 177
//~ calls: is_even 6
//~ calls: is_odd 5
static int fibonacci(int n) {                           //~ 177
    if (n < 2)                                          //~ 177
        return n;                                       //~ 89
    return fibonacci(n - 1) + fibonacci(n - 2);         //~ 88
}                                                       //~ 177

static int is_odd(int n);

static int is_even(int n) {                             //~ 6
    if (n == 0)                                         //~ 6
        return 1;                                       //~ 1
    return is_odd(n - 1);                               //~ 5
}                                                       //~ 6

static int is_odd(int n) {                              //~ 5
    if (n == 0)                                         //~ 5
        return 0;                                       //~ 0
    return is_even(n - 1);                              //~ 5
}                                                       //~ 5

int main(void) {                                        //~ 1
    int ten = fibonacci(10);                            //~ 1
    int even = is_even(10);                             //~ 1
    return ten != 55 || even != 1;
}
