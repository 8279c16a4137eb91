//~ routes: asm patch
//~ flags: -pthread
#include <atomic>
#include <thread>

static std::atomic<int> total;

static void work(int rounds) {          //~ 4
    int sum = 0;                        //~ 4
    while (sum < rounds)
        sum++;                          //~ 10
    total += sum;                       //~ 4
}                                       //~ 4

int main() {                            //~ 1
    std::thread one(work, 1), two(work, 2), three(work, 3), four(work, 4);
    one.join();
    two.join();
    three.join();
    four.join();
    return total != 10;
}
