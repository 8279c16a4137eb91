//~ routes: patch
#include <stdio.h>
#include <stdlib.h>

int main(void) {                                                        //~ 1
    int sum = 0, number;                                                //~ 1
    FILE *pipe = popen("printf '3\\n1\\n2\\n' | sort | head -n 2", "r");    //~ 1
    while (fscanf(pipe, "%d", &number) == 1)                            //~ 3
        sum += number;                                                  //~ 2
    if (pclose(pipe) != 0)                                              //~ 1
        return 1;                                                       //~ 0
    return sum != 3 || system("exit 3") >> 8 != 3;                      //~ 1
}
