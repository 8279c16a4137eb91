"""Runs a program while Python's tracer counts its lines."""
import runpy
import sys

counts = {}


def trace(frame, event, argument):
    if event == "line":
        place = frame.f_code.co_filename, frame.f_lineno
        counts[place] = counts.get(place, 0) + 1
    return trace


sys.argv = sys.argv[1:]
sys.settrace(trace)
try:
    runpy.run_path(sys.argv[0], run_name="__main__")
finally:
    sys.settrace(None)
