"""Exceptions, raised and caught."""
import sys


def parse(text):
    try:
        return int(text)
    except ValueError:
        return None
    finally:
        parse.calls += 1


parse.calls = 0
inputs = ["12", "x", "7", "y9", "300", ""]
total = 0
for turn in range(int(sys.argv[1]) * 4000):
    total += parse(inputs[turn % 6]) or 0
print(total, parse.calls)
