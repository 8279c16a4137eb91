"""Words counted in dictionaries."""
import sys

TEXT = "the quick brown fox jumps over the lazy dog and runs away from the bear that sleeps " * 20


def count(text):
    found = {}
    for word in text.split():
        word = word.strip(".,").lower()
        if word in found:
            found[word] += 1
        else:
            found[word] = 1
    return sorted(found.items(), key=lambda it: (-it[1], it[0]))


for _ in range(int(sys.argv[1]) * 8):
    top = count(TEXT)
print(top[:3])
