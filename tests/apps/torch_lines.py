#!/usr/bin/env python3
"""Each line that calls operators says which, at its end; `-N`: the call is N lines above."""
import contextlib
import threading

import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.w = torch.nn.Parameter(
            torch.full(
                (4, 4), 0.5))  # aten::full -1

    def forward(self, x):
        y = x.mm(self.w)  # aten::mm
        return torch.tanh(
            y
        )  # aten::tanh -2


def squares(rows):
    for row in rows:
        yield row.square()  # aten::square


@contextlib.contextmanager
def around(x):
    x.neg()  # aten::neg
    yield
    x.abs()  # aten::abs


async def waits(x):
    return x.exp()  # aten::exp


def runs(coroutine):
    try:
        coroutine.send(None)
    except StopIteration as e:
        return e.value


class Handmade(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.floor()  # aten::floor

    @staticmethod
    def backward(ctx, grad):
        return grad.ceil()


def main():
    torch.set_num_threads(1)
    net, x = Net(), torch.ones(2, 4)
    loss = net(x).sum()  # aten::sum SumBackward0 aten::expand
    loss.backward()
    total = [s.sin() for s in squares([x, x])]  # aten::sin
    with around(x):
        list(map(lambda t: t.cos(), total))  # aten::cos
    runs(waits(x))
    Handmade.apply(x.clone().requires_grad_()).prod().backward()  # aten::prod
    x.sort() if not net else x.round().sign()  # aten::round aten::sign
    t = threading.Thread(target=lambda: x.erf())  # aten::erf
    t.start()
    t.join()
    eval("x.ceil_()")  # aten::ceil_
    sorted([x, x], key=lambda t: t.trunc().sum().item())  # aten::trunc aten::sum
    print("loss %.3f" % loss.item())


if __name__ == "__main__":
    main()
