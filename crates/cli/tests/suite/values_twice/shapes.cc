// Virtual calls, a comparator, exceptions and texts, by as many threads as asked for.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <thread>
#include <vector>

struct Shape {
    virtual int area(int) = 0;
    virtual ~Shape() {}
};
struct Square : Shape {
    int area(int x) override { return x * x; }
};
struct Broken : Shape {
    int area(int x) override {
        if (x % 100 == 7)
            throw std::runtime_error("7");
        return x + 1;
    }
};

extern "C" {
__attribute__((noinline)) int measure(const char *name, double weight, long number)
{
    asm volatile("" : : "r"(name), "r"(number), "x"(weight));
    return name[0] + (int)number;
}
__attribute__((noinline)) long back(long number)
{
    return number < 2 ? number : 3 - back(number - 2);
}
static int compare(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}
}

static long work(int seed)
{
    static const char *const names[] = {"one", "two words", "\"<quoted>\"\n", "", "\xff\xfe", "=1+2"};
    Square square;
    Broken broken;
    Shape *shapes[] = {&square, &broken};
    std::vector<int> numbers;
    long sum = 0;
    for (int i = 0; i < 600; i++) {
        try {
            sum += shapes[i * seed % 3 == 0]->area(i);
        } catch (std::exception &) {
            sum -= 1;
        }
        sum += measure(names[i % 6], i * 0.5, -i % 5);
        numbers.push_back((i * 7919 + seed) % 97);
    }
    qsort(numbers.data(), numbers.size(), sizeof numbers[0], compare);
    return sum + back(20 + seed) + numbers[5];
}

int main(int, char **words)
{
    int count = atoi(words[1]);
    std::vector<long> sums(count);
    std::vector<std::thread> threads;
    work(0);
    for (int i = 0; i < count; i++)
        threads.emplace_back([&, i] { sums[i] = work(i + 1); });
    long sum = 0;
    for (int i = 0; i < count; i++) {
        threads[i].join();
        sum += sums[i];
    }
    printf("%ld\n", sum);
}
