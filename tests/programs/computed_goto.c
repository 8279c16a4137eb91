//~ routes: asm patch csource
static int run(const unsigned char *code) {     //~ 2
    static void *const labels[] = {&&stop, &&add, &&dbl, &&neg};
    int n = 0;                                  //~ 2
    goto *labels[*code++];
add:
    n += 1;                                     //~ 5
    goto *labels[*code++];
dbl:
    n *= 2;                                     //~ 2
    goto *labels[*code++];
neg:
    n = -n;                                     //~ 0
    goto *labels[*code++];
stop:
    return n;                                   //~ 2
}

int main(void) {                                //~ 1
    int n = run((const unsigned char[]){1, 1, 2, 1, 0});    //~ 1
    int m = run((const unsigned char[]){1, 2, 1, 0});       //~ 1
    return n != 5 || m != 3;
}
