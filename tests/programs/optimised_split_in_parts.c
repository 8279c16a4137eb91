//~ routes: lines
//~ args: 100
//~ optimised: -O2, -O3
#include <stdio.h>
#include <stdlib.h>

static unsigned cache[100];
static unsigned misses;

// The test is inlined where it is called; the rest becomes a function of its own (part).
static void look_up(unsigned key) {
    if (cache[key])                             //~ 203
        return;                                 //~ 153
    misses++;                                   //~ 50
    unsigned value = key;                       //~ 50
    for (int i = 0; i < 20; i++) {              //~ 1050
        value = value * 17 + misses;            //~ 1000
        if (value & 0x10000)                    //~ 1000
            fflush(stdout);                     //~ 451
    }
    for (unsigned other = 0; other < 100; other += 10) { //~ 550
        if (other != key && cache[other] == value)  //~ 500
            abort();                            //~ 0
    }
    cache[key] = value | 1;                     //~ 50
    fflush(stdout);                             //~ 50
}

int main(int argc, char **argv) {
    int rounds = atoi(argv[1]);                 //~ 1
    for (int i = 0; i < rounds; i++) {          //~ 101
        look_up(i % 50);                        //~ 100
        look_up(i % 25);                        //~ 100
    }
    look_up(rounds - 60);                       //~ 1
    look_up(rounds - 70);                       //~ 1
    look_up(rounds - 80);                       //~ 1
    printf("%u\n", misses);                     //~ 1
    return argc - 2;                            //~ 1
}
