// Four std::threads, a thread pool of std::async, and an exception on the way: 4000000 + 8.
#include <future>
#include <stdexcept>
#include <thread>
#include <vector>
#include "counted.h"

static void work() {
    ENTER();
    COUNT_LOOP(0, 1000000);
}

static int one() {
    ENTER();
    COUNT(1);
    throw std::runtime_error("on purpose");
}

int main() {
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; i++) threads.emplace_back(work);
    for (auto &thread : threads) thread.join();
    int caught = 0;
    for (int i = 0; i < 8; i++) {
        auto future = std::async(std::launch::async, one);
        try { future.get(); } catch (const std::runtime_error &) { caught++; }
    }
    return caught == 8 ? 0 : 1;
}
