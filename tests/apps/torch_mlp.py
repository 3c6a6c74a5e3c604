#!/usr/bin/env python3
"""The reference script: a small network is trained, ranges inside ranges, the same numbers each time. With a number:
so many steps instead of 20."""
import sys

import torch
from torch.profiler import record_function


def main(steps=20):
    torch.manual_seed(1)
    torch.set_num_threads(1)
    net = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 10))
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    inputs, labels = torch.randn(32, 64), torch.randint(0, 10, (32,))
    for _ in range(int(steps)):
        with record_function("step"):
            with record_function("forward"):
                loss = torch.nn.functional.cross_entropy(net(inputs), labels)
            with record_function("backward"):
                sgd.zero_grad()
                loss.backward()
            with record_function("optimizer"):
                sgd.step()
    print("loss %.5f" % loss.item())


if __name__ == "__main__":
    main(*sys.argv[1:])
