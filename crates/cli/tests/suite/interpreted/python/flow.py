"""Conditions and loops in all their forms."""
import sys


def loops(n):
    total = 0
    for i in range(n):
        if i % 3 == 0:
            continue
        elif i % 7 == 6:
            break
        total += i
    else:
        total -= 1
    while total > 0 and n < 100:
        total -= 3
        n += 1
    while True:
        n -= 1
        if n < 5: break
    else:
        total = None
    for a in range(3): total += a
    while total % 5: total += 1
    return total, n


def chosen(x, y):
    big = x if x > y else y
    if 0 < x < y < 10: big += 1
    if x and y or big: big += 2
    if not x: return None
    assert x, 'never'
    if (z := x + y) > 4 and z != 7: big += z
    return big


def matched(it):
    match it:
        case 0 | 1:
            return 'small'
        case [a, b]:
            return a + b
        case {'k': v}:
            return v
        case str() as s if len(s) > 2:
            return s
        case _:
            return None


def compared(values):
    n = 0
    for v in values:
        if v > 1: n += 1
        if v == 'a': n += 2
        if v != 2.5: n += 4
        if v is None: n += 8
    return n


def many_arguments():
    return max(
        1,
        chosen(1,
               2),
        *[
            3,
            4,
        ],
        key=lambda it: -it,
    )


def long_one(n):
    names = [
        x * y
        for x in range(n)
        if x % 2
        for y in range(x)
    ]
    table = {k: v for k, v in zip(names, names)}
    return sum(v for v in table.values()), {z for z in names}


for n in range(12):
    print(loops(n), chosen(n, 5), matched(n), matched([n, n]), matched({'k': n}), matched('a' * n))
print(compared([1, 2, 3] * 10), compared([1.5, 2.5, 3.5] * 10), compared(['a', 'b']) if 0 else '')
print(compared([None]) if False else many_arguments(), long_one(9))
text = ''
for word in ['a', 'b', 'c'] * 20:
    text += word
    text = text + word
print(len(text), sys.argv[1:])
i = 300
while i: i -= 1
