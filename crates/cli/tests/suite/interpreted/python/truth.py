"""How often each line begins, by Python's own tracer.

truth.py OUT PROGRAM [ARG...]: a line `FILE<tab>LINE<tab>COUNT` for each line of the program, and of each
module that it imports first.
"""
import collections
import os
import sys
import threading

out, sys.argv = sys.argv[1], sys.argv[2:]
known = {getattr(it, '__file__', None) for it in list(sys.modules.values())}
counts = collections.Counter()


def trace(frame, event, arg):
    file = frame.f_code.co_filename
    if file in known or file.startswith('<'):
        return None
    if event == 'line':
        counts[file, frame.f_lineno] += 1
    return trace


with open(sys.argv[0]) as program:
    code = compile(program.read(), sys.argv[0], 'exec')
sys.path[0] = os.path.dirname(os.path.abspath(sys.argv[0]))
space = {'__name__': '__main__', '__file__': sys.argv[0], '__builtins__': __builtins__}
threading.settrace(trace)
sys.settrace(trace)
try:
    exec(code, space)
finally:
    sys.settrace(None)
    threading.settrace(None)
    with open(out, 'w') as file:
        for (name, line), count in sorted(counts.items()):
            file.write(f'{name}\t{line}\t{count}\n')
