#!/usr/bin/env python3
"""Names that files may choke on, names alike, a range in itself, and ProfilerStep#N."""
import torch
from torch.profiler import record_function

NAMES = ['a "quoted" name', "two\nlines", "tab\tand \\ backslash", "comma, semi;colon", "größe 𝒳", "<b>&amp;</b>", "'", " ",
         "aten::mm", "x" * 300]


def main():
    torch.manual_seed(9)
    torch.set_num_threads(1)
    a = torch.randn(4, 4)
    for name in NAMES:
        with record_function(name):
            a.mm(a)
    for n in range(3):
        with record_function("ProfilerStep#%d" % n):
            a.add(1)
    with record_function("again"):
        with record_function("again"):
            with record_function("again"):
                a.neg()
    print("sum %.4f" % a.sum().item())


if __name__ == "__main__":
    main()
