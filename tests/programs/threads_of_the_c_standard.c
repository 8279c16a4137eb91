//~ routes: asm patch csource
//~ flags: -pthread
#include <threads.h>

static int work(void *n) {                              //~ 3
    if (*(int *)n == 2)                                 //~ 3
        thrd_exit(20);                                  //~ 1
    return *(int *)n;                                   //~ 2
}                                                       //~ 2

int main(void) {                                        //~ 1
    int numbers[3] = {1, 2, 3};                         //~ 1
    int total = 0;                                      //~ 1
    for (int i = 0; i < 3; i++) {
        thrd_t thread;
        int result;
        thrd_create(&thread, work, &numbers[i]);        //~ 3
        thrd_join(thread, &result);                     //~ 3
        total += result;                                //~ 3
    }
    return total != 24;                                 //~ 1
}
