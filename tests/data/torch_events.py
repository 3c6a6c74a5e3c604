"""Makes torch_events*.json, lists of events as gputally reads them, and beside them the tables that PyTorch
prints of the same events: run by hand, with torch 2.13, as python tests/data/torch_events.py.

Times are multiples of 1/8 us, which floats add up exactly: so no digit depends on the order of a sum.
Kernels are launched by events that are no duplicates, since PyTorch loses those of the outer one.
"""
import json
import random
from pathlib import Path

from torch.autograd import DeviceType
from torch.autograd.profiler_util import EventList, FunctionEvent

DATA = Path(__file__).parent
NAMES = ["aten::mm", "aten::addmm", "aten::to", "forward", "an operator with a name that is cut, as it is too long for it"]
FRAMES = ["train.py(7): step", "train.py(31): <module>",
          "site-packages/some/where/below/a/very/deep/folder/of/a/library/functional.py(1234): forward"]


def events(rnd, stacks):
    made = []

    def add(start, end, **more):
        made.append({"name": rnd.choice(NAMES), "thread": 1, "start_us": start / 8, "end_us": end / 8, **more})

    def nest(node, start, end, depth):
        add(start, end, node_id=node, thread=node + 2, scope=rnd.choice([0, 7]),
            input_shapes=rnd.choice([[], [[2, 3], [3, 4], []], [[rnd.randrange(1000)] * 25]]),
            overload_name=rnd.choice(["", "out"]), cpu_memory_usage=rnd.randrange(-5000, 99999),
            device_memory_usage=rnd.randrange(-1 << 21, 1 << 31), is_user_annotation=rnd.random() < .2)
        event = made[-1]
        event.update({"stack": rnd.sample(FRAMES, rnd.randrange(3))} if stacks else {"flops": rnd.choice([0, 48, 10**7])})
        kids, at = (rnd.choice([0, 1, 1, 2]) if depth and end - start > 40 else 0), start
        if kids != 1 and rnd.random() < .5:
            event["kernels"] = [{"name": "kernel", "duration_us": rnd.randrange(80000) / 8}]
        for _ in range(kids):
            to = rnd.randint(at, end)
            nest(node, at, to, depth - 1)
            at = to

    for n in range(14):
        start = n * 100000
        nest(rnd.choice([-1, 0, 3]), start, start + rnd.randrange(9000000 if n == 13 else 90000), 4)
        add(start + 1, start + rnd.randrange(1, 5000), is_async=True)
        add(start + 2, start + rnd.randrange(2, 9000), thread=7, device_type="CUDA", is_user_annotation=n % 5 == 0)
    return sorted(made, key=lambda e: (e["start_us"], -e["end_us"]))


def as_torch(made, flops):
    out = []
    for n, e in enumerate(made):
        more = {k: v for k, v in e.items() if k not in ("name", "thread", "start_us", "end_us", "kernels", "device_type")}
        for k, empty in (("input_shapes", []), ("overload_name", ""), ("stack", [])):
            more.setdefault(k, empty)
        out.append(FunctionEvent(n, e["name"], e["thread"], e["start_us"], e["end_us"], use_device="cuda",
                                 device_type=getattr(DeviceType, e.get("device_type", "CPU")), **more))
        out[-1].flops = out[-1].flops or 0
        for k in e.get("kernels", []):
            out[-1].append_kernel(k["name"], 0, k["duration_us"])
    out = EventList(out, use_device="cuda", profile_memory=True, with_flops=flops)
    out._build_tree()
    return out


def save(name, made):
    lines = ",\n".join(json.dumps(e) for e in made)
    (DATA / f"{name}.json").write_text('{"format": "gputally-events", "version": 1, "use_device": "cuda", '
                                       f'"profile_memory": true,\n"events": [\n{lines}\n]}}\n')


def main():
    made = events(random.Random(2013), False)
    save("torch_events", made)
    averages = as_torch(made, True)
    (DATA / "torch_events.txt").write_text(averages.key_averages().table())
    (DATA / "torch_events_shapes.txt").write_text(
        averages.key_averages(group_by_input_shapes=True, group_by_overload_name=True).table("self_cuda_time_total"))
    made = events(random.Random(2), True)
    save("torch_events_stacks", made)
    (DATA / "torch_events_stacks.txt").write_text(
        as_torch(made, False).key_averages(group_by_stack_n=2).table("cpu_memory_usage", row_limit=20))


if __name__ == "__main__":
    main()
