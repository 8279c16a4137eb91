"""Classes, closures, decorators, coroutines and threads."""
import asyncio
import dataclasses
import functools
import threading


def counted(f):
    @functools.wraps(f)
    def wrapper(*args, **kwargs):
        wrapper.calls += 1
        return f(*args, **kwargs)
    wrapper.calls = 0
    return wrapper


@dataclasses.dataclass(order=True)
class Point:
    x: int
    y: int = 0

    @property
    def norm(self): return self.x * self.x + self.y * self.y

    @classmethod
    def origin(cls): return cls(0)

    def __add__(self, other):
        return Point(self.x + other.x,
                     self.y + other.y)

    def __getattr__(self, name):
        return name


class Meta(type):
    def __new__(mcs, name, bases, space):
        space['made'] = True
        return super().__new__(mcs, name, bases, space)


class Made(metaclass=Meta):
    __slots__ = ('a',)

    def __init__(self):
        self.a = 1


@counted
@functools.lru_cache(None)
def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def closure():
    total = 0

    def add(n):
        nonlocal total
        total += n
        return total
    return add


async def sleeper(n):
    for i in range(n):
        await asyncio.sleep(0)
    return n


async def producer(n):
    for i in range(n):
        yield i
        await asyncio.sleep(0)


async def main():
    async with asyncio.Lock():
        results = await asyncio.gather(*[sleeper(n) for n in range(6)])
    return results, [i async for i in producer(4)]


def work(out, n):
    total = 0
    for i in range(n):
        total += i % 7
        if total > 1000: total -= 1000
    out.append(total)


points = [Point(i, -i) for i in range(20)]
print(sum((p.norm for p in points)), sorted(points)[0], points[3] + Point.origin(), points[1].nothing)
print(Made().a, fib(30), fib.calls)
add = closure()
for i in range(10): add(i)
print(add(0), asyncio.run(main()))
out = []
threads = [threading.Thread(target=work, args=(out, 3000)) for _ in range(4)]
for t in threads: t.start()
for t in threads: t.join()
print(out)
