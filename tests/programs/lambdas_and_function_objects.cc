//~ routes: asm patch
#include <algorithm>
#include <functional>

int main() {                                //~ 1
    int calls = 0;                          //~ 1
    auto count = [&calls](int n) {
        calls += n;                         //~ 4
    };
    int numbers[] = {1, 2, 3};
    std::for_each(numbers, numbers + 3, count);
    std::function<void(int)> later = count;
    later(10);                              //~ 1
    return calls != 16;
}
