//~ routes: lines
//~ args: 50
//~ optimised: -O1, -O2, -O3
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

int main(int argc, char **argv) {
    int rounds = std::atoi(argv[1]);            //~ 1
    std::vector<int> numbers;                   //~ 1
    int asked = 0;                              //~ 1
    for (int i = 0; i < rounds; i++)            //~ 51
        numbers.push_back(i * 37 % 50);         //~ 50
    auto is_wanted = [&](int number) {
        asked++;                                //~ 50
        return number % 3 == 0;                 //~ 50
    };
    int found = 0;                              //~ 1
    for (int number : numbers)
        if (is_wanted(number))                  //~ 50
            found += number;                    //~ 17
    std::for_each(numbers.begin(), numbers.end(), [&](int &number) {
        if (number > 40)                        //~ 50
            number = 40;                        //~ 9
        found ^= number;                        //~ 50
    });
    std::printf("%d %d\n", found, asked);       //~ 1
    return argc - 2;                            //~ 1
}
