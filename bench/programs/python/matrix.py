"""Nested loops and comprehensions."""
import sys


def product(left, right):
    columns = list(zip(*right))
    return [[sum(a * b for a, b in zip(row, column)) for column in columns] for row in left]


left = [[(i * j) % 7 for j in range(24)] for i in range(24)]
for _ in range(int(sys.argv[1])):
    result = product(left, left)
print(sum(map(sum, result)))
