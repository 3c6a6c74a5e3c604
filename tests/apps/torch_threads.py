#!/usr/bin/env python3
"""50 matrix products in a thread and 1 in main: 51, of which PyTorch's own profiler sees 1."""
import threading

import torch


def work(a):
    for _ in range(50):
        a.mm(a)


def main():
    torch.set_num_threads(1)
    a = torch.ones(8, 8)
    t = threading.Thread(target=work, args=(a,))
    t.start()
    t.join()
    print("sum %.1f" % a.mm(a).sum().item())


if __name__ == "__main__":
    main()
