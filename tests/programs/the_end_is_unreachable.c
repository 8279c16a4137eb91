//~ routes: asm patch csource
static int sign(int n) {                //~ 3
    if (n < 0)                          //~ 3
        return -1;                      //~ 1
    if (n >= 0)                         //~ 2
        return 1;                       //~ 2
    __builtin_unreachable();
}

int main(void) {                        //~ 1
    int sum = 0;                        //~ 1
    for (int i = -1; i < 2; i++)
        sum += sign(i);                 //~ 3
    return sum != 1;                    //~ 1
}
