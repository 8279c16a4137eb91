//~ routes: asm patch csource
static int name(int n) {                //~ 20
    switch (n) {                        //~ 20
    case 0:
        return 10;                      //~ 2
    case 1:
        return 11;                      //~ 2
    case 2:
    case 3:
        return 12;                      //~ 4
    case 4:
        n = 40;                         //~ 2
    case 5:
        n += 2;                         //~ 4
        break;                          //~ 4
    case 7:
        return 17;                      //~ 2
    case 8:
        return 18;                      //~ 0
    default:
        return 19;                      //~ 6
    }
    return n;                           //~ 4
}                                       //~ 20

int main(void) {                        //~ 1
    int sum = 0;                        //~ 1
    for (int i = -2; i < 8; i++)
        sum += name(i);                 //~ 10
    for (int i = -2; i < 8; i++)
        sum += name(i);                 //~ 10
    return sum != 336;                  //~ 1
}
