"""PyTorch's own words to ITT: operators, a record_function, ranges and a mark of the user's; a convolution, which
oneDNN runs."""
import torch

torch.set_num_threads(1)
conv = torch.nn.Conv2d(3, 8, 3)
x = torch.ones(2, 3, 16, 16)
a = torch.ones(4, 4)
for _ in range(5):
    conv(x)
with torch.autograd.profiler.emit_itt():
    for i in range(4):
        with torch.profiler.record_function("user block"):
            torch.mm(a, a)
        torch.profiler.itt.range_push("itt direct")
        torch.mm(a, a)
        torch.profiler.itt.range_pop()
        torch.profiler.itt.mark("itt mark")
    for i in range(1100):
        torch.profiler.itt.range_push(f"step {i}")
        torch.profiler.itt.range_pop()
    y = conv(x).sum()
    y.backward()
print("done", tuple(conv.weight.grad.shape))
