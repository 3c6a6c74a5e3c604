#!/usr/bin/env python3
"""Exceptions that leave operators: 10 caught in a loop, one through ranges and a backward, then the
way out that is asked for. torch_raises.py [uncaught|interrupt|system-exit|os-exit]"""
import os
import signal
import sys

import torch
from torch.profiler import record_function


class Bad(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        raise ValueError("no gradient")


def main(way="none"):
    torch.set_num_threads(1)
    a, b = torch.ones(2, 3), torch.ones(2, 3)
    caught = 0
    for _ in range(10):
        try:
            with record_function("tries"):
                a.mm(b)
        except RuntimeError:
            caught += 1
    try:
        with record_function("outer"), record_function("inner"):
            Bad.apply(torch.ones(3, requires_grad=True)).sum().backward()
    except ValueError:
        caught += 1
    print("caught %d, then %.1f" % (caught, a.add(b).sum().item()), flush=True)
    with record_function("last"):
        if way == "uncaught":
            a.mm(b)
        if way == "interrupt":
            signal.raise_signal(signal.SIGINT)
        if way == "system-exit":
            sys.exit(3)
        if way == "os-exit":
            os._exit(4)


if __name__ == "__main__":
    main(*sys.argv[1:])
