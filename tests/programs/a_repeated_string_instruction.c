//~ routes: asm patch csource
static void fill(char *to, unsigned long count) {                           //~ 3
    __asm__ volatile("rep stosb" : "+D"(to), "+c"(count) : "a"(7) : "memory");  //~ 3
}                                                                           //~ 3

int main(void) {                                                            //~ 1
    static char buffer[200];
    fill(buffer, 0);                                                        //~ 1
    fill(buffer, 1);                                                        //~ 1
    fill(buffer, 200);                                                      //~ 1
    return buffer[199] != 7;                                                //~ 1
}
