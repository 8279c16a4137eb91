"""Exceptions, context managers, generators and what is left of them."""
import contextlib


class Boom(Exception):
    pass


def risky(n):
    try:
        if n % 3 == 0:
            raise Boom(n)
        if n % 5 == 0:
            return n
        try:
            1 / (n % 7)
        except ZeroDivisionError as why:
            raise ValueError(n) from why
        finally:
            n += 1
    except Boom:
        n = -n
    except (ValueError, KeyError) as why:
        n = str(why)
    else:
        n *= 2
    finally:
        print('done', n)
    return n


@contextlib.contextmanager
def manager(n):
    print('in', n)
    try:
        yield n
    finally:
        print('out', n)


class Swallow:
    def __enter__(self): return self
    def __exit__(self, *what): return True


def managed(n):
    with manager(n) as m, Swallow():
        if n == 2: raise Boom
        if n == 3: return 'returned'
        m += 1
    for i in range(3):
        with Swallow():
            if i == n: continue
            if i > n: break
            raise KeyError(i)
    return m


def generator(n):
    got = 0
    try:
        while n:
            try:
                got = yield n
            except Boom:
                got = 100
            n -= 1
    finally:
        print('closed', n, got)


def delegating(n):
    result = yield from inner(n)
    yield result


def inner(n):
    for i in range(n): yield i
    return n


def deep(n):
    if n == 0: raise Boom('deep')
    deep(n - 1)


def unbound(yes):
    if yes:
        value = 1
    other = 2
    return value + other


def lost():
    raise IndexError


for n in range(22):
    risky(n)
for n in range(5):
    print(managed(n))
it = generator(9)
print(next(it), next(it), it.send(5), it.throw(Boom), next(it))
it.close()
left = generator(3)
next(left)
del left
print(list(delegating(5)), list(zip(generator(2), range(9))))
try:
    deep(30)
except Boom as why:
    print(why)
for yes in (True, False, True, False, True, True, True, True, True, True, False):
    try:
        unbound(yes)
    except UnboundLocalError:
        print('unbound')
try:
    try:
        lost()
    finally:
        print('finally')
except* IndexError as group:
    print('star', group)
