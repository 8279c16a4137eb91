//~ routes: asm patch
//~ flags: -std=c++20
#include <coroutine>

struct Task {
    struct promise_type {
        int value = 0;
        Task get_return_object() { return {std::coroutine_handle<promise_type>::from_promise(*this)}; }
        std::suspend_always initial_suspend() { return {}; }
        std::suspend_always final_suspend() noexcept { return {}; }
        std::suspend_always yield_value(int n) {        //~ 5
            value = n;                                  //~ 5
            return {};
        }
        void return_void() {}
        void unhandled_exception() {}
    };
    std::coroutine_handle<promise_type> handle;
};

static Task numbers(int from) {
    for (int n = from; n < from + 3; n++)
        co_yield n;
    from = 0;                                           //~ 1
}

int main() {                                            //~ 1
    Task whole = numbers(1);
    Task half = numbers(10);
    int sum = 0;                                        //~ 1
    for (int i = 0; i < 4; i++) {
        whole.handle.resume();                          //~ 4
        if (!whole.handle.done())
            sum += whole.handle.promise().value;        //~ 3
    }
    for (int i = 0; i < 2; i++) {
        half.handle.resume();                           //~ 2
        sum += half.handle.promise().value;             //~ 2
    }
    whole.handle.destroy();                             //~ 1
    return sum != 27;                                   //~ 1
}
