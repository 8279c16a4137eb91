//~ routes: asm patch
__attribute__((section(".mine"))) static int mine(int n) {      //~ 4
    return n * 2;                                               //~ 4
}                                                               //~ 4

__attribute__((section("a_word"))) static int word(int n) {     //~ 4
    int sum = 0;                                                //~ 4
    while (n > 0)
        sum += n--;                                             //~ 6
    return sum;                                                 //~ 4
}                                                               //~ 4

__attribute__((cold)) static int cold(int n) {                  //~ 4
    return n - 1;                                               //~ 4
}                                                               //~ 4

__attribute__((hot)) static int hot(int n) {                    //~ 4
    return n + 1;                                               //~ 4
}                                                               //~ 4

int main(void) {                                                //~ 1
    int sum = 0;                                                //~ 1
    for (int i = 0; i < 4; i++)
        sum += mine(i) + word(i) + cold(i) + hot(i);            //~ 4
    return sum != 34;                                           //~ 1
}
