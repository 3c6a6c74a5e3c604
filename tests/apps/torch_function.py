#!/usr/bin/env python3
"""Operators of the program's own: torch.autograd.Function, one of them called again in its backward."""
import torch


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x * x

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 3 * grad * x * x


class Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return Cube.apply(x).mul(2)

    @staticmethod
    def backward(ctx, grad):
        with torch.enable_grad():
            inner = torch.ones(3, requires_grad=True)
            Cube.apply(inner).sum().backward()
        return grad * inner.grad


def main():
    torch.manual_seed(8)
    torch.set_num_threads(1)
    x = torch.randn(3, requires_grad=True)
    for _ in range(4):
        (Cube.apply(x).sum() + Twice.apply(x).sum()).backward()
    print("gradient %.4f" % x.grad.norm().item())


if __name__ == "__main__":
    main()
