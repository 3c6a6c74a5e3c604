"""Compares every stack that our walk finds with Python's own: file, line, qualified name, frame by
frame. Runs in whatever interpreter is to be tried, with nothing but its standard library:

    python3.x tests/python/walk.py build/tests/pywalk.so [--quick] [--bench]

Prints one line, `3.11.2: N captures, M mismatches` and what else was looked at; exit status 1 if
anything was wrong. Each place is captured four times: with the GIL held and released (ctypes does
either), against the stack kept from the last capture and with nothing kept.
"""
import asyncio
import contextlib
import ctypes
import dis
import functools
import gc
import importlib
import os
import random
import sys
import threading
import types
import warnings

free = ctypes.CDLL(sys.argv[1])  # releases the GIL
held = ctypes.PyDLL(sys.argv[1])
free.walk_said.restype = ctypes.c_char_p
held.walk_lines.argtypes = [ctypes.py_object, ctypes.c_int, ctypes.c_void_p]
free.walk_bench.restype = ctypes.c_double
free.walk_race.restype = ctypes.c_long
for lib in (free, held):
    lib.walk_start.restype = ctypes.c_int
    for name in ("walk_id", "walk_fresh", "walk_text", "walk_foreign"):
        getattr(lib, name).restype = ctypes.c_uint
    lib.walk_text.argtypes = [ctypes.c_uint, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_void_p]

captures = mismatches = shown = joins = 0
mine = threading.local()
counting = threading.Lock()
LIMIT = 512  # frames of a stack


def wrong(what, *more):
    global mismatches, shown
    mismatches += 1
    if shown < 20:
        shown += 1
        print("WRONG", what, *more, file=sys.stderr)


def line_of(frame):
    """The line that the frame is at. 3.9 tells that of the last trace event where the frame has been
    traced, though it may have gone on since, on a thread that is not."""
    if sys.version_info < (3, 10) and frame.f_trace:
        return [line for at, line in dis.findlinestarts(frame.f_code) if at <= frame.f_lasti][-1]
    return frame.f_lineno or 0


def own(frame):
    """What Python says of the frame and its callers, as our text has it."""
    out = []
    while frame:
        code = frame.f_code
        name = getattr(code, "co_qualname", code.co_name)
        out.append("%s(%d): %s" % (code.co_filename, line_of(frame), name))
        frame = frame.f_back
    return out


def check(what):
    """Called at the place to be captured; what it is itself comes along. Threads' interleaving must
    not come between the two looks, so nothing here calls back into Python but this function."""
    global captures, joins
    if not hasattr(mine, "text"):
        mine.text = ctypes.create_string_buffer(1 << 22)
        mine.entries = ctypes.c_uint()
    got = []
    for lib in (free, held):
        for take in (lib.walk_id, lib.walk_fresh, lib.walk_id): line = sys._getframe().f_lineno; got.append(take())
    if got.count(got[0]) != len(got):
        wrong(what, "ids", got)
    native = free.walk_loops()
    root = free.walk_text(got[0], mine.text, len(mine.text), ctypes.byref(mine.entries))
    ours = mine.text.value.decode("utf-8", "surrogateescape").split("\n")[:-1]
    theirs = own(sys._getframe())
    first = theirs[0]
    theirs[0] = "%s(%d): check" % (__file__, line)
    with counting:
        captures += len(got)
        if len(theirs) > LIMIT:
            if root != 2 or ours != theirs[:LIMIT]:
                wrong(what, "deep", root, len(ours))
            return
        if root != 0 or ours != theirs:
            wrong(what, root, first)
            for a, b in zip(ours + [None] * len(theirs), theirs + [None] * len(ours)):
                if a != b:
                    wrong(what, "\n  ours  ", a, "\n  theirs", b)
                    break
        if native > 0:  # 0: this build's loop is not the function of that name
            joins += 1
            if native != mine.entries.value:
                wrong(what, "loops", native, "entries", mine.entries.value)


# ---- all kinds of frames ----

