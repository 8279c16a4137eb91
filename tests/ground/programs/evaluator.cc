// Expressions as trees of virtual nodes, with exceptions for what cannot be
// computed: ARGUMENT thousand evaluations.
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using Variables = std::map<std::string, long>;

struct DivisionByZero : std::runtime_error {
    DivisionByZero() : std::runtime_error("division by zero") {}
};
struct Unknown : std::runtime_error {
    explicit Unknown(const std::string &name) : std::runtime_error("no " + name) {}
};

struct Node {
    virtual ~Node() = default;
    virtual long value(const Variables &variables) const = 0;
    virtual int depth() const { return 1; }
};
using Tree = std::unique_ptr<Node>;

struct Number : Node {
    long number;
    explicit Number(long n) : number(n) {}
    long value(const Variables &) const override { return number; }
};

struct Name : Node {
    std::string name;
    explicit Name(std::string n) : name(std::move(n)) {}
    long value(const Variables &variables) const override {
        auto found = variables.find(name);
        if (found == variables.end())
            throw Unknown(name);
        return found->second;
    }
};

struct Pair : Node {
    Tree left, right;
    Pair(Tree l, Tree r) : left(std::move(l)), right(std::move(r)) {}
    int depth() const override { return 1 + std::max(left->depth(), right->depth()); }
    long value(const Variables &variables) const override {
        long a = left->value(variables);
        return join(a, right->value(variables));
    }
    virtual long join(long a, long b) const = 0;
};
struct Sum : Pair {
    using Pair::Pair;
    long join(long a, long b) const override { return (a + b) % 1000003; }
};
struct Difference : Pair {
    using Pair::Pair;
    long join(long a, long b) const override { return a - b; }
};
struct Product : Pair {
    using Pair::Pair;
    long join(long a, long b) const override { return a * b % 1000003; }
};
struct Quotient : Pair {
    using Pair::Pair;
    long join(long a, long b) const override {
        if (b == 0)
            throw DivisionByZero();
        return a / b;
    }
};

// The usual grammar: sums of products of things.
class Parser {
    const std::string &text;
    size_t at = 0;

    char next() {
        while (at < text.size() && std::isspace(static_cast<unsigned char>(text[at])))
            at++;
        return at < text.size() ? text[at] : '\0';
    }
    Tree thing() {
        if (next() == '(') {
            at++;
            Tree inner = sum();
            if (next() != ')')
                throw std::invalid_argument("no closing parenthesis");
            at++;
            return inner;
        }
        size_t start = at;
        while (at < text.size() && std::isalnum(static_cast<unsigned char>(text[at])))
            at++;
        std::string word = text.substr(start, at - start);
        if (word.empty())
            throw std::invalid_argument("nothing there");
        if (std::isdigit(static_cast<unsigned char>(word[0])))
            return std::make_unique<Number>(std::stol(word));
        return std::make_unique<Name>(word);
    }
    Tree product() {
        Tree left = thing();
        for (char sign = next(); sign == '*' || sign == '/'; sign = next()) {
            at++;
            Tree right = thing();
            if (sign == '*')
                left = std::make_unique<Product>(std::move(left), std::move(right));
            else
                left = std::make_unique<Quotient>(std::move(left), std::move(right));
        }
        return left;
    }
    Tree sum() {
        Tree left = product();
        for (char sign = next(); sign == '+' || sign == '-'; sign = next()) {
            at++;
            Tree right = product();
            if (sign == '+')
                left = std::make_unique<Sum>(std::move(left), std::move(right));
            else
                left = std::make_unique<Difference>(std::move(left), std::move(right));
        }
        return left;
    }

  public:
    explicit Parser(const std::string &t) : text(t) {}
    Tree parse() {
        Tree whole = sum();
        if (next() != '\0')
            throw std::invalid_argument("something left over");
        return whole;
    }
};

unsigned state = 1;
unsigned random_below(unsigned limit) {
    state = state * 1103515245u + 12345u;
    return (state >> 8) % limit;
}

std::string random_text(int depth) {
    static const char *names[] = {"a", "b", "c", "d", "e", "missing"};
    if (depth == 0 || random_below(8) == 0) {
        if (random_below(2))
            return std::to_string(random_below(100));
        return names[random_below(900) ? random_below(5) : 5];
    }
    static const char *signs[] = {" + ", " - ", " * ", " + ", " - ", " * ", " + ", " / "};
    std::string left = random_text(depth - 1), right = random_text(depth - 1);
    return "(" + left + signs[random_below(40) ? random_below(7) : 7] + right + ")";
}

} // namespace

int main(int argc, char **argv) {
    int thousands = std::atoi(argc > 1 ? argv[1] : "1");
    std::vector<Tree> trees;
    long total = 0, zeros = 0, unknown = 0, wrong = 0;
    for (int i = 0; i < 400; i++) {
        std::string text = random_text(6);
        if (i % 40 == 0)
            text.pop_back();
        try {
            trees.push_back(Parser(text).parse());
            total += trees.back()->depth();
        } catch (const std::invalid_argument &) {
            wrong++;
        }
    }
    Variables variables{{"a", 3}, {"b", 17}, {"c", 256}, {"d", 1009}, {"e", 0}};
    for (int i = 0; i < thousands * 1000; i++) {
        variables["e"] = i % 7;
        try {
            total += trees[static_cast<size_t>(i) % trees.size()]->value(variables);
        } catch (const DivisionByZero &) {
            zeros++;
        } catch (const std::runtime_error &) {
            unknown++;
        }
    }
    std::printf("%ld, %ld zeros, %ld unknown, %ld wrong\n", total, zeros, unknown, wrong);
    return 0;
}
