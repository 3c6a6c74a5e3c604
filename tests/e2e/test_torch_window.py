"""Windows and snapshots of PyTorch programs: GPUTALLY_WINDOW=torch against what the program's own torch.profiler saw,
in the same process; a window of three steps; snapshots while a network is trained."""
import json

import pytest

from conftest import counts, load_report, tree
from test_snapshot import only_grow, snapshots
from torch_env import self_and_roots, start

pytestmark = pytest.mark.usefixtures("no_leftovers")
VERSIONS = pytest.mark.parametrize("version", ["2.13", "1.13"])


def profiled(stdout):
    return [json.loads(line) for line in stdout.splitlines()]


def added_up(lines):
    out = {}
    for line in lines:
        for key, n in line.items():
            out[key] = out.get(key, 0) + n
    return out


@VERSIONS
@pytest.mark.parametrize("way", ["run", "plain"])
def test_window_torch_is_what_the_profiler_saw(version, way, tmp_path):
    done = start("window", way=way, version=version, folder=tmp_path, GPUTALLY_WINDOW="torch", GPUTALLY_PROFILE_MEMORY="0")
    assert done.returncode == 0, done.stderr
    saw = profiled(done.stdout)
    assert len(saw) == 5
    # the profiler is not disturbed: it sees the same as without us
    bare = start("window", version=version, folder=tmp_path)
    assert [line["raw"] for line in saw] == [line["raw"] for line in profiled(bare.stdout)]
    if version == "2.13":
        assert done.stdout == bare.stdout
    report = load_report(tmp_path)
    ours = counts(report)
    assert {k for k in ours if k.startswith("step ")} == {f"step {n}" for n in (1, 2, 6, 7, 10, 11, 14, 15, 16)}
    # 1.13 says nothing of a range that is open when it stops; ours ends there
    assert ours["late"] == report["lost"]["cut"] == 1
    want = added_up(line["raw" if version == "1.13" else "kept"] for line in saw)
    if version == "1.13":
        # which calls are the only child of their like it tells from microseconds; one in each step is
        assert want["aten::sum"] == 2 * 9 and "late" not in want
        want |= {"aten::sum": 9, "late": 1}
    assert ours == want
    assert {k: n for k, n in report["lost"].items() if n and k != "silent"} == {"cut": 1}
    own, outermost = self_and_roots(report)
    assert own == outermost > 0
    on = report["coverage"][0]
    assert outermost <= on["recorded_ns"] < on["wall_ns"]


@VERSIONS
def test_exactly_three_steps(version, tmp_path):
    """Each of the 20 steps does the same but the first, which is skipped."""
    found = {}
    for count in (3, 18):
        folder = tmp_path / str(count)
        folder.mkdir()
        done = start("mlp", way="run", version=version, folder=folder, GPUTALLY_WINDOW=f"range=step,skip=2,count={count}")
        assert done.returncode == 0, done.stderr
        report = load_report(folder)
        found[count] = tree(report)
        assert report["lost"]["cut"] == report["lost"]["unbalanced"] == 0 < report["lost"]["silent"]
        own, outermost = self_and_roots(report)
        assert own == outermost == sum(r["total_ns"] for r in report["call_tree"] if r["key"] == "step") > 0
    three = found[3]
    assert {at[0] for at in three} == {"step"}
    assert three["step",] == three["step", "forward"] == three["step", "optimizer"] == 3
    assert sum(n for at, n in three.items() if at[-1] == "aten::addmm") == 3 * 2
    assert {at: 6 * n for at, n in three.items()} == found[18]


@pytest.mark.parametrize("way", ["run", "plain"])
def test_snapshots_while_it_trains(way, tmp_path):
    done = start("mlp", "800", way=way, folder=tmp_path, GPUTALLY_SNAPSHOT="0.15", GPUTALLY_FORMAT="json")
    assert done.returncode == 0 and done.stdout.startswith("loss "), done.stderr
    reports = snapshots(tmp_path)
    only_grow(reports)
    amid = [r for r in reports[:-1] if 0 < counts(r).get("step", 0) < 800]
    assert amid, [counts(r).get("step") for r in reports]
    for report in amid:
        # a step whose end is to come counts with what it has
        steps = counts(report)["step"]
        assert steps - 1 <= counts(report).get("forward", 0) <= steps
        own, outermost = self_and_roots(report)
        assert own == outermost > 0
    assert counts(reports[-1])["step"] == counts(reports[-1])["forward"] == 800
