//~ routes: asm patch csource
//~ calls: touch 60
static int total;

static void touch(int n) {              //~ 60
    total += n;                         //~ 60
}                                       //~ 60

int main(void) {                        //~ 1
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 4; j++)
            for (int k = 0; k < 5; k++)
                touch(k);               //~ 60
    int n = 0;                          //~ 1
    while (n < 10) {
        n++;                            //~ 9
        if (n % 2 == 0)                 //~ 9
            continue;                   //~ 4
        if (n > 7)                      //~ 5
            break;                      //~ 1
        total++;                        //~ 4
    }
    do {
        n -= 2;                         //~ 5
    } while (n > 0);                    //~ 5
    return total != 124;                //~ 1
}
