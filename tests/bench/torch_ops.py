#!/usr/bin/env python3
"""The one-operator loop for scripts/bench-torch: torch_ops.py [plain|profiler|profiler-all]

Answers lines of standard input until it ends. `time N`: microseconds of CPU for N times x.add_(y), torch.profiler
around them if it was asked for, its stop not counted. `grow N`: KiB by which the resident memory grew over
them. `after N`: microseconds that torch.profiler needs after N operators for stop and key_averages(), and KiB
by which the peak memory rose.
"""
import resource
import sys
import time

import torch
from torch.profiler import ProfilerActivity, profile

KINDS = {"plain": None, "profiler": {}, "profiler-all": {"record_shapes": True, "profile_memory": True, "with_flops": True}}


def loop(n, x, y):
    # the thread's own: what else runs on the machine is not its cost
    start = time.thread_time()
    for _ in range(n):
        x.add_(y)
    return time.thread_time() - start


def resident():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * resource.getpagesize() // 1024


def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def profiled(n, x, y, switches, averages):
    """Seconds of the loop and of what comes after it, with key_averages() or without."""
    p = profile(activities=[ProfilerActivity.CPU], **switches)
    p.start()
    spent = loop(n, x, y)
    start = time.perf_counter()
    p.stop()
    if averages:
        p.key_averages()
    return spent, time.perf_counter() - start


def main():
    switches = KINDS[sys.argv[1]]
    torch.set_num_threads(1)
    x, y = torch.zeros(16), torch.ones(16)
    loop(2000, x, y)
    print("ready", flush=True)
    for line in sys.stdin:
        word, n = line.split()
        n = int(n)
        if word == "time":
            spent = loop(n, x, y) if switches is None else profiled(n, x, y, switches, False)[0]
            print(round(spent * 1e6), flush=True)
        elif word == "grow":
            before = resident()
            loop(n, x, y)
            print(resident() - before, flush=True)
        else:
            before = peak()
            after = profiled(n, x, y, switches, True)[1]
            print(round(after * 1e6), peak() - before, flush=True)


if __name__ == "__main__":
    main()
