//~ routes: asm patch
static int alive;

struct Member {
    Member(int n) {                     //~ 4
        if (n == 2)                     //~ 4
            throw n;                    //~ 1
        alive++;                        //~ 3
    }                                   //~ 3
    ~Member() {                         //~ 3
        alive--;                        //~ 3
    }                                   //~ 3
};

struct Whole {
    Member member;
    Whole(int n) try : member(n) {
        if (n == 3)                     //~ 3
            throw 'c';                  //~ 1
    } catch (...) {
        alive += 100;                   //~ 2
    }
};

static int make(int n) {                //~ 4
    try {
        Whole whole(n);
        return 1;
    } catch (int) {
        return 10;                      //~ 1
    } catch (char) {
        return 20;                      //~ 1
    }
}

int main() {                            //~ 1
    int sum = 0;                        //~ 1
    for (int i = 0; i < 4; i++)
        sum += make(i);                 //~ 4
    return sum != 32 || alive != 200;
}
