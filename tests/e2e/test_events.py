"""Lists of events: the same averages, tables and trees as PyTorch makes of them.

build_tree() and key_averages() are PyTorch's rules written down again without a thought for speed; the one
difference, kernels of duplicates are added up and not replaced, is in both.
"""
import csv
import importlib.util
import io
import json
import random
from itertools import groupby
from types import SimpleNamespace

import pytest

from conftest import ROOT, tool

DATA = ROOT / "tests" / "data"


def report(path, *options):
    done = tool("report", *options, path)
    assert done.returncode == 0, done.stderr
    return done.stdout


def averages(path, *options):
    return json.loads(report(path, "-f", "json", *options))


def test_table_of_hand_made_events():
    """tests/data/README tells where both files come from."""
    want = (DATA / "torch_table_device.txt").read_text()
    assert report(DATA / "edge_events.json", "--sort-by", "none") == want


@pytest.mark.parametrize("name, want", [
    ("edge_duplicates", [("A", 1, 100, 52), ("B", 1, 48, 48)]),
    ("edge_overlap", [("A", 1, 100, 100), ("B", 1, 100, 70), ("C", 1, 30, 30)])])
def test_duplicates_and_partial_overlap(name, want):
    got = averages(DATA / f"{name}.json")["key_averages"]
    assert [(r["key"], r["count"], r["cpu_time_total"], r["self_cpu_time_total"]) for r in got] == want


@pytest.mark.parametrize("options, want", [([], "torch_table.txt"), (["--group-by", "shape"], "torch_table_shapes.txt")])
def test_tables_of_the_reference(options, want):
    assert report(DATA / "torch_reference.json", "--row-limit", "12", *options) == (DATA / want).read_text()


