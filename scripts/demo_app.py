"""An ordinary program with NVTX annotations; it knows nothing of gputally. Used by scripts/demo."""
import math

import nvtx


@nvtx.annotate("load", domain="data")
def load(n):
    return [math.sin(i) for i in range(n)]


@nvtx.annotate("forward")
def forward(values):
    with nvtx.annotate("matmul"):
        total = sum(v * v for v in values)
    with nvtx.annotate("activation"):
        return math.tanh(total)


@nvtx.annotate("backward")
def backward(values, out):
    return [v * (1 - out * out) for v in values]


for step in range(50):
    with nvtx.annotate("train step"):
        batch = load(2000)
        backward(batch, forward(batch))
print("trained")
