"""Makes torch_reference.json, a report as gputally saves it, from torch_key_averages.json, the averages that
PyTorch gave: python tests/data/torch_reference.py [FILE], from the root of the source tree.

One row of the call tree for each average by input shapes, each at the root: the averages say how long
was spent above and below, but not where. Times are whole ns, as they were before PyTorch added them up as
floats of us. Where the mean lies just between two texts, the float decides as it did there: 4828.459999999997
us in 40 calls were printed as 120.711us, so 4828460 ns become 4828459.
"""
import json
import sys
from decimal import Decimal
from pathlib import Path

DATA = Path(__file__).parent


def ns(us):
    return round(Decimal(us) * 1000)


def between(us, calls):
    """1 if the mean of the whole ns is a tie and the float is short of it."""
    return int(2 * ns(us) % (2 * calls) == calls and Decimal(us) * 1000 < ns(us))


def rows(averages):
    """Rows of by_shape in the order in which their keys come in key_averages."""
    place = {a["key"]: n for n, a in enumerate(averages["key_averages"])}
    shapes = {a["key"]: 0 for a in averages["key_averages"]}
    for a in averages["by_shape"]:
        shapes[a["key"]] += between(a["cpu_time_total"], a["count"])
    for a in averages["key_averages"]:  # a sum can be short where no part of it is
        assert shapes[a["key"]] >= between(a["cpu_time_total"], a["count"]), a["key"]
    for n, a in enumerate(sorted(averages["by_shape"], key=lambda a: place[a["key"]])):
        less = between(a["cpu_time_total"], a["count"])
        row = {"id": n, "parent": None, "process": 0, "thread": 0, "key": a["key"], "domain": "",
               "source": "torch", "kind": "range", "count": a["count"], "self_ns": ns(a["self_cpu_time_total"]),
               "total_ns": ns(a["cpu_time_total"]) - less, "min_ns": 0, "max_ns": 0, "sumsq_ns2": 0.0,
               "shapes": str(a["input_shapes"]), "scope": a["scope"], "flops": a["flops"],
               "cpu_memory": a["cpu_memory_usage"], "self_cpu_memory": a["self_cpu_memory_usage"]}
        if a["is_user_annotation"]:
            row["is_user_annotation"] = True
        yield row


def main(out=DATA / "torch_reference.json"):
    averages = json.loads((DATA / "torch_key_averages.json").read_text())
    process = {"id": 0, "rank": -1, "ended": "exit", "profile_memory": True, "threads": [{"id": 0, "threads": 1}]}
    lines = ",\n".join(json.dumps(row) for row in rows(averages))
    Path(out).write_text('{"format": "gputally-report", "version": 1,\n'
                         f'"processes": [{json.dumps(process)}],\n"call_tree": [\n{lines}],\n"open": []}}\n')


if __name__ == "__main__":
    main(*sys.argv[1:])
