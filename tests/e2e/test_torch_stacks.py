"""PyTorch: the stacks of a script that nobody changed are those that torch.profiler (with_stack, verbose) has for it.

As in test_torch.py torch.profiler runs in one process (tests/apps/torch_stacks.py), the script alone under us in
another. Every operator of ours has a stack, and the same functions, call for call. torch.profiler differs from
itself in two ways, which that file tells apart:

- Backward operators without a forward one (AccumulateGrad) have no stack there. Here they have their own: that of
  the call of backward().
- Of the operators that have the number of a node torch.profiler takes the first, but the last is the one that made
  it: its first TBackward0 comes from where a parameter was made.

Its lines are those of the functions' definitions; ours are those of the calls.
"""
import functools
import json
import re
import shutil
import tempfile
from pathlib import Path

import pytest

from conftest import clean_env, execute, load_report
from torch_env import SCRIPTS, TIMEOUT, env, python, start

pytestmark = pytest.mark.usefixtures("no_leftovers")


@functools.cache
def profiled(*script, version="2.13"):
    """What torch_stacks.py wrote, once a session."""
    folder = tempfile.mkdtemp(prefix="gputally-test-")
    try:
        done = execute([python(version), SCRIPTS / "torch_stacks.py", Path(folder, "golden.json"), *script],
                       cwd=folder, env=clean_env(**env(version)), timeout=TIMEOUT)
        assert done.returncode == 0, done.stderr
        return json.loads(Path(folder, "golden.json").read_text())
    finally:
        shutil.rmtree(folder)


def frames(report, row):
    """Its Python frames, innermost first."""
    return [report["frames"][i] for i in report["stacks"][row["stack"]].get("python", [])] if "stack" in row else []


def from_main(stack):
    """Without what called main()."""
    ends = [i for i, f in enumerate(stack) if f["function"] == "main" and re.search(r"/torch_\w+\.py$", f["file"])]
    return stack[:ends[0] + 1] if ends else []


def recorded(report, files):
    """{(name, scope, functions): calls} of operators in main(). `files` are torch.profiler's names of files, which
    lack the start of the path; functions are without the classes and functions that they are in."""
    @functools.cache
    def short(path):
        return max((f for f in files if path.endswith("/" + f)), key=len, default=path)
    out = {}
    for row in report["call_tree"]:
        stack = from_main(frames(report, row))
        if row["source"] != "torch" or not row["count"] or row["key"] == "[memory]" or not stack:
            continue
        at = row["key"], row.get("scope", 0), tuple((short(f["file"]), f["function"].split(".")[-1]) for f in stack)
        out[at] = out.get(at, 0) + row["count"]
    return out


def as_torch(golden):
    out = {}
    for count, name, scope, *_, expected in golden:
        at = name, scope, tuple(tuple(f) for f in expected)
        out[at] = out.get(at, 0) + count
    return out


def differences(golden, ours):
    return [f"{at}: torch.profiler {golden.get(at)}, gputally {ours.get(at)}"
            for at in sorted({*golden, *ours}) if golden.get(at) != ours.get(at)]


def report_of(tmp_path, *script, version="2.13", **variables):
    done = start(*script, way="run", version=version, folder=tmp_path, **variables)
    assert done.returncode == 0, done.stderr
    assert not [line for line in done.stderr.splitlines() if line.startswith("gputally: ") and "stack" in line]
    found = [load_report(p) for p in sorted(tmp_path.glob("*.json"))]
    pids = {r["processes"][0]["pid"] for r in found}
    parent, = [r for r in found if r["processes"][0]["ppid"] not in pids]
    return parent


def files_of(golden):
    return {f for row in golden for stack in (row[3], row[7]) for f, _ in stack}


def without_stack(report):
    return [r["key"] for r in report["call_tree"] if r["source"] == "torch" and r["count"] and r["key"] != "[memory]"
            and not frames(report, r)]


