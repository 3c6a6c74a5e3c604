#!/usr/bin/env python3
"""A program that profiles itself, in every way that is deterministic, and prints what it got."""
import torch
from torch.profiler import ProfilerActivity, profile, record_function, schedule


def work(a):
    with record_function("work"):
        return a.mm(a).relu_().sum()


def show(title, averages):
    print(title)
    for r in sorted(averages, key=lambda r: (r.key, str(r.input_shapes))):
        # Python's own frames are the profiler's too, and its built-in functions have addresses
        if r.key != "[memory]" and ".py(" not in r.key and not r.key.startswith(("<", "torch/", "nn.Module")):
            print(" ", r.key, r.count, r.input_shapes, r.cpu_memory_usage, r.self_cpu_memory_usage, r.flops)


def main():
    torch.manual_seed(10)
    torch.set_num_threads(1)
    a = torch.randn(8, 8)
    work(a)
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True, profile_memory=True, with_flops=True,
                 with_stack=True) as p:
        work(a)
    show("all switches", p.key_averages(group_by_input_shape=True))
    with profile(activities=[ProfilerActivity.CPU], schedule=schedule(wait=1, warmup=1, active=2)) as p:
        for _ in range(4):
            work(a)
            p.step()
    show("two of four steps", p.key_averages())
    with torch.autograd.profiler.profile() as p:
        work(a)
    show("the older one", p.key_averages())


if __name__ == "__main__":
    main()
