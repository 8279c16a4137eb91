"""Calls of functions that do little."""
import sys


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


for _ in range(int(sys.argv[1])):
    fib(22)
print(fib(22))
