"""PyTorch 1.13.1, Debian's: the oldest ABI that is tested.

Its profiler knows microseconds only. What nests, and in which operator memory was allocated, it tells from
times, so that two of its runs differ from each other: of the reference script 38 of 59 rows had other memory,
and the sum was not the same. What does hold is how often each name was recorded, and the FLOPs. Memory is
compared with what torch 2.13's profiler says of the same operators.
"""
import pytest

from conftest import load_report, reports
from torch_env import RECORD, differences, profiled, self_and_roots, start, table, views

pytestmark = pytest.mark.usefixtures("no_leftovers")
# {script: {name: its calls that are the only child of one of the same name}}, which PyTorch drops
INSIDE_THEIR_LIKE = {"mlp": {}, "conv": {"aten::div_": 11, "aten::div": 5}, "function": {"aten::sum": 12}}


@pytest.mark.parametrize("script", INSIDE_THEIR_LIKE)
def test_every_operator_is_counted(tmp_path, script):
    printed, golden = profiled(script, version="1.13")
    done = start(script, way="run", version="1.13", folder=tmp_path, **RECORD)
    assert (done.returncode, done.stdout) == (0, printed), done.stderr
    rows = views(next(tmp_path.glob("*.json")))
    ours = {}
    for r in rows["by_key"]:
        ours[r["key"]] = ours.get(r["key"], 0) + r["count"]
    dropped = INSIDE_THEIR_LIKE[script]
    raw = {k: n - dropped.get(k, 0) for k, n in golden["raw"].items()}
    # reports inside of operators are [memory] events in its list too
    assert {**ours, "[memory]": 0} == {**raw, "[memory]": 0}
    report = load_report(tmp_path)
    own, outermost = self_and_roots(report)
    assert own == outermost > 0
    assert not any(report["lost"].values()), report["lost"]
    for view in ("by_key", "by_shape"):
        # Strides and padding are not to be had in 1.13: no FLOPs of conv2d rather than wrong ones.
        assert not any(r["flops"] for r in rows[view] if r["key"] == "aten::conv2d")
        # it has no mark for the user's ranges, which have no FLOPs
        assert differences([r for r in golden[view] if r["flops"] and r["key"] != "aten::conv2d"],
                           [r for r in rows[view] if r["flops"]], ["flops", "scope"]) == [], view


def test_memory_of_operators_is_as_in_2_13(tmp_path):
    _, golden = profiled("mlp")
    start("mlp", way="run", version="1.13", folder=tmp_path, **RECORD)
    fields = ["count", "cpu_memory_usage", "self_cpu_memory_usage"]
    old, new = table(views(next(tmp_path.glob("*.json")))["by_shape"], fields), table(golden["by_shape"], fields)
    same = [at for at in old if at[0].startswith("aten::") and at in new and old[at]["count"] == new[at]["count"]]
    assert {"aten::addmm", "aten::mm", "aten::randn", "aten::cross_entropy_loss"} <= {at[0] for at in same}
    assert [(at, old[at], new[at]) for at in same if old[at] != new[at]] == []


def test_workers_and_threads(tmp_path):
    (tmp_path / "threads").mkdir()
    start("threads", way="run", version="1.13", folder=tmp_path / "threads")
    rows = load_report(tmp_path / "threads")["key_averages"]
    assert [r["count"] for r in rows if r["key"] == "aten::mm"] == [51]
    (tmp_path / "loader").mkdir()
    done = start("loader", "fork", way="plain", version="1.13", folder=tmp_path / "loader")
    assert done.stdout == "total 448.0\n", done.stderr
    found = [r["count"] for report in reports(tmp_path / "loader") for r in report["key_averages"] if r["key"] == "aten::mm"]
    assert found == [4, 4]
