"""Generators that feed each other."""
import sys


def numbers(end):
    yield from range(end)


def squares(of):
    for it in of:
        yield it * it


def odd(of):
    return (it for it in of if it & 1)


total = 0
for _ in range(int(sys.argv[1])):
    total += sum(odd(squares(numbers(7000))))
print(total)