class Base:
    def method(self, x):
        return (lambda:
                check("lambda"))()

    @classmethod
    def of_class(cls):
        return cls().method(3)

    @staticmethod
    def static():
        check("static")

    @property
    def prop(self):
        return check("property")

    def __init__(self):
        check("init")

    def __lt__(self, other):
        check("called by sort")
        return False

    def __del__(self):
        check("del")

    def __call__(self, *args, **kw):
        return check("call")


class Derived(Base):
    def method(self, x):
        return super().method(x)


def generator():
    yield 1
    check("generator")
    yield from (check("generator expression") for _ in range(2))
    got = yield 2
    check("after yield %s" % got)


def decorator(f):
    @functools.wraps(f)
    def inner(*args, **kw):
        check("decorator")
        return f(*args, **kw)
    return inner


@decorator
def recursive(n):
    if n:
        return recursive(n - 1)
    check("recursive")


def plain(n):
    if n > 1:
        return plain(n - 1)
    check("plain")


def many_lines():
    return [
        check("first"),
        max([1, 2], key=lambda v: (
            check("key") or v)),
        [check("list") for _ in (1,)],
        {k: check("dict") for k in
         (1, 2)},
        list(map(
            lambda x: check("map"),
            (1, 2))),
        functools.reduce(lambda a, b: check("reduce"), (1, 2, 3)),
    ]


@contextlib.contextmanager
def manager():
    check("enter")
    try:
        yield
    finally:
        check("exit")


def exceptions():
    with contextlib.suppress(ValueError), manager():
        raise ValueError
    try:
        1 / 0
    except ZeroDivisionError as e:
        check("except")
        try:
            raise KeyError from e
        except KeyError:
            check("inner except")
    finally:
        check("finally")


def class_body():
    class Inner:
        check("class body")

        class Deeper:
            check("deeper class body")
            check("made twice") if True else None


async def coroutine(n):
    await asyncio.sleep(0)
    check("coroutine")
    if n:
        await coroutine(n - 1)


async def async_generator():
    yield 1
    check("async generator")
    yield 2


async def everything_async():
    await asyncio.gather(coroutine(3), coroutine(2), coroutine(1))
    async for _ in async_generator():
        check("async for")
    loop = asyncio.get_running_loop()
    loop.call_soon(check, "call_soon")
    await asyncio.sleep(0)
    await loop.run_in_executor(None, many_lines)


def moved_generator():
    """A generator that goes on under another caller, and in another thread."""
    def one(g):
        return next(g)

    def two(g):
        return [next(g)][0]

    def body():
        while True:
            check("moved")
            yield

    g = body()
    for step in (one, two, one, one, two):
        step(g)
    t = threading.Thread(target=one, args=(g,))
    t.start()
    t.join()
    one(g)


def from_c_or_not():
    """The same function, at the same place of the stack, called by Python and through C."""
    def leaf(*args):
        check("leaf")
        return 0

    def call(f):
        return f(1)

    for _ in range(30):
        for f in (leaf, functools.partial(leaf), leaf):
            call(f)
            sorted([1], key=f)


# ---- code that comes and goes ----

def reuse():
    """Code objects that are dropped, so that others come to lie in their places."""
    for i in range(300):
        source = "def f%d():\n  check('reuse')\nf%d()" % (i, i)
        exec(compile(source, "r%03d.py" % i, "exec"), {"check": check})
    for i in range(300):  # equal but for one thing
        exec(compile("check('same name')", "s%03d.py" % i, "exec"), {"check": check})
    for i in range(100):
        exec(compile("def f():\n" + "\n" * (i % 3) + "  check('lines')\nf()", "t.py", "exec"),
             {"check": check})
    for i in range(200):  # equal but for the place of a line
        blank = "\n" * (i % 3)
        exec(compile("def f():\n" + blank + "  check('moved')\n" + "\n" * (2 - i % 3) + "f()", "v.py",
                     "exec"), {"check": check})
    for i in range(200):
        blank = "\n" * (i % 3)
        eval(compile("(" + blank + "check('moved too')" + "\n" * (2 - i % 3) + ")", "w.py", "eval"),
             {"check": check})
    for i in range(100):
        exec(compile("def g%d():\n  check('names')\ng%d()" % (i, i), "u.py", "exec"),
             {"check": check})
    for i in range(200):
        eval(compile("check('eval')", "<e%d>" % (i % 10), "eval"), {"check": check})
    for i in range(200):
        f = types.FunctionType(leaf_of_reuse.__code__.replace(co_firstlineno=1 + i % 7), globals())
        f()
        del f
    for i in range(100):
        f = types.FunctionType(leaf_of_reuse.__code__.replace(co_filename="/x/%04d" % i), globals())
        f()


