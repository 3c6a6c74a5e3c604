#!/usr/bin/env python3
"""torch.func: vmap and grad, whose tensors are wrappers around others."""
import torch


def main():
    torch.manual_seed(13)
    torch.set_num_threads(1)
    a = torch.randn(3, 4)
    each = torch.func.vmap(torch.func.grad(lambda x: (x * x).sum()))(a)
    print("vmap %.4f, grad %.4f" % (torch.func.vmap(torch.dot)(a, a).sum().item(), each.sum().item()))


if __name__ == "__main__":
    main()
