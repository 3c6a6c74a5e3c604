"""More of the list of public bug reports on the simulated GPU, where no nvcc is needed: 12, 14, 15, 16, 17, 26, 27, 28
and 38, each with times from CUPTI and from pairs of events."""
import json
import os
import signal
import subprocess
import tempfile
from pathlib import Path

import pytest

from conftest import GPUTALLY, SAN, SHM, chain, clean_env, counts, execute, load_report, preload, reports, rows, started, tool
from test_cuda_device import above, check_sums, device_rows
from test_cuda_sim import SIM, both, sim  # noqa: F401 (fixtures)

pytestmark = [pytest.mark.usefixtures("no_leftovers"),
              pytest.mark.skipif(bool(SAN), reason="the simulated GPU's programs are built without sanitizers")]
CLOCKS = pytest.mark.parametrize("clock", ["cupti", "events"])
WAYS = pytest.mark.parametrize("way", ["run", "plain"])
RELU = "relu_5us"


@pytest.fixture
def line(sim):  # noqa: F811
    """(command, environment) of a mode of the client."""
    program = SIM / "apps/ends"
    assert program.exists(), f"{program} is not built: make sim-apps"

    def make(mode, clock, **more):
        env = {**sim, "GTSIM_KERNELS": str(SIM / "demo/kernels.so"), **more}
        if clock == "events":
            env["GTSIM_CUPTI_REFUSE"] = "999"
        return [program, mode, SIM / "demo/train.cubin"], env
    return make


@pytest.fixture
def replay(line, both):  # noqa: F811
    """Bare, under run and preloaded, all with the same output and status: what the two with us left."""
    def go(mode, clock, **more):
        command, env = line(mode, clock, **more)
        return both(*command, env=env)[1:]
    return go


def go(way, command, env, folder):
    if way == "run":
        return execute([GPUTALLY, "run", "--", *command], cwd=folder, env=clean_env(**env))
    return execute(command, cwd=folder, env=preload(**env))


def kernels(report):
    """{keys above the kernel, outermost first, without the call itself: launches}"""
    found = {}
    for r in device_rows(report):
        if r["key"] == RELU:
            at = tuple(reversed([k for k in above(report, r) if not k.startswith("cu")]))
            found[at] = found.get(at, 0) + r["count"]
    return found


@CLOCKS
def test_14_a_worker_launches_in_mains_range(replay, clock):
    """A launch belongs to the ranges of its own thread: outside of them it is below its call alone, and seen."""
    for done in replay("worker", clock):
        report = load_report(done.folder)
        check_sums(report)
        assert kernels(report) == {(): 3, ("worker",): 2, ("main holds",): 1}
        held = rows(report)["main holds"]
        assert (held["device_time_total"], held["self_device_time_total"]) == (5, 0)
        # what no range holds is told as time of its own
        bare = [r for r in report["call_tree"] if r["key"] == "cuLaunchKernel" and r["parent"] is None]
        assert [(r["count"], r["device_ns"]) for r in bare] == [(3, 15000)]


@CLOCKS
def test_15_a_captured_graph_launched_ten_times(replay, clock):
    """CUPTI tells of each kernel, below the launch of the graph and not below the capture; events of the graphs."""
    for done in replay("graph", clock):
        report = load_report(done.folder)
        check_sums(report)
        assert counts(report)["cuGraphLaunch"] == 10 and counts(report)["cuLaunchKernel"] == 3
        if clock == "cupti":
            assert kernels(report) == {("replay",): 30}
        else:
            assert kernels(report) == {} and counts(report)["(graph)"] == 10
        got = rows(report)
        assert (got["replay"]["device_time_total"], got["capture"]["device_time_total"]) == (150, 0)
        assert {above(report, r)[0] for r in device_rows(report)} == {"cuGraphLaunch"}


@CLOCKS
def test_12_ranges_across_threads_and_launches(replay, clock):
    """Who began and ended where he should not is told; a start/end range is nobody's parent."""
    for done in replay("cross", clock):
        report = load_report(done.folder)
        check_sums(report)
        got = rows(report)
        assert {k: got[k]["count"] for k in ("around", "ended elsewhere", "overlaps", "begun elsewhere")} == \
            {"around": 1, "ended elsewhere": 2, "overlaps": 1, "begun elsewhere": 1}
        for key in ("ended elsewhere", "overlaps", "begun elsewhere"):
            assert got[key]["is_async"] and got[key]["self_cpu_time_total"] == 0 < got[key]["cpu_time_total"]
        assert kernels(report) == {("around",): 1, (): 3}
        assert report["lost"]["unbalanced"] == 1 and report["open"] == []


@CLOCKS
def test_28_two_thousand_threads_that_launch(replay, clock):
    for done in replay("threads", clock):
        report = load_report(done.folder)
        check_sums(report)
        assert kernels(report) == {("never closed",): 2000}
        assert counts(report)["cuLaunchKernel"] == counts(report)["never closed"] == 2000
        assert report["lost"]["left_open"] == 2000 and report["open"] == []
        assert len(report["processes"][0]["threads"]) <= 305  # memory follows the most at once
        assert not report["processes"][0]["memory_full"]


