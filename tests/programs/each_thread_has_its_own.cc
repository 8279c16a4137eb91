//~ routes: asm patch
//~ flags: -pthread
#include <thread>

static int destroyed;

struct Own {
    int value;
    Own() : value(1) {                  //~ 3
        value++;                        //~ 3
    }                                   //~ 3
    ~Own() {                            //~ 3
        destroyed++;                    //~ 3
    }                                   //~ 3
};

static thread_local Own own;

static void use(int times) {            //~ 3
    for (int i = 0; i < times; i++)
        own.value++;                    //~ 6
}                                       //~ 3

int main() {                            //~ 1
    use(1);                             //~ 1
    std::thread(use, 2).join();
    std::thread(use, 3).join();
    return own.value != 3 || destroyed != 2;
}
