//~ routes: asm patch csource
//~ calls: absent_or_not 1
__attribute__((weak)) int absent(void);

__attribute__((weak)) int present(void) {       //~ 2
    return 2;                                   //~ 2
}                                               //~ 2

static int absent_or_not(void) {                //~ 1
    if (absent)                                 //~ 1
        return absent();                        //~ 0
    return present();                           //~ 1
}                                               //~ 1

int main(void) {                                //~ 1
    int n = absent_or_not();                    //~ 1
    n += present();                             //~ 1
    return n != 4;                              //~ 1
}
