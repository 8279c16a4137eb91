"""Mostly in C: sorting, regular expressions, joins."""
import re
import sys

numbers = [(it * 7919) % 10007 for it in range(3000)]
pattern = re.compile(r"(\d+)-(\w+)")
text = " ".join(f"{it}-word{it}" for it in numbers[:300])
for _ in range(int(sys.argv[1])):
    in_order = sorted(numbers)
    found = pattern.findall(text)
    joined = ",".join(map(str, in_order))
print(len(found), len(joined))
