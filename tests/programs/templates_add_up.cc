//~ routes: asm patch
template <typename T> T twice(T value) {    //~ 5
    T result = value;                       //~ 5
    result += value;                        //~ 5
    return result;                          //~ 5
}                                           //~ 5

int main() {                                //~ 1
    int whole = 0;                          //~ 1
    double real = 0;                        //~ 1
    for (int i = 0; i < 3; i++)
        whole += twice(i);                  //~ 3
    for (int i = 0; i < 2; i++)
        real += twice(0.5);                 //~ 2
    return whole != 6 || real != 2.0;
}
