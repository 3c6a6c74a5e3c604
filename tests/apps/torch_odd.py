#!/usr/bin/env python3
"""Tensors that are not plain: nested, sparse, quantized, meta, fake, conjugated, empty, under a
dispatch mode. Asking some of them for their sizes raises an exception or runs Python.
"""
import gc
import warnings

import torch
from torch.utils._python_dispatch import TorchDispatchMode

warnings.filterwarnings("ignore")


class Counting(TorchDispatchMode):
    """Counts the operators that reach it; asking a tensor for its sizes must not."""
    seen = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.seen += 1
        return func(*args, **(kwargs or {}))


def main():
    gc.disable()  # where it happens to run, tensors in cycles would be freed
    torch.manual_seed(12)
    torch.set_num_threads(1)
    a = torch.randn(3, 4)
    nested = torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(4, 3)])
    ragged = torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(4, 3)], layout=torch.jagged)
    print("nested", (nested * 2).to_padded_tensor(0).sum().item(), (ragged * 2).sum().item())
    print("sparse", torch.sparse.mm(torch.eye(3).to_sparse(), a).sum().item())
    print("quantized", torch.quantize_per_tensor(a, 0.1, 0, torch.qint8).dequantize().sum().item())
    print("meta", tuple(torch.empty(5, 6, device="meta").mm(torch.empty(6, 7, device="meta")).shape))
    print("empty", torch.empty(0, 4).mm(torch.ones(4, 0)).numel())
    print("conjugated", torch.complex(a, a).conj().sum().item())
    with torch._subclasses.fake_tensor.FakeTensorMode() as fake:
        print("fake", tuple((fake.from_tensor(a) @ torch.empty(4, 2)).shape))
    with Counting() as mode:
        (a + 1).mul(2)
    print("mode", mode.seen)
    del nested, ragged, fake, mode
    gc.collect()


if __name__ == "__main__":
    main()
