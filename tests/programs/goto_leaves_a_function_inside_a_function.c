//~ routes: asm patch
static int apply(void (*function)(int), int n) {    //~ 3
    function(n);                                    //~ 3
    return 1;                                       //~ 2
}

int main(void) {                                    //~ 1
    __label__ out;
    volatile int sum = 0;                           //~ 1
    void leave(int n) {
        if (n > 1)                                  //~ 3
            goto out;                               //~ 1
    }
    for (int i = 0; i < 5; i++)
        sum += apply(leave, i);                     //~ 3
    sum = 100;                                      //~ 0
out:
    return sum != 2;                                //~ 1
}
