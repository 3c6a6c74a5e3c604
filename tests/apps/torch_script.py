#!/usr/bin/env python3
"""TorchScript: a scripted function with a loop and a branch, a traced module, both called several times."""
import gc
import warnings

import torch

warnings.filterwarnings("ignore", category=DeprecationWarning)


def power(x, n: int):
    y = torch.ones_like(x)
    for _ in range(n):
        y = y * x
    if bool(y.sum() > 1):
        y = y + 1
    return y


def main():
    torch.manual_seed(7)
    torch.set_num_threads(1)
    torch.jit.set_fusion_strategy([])
    scripted = torch.jit.script(power)
    traced = torch.jit.trace(torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Tanh()), torch.randn(2, 4))
    x = torch.randn(2, 4)
    total = 0.0
    for n in (2, 3, 2, 2, 2):
        total += scripted(x, n).sum().item() + traced(x).sum().item()
    # modules of TorchScript are in cycles: not left to the end of the process, which is outside of main()
    del scripted, traced
    gc.collect()
    print("total %.4f" % total)


if __name__ == "__main__":
    main()
