//~ routes: lines
//~ flags: -std=c++20
//~ args: 30
//~ optimised: gcc -O1, gcc -O2, gcc -O3
#include <cstdio>
#include <cstdlib>
#include <ranges>

static int tested, changed;

int main(int argc, char **argv) {
    int rounds = std::atoi(argv[1]);            //~ 1
    auto is_odd = [](int number) {
        tested++;                               //~ 30
        return number % 2 == 1;                 //~ 30
    };
    auto square = [](int number) {
        changed++;                              //~ 15
        return number * number;                 //~ 15
    };
    int sum = 0;                                //~ 1
    for (int it : std::views::iota(0, rounds) | std::views::filter(is_odd) | std::views::transform(square))
        sum += it;                              //~ 15
    std::printf("%d %d %d\n", sum, tested, changed); //~ 1
    return argc - 2;                            //~ 1
}