def test_reference_is_made_from_what_torch_gave(tmp_path):
    spec = importlib.util.spec_from_file_location("torch_reference", DATA / "torch_reference.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    script.main(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_text() == (DATA / "torch_reference.json").read_text()


@pytest.mark.parametrize("name, want, options", [
    ("torch_events", "torch_events", ["--sum", "-s", "none", "-g", "rank"]),
    ("torch_events", "torch_events_shapes", ["--sum", "-s", "self_cuda_time_total", "-g", "rank,shape,overload"]),
    ("torch_events_stacks", "torch_events_stacks", ["--sum", "-s", "cpu_memory_usage", "-g", "rank,stack:2", "-n", "20"])])
def test_tables_that_torch_printed(tmp_path, name, want, options):
    """Every column there is: device, memory, ranks, shapes, overloads, FLOPs, places in files."""
    text = report(DATA / f"{name}.json", *options)
    assert text == (DATA / f"{want}.txt").read_text()
    (tmp_path / "saved.json").write_text(report(DATA / f"{name}.json", "-f", "json"))
    assert report(tmp_path / "saved.json", *options) == text


def test_grouping_by_stack(tmp_path):
    """The innermost N frames; without a number all of them. Files with stacks of their own go together."""
    frames = [["a", "b"], ["a", "c"], ["a"], [], ["a", "b"]]
    one = save(tmp_path / "one.json", [event(name="x", stack=f, start_us=n, end_us=n + 1) for n, f in enumerate(frames)])
    (tmp_path / "saved.json").write_text(report(one, "-f", "json"))
    two = save(tmp_path / "two.json", [event(name="x", stack=["a", "c"])])
    for path in (one, tmp_path / "saved.json"):
        for by, want in (("stack", [["a", "b"], ["a", "c"], ["a"], []]), ("stack:1", [["a"], []]),
                         ("stack:9,stack:1", [["a"], []]), ("rank", [[]])):
            rows = averages(path, "-g", by)["key_averages"]
            assert [r["stack"] for r in rows] == want
            assert sum(r["count"] for r in rows) == 5
        done = tool("report", "-f", "csv", "-g", "stack", path, two)
        got = {r["stack"]: int(r["count"]) for r in csv.DictReader(io.StringIO(done.stdout))}
        assert got == {"a\nb": 2, "a\nc": 2, "a": 1, "": 1}
    for bad in ("stack:", "stack:0", "stack:x", "stack:65536", "stack:-1", "rank:2", "stacks"):
        done = tool("report", "-g", bad, one)
        assert (done.returncode, done.stdout) == (2, "") and bad in done.stderr


@pytest.mark.parametrize("options, section", [([], "key_averages"), (["--group-by", "shape"], "by_shape")])
def test_averages_of_the_reference(options, section):
    """Every row, JSON and csv: what PyTorch gave, times to the ns."""
    want = json.loads((DATA / "torch_key_averages.json").read_text())[section]
    fields = ("count", "flops", "scope", "is_user_annotation", "is_async", "cpu_memory_usage", "self_cpu_memory_usage",
              "input_shapes")
    json_rows = averages(DATA / "torch_reference.json", *options)["key_averages"]
    got = {(r["key"], str(r["input_shapes"])): r for r in json_rows}
    assert len(got) == len(want)
    table = csv.DictReader(io.StringIO(report(DATA / "torch_reference.json", "-f", "csv", *options)))
    as_csv = {(r["key"], r["input_shapes"]): r for r in table}
    assert as_csv.keys() == got.keys()
    for w in want:
        key = w["key"], str(w["input_shapes"])
        assert {f: got[key][f] for f in fields} == {f: w[f] for f in fields}
        for f in ("cpu_time_total", "self_cpu_time_total"):
            assert abs(got[key][f] - w[f]) < 0.0015, (key, f)
            assert float(as_csv[key][f]) == got[key][f]
        for f in ("count", "flops", "scope", "is_user_annotation", "cpu_memory_usage", "self_cpu_memory_usage"):
            assert int(as_csv[key][f]) == w[f]


def test_total_average_of_the_reference():
    """PyTorch said count 2300, cpu_time_total 108634.98, self 33670.179, memory 4141320 and 38440."""
    whole = averages(DATA / "torch_reference.json")
    got = whole["total_average"]
    assert (got["key"], got["count"], got["flops"]) == ("Total", 2300, 25886720)
    assert (got["cpu_memory_usage"], got["self_cpu_memory_usage"]) == (4141320, 38440)
    assert abs(got["cpu_time_total"] - 108634.98) < 0.005 and got["self_cpu_time_total"] == 33670.179
    assert abs(got["cpu_time"] - 47.2326) < 0.00001
    assert (got["input_shapes"], got["stack"], got["node_id"], got["use_device"]) == ([], [], -1, None)
    row, = csv.DictReader(io.StringIO(report(DATA / "torch_reference.json", "-f", "csv", "--total-average")))
    assert (row["key"], row["count"], row["cpu_memory_usage"]) == ("Total", "2300", "4141320")
    lines = report(DATA / "torch_reference.json", "--total-average").splitlines()
    assert lines[3].split()[:2] == ["Total", "100.00%"] and lines[5] == "Self CPU time total: 33.670ms"


FIELDS = ["key", "count", "node_id", "is_async", "is_remote", "use_device", "cpu_time_total", "device_time_total",
          "self_cpu_time_total", "self_device_time_total", "input_shapes", "overload_name", "stack", "scope",
          "cpu_memory_usage", "device_memory_usage", "self_cpu_memory_usage", "self_device_memory_usage",
          "cpu_children", "cpu_parent", "device_type", "is_legacy", "flops", "is_user_annotation", "cpu_time",
          "device_time"]


def test_every_field_in_its_order():
    got = averages(DATA / "edge_events.json")
    for row in got["key_averages"]:
        assert list(row)[:len(FIELDS) + 1] == ["id", *FIELDS]
    assert list(got["total_average"])[:len(FIELDS)] == FIELDS
    head = report(DATA / "edge_events.json", "-f", "csv").splitlines()[0].split(",")
    assert head[:len(FIELDS)] == FIELDS


def event(**fields):
    given = {"thread": 1, "start_us": 0, "end_us": 1, **fields}
    return {k: v for k, v in given.items() if v is not None}


def save(path, events, **top):
    head = {"format": "gputally-events", "version": 1, **top}
    path.write_text(json.dumps({**head, "events": events}))
    return path


def test_two_lists_count_twice_and_one_once(tmp_path):
    """Lists have no process that tells them apart: their text does."""
    one = save(tmp_path / "one.json", [event(name="a")])
    two = save(tmp_path / "two.json", [event(name="a", end_us=2)])
    done = tool("report", "-f", "json", one, two, one)
    assert json.loads(done.stdout)["key_averages"][0]["count"] == 2
    assert "counted once" in done.stderr


@pytest.mark.parametrize("bad, why", [
    ({"name": None}, 'event 1: bad or missing "name"'),
    ({"name": 7}, '"name"'),
    ({"start_us": None}, '"start_us"'),
    ({"start_us": 2}, '"end_us"'),
    ({"end_us": 1e30}, '"end_us"'),
    ({"end_us": 10**18}, '"end_us"'),
    ({"thread": 1.5}, '"thread"'),
    ({"device_type": "GPU"}, '"device_type"'),
    ({"input_shapes": [[2.5]]}, '"input_shapes"'),
    ({"input_shapes": 7}, '"input_shapes"'),
    ({"kernels": 7}, '"kernels"'),
    ({"stack": 7}, '"stack"'),
    ({"stack": [7]}, '"stack"'),
    ({"kernels": [7]}, '"duration_us"'),
    ({"kernels": [{"duration_us": -1}]}, '"duration_us"'),
    ({"scope": 256}, '"scope"'),
    ({"flops": -1}, '"flops"'),
    ({"is_async": 1}, '"is_async"'),
    ({"node_id": -2}, '"node_id"')])
def test_bad_events_are_refused_with_their_place(tmp_path, bad, why):
    path = save(tmp_path / "bad.json", [event(name="a"), event(**{"name": "b", **bad})])
    done = tool("report", path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"gputally: {path}: damaged report: ") and why in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("text, why", [
    ('{"format": "gputally-events", "version": 1}', 'no "events"'),
    ('{"format": "gputally-events", "version": 2, "events": []}', "newer"),
    ('{"format": "gputally-events", "version": 1, "use_device": 7, "events": []}', 'bad "use_device"'),
    ('{"format": "gputally-events", "version": 1, "use_device": "tpu", "events": []}', 'bad "use_device"'),
    ('{"format": "gputally-events", "version": 1, "profile_memory": 1, "events": []}', 'bad "profile_memory"'),
    ('{"format": "gputally-events", "version": 1,\n"events": [{"name": "a"}', "line 2")])
def test_bad_lists_are_refused(tmp_path, text, why):
    path = tmp_path / "bad.json"
    path.write_text(text)
    done = tool("report", path)
    assert (done.returncode, done.stdout) == (2, "") and why in done.stderr, done.stderr


def test_empty_list(tmp_path):
    got = averages(save(tmp_path / "none.json", []))
    assert got["key_averages"] == [] and got["total_average"]["count"] == 0
    assert report(tmp_path / "none.json") == ""


def test_deep_and_wide(tmp_path):
    """50,000 nested, backwards in the file, and 50,000 beside each other: no stack, no square."""
    n = 50000
    deep = [event(name=f"n{i % 3}", start_us=i, end_us=3 * n - i) for i in reversed(range(n))]
    wide = [event(name="w", thread=2, start_us=i, end_us=i + 1) for i in range(n)]
    got = averages(save(tmp_path / "deep.json", deep + wide))
    assert sum(r["count"] for r in got["key_averages"]) == 2 * n
    assert got["total_average"]["self_cpu_time_total"] == 3 * n + n


# PyTorch's rules

def test_a_shape_of_many_numbers(tmp_path):
    """Two seconds of work, once; the square of that would not end in time."""
    path = tmp_path / "shapes.json"
    save(path, [event(name="a", input_shapes=[list(range(400000)), []])])
    row, = averages(path, "-g", "shape")["key_averages"]
    assert row["count"] == 1


def is_nested(e):
    return not e.is_async and e.device_type == "CPU"


def build_tree(events):
    sync = sorted((e for e in events if is_nested(e)), key=lambda e: (e.thread, e.node_id))
    for _, group in groupby(sync, key=lambda e: (e.thread, e.node_id)):
        around = []
        for e in sorted(group, key=lambda e: (e.start, -e.end)):
            while around and (e.start >= around[-1].end or e.end > around[-1].end):
                around.pop()
            if around:
                e.parent = around[-1]
                e.parent.children.append(e)
            around.append(e)
    while True:
        kept = []
        for e in events:
            p = e.parent
            if p is not None and p.name == e.name and len(p.children) == 1:
                p.children = e.children
                p.kernels += e.kernels
                for c in e.children:
                    c.parent = p
            else:
                kept.append(e)
        if len(kept) == len(events):
            return kept
        events = kept


def numbers(e):
    """count, cpu, self cpu, device, self device, memory x 4, flops of an event"""
    own = e.end - e.start
    if not is_nested(e):
        cpu = own if e.device_type == "CPU" else 0
        device = own if e.device_type != "CPU" and not e.is_async else 0
        return [1, cpu, 0, device, device, e.memory, 0, e.device_memory, 0, e.flops]
    return [1, own, own - sum(c.end - c.start for c in e.children), device_time(e), e.kernels,
            e.memory, e.memory - sum(c.memory for c in e.children), e.device_memory,
            e.device_memory - sum(c.device_memory for c in e.children), e.flops]


def device_time(e):
    if e.device is None:
        e.device = e.kernels + sum(device_time(c) for c in e.children)
    return e.device


def key_averages(events, *by):
    out = {}
    for e in events:
        key = (e.name, e.node_id, e.device_type, e.is_user_annotation) + tuple(str(getattr(e, f)) for f in by)
        first = (e.is_async, e.scope)
        have = out.setdefault(key, (first, [0] * 10))
        have[1][:] = [a + b for a, b in zip(have[1], numbers(e))]
    return out


def ours(path, *by):
    words = {"shapes": "shape", "overload": "overload", "stack": "stack"}
    got = averages(path, "--group-by", ",".join(["rank", *(words[b] for b in by)]))
    fields = {"shapes": "input_shapes", "overload": "overload_name", "stack": "stack"}
    out = {}
    for r in got["key_averages"]:
        key = (r["key"], r["node_id"], r["device_type"], r["is_user_annotation"]) + tuple(str(r[fields[b]]) for b in by)
        assert key not in out
        times = [round(r[f] * 1000) for f in ("cpu_time_total", "self_cpu_time_total", "device_time_total",
                                              "self_device_time_total")]
        rest = [r[f] for f in ("cpu_memory_usage", "self_cpu_memory_usage", "device_memory_usage",
                               "self_device_memory_usage", "flops")]
        out[key] = ((r["is_async"], r["scope"]), [r["count"], *times, *rest])
    return out


NAMES = ["a", "b", "c", "ProfilerStep*"]


def random_events(rnd, count, overlap):
    """Trees with few names, so that many are duplicates; `overlap`: the share of those that hold to no tree."""
    made = []

    def one(thread, node, start, end, **more):
        # PyTorch puts ProfilerStep* in before it builds the tree
        name = rnd.choice(NAMES)
        made.append(SimpleNamespace(
            name=name, told=f"ProfilerStep#{rnd.randrange(9)}" if name.endswith("*") else name, thread=thread,
            node_id=node, start=start, end=end, is_async=False, device_type="CPU", is_user_annotation=rnd.random() < .1,
            shapes=rnd.choice([[], [[2, 3], []], [[4]]]), overload=rnd.choice(["", "Tensor"]),
            scope=rnd.choice([0, 0, 0, 1, 7]), kernels=rnd.choice([0, 0, rnd.randrange(5000)]), flops=rnd.choice([0, 8]),
            stack=rnd.choice([[], ["f"], ["f", "g"]]), memory=rnd.randrange(-50, 50), device_memory=rnd.randrange(-9, 99), parent=None, children=[], device=None))
        vars(made[-1]).update(more)
        if made[-1].device_type != "CPU":
            made[-1].kernels = 0

    def nest(thread, node, start, end, depth):
        one(thread, node, start, end)
        at = start + rnd.randrange(2)
        for _ in range(rnd.choices([0, 1, 2, 4], [1, 4, 2, 1])[0] if depth and end - start > 4 else 0):
            if len(made) >= count or at >= end:
                return
            to = rnd.choice([end, rnd.randint(at, end)])
            nest(thread, node, at, to, depth - 1)
            at = to + rnd.randrange(2)

    at = [0] * 6
    while len(made) < count:
        place = rnd.randrange(6)
        thread, node = place % 3, place // 3 - 1
        if rnd.random() < overlap:
            start = rnd.randrange(max(at[place], 1) + 1000)
            one(thread, node, start, start + rnd.randrange(3000))
        elif rnd.random() < .1:
            one(thread, node, at[place], at[place] + 500, is_async=True)
        elif rnd.random() < .1:
            one(7, node, at[place], at[place] + rnd.randrange(700), device_type="CUDA")
        else:
            end = at[place] + rnd.randrange(10000)
            nest(thread, node, at[place], end, rnd.randrange(1, 12))
            at[place] = end + rnd.randrange(2)
    return made


def as_list(events):
    return [event(name=e.told, thread=e.thread, node_id=e.node_id, start_us=e.start / 1000, end_us=e.end / 1000,
                  is_async=e.is_async, device_type=e.device_type, is_user_annotation=e.is_user_annotation,
                  input_shapes=e.shapes, stack=e.stack, overload_name=e.overload, scope=e.scope, flops=e.flops,
                  cpu_memory_usage=e.memory, device_memory_usage=e.device_memory,
                  kernels=[{"name": "k", "duration_us": e.kernels / 1000}] if e.kernels else None) for e in events]


@pytest.mark.parametrize("overlap", [0, .3])
@pytest.mark.parametrize("in_order", [True, False])
def test_random_trees_as_pytorch_builds_them(tmp_path, overlap, in_order):
    """100,000 events: the averages of PyTorch's rules, number by number."""
    gone = 0
    for seed in range(10):
        rnd = random.Random(f"{overlap} {in_order} {seed}")
        events = random_events(rnd, 2500, overlap)
        if in_order:
            events.sort(key=lambda e: (e.start, -e.end))
        else:
            rnd.shuffle(events)
        path = save(tmp_path / "list.json", as_list(events), use_device="cuda")
        kept = build_tree(events)
        gone += len(events) - len(kept)
        for by in ((), ("shapes", "overload", "stack")):
            want, got = key_averages(kept, *by), ours(path, *by)
            if in_order:
                assert list(got) == list(want)
                assert got == want, seed
            else:
                # parents come first in ours, so another event may be the first
                assert {k: v[1] for k, v in got.items()} == {k: v[1] for k, v in want.items()}, seed
    assert gone > 500


@pytest.mark.parametrize("overlap", [0, .3])
def test_sums_stay(tmp_path, overlap):
    """Every grouping has the same counts and self times, these add up to the outermost ranges, and a saved
    report says the same again."""
    events = random_events(random.Random(5), 3000, overlap)
    path = save(tmp_path / "list.json", as_list(events), use_device="cuda", profile_memory=True)
    whole = averages(path)
    tree = whole["call_tree"]
    sums = {f: sum(r[f] for r in tree) for f in ("count", "self_ns")}
    assert sums["self_ns"] == sum(r["total_ns"] for r in tree if r["parent"] is None and r["kind"] == "range")
    outermost = [r for r in tree if r["parent"] is None and r["kind"] == "range"]
    for part in ("cpu_memory", "device_memory"):
        assert sum(r.get("self_" + part, 0) for r in tree) == sum(r.get(part, 0) for r in outermost if "device" not in r)
    assert sum(r.get("self_device_ns", 0) for r in tree) == sum(r.get("device_ns", 0) for r in outermost)
    if not overlap:
        assert whole["lost"]["overlapped"] == 0
        assert all(0 <= r["self_ns"] <= r["total_ns"] for r in tree)
    else:
        assert whole["lost"]["overlapped"] > 0
    for by in ("shape", "thread", "device", "rank", "overload", "stack:1", "shape,thread,rank,overload,stack"):
        rows = averages(path, "--group-by", by)["key_averages"]
        assert sum(r["count"] for r in rows) == sums["count"]
        assert sum(round(r["self_cpu_time_total"] * 1000) for r in rows) == sums["self_ns"]
        assert sum(r["self_cpu_memory_usage"] for r in rows) == sum(r.get("self_cpu_memory", 0) for r in tree)
    text = report(path, "-f", "json")
    (tmp_path / "saved.json").write_text(text)
    assert report(tmp_path / "saved.json", "-f", "json") == text
    # each rank is a process, so their tables are apart if not summed
    for options in (["--sum"], ["-f", "csv"], ["-f", "tree"], ["--sum", "--group-by", "shape,rank"], ["--sum", "--total-average"]):
        assert report(tmp_path / "saved.json", *options) == report(path, *options)