@WAYS
@CLOCKS
def test_16_fork_while_threads_launch(line, tmp_path, way, clock):
    """Each child that did something has its report, whichever way it ends; the parent's has all launches, none of theirs."""
    command, env = line("fork", clock, GPUTALLY_FORMAT="json")
    done = go(way, command, env, tmp_path)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    launched = int(next(x for x in done.stderr.splitlines() if x.startswith("launched")).split()[1])
    parent, = [r for r in reports(tmp_path) if "child" not in counts(r)]
    children = [r for r in reports(tmp_path) if "child" in counts(r)]
    check_sums(parent)
    assert kernels(parent) == {("step",): launched} and counts(parent)["cuLaunchKernel"] == launched
    assert [counts(r) for r in children] == [{"child": 1}] * 20
    assert all(r["lost"]["unfinished"] == 0 for r in children)


@WAYS
@CLOCKS
def test_17_a_child_has_none_of_its_parents_launches(line, tmp_path, way, clock):
    command, env = line("forked", clock, GPUTALLY_FORMAT="json")
    done = go(way, command, env, tmp_path)
    assert done.returncode == 0, done.stderr
    parent, = [r for r in reports(tmp_path) if "child" not in counts(r)]
    child, = [r for r in reports(tmp_path) if "child" in counts(r)]
    check_sums(parent)
    assert kernels(parent) == {(): 8} and counts(parent)["cuLaunchKernel"] == 8
    assert device_rows(child) == [] and child["lost"]["device_records"] == child["lost"]["unfinished"] == 0
    assert counts(child) == {"child": 1, "cuCtxSynchronize": 1}


@WAYS
@CLOCKS
def test_27_a_handler_exits_inside_the_driver(line, tmp_path, way, clock):
    """The thread may hold locks of the driver, of CUPTI or ours, which it will never give back: nothing at the end may
    wait for them. What the launches that were under way did is told as unfinished."""
    command, env = line("handler", clock, GPUTALLY_FORMAT="json")
    for i in range(40):
        folder = tmp_path / str(i)
        folder.mkdir()
        done = go(way, command, env, folder)
        assert (done.returncode, done.stdout) == (7, ""), done.stderr
        for report in reports(folder):
            assert report["processes"][0]["ended"] == "exit"
            seen = sum(kernels(report).values()) + report["lost"]["unfinished"] + report["lost"]["device_records"]
            launched = counts(report).get("cuLaunchKernel", 0)
            assert launched - 1 <= seen <= launched + 1


@CLOCKS
def test_26_killed_while_it_launches(line, tmp_path, clock):
    """Under run and without it. A record that had not come is told."""
    command, env = line("forever", clock, GPUTALLY_FORMAT="json")
    with tempfile.TemporaryDirectory(prefix="cases-", dir=SHM) as sessions:
        for way in ("run", "plain"):
            folder = tmp_path / way
            folder.mkdir()
            full = preload(**env, GPUTALLY_SESSION_DIR=sessions) if way == "plain" else clean_env(**env)
            words = ([str(GPUTALLY), "run", "--", "sh", "-c", 'echo $$; exec "$@"', "sh"] if way == "run" else
                     ["sh", "-c", 'echo $$; exec "$@"', "sh"]) + [str(c) for c in command]
            p = subprocess.Popen(words, cwd=folder, env=full, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            started.add(p.pid)
            pid = int(p.stdout.readline())
            started.add(pid)
            assert p.stdout.readline() == "began\n"
            os.kill(pid, signal.SIGKILL)
            _, err = p.communicate(timeout=60)
            assert p.returncode == -signal.SIGKILL, err
            if way == "plain":
                assert not list(folder.glob("*.json"))
                assert tool("recover", sessions, cwd=folder).returncode == 0
            report = load_report(folder)
            assert report["processes"][0]["ended"] == "killed"
            assert "open" in [r["key"] for r in report["open"]]
            launched = counts(report)["cuLaunchKernel"]
            seen = sum(kernels(report).values()) + report["lost"]["unfinished"] + report["lost"]["device_records"]
            assert launched >= 8 and launched - 1 <= seen <= launched + 1
            assert chain(report, next(r for r in report["call_tree"] if r["key"] == "cuLaunchKernel"))[0] == "open"
        assert list(Path(sessions).iterdir()) == []


@CLOCKS
def test_38_what_the_driver_refuses(replay, clock):
    """`both` compares each result; a call that failed moved nothing and gave no memory."""
    for done in replay("nulls", clock):
        report = load_report(done.folder)
        check_sums(report)
        got = rows(report)
        assert got["cuMemAlloc"]["count"] == 3 and got["cuMemAlloc"]["failed"] == 2
        assert got["cuLaunchKernel"]["failed"] == got["cuLaunchKernel"]["count"] == 3
        assert got["cuMemcpyHtoD"]["bytes"] == 0 and got["cuMemcpyHtoD"]["failed"] == 1 and kernels(report) == {}


@pytest.mark.parametrize("what, text", [
    ("unattributed", "activities of devices belong to no known launch (unattributed)"),
    ("device_records", "records of devices' activities were lost"),
    ("unfinished", "launches without a time: the process ended before their ends were seen (unfinished)")])
def test_14_what_devices_did_unseen_is_in_the_table(line, tmp_path, what, text):
    """Each table says so of each kind, and nothing where there is none."""
    command, env = line("worker", "cupti", GPUTALLY_OUTPUT="x", GPUTALLY_FORMAT="json")
    go("run", command, env, tmp_path)
    report = load_report(tmp_path / "x.json")
    assert text not in tool("report", "x.json", cwd=tmp_path).stdout
    for lost in (report["lost"], *(p["lost"] for p in report["processes"] if "lost" in p)):
        lost[what] = 12
    (tmp_path / "x.json").write_text(json.dumps(report))
    assert f"\n12 {text}\n" in tool("report", "x.json", cwd=tmp_path).stdout
