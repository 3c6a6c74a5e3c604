#!/usr/bin/env python3
"""torch.compile(backend="eager"): the frames are traced by torch._dynamo, once a shape; the operators run as they are."""
import torch


@torch.compile(backend="eager", dynamic=False)
def curve(x, w):
    y = torch.sin(x).mm(w)
    if x.shape[0] > 4:
        y = torch.relu(y)
    return y.sum() * 2


def main():
    torch.manual_seed(6)
    torch.set_num_threads(1)
    w = torch.randn(6, 3, requires_grad=True)
    total = 0.0
    for rows in (3, 3, 5, 3):
        value = curve(torch.randn(rows, 6), w)
        value.backward()
        total += value.item()
    print("total %.4f, gradient %.4f" % (total, w.grad.norm().item()))


if __name__ == "__main__":
    main()
