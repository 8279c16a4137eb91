//~ ofone: LINE:one(n)
//~ ofother: LINE:other(n)
//~ qualified: LINE:other(one::n)
//~ unnamed: LINE:unnamed(quiet)
//~ method: LINE:method(sum)
//~ held: LINE:method(held)
//~ local: LINE:local(product)
//~ around: LINE:local(times)
//~ lambda: LINE:lambda(y + x)
//~ deeper: LINE:deeper(deeper * in)
//~ generic: LINE:generic(result)
#include "seen.h"

__attribute__((noipa)) void use(long) {}

namespace one {
int n = 5;
void add(int k)
{
    int twice = k * 2;
    saw("ofone", NUMBER, n, 0);
    use(twice); //@one
    n += twice;
}
} // namespace one

namespace other {
int n = 7;
void add(int k)
{
    saw("ofother", NUMBER, n, 0);
    saw("qualified", NUMBER, one::n, 0);
    use(k); //@other
    n += k;
}
namespace {
int quiet = 1;
void add_quietly(int k)
{
    saw("unnamed", NUMBER, quiet, 0);
    use(k); //@unnamed
    quiet += k;
}
} // namespace
struct Holder {
    static int held;
    int own;
    void add(int k);
};
int Holder::held = 100;
void Holder::add(int k)
{
    int sum = k + own;
    saw("method", NUMBER, sum, 0);
    saw("held", NUMBER, held, 0);
    use(sum); //@method
    held += sum;
}
} // namespace other

static int outer(int w)
{
    static int times = 0;
    times++;
    struct Local {
        int by;
        int run(int p)
        {
            int product = p * by;
            saw("local", NUMBER, product, 0);
            saw("around", NUMBER, times, 0);
            use(product); //@local
            return product;
        }
    } local{w};
    auto lambda = [&](int x) {
        int y = x + w;
        saw("lambda", NUMBER, y + x, 0);
        use(y); //@lambda
        return y + local.run(x);
    };
    int s = 0;
    {
        int in = w;
        s += in;
        {
            int deeper = in * 2;
            saw("deeper", NUMBER, deeper * in, 0);
            use(deeper); //@deeper
            s += lambda(deeper);
        }
    }
    return s;
}

template <class T> struct Box {
    T t;
    T add(T u)
    {
        T result = u + t;
        saw("generic", NUMBER, result, 0);
        use(result); //@generic
        return result;
    }
};

int main()
{
    int sum = 0;
    for (int i = 0; i < 9; i++) {
        one::add(i);
        other::add(i + 1);
        other::add_quietly(i);
        other::Holder holder{i};
        holder.add(3);
        sum += outer(i) + Box<int>{i}.add(4) + Box<long>{i}.add(40);
    }
    tell();
    return sum == 1;
}
