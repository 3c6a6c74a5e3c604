#!/usr/bin/env python3
"""A two-layer LSTM and a GRU cell, sequences of several lengths, backward through time."""
import torch


def main():
    torch.manual_seed(4)
    torch.set_num_threads(1)
    lstm = torch.nn.LSTM(8, 16, num_layers=2, batch_first=True, bidirectional=True)
    cell, head = torch.nn.GRUCell(32, 16), torch.nn.Linear(16, 1)
    rms = torch.optim.RMSprop([*lstm.parameters(), *cell.parameters(), *head.parameters()], lr=1e-3)
    for length in (5, 7, 5):
        rms.zero_grad()
        out, _ = lstm(torch.randn(3, length, 8))
        h = torch.zeros(3, 16)
        for t in range(length):
            h = cell(out[:, t], h)
        loss = head(h).pow(2).mean()
        loss.backward()
        rms.step()
    packed = torch.nn.utils.rnn.pack_padded_sequence(torch.randn(3, 6, 8), torch.tensor([6, 4, 2]), batch_first=True)
    with torch.no_grad():
        print("loss %.5f, packed %.5f" % (loss.item(), lstm(packed)[0].data.abs().mean().item()))


if __name__ == "__main__":
    main()
