// Exceptions pass through functions that clean up, and through some that do not.
#include <cstdio>
#include <stdexcept>

#define APART __attribute__((noipa))

APART static long work(long rounds) {
    long sum = 0;
    while (rounds--)
        sum += rounds ^ sum;
    return sum;
}

struct Cleaner {
    APART ~Cleaner() { work(4); }
};

APART static void thrower(int n) {
    work(6);
    if (n == 0)
        throw std::runtime_error("deep");
    Cleaner cleaner;
    thrower(n - 1);
    work(1);
}
APART static void plain(int n) {
    thrower(n);
    work(2);
}
APART static int catcher(int n) {
    try {
        plain(n);
    } catch (const std::exception &error) {
        work(8);
        return 1;
    }
    work(3);
    return 0;
}
int main() {
    int caught = 0;
    for (int i = 0; i < 10; i++)
        caught += catcher(i % 4);
    std::printf("%d\n", caught);
}
