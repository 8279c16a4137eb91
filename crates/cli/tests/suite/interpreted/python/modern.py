import asyncio
async def leaf(n):
    await asyncio.sleep(0)
    return n
async def mid(n):
    return await leaf(n) + sum([await leaf(i) for i in range(n)])
async def main():
    r = await asyncio.gather(*(mid(i) for i in range(5)))
    async for x in agen(4): print(x)
    return r
async def agen(n):
    for i in range(n):
        yield i
        await asyncio.sleep(0)
print(asyncio.run(main()))
def sub(n):
    r = yield from inner(n)
    return r
def inner(n):
    for i in range(n):
        got = yield i
        if got: return got
    return 'end'
g = sub(3)
print(list(g))
g = sub(9); next(g); next(g)
try: g.send(7)
except StopIteration as e: print(e.value)
def throwing():
    while True:
        try:
            yield 1
        except KeyError:
            yield 2
        finally:
            pass
t = throwing(); print(next(t), t.throw(KeyError)); t.close()
match {'a': [1, 2, {'b': 3}]}:
    case {'a': [x, y, {'b': z}]} if z > 5: print('no')
    case {'a': [x, *rest]}: print(x, rest)
class P:
    __match_args__ = ('x', 'y')
    def __init__(self, x, y): self.x, self.y = x, y
for p in [P(1, 2), P(3, 4), 5, 'ab']:
    match p:
        case P(1, y): print(y)
        case P(x=3): print('three')
        case int() | str() as k: print(k)
d = {k: v for k, v in zip('abc', range(3)) if v != 1}
s = {c for c in 'hello' if c not in d}
print(sorted(d.items()), sorted(s), [*range(3), *'ab'], {**d, 'z': 1}, f"{d!r:>30} {3.14159:.2f}")
x = [1, 2, 3]; x[1:2] = [9, 9]; a, *b = x; del x[0]
print(x, a, b, x[::-1], 1 < a < 3, not a or b and None)
l = lambda *a, k=2, **kw: (a, k, kw)
print(l(1, 2, k=3, z=4), l(*[1], **{'q': 2}))
with open('/dev/null') as f, open('/dev/null') as g: f.read(); g.read()
try:
    try: 1 / 0
    except* (TypeError, ZeroDivisionError) as eg: print(len(eg.exceptions))
    raise ExceptionGroup('g', [ValueError(1), KeyError(2)])
except* ValueError: print('v')
except* KeyError: print('k')
global_n = 0
def deep(n):
    global global_n
    global_n += 1
    def h():
        nonlocal n
        n -= 1
        return n
    while n > 0: h()
    else: return deep(n) if global_n < 5 else global_n
    return 0
print(deep(3))
text = ''
lst = []
for i in range(300):
    text += str(i)
    lst.append(i)
    if i % 7 == 3: continue
    if i == 250: break
print(len(text), len(lst), sum(v for v in lst if v % 2))