def leaf_of_reuse():
    check("replaced")


def names():
    """Texts of all kinds that a str may have."""
    for path in ("/srv/\u00e9t\u00e9.py", "/srv/\u00e9\u4e2d.py", "/srv/\u00e9\u4e2d\U0001F600.py",
                 "", "x", "/srv/\udcff\udc80.py", "/" + "l" * 3000 + ".py", "<stdin>", "tab\there"):
        exec(compile("def \u00fcber_\u4e2d():\n    check('names')\n\u00fcber_\u4e2d()", path, "exec"),
             {"check": check})
    source = "\n" * 300 + "def long():\n" + "    x = 1\n" * 3000 + "    check('long')\n\nlong()\n"
    exec(compile(source, "long.py", "exec"), {"check": check})


# ---- random trees of calls ----

def tree(rng, depth):
    ways = [
        lambda: tree(rng, depth - 1),
        lambda: list(map(lambda _: tree(rng, depth - 1), (1,))),
        lambda: sorted((1,), key=lambda _: tree(rng, depth - 1) or 0),
        lambda: [tree(rng, depth - 1) for _ in (1,)],
        lambda: next(tree_generator(rng, depth - 1)),
        lambda: sum(tree(rng, depth - 1) or 0 for _ in (1,)),
        lambda: functools.partial(tree, rng, depth - 1)(),
        lambda: exec("tree(rng, depth)", {"tree": tree, "rng": rng, "depth": depth - 1}),
        lambda: tree_raises(rng, depth - 1),
    ]
    if depth <= 0:
        check("tree")
        return 0
    for _ in range(rng.choice((1, 1, 2))):
        rng.choice(ways)()
        if rng.random() < 0.3:
            check("tree on the way")
    return 0


def tree_generator(rng, depth):
    check("tree generator")
    yield from tree_inner(rng, depth)


def tree_inner(rng, depth):
    yield tree(rng, depth)


def tree_raises(rng, depth):
    try:
        tree(rng, depth)
        raise LookupError
    except LookupError:
        check("tree except")


# ---- all of it ----

def round_of_all():
    Base.of_class()
    Derived.of_class()
    Base.static()
    Base().prop
    Base()()
    sorted([Base(), Base()])
    list(generator())
    g = generator()
    next(g), next(g)
    del g
    recursive(40)
    for n in (1, 3, 2, 9, 8, 9, 30):
        plain(n)
    many_lines()
    exceptions()
    class_body()
    moved_generator()
    from_c_or_not()
    for i in range(40):  # the bytecode is specialised
        plain(3)


def traced():
    def tracer(frame, event, arg):
        return tracer

    sys.settrace(tracer)
    round_of_all()
    sys.settrace(None)
    sys.setprofile(lambda *a: None)
    round_of_all()
    sys.setprofile(None)
    if hasattr(sys, "monitoring"):
        m = sys.monitoring
        m.use_tool_id(3, "walk")
        m.register_callback(3, m.events.LINE, lambda *a: None)
        m.register_callback(3, m.events.INSTRUCTION, lambda *a: None)
        m.set_events(3, m.events.LINE | m.events.INSTRUCTION)
        round_of_all()
        m.set_events(3, 0)


