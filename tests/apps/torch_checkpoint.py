#!/usr/bin/env python3
"""Backward passes inside of backward passes: what is computed again is, in the middle of it."""
import torch
from torch.utils.checkpoint import checkpoint


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(8, 8)

    def forward(self, x):
        return torch.tanh(self.inner(x)) + x


def twice(x):
    """A gradient of a gradient."""
    first, = torch.autograd.grad((x * x * x).sum(), x, create_graph=True)
    first.sum().backward()


def main():
    torch.manual_seed(1)
    torch.set_num_threads(1)
    blocks = torch.nn.ModuleList(Block() for _ in range(3))
    x = torch.randn(4, 8)
    for reentrant in (True, False):
        y = x.clone().requires_grad_()
        for block in blocks:
            y = checkpoint(block, y, use_reentrant=reentrant)
        y.square().mean().backward()
    twice(x.clone().requires_grad_())
    print("sum %.5f" % sum(float(p.grad.sum()) for p in blocks.parameters()))


if __name__ == "__main__":
    main()
