#!/usr/bin/env python3
"""A DataLoader with two workers, which are processes of their own. torch_loader.py [fork|spawn]

Each worker makes 4 items of its own operators: 4 tensors, 4 multiplications, and says so in its report.
"""
import sys

import torch
from torch.utils.data import DataLoader, Dataset


class Squares(Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, i):
        return torch.full((4, 4), float(i)).mm(torch.eye(4))


def main(method="fork"):
    torch.manual_seed(5)
    torch.set_num_threads(1)
    total = torch.zeros(4, 4)
    for batch in DataLoader(Squares(), batch_size=2, num_workers=2, multiprocessing_context=method):
        total.add_(batch.sum(0))
    print("total %.1f" % total.sum().item())


if __name__ == "__main__":
    main(*sys.argv[1:])
