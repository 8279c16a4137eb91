//~ routes: asm patch csource
#include <alloca.h>
#include <string.h>

static int use(unsigned size) {                 //~ 4
    char *memory = alloca(size);                //~ 4
    memset(memory, 1, size);                    //~ 4
    char array[size];
    memcpy(array, memory, size);                //~ 4
    return array[size - 1];                     //~ 4
}

int main(void) {                                //~ 1
    int sum = 0;                                //~ 1
    for (unsigned size = 1; size < 5000; size *= 10)
        sum += use(size);                       //~ 4
    return sum != 4;                            //~ 1
}
