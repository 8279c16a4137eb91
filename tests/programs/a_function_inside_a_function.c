//~ routes: asm patch
static int apply(int (*function)(int), int n) {     //~ 3
    return function(n);                             //~ 3
}                                                   //~ 3

int main(void) {                                    //~ 1
    int total = 0;
    int add(int n) {
        total += n;                                 //~ 4
        return total;                               //~ 4
    }
    for (int i = 0; i < 3; i++)
        apply(add, i);                              //~ 3
    add(10);                                        //~ 1
    return total != 13;                             //~ 1
}
