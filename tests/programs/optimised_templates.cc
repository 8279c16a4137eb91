//~ routes: lines
//~ args: 40
//~ optimised: -O1, -O2, -O3
#include <cstdio>
#include <cstdlib>

template <class T, int Size> struct Ring {
    T items[Size] = {};
    int next = 0;
    void push(T item) {
        items[next] = item;                     //~ 80
        next = (next + 1) % Size;               //~ 80
    }
    T sum() const {
        T all = 0;                              //~ 2
        for (const T &item : items)
            all += item;                        //~ 12
        return all;                             //~ 2
    }
};

template <int N> struct Power {
    static long of(long x) {
        return x * Power<N - 1>::of(x);         //~ 120
    }
};
template <> struct Power<0> {
    static long of(long) {
        return 1;                               //~ 40
    }
};

int main(int argc, char **argv) {
    int rounds = std::atoi(argv[1]);            //~ 1
    Ring<int, 4> whole;
    Ring<double, 8> parts;
    long all = 0;                               //~ 1
    for (int i = 0; i < rounds; i++) {          //~ 41
        whole.push(i);                          //~ 40
        parts.push(i / 2.0);                    //~ 40
        all += Power<3>::of(i);                 //~ 40
    }
    std::printf("%d %f %ld\n", whole.sum(), parts.sum(), all); //~ 1
    return argc - 2;                            //~ 1
}