def threads():
    def work(seed):
        round_of_all()
        tree(random.Random(seed), 6)

    for together in (1, 4):
        for i in range(3):
            ts = [threading.Thread(target=work, args=(i * 10 + k,)) for k in range(together)]
            [t.start() for t in ts]
            [t.join() for t in ts]


def race():
    """Others collect garbage, make and drop code, trace and look at our frames, while this thread
    captures without the GIL."""
    stop = []

    def churn():
        i = 0
        while not stop:
            i += 1
            exec(compile("def f(x):\n" + "  x += 1\n" * 20 + "  return x\nf(1)", "c%d" % (i % 7),
                         "exec"), {})
            if i % 50 == 0:
                gc.collect()

    def look():
        while not stop:
            sys.settrace(lambda *a: None)
            for f in list(sys._current_frames().values()):
                while f:
                    f.f_lineno, f.f_locals
                    f = f.f_back
            sys.settrace(None)

    def deep(n):
        if n:
            return deep(n - 1)
        taken = ctypes.c_long()
        return free.walk_race(400, ctypes.byref(taken)), taken.value

    global captures
    ts = [threading.Thread(target=f, daemon=True) for f in (churn, look)]
    [t.start() for t in ts]
    bad, taken = deep(25)
    stop.append(1)
    [t.join() for t in ts]
    captures += taken
    if bad:
        wrong("race", bad, "of", taken)


def line_tables():
    """Every instruction of much of the standard library. Returns how many."""
    enough = 600 if "--quick" in sys.argv else 6000
    codes = instructions = 0
    bad = (ctypes.c_int * 3)()
    warnings.simplefilter("ignore")
    base = os.path.dirname(os.__file__)
    for module in sorted(os.listdir(base)):
        if not module.endswith(".py") or codes > enough:
            continue
        try:
            with open(os.path.join(base, module), "rb") as f:
                todo = [compile(f.read(), module, "exec")]
        except (SyntaxError, ValueError):
            continue
        while todo:
            code = todo.pop()
            todo += [c for c in code.co_consts if isinstance(c, types.CodeType)]
            codes += 1
            instructions += len(code.co_code) // 2
            n = held.walk_lines(code, len(code.co_code), bad)
            if n:
                wrong("lines", module, code.co_name, n, list(bad))
    return instructions


def unknown_thread():
    if free.walk_foreign():
        wrong("a thread that Python does not know has frames")


def bench():
    def deep(n, f):
        return deep(n - 1, f) if n else f()

    def measure():
        rounds = [[free.walk_bench(kind, 10000) for kind in range(3)]
                  for _ in range(15)]
        return [sorted(r[k] for r in rounds)[7] for k in range(3)] + \
            [sorted(r[1] / r[0] for r in rounds)[7]]

    def frames():
        n, f = 0, sys._getframe(1)
        while f:
            n, f = n + 1, f.f_back
        return n

    for depth in (10, 30, 100):
        more = depth - deep(0, frames)
        raw, same, fresh, ratio = deep(more, measure)
        print("  depth %3d: raw %.0f ns, unchanged %.0f ns (%.2f of raw), all changed %.0f ns"
              % (depth, raw, same, ratio, fresh))


def main():
    version = ".".join(map(str, sys.version_info[:3]))
    if free.walk_start() != 1:
        print(version + ": no interpreter was found")
        return 1
    round_of_all()
    if free.walk_said():
        print(version + ":", free.walk_said().decode().strip())
        return 1
    reuse()
    names()
    asyncio.run(everything_async())
    for _ in range(2):
        round_of_all()
    for seed in range(20):
        tree(random.Random(seed), 7)
    sys.setrecursionlimit(3000)
    for n in (400, 600, 1200, 600, 3):
        plain(n)
    traced()
    threads()
    unknown_thread()
    race()
    instructions = line_tables()
    print("%s: %d captures, %d mismatches; %d compared with native stacks; lines of %d instructions"
          % (version, captures, mismatches, joins, instructions))
    if "--bench" in sys.argv:
        bench()
    return mismatches != 0


importlib.invalidate_caches()
sys.exit(main())
