#!/usr/bin/env python3
"""What torch.profiler says of a script: the golden that tests/e2e/test_torch.py compares a report with.

    torch_profile.py [--no-flops] [--no-shapes] OUT.json SCRIPT [ARG...]

Runs main(ARG...) of torch_SCRIPT.py, beside this file, under torch.profiler (CPU, shapes, memory, FLOPs;
with --no-shapes CPU and memory alone) and writes the rows of key_averages() and of
key_averages(group_by_input_shape=True), and `raw`, how often each name was recorded, before PyTorch makes
trees of the events and drops some. The script itself is not changed: all it does with PyTorch it does in
main(), so the same file run alone does the same. PyTorch's own Python code must do the same too:
torch._dynamo makes ranges of its own only while it knows of a profiler, so it is not told of this one.
"""
import importlib
import json
import sys

import torch.autograd.profiler
from torch.profiler import ProfilerActivity, profile


def row(average, grouped):
    get = lambda name, default=None: getattr(average, name, default)  # noqa: E731 (1.13 lacks some)
    return {
        "key": average.key,
        "count": average.count,
        "scope": average.scope,
        "is_async": average.is_async,
        "is_legacy": average.is_legacy,
        "is_user_annotation": bool(get("is_user_annotation", False)),
        "device_type": average.device_type.name,
        "flops": average.flops,
        "cpu_memory_usage": average.cpu_memory_usage,
        "self_cpu_memory_usage": average.self_cpu_memory_usage,
        "input_shapes": average.input_shapes if grouped else "",
        "cpu_time_total": average.cpu_time_total,
        "self_cpu_time_total": average.self_cpu_time_total,
    }


def main():
    args = sys.argv[1:]
    options = {a for a in args if a.startswith("--")}
    out, name, *rest = [a for a in args if a not in options]
    shapes = "--no-shapes" not in options
    flops = shapes and "--no-flops" not in options  # PyTorch needs the inputs for FLOPs
    main_of_script = importlib.import_module("torch_" + name).main
    with profile(activities=[ProfilerActivity.CPU], record_shapes=shapes, profile_memory=True, with_flops=flops) as p:
        torch.autograd.profiler._is_profiler_enabled = False
        main_of_script(*rest)
        torch.autograd.profiler._is_profiler_enabled = True
    with open(out, "w") as f:
        names = [e.name() for e in p.profiler.kineto_results.events()]
        json.dump({"raw": {n: names.count(n) for n in set(names)},
                   "by_key": [row(a, False) for a in p.key_averages()],
                   "by_shape": [row(a, True) for a in p.key_averages(group_by_input_shape=True)]}, f)


if __name__ == "__main__":
    main()
