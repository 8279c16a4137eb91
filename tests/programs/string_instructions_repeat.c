//~ routes: asm patch csource
#include <string.h>

static void copy(char *to, const char *from, unsigned long count) {             //~ 3
    __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(count)::"memory");    //~ 3
}                                                                               //~ 3

static int same(const char *a, const char *b, unsigned long count) {            //~ 3
    int equal;
    __asm__ volatile("cmp %%eax, %%eax\n\trepe cmpsb\n\tsete %%al\n\tmovzbl %%al, %%eax"    //~ 3
                     : "=a"(equal), "+D"(a), "+S"(b), "+c"(count)::"memory", "cc");
    return equal;                                                               //~ 3
}

static unsigned long find(const char *text, char wanted) {                      //~ 2
    unsigned long left = -1ul;                                                  //~ 2
    __asm__ volatile("repne scasb" : "+D"(text), "+c"(left) : "a"(wanted) : "memory", "cc");    //~ 2
    return -left - 2;                                                           //~ 2
}

int main(void) {                                                                //~ 1
    char text[] = "exactly so many", other[sizeof text] = "";
    copy(other, text, 0);                                                       //~ 1
    copy(other, text, sizeof text);                                             //~ 1
    if (!same(text, other, sizeof text))                                        //~ 1
        return 1;                                                               //~ 0
    other[3] = 'x';                                                             //~ 1
    if (same(text, other, sizeof text))                                         //~ 1
        return 2;                                                               //~ 0
    if (!same(text, other, 0))                                                  //~ 1
        return 3;                                                               //~ 0
    copy(text + 1, text, 3);                                                    //~ 1
    return find(text, 0) != strlen(text) || find(text, 'e') != 0;               //~ 1
}
