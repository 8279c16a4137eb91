"""Python's own JSON in Python."""
import sys
from json import decoder, encoder, scanner

decode = decoder.JSONDecoder()
decode.parse_string = decoder.py_scanstring
decode.scan_once = scanner.py_make_scanner(decode)
VALUE = {"names": ["one", "two", "three"], "numbers": [1, 2.5, -7e3], "inner": {"a": None, "b": True}}

encoder.c_make_encoder = None
for _ in range(int(sys.argv[1]) * 60):
    text = encoder.JSONEncoder().encode(VALUE)
    again = decode.decode(text)
print(again == VALUE)
