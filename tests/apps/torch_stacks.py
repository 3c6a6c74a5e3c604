#!/usr/bin/env python3
"""What torch.profiler says of the stacks of a script: the golden of tests/e2e/test_torch_stacks.py.

    torch_stacks.py OUT.json SCRIPT [ARG...]

Runs main(ARG...) of torch_SCRIPT.py, beside this file, under torch.profiler (with_stack, verbose), as
torch_profile.py does, and writes [count, name, scope, own, torch's, is backward, first, expected] for each way
that an operator came about. A stack is a list of [file, function], innermost first, from main() on, without what is no
Python function (<built-in ...>). Where torch.profiler has `nn.Module: X_0` it has replaced nn.Module's __call__, and
hides three functions of its own backward pass: here they are what they were.

own          the Python functions around it
torch's      what torch.profiler says; null where these are lines of TorchScript
is backward  it is one of the backward pass, or inside one
first        then, torch.profiler's choice: the stack of the first operator of the forward pass that has the node's
             number and thread; null if there is none
expected     of a backward operator and all inside it, the stack of the last operator that started with that number
             before, which is the one that made the node; where there is none, and of others, its own
"""
import gc
import importlib
import json
import re
import sys

import torch.autograd.profiler
import torch.autograd.profiler_util
from torch._C._profiler import _ExperimentalConfig
from torch.profiler import ProfilerActivity, profile

FUNCTION, BACKWARD = 0, 1
FRAME = re.compile(r"(.*)\(\d+\): (.*)")


CALL_OF_MODULE = ["torch/nn/modules/module.py", torch.nn.Module.__call__.__name__]


def functions(names):
    """Those from main() on."""
    out = []
    for name in names:
        if name.startswith("nn.Module: "):
            out.append(CALL_OF_MODULE)
            continue
        frame = FRAME.fullmatch(name)
        if frame:
            out.append([frame[1], frame[2]])
            if frame[2] == "main" and re.search(r"\btorch_\w+\.py$", frame[1]):
                break
    return out


def is_of_main(stack):
    return bool(stack) and stack[-1][1] == "main"


def is_python(event):
    return bool(FRAME.fullmatch(event.name)) or event.name.startswith(("<built-in ", "nn.Module: "))


def keep_own_stacks():
    """torch.profiler puts another one in its place."""
    events = torch.autograd.profiler_util.EventList
    replace = events._set_backward_stacktraces

    def keep_and_replace(self):
        for event in self:
            event.own_stack = event.stack
        replace(self)
    events._set_backward_stacktraces = keep_and_replace
    torch.autograd.profiler._filter_stack_entry = lambda entry: True


def keep_names():
    """torch.profiler keeps pointers into the names of the code that ran, not the names, and says what lies there when
    it ends (PYTHONMALLOC=debug shows it): code that torch.compile makes and drops must live as long."""
    kept = []

    def hook(event, args):
        if event in ("exec", "code.__new__"):  # the code that is run; code (or None), file and name of what is made
            kept.append(args)
    sys.addaudithook(hook)


def around(event):
    while event.cpu_parent is not None:
        event = event.cpu_parent
        yield event


def of_node(event):
    """The backward operator that it is, or is in."""
    return next((e for e in (event, *around(event)) if e.scope == BACKWARD), None)


def without_duplicates(operators):
    """As PyTorch does it when no Python function is between two operators: one that is the only child of one of its
    name is dropped, until there is none."""
    parents = {id(e): next((a for a in around(e) if not is_python(a)), None) for e in operators}
    while True:
        kids = {}
        for e in operators:
            kids.setdefault(id(parents[id(e)]), []).append(e)
        drop = [e for e in operators if parents[id(e)] is not None and e.name == parents[id(e)].name and
                len(kids[id(parents[id(e)])]) == 1]
        if not drop:
            return operators
        gone = {id(e): parents[id(e)] for e in drop}
        operators = [e for e in operators if id(e) not in gone]
        for e in operators:
            while id(parents[id(e)]) in gone:
                parents[id(e)] = gone[id(parents[id(e)])]


def main():
    out, name, *rest = sys.argv[1:]
    keep_names()
    main_of_script = importlib.import_module("torch_" + name).main
    keep_own_stacks()
    with profile(activities=[ProfilerActivity.CPU], with_stack=True,
                 experimental_config=_ExperimentalConfig(verbose=True)) as p:
        torch.autograd.profiler._is_profiler_enabled = False  # see torch_profile.py
        main_of_script(*rest)
        gc.disable()  # what follows leaves no rings; looking for them among 200,000 events takes a third of the time
        torch.autograd.profiler._is_profiler_enabled = True
    operators = [e for e in p.events() if not is_python(e) and e.name != "[memory]"]
    own = {id(e): functions(e.own_stack) for e in operators}
    script = {id(e) for e in operators if e.own_stack and not is_of_main(own[id(e)])}
    own.update({id(e): functions(a.name for a in around(e)) for e in operators if id(e) in script})
    operators = [e for e in operators if is_of_main(own[id(e)])]
    operators = without_duplicates(operators)
    first, last, known, of, rows = {}, {}, {}, {}, {}
    for e in sorted(operators, key=lambda e: (e.time_range.start, -e.time_range.end)):
        node = of_node(e)
        of[id(e)] = own[id(e)]
        if node is e:
            known[id(e)] = (e.sequence_nr, e.fwd_thread) in last
            of[id(e)] = last.get((e.sequence_nr, e.fwd_thread), own[id(e)])
        elif node is not None and known.get(id(node)):
            of[id(e)] = of[id(node)]
        if e.scope == FUNCTION and e.sequence_nr >= 0:
            if node is None:
                first.setdefault((e.sequence_nr, e.thread), own[id(e)])
            if not e.name.startswith("autograd::engine::"):  # who runs a node has its number too
                last[e.sequence_nr, e.thread] = of[id(e)]
    for e in operators:
        node = of_node(e)
        torchs = None if id(e) in script else functions(e.stack)
        row = json.dumps([e.name, e.scope, own[id(e)], torchs, node is not None,
                          first.get((node.sequence_nr, node.fwd_thread)) if node is not None else None, of[id(e)]])
        rows[row] = rows.get(row, 0) + 1
    with open(out, "w") as f:
        json.dump([[n, *json.loads(row)] for row, n in rows.items()], f)


if __name__ == "__main__":
    main()
