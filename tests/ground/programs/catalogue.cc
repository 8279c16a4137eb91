// A catalogue of goods, read, checked, searched and summed up with templates, lambdas, lazy ranges,
// algorithms, variants and exceptions: ARGUMENT times.
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <variant>
#include <vector>

namespace {

// What a range is seen through: each element that passes, changed.
template <class Range, class Test> class Filtered {
    const Range &range;
    Test test;

  public:
    Filtered(const Range &r, Test t) : range(r), test(t) {}
    template <class Use> void each(Use use) const {
        for (const auto &item : range) {
            if (test(item))
                use(item);
        }
    }
};

template <class View, class Change> class Mapped {
    View view;
    Change change;

  public:
    Mapped(View v, Change c) : view(v), change(c) {}
    template <class Use> void each(Use use) const {
        view.each([&](const auto &item) { use(change(item)); });
    }
};

template <class Test> struct Filter {
    Test test;
    explicit Filter(Test t) : test(t) {}
};
template <class Change> struct Map {
    Change change;
    explicit Map(Change c) : change(c) {}
};

template <class Range, class Test> auto operator|(const Range &range, Filter<Test> filter) {
    return Filtered<Range, Test>(range, filter.test);
}
template <class View, class Change> auto operator|(View view, Map<Change> map) {
    return Mapped<View, Change>(view, map.change);
}
template <class View, class Sum> Sum sum(const View &view, Sum start) {
    view.each([&](const auto &item) { start += item; });
    return start;
}

template <class... Parts> unsigned digest(const Parts &...parts) {
    unsigned digest = 17;
    auto mix = [&](auto part) {
        digest = digest * 31 + static_cast<unsigned>(part);
        if (digest & 1)
            digest ^= 0x5bd1e995;
    };
    (mix(parts), ...);
    return digest;
}

struct BadEntry : std::runtime_error {
    size_t column;
    BadEntry(const char *what, size_t at) : std::runtime_error(what), column(at) {}
};

using Field = std::variant<long, double, std::string>;

struct Good {
    std::string name;
    long amount = 0;
    double price = 0;
    std::vector<Field> others;
    bool operator<(const Good &other) const {
        return std::tie(amount, name) < std::tie(other.amount, other.name);
    }
};

// Splits at commas; blanks around fields do not count.
std::vector<std::string_view> fields(std::string_view line) {
    std::vector<std::string_view> found;
    while (true) {
        size_t comma = line.find(',');
        std::string_view field = line.substr(0, comma);
        while (!field.empty() && field.front() == ' ')
            field.remove_prefix(1);
        while (!field.empty() && field.back() == ' ')
            field.remove_suffix(1);
        found.push_back(field);
        if (comma == std::string_view::npos)
            return found;
        line.remove_prefix(comma + 1);
    }
}

std::optional<long> number(std::string_view text) {
    if (text.empty())
        return std::nullopt;
    long value = 0;
    bool negative = text.front() == '-';
    if (negative)
        text.remove_prefix(1);
    for (char c : text) {
        if (c < '0' || c > '9')
            return std::nullopt;
        value = value * 10 + (c - '0');
    }
    return negative ? -value : value;
}

Field field(std::string_view text) {
    if (auto whole = number(text))
        return *whole;
    size_t point = text.find('.');
    if (point != std::string_view::npos) {
        auto before = number(text.substr(0, point));
        auto after = number(text.substr(point + 1));
        if (before && after)
            return *before + *after / 100.0;
    }
    return std::string(text);
}

template <class Wanted> Wanted wanted(const Field &field, size_t column) {
    if (const Wanted *it = std::get_if<Wanted>(&field))
        return *it;
    throw BadEntry("not what was expected", column);
}

Good good(std::string_view line) {
    auto parts = fields(line);
    if (parts.size() < 3)
        throw BadEntry("too few fields", parts.size());
    Good good;
    good.name = std::string(parts[0]);
    good.amount = wanted<long>(field(parts[1]), 1);
    good.price = wanted<double>(field(parts[2]), 2);
    std::transform(parts.begin() + 3, parts.end(), std::back_inserter(good.others), field);
    if (good.amount < 0)
        throw std::out_of_range("less than nothing");
    return good;
}

struct Weigh {
    double operator()(long whole) const { return static_cast<double>(whole); }
    double operator()(double part) const { return part * 2; }
    double operator()(const std::string &text) const {
        double weight = 0;
        for (char c : text)
            weight += c == 'e' ? 0.5 : 0.25;
        return weight;
    }
};

double weight(const Good &good) {
    return std::accumulate(good.others.begin(), good.others.end(), 1.0,
                           [](double sum, const Field &it) { return sum + std::visit(Weigh{}, it); });
}

class Shelf {
    std::array<std::function<bool(const Good &)>, 3> rules;
    std::map<std::string, std::vector<Good>> by_letter;

  public:
    int refused = 0, odd = 0;
    explicit Shelf(long most)
        : rules{[most](const Good &it) { return it.amount <= most; },
                [](const Good &it) { return !it.name.empty(); },
                [](const Good &it) { return it.price < 90; }} {}

    void put(std::string_view line) {
        try {
            Good it = good(line);
            if (!std::all_of(rules.begin(), rules.end(), [&](const auto &rule) { return rule(it); })) {
                refused++;
                return;
            }
            by_letter[it.name.substr(0, 1)].push_back(std::move(it));
        } catch (const BadEntry &bad) {
            odd += static_cast<int>(bad.column);
        } catch (const std::exception &) {
            odd += 100;
        }
    }

    unsigned told() {
        unsigned all = 0;
        for (auto &[letter, goods] : by_letter) {
            std::sort(goods.begin(), goods.end());
            auto dear = Filter{[](const Good &it) { return it.price > 20; }};
            auto worth = Map{[](const Good &it) { return it.price * static_cast<double>(it.amount); }};
            double rich = sum(goods | dear | worth, 0.0);
            auto light = Filter{[](const Good &it) { return weight(it) < 8; }};
            long few = sum(goods | light | Map{[](const Good &it) { return it.amount; }}, 0L);
            auto last = std::unique(goods.begin(), goods.end(),
                                    [](const Good &a, const Good &b) { return a.name == b.name; });
            goods.erase(last, goods.end());
            all ^= digest(rich, few, goods.size(), letter.front());
        }
        return all;
    }
};

} // namespace

int main(int argc, char **argv) {
    int rounds = argc > 1 ? std::atoi(argv[1]) : 1;
    const char *names[] = {"apple", "anvil", "bell", "bowl", "candle", "cup", "dice", "", "eel"};
    unsigned all = 0;
    for (int round = 0; round < rounds; round++) {
        Shelf shelf(60 + round % 3);
        unsigned dice = 12345;
        for (int line = 0; line < 200; line++) {
            dice = dice * 1103515245 + 12345;
            char text[200];
            unsigned kind = dice >> 16;
            std::snprintf(text, sizeof text, "%s, %ld ,%u.%02u,%s,%u", names[kind % 9],
                          static_cast<long>(kind % 71) - 1, kind % 97, kind % 89,
                          kind % 3 ? "free" : "3.25", kind % 7);
            if (kind % 31 == 0)
                text[kind % 12] = 0;
            shelf.put(text);
        }
        all += shelf.told() + digest(shelf.refused, shelf.odd);
    }
    std::printf("%u\n", all);
}
