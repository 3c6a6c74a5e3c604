#!/usr/bin/env python3
"""Steps with torch.profiler switched on for some of them, in each of its ways. Prints, as JSON, how often the profiler
itself saw each name, a line for each time it ran, before and after it dropped the only children of their like: what
GPUTALLY_WINDOW=torch must have recorded. Operators differ from step to step, so that one that was recorded too early
or too late is seen.
"""
import json

import torch
from torch.profiler import ProfilerActivity, profile, record_function, schedule


def step(a, n):
    with record_function("step %d" % n):
        for _ in range(n + 1):
            a = a.mm(a).relu_()
        with record_function("inner"):
            return a.add(n).sum()


def show(profiler, averages):
    names = [e.name() for e in profiler.kineto_results.events()]
    raw = {"ProfilerStep*" if n.startswith("ProfilerStep#") else n: 0 for n in names}
    for n in names:
        raw["ProfilerStep*" if n.startswith("ProfilerStep#") else n] += 1
    print(json.dumps({"raw": raw, "kept": {r.key: r.count for r in averages}}, sort_keys=True))


def main():
    torch.manual_seed(10)
    torch.set_num_threads(1)
    a = torch.eye(8)
    step(a, 0)
    with profile(activities=[ProfilerActivity.CPU]) as p:
        step(a, 1)
        step(a, 2)
    show(p.profiler, p.key_averages())
    step(a, 3)
    with profile(activities=[ProfilerActivity.CPU], schedule=schedule(wait=1, warmup=1, active=2, repeat=2),
                 on_trace_ready=lambda p: show(p.profiler, p.key_averages())) as p:
        for n in range(4, 13):
            step(a, n)
            p.step()
    step(a, 13)
    with torch.autograd.profiler.profile() as p:
        step(a, 14)
    show(p, p.key_averages())
    # opened before it starts, ended before it stops; opened before it stops, ended afterwards
    p = profile(activities=[ProfilerActivity.CPU])
    with record_function("around"):
        p.start()
        step(a, 15)
    with record_function("late"):
        step(a, 16)
        p.stop()
        step(a, 17)
    show(p.profiler, p.key_averages())
    step(a, 18)


if __name__ == "__main__":
    main()
