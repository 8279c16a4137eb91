//~ routes: asm patch csource
static int copy(char *to, const char *from, int count) {    //~ 2
    int rounds = (count + 3) / 4;                           //~ 2
    switch (count % 4) {                                    //~ 2
    case 0:
        do {
            *to++ = *from++;                                //~ 3
    case 3:
            *to++ = *from++;                                //~ 4
    case 2:
            *to++ = *from++;                                //~ 4
    case 1:
            *to++ = *from++;                                //~ 4
        } while (--rounds > 0);                             //~ 4
    }
    return count;                                           //~ 2
}                                                           //~ 2

int main(void) {                                            //~ 1
    char to[8];
    copy(to, "abcdefgh", 8);                                //~ 1
    copy(to, "1234567", 7);                                 //~ 1
    return to[6] != '7';                                    //~ 1
}
