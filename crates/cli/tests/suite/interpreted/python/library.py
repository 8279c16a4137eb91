"""Modules of Python's own library at work."""
import ast
import difflib
import fractions
import heapq
import json
import random
import statistics
import textwrap
import tokenize
import io

source = open(ast.__file__).read()[:6000]
source = source[:source.rindex('\ndef ')]
tree = ast.parse(source)
print(len(ast.dump(tree)), len(ast.unparse(tree)))
tokens = list(tokenize.generate_tokens(io.StringIO(source).readline))
print(len(tokens))
lines = textwrap.wrap(ast.__doc__ * 3, 40)
print(len('\n'.join(difflib.unified_diff(lines, lines[3:] + lines[:5]))))
print(sum(fractions.Fraction(1, n) for n in range(1, 30)))
values = random.Random(7).sample(range(10000), 200)
print(statistics.median(values), statistics.stdev(values), heapq.nsmallest(5, values))
encoder = json.JSONEncoder(indent=1, sort_keys=True)
text = encoder.encode({str(k): [k, {'v': None, 'w': True, 'x': 1.5}] for k in values[:40]})
print(len(text), json.loads(text) == json.loads(json.dumps(json.loads(text))))
