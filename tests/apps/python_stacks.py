"""Ranges in frames of all kinds, by gputally's own C functions. Prints as JSON what Python says of the
stack of each: {name: [[file, line, qualified name], ...]}, innermost first."""
import asyncio
import ctypes
import json
import os
import sys
import threading

library = ctypes.CDLL(None)
stacks = {}


def note(name):
    frame, out = sys._getframe(1), []
    while frame:
        code = frame.f_code
        out.append([code.co_filename, frame.f_lineno, getattr(code, "co_qualname", code.co_name)])
        frame = frame.f_back
    assert stacks.setdefault(name, out) == out, name


def mark(name):
    library.gputally_range_push(name.encode()), note(name)
    library.gputally_range_pop()


class Thing:
    def method(self):
        mark("method")
        sorted([2, 1], key=lambda v: mark("key") or v)

    def __del__(self):
        mark("del")


def generator():
    yield 1
    mark("generator")


async def coroutine():
    await asyncio.sleep(0)
    mark("coroutine")


def deep(n):
    if n:
        return deep(n - 1)
    mark("deep")


def handled():
    try:
        raise ValueError
    except ValueError:
        mark("except")
    finally:
        mark("finally")


def twice():
    for _ in range(3):
        mark("same")
    mark("other line")


Thing().method()
list(generator())
asyncio.run(coroutine())
sys.setrecursionlimit(5000)
deep(1000)
handled()
twice()
thread = threading.Thread(target=mark, args=("thread",))
thread.start()
thread.join()
for i in range(50):  # code objects that take each other's place
    exec(compile("def f():\n  mark('exec %d')\nf()" % i, "made %d.py" % i, "exec"), {"mark": mark})
if "fork" in sys.argv:
    child = os.fork()
    mark("child" if child == 0 else "parent")
    if child == 0:
        stacks.clear()
        mark("child again")
        os._exit(0)
    os.waitpid(child, 0)
print(json.dumps(stacks))
