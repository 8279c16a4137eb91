//~ routes: asm patch csource
int main(void) {                        //~ 1
    int n = 0;                          //~ 1
    int skipped = 0;                    //~ 1
    goto middle;                        //~ 1
    while (n < 5) {
        skipped++;                      //~ 4
    middle:
        n++;                            //~ 5
    }
    if (n == 5)                         //~ 1
        goto out;                       //~ 1
    n = 100;                            //~ 0
out:
    return n != 5 || skipped != 4;
}
