"""Backtracking over lists and sets."""
import sys


def place(size, row, columns, up, down):
    if row == size:
        return 1
    found = 0
    for column in range(size):
        if column in columns or row + column in up or row - column in down:
            continue
        found += place(
            size, row + 1, columns | {column}, up | {row + column}, down | {row - column}
        )
    return found


for _ in range(int(sys.argv[1])):
    found = place(6, 0, frozenset(), frozenset(), frozenset())
print(found)
