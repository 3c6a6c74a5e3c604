#!/usr/bin/env python3
"""torch.compile with dynamic shapes: one compilation serves every size, unless someone asks a symbolic
tensor for its sizes while it is traced. Then each size is compiled anew, and the last line tells it.
"""
import torch

compilations = []


def counting(graph, inputs):
    compilations.append(len(inputs))
    return graph.forward


@torch.compile(backend=counting, dynamic=True)
def curve(x, w):
    return torch.addmm(w[0], torch.sin(x) + 1, w.t()).mul(x.shape[0]).sum()


def main():
    torch.manual_seed(11)
    torch.set_num_threads(1)
    w = torch.randn(6, 6)
    total = sum(curve(torch.randn(rows, 6), w).item() for rows in (3, 5, 7, 9))
    print("total %.3f, compiled %d times" % (total, len(compilations)))


if __name__ == "__main__":
    main()
