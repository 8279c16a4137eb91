//~ routes: asm patch
//~ flags: -ffunction-sections -Wl,--gc-sections
//~ calls: live 2
void nowhere(void);

void dead(void) {
    nowhere();
}

int live(int n) {                       //~ 2
    return n + 1;                       //~ 2
}                                       //~ 2

int main(void) {                        //~ 1
    int n = live(0);                    //~ 1
    n += live(1);                       //~ 1
    return n != 3;                      //~ 1
}