@pytest.mark.parametrize("script", [
    ["mlp"], ["conv"], ["transformer"], ["lstm"], ["script"], ["function"], ["names"], ["checkpoint"], ["compiled"]],
    ids="-".join)
def test_functions_are_torchs(script, tmp_path):
    golden = profiled(*script)
    report = report_of(tmp_path, *script)
    ours = recorded(report, files_of(golden))
    assert len(ours) > 10
    assert differences(as_torch(golden), ours) == []
    # what torch.profiler itself says is that too, but for what was said above
    for _, name, _, own, torchs, is_backward, first, _ in golden:
        assert torchs == (first or [] if is_backward else own) or (torchs is None and script == ["script"]), name
    assert without_stack(report) == []
    assert not any(n for k, n in report["lost"].items()), report["lost"]


def test_where_torch_profiler_differs(tmp_path):
    """In the reference script: all that is behind the two remarks."""
    golden = profiled("mlp")
    without = {name for _, name, _, _, torchs, *_ in golden if not torchs}
    wrong = {name: n for n, name, _, _, torchs, _, _, expected in golden if torchs and torchs != expected}
    assert without == {"torch::autograd::AccumulateGrad", "aten::detach", "detach"}
    assert wrong == {"TBackward0": 1, "aten::t": 1, "aten::transpose": 1, "aten::as_strided": 1}


MARK = re.compile(r"(\S+::\w+|\w+Backward0)(?: -(\d+))?")


@pytest.mark.parametrize("version", ["2.13", "1.13"])
def test_lines_are_the_calls(version, tmp_path):
    path = SCRIPTS / "torch_lines.py"
    wanted = {}
    for number, line in enumerate(path.read_text().splitlines(), 1):
        for key, above in MARK.findall(line.partition("  # ")[2]):
            wanted.setdefault(key, set()).add(number - int(above or 0))
    assert len(wanted) > 15
    found = {}
    for row in (report := report_of(tmp_path, "lines", version=version))["call_tree"]:
        if row["key"] in wanted:
            lines = [f["line"] for f in frames(report, row) if f["file"] == str(path)]
            found.setdefault(row["key"], set()).update(lines[:1] or [None])
    assert found == wanted


def test_forked_workers(tmp_path):
    """Not compared: torch.profiler's own names of built-in functions can't be decoded at times there."""
    done = start("loader", "fork", way="run", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    found = [load_report(p) for p in tmp_path.glob("*.json")]
    products = [[(frames(report, r)[0]["function"], r["count"]) for r in report["call_tree"] if r["key"] == "aten::mm"]
                for report in found]
    assert sorted(products) == [[], [("Squares.__getitem__", 4)], [("Squares.__getitem__", 4)]]
    assert [without_stack(report) for report in found] == [[], [], []]


def test_threads(tmp_path):
    """torch.profiler sees one of the 51 products."""
    report = report_of(tmp_path, "threads")
    stacks = {}
    for row in report["call_tree"]:
        if row["key"] == "aten::mm":
            at = tuple(f["function"] for f in frames(report, row))
            stacks[at] = stacks.get(at, 0) + row["count"]
    assert stacks == {("main", "<module>"): 1, ("work", "Thread.run", "Thread._bootstrap_inner", "Thread._bootstrap"): 50}


def test_functions_are_those_of_1_13(tmp_path):
    """Its profiler knows microseconds only: some operators of the backward pass are in none of its nodes there, and
    seem to be called by backward() itself."""
    golden = profiled("mlp", version="1.13")
    ours, theirs = recorded(report_of(tmp_path, "mlp", version="1.13"), files_of(golden)), as_torch(golden)
    assert len(ours) > 30 and {*ours} - {*theirs} == set()
    assert {stack[0] for _, _, stack in {*theirs} - {*ours}} <= {("torch/autograd/__init__.py", "backward")}
    calls = [{}, {}]
    for counts, rows in zip(calls, (ours, theirs)):
        for (name, scope, _), n in rows.items():
            counts[name, scope] = counts.get((name, scope), 0) + n
    assert calls[0] == calls[1]
