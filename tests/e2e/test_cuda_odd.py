"""Odd things that programs do with CUDA's driver and with CUPTI (tests/apps/cuda_odd.py), on the simulated GPU: they get
the answers that they get without us, and the report tells of every launch and every block of memory."""
import json
import re
import sys
from collections import Counter

import pytest

from conftest import BUILD, GPUTALLY, ROOT, SAN, clean_env, counts, execute

pytestmark = [pytest.mark.usefixtures("no_leftovers"),
              pytest.mark.skipif(bool(SAN), reason="the simulated GPU's programs are built without sanitizers")]
SIM = BUILD / "sim"
WAYS = {"cupti": {}, "events": {"GTSIM_CUPTI_REFUSE": "999"}}
both_ways = pytest.mark.parametrize("way", WAYS)
QUIET = ("unattributed", "device_records", "unfinished", "unbalanced", "overlapped", "torn", "memory")


@pytest.fixture
def odd(tmp_path):
    """Runs it without and with us; their output is the same. Returns the reports, the largest last."""
    def go(what, way="cupti", driver="", **env):
        if not (SIM / "libcuda.so.1").exists():
            pytest.skip("the simulated GPU is not built: no CUDA 13 headers (scripts/cuda-include)")
        env = clean_env(LD_LIBRARY_PATH=f"{SIM / driver}:{SIM}", GTSIM_KERNELS=str(SIM / "demo/kernels.so"),
                        GTSIM_TRACE="trace", **WAYS[way], **env)
        command = [sys.executable, ROOT / "tests/apps/cuda_odd.py", SIM / "demo/train.cubin", what]
        (tmp_path / "bare").mkdir()
        bare = execute(command, cwd=tmp_path / "bare", env=env)
        done = execute([GPUTALLY, "run", "-q", "-f", "json", "-o", "odd.%n", "--"] + command, cwd=tmp_path, env=env)
        assert (done.returncode, done.stdout) == (bare.returncode, bare.stdout) and bare.returncode == 0, done.stderr
        found = [json.loads(p.read_text()) for p in tmp_path.glob("odd.*.json")]
        return sorted(found, key=lambda r: counts(r).get("cuLaunchKernel", 0))
    return go


def devices(report):
    return {r["key"]: (r["count"], r["self_device_time_total"]) for r in report["key_averages"]
            if r["device_type"] == "CUDA"}


def kernels(report):
    return devices(report).get("update_10us", (0, 0))


def lost(report):
    return {k: report["lost"][k] for k in QUIET if report["lost"][k]}


def memory(report):
    return [report["device_metrics"]["cuda0"][f"Memory {m}"]["count"] for m in ("live (bytes)", "allocations", "frees")]


@both_ways
@pytest.mark.parametrize("what, launches", [
    ("destroyed", 400), ("primary", 100), ("streams", 2000), ("flood", 10000), ("threads", 1000), ("callbacks", 10),
    ("left", 4), ("null", 3)])
def test_every_launch_counts(odd, what, launches, way):
    report, = odd(what, way)
    n, us = kernels(report)
    # a pair of events in a stream that several threads use has in it what others put between them
    assert n == launches and (us == 10 * n or (us > 10 * n and what == "threads" and way == "events"))
    assert lost(report) == {}


@both_ways
@pytest.mark.parametrize("driver", ["11040", "10020"])
def test_old_drivers(odd, way, driver):
    report, = odd("bursts", way, driver)
    assert kernels(report) == (6000, 60000) and lost(report) == {}


@both_ways
def test_little_memory(odd, way):
    """What there was no buffer for, or no place in the report, is told."""
    report, = odd("bursts", way, GPUTALLY_MEMORY="1M")
    n, us = kernels(report)
    assert n + report["lost"]["device_records"] + report["lost"]["memory"] == 6000 and us == 10 * n


@both_ways
def test_children_of_a_fork(odd, way):
    """What the parent launched is not theirs; a buffer that CUPTI still has is still there."""
    *children, parent = odd("forked", way)
    assert len(children) == 5 and kernels(parent) == (15, 150) and lost(parent) == {}
    for child in children:
        assert devices(child) == {} and lost(child) == {}


@both_ways
def test_captures_of_other_streams(odd, way):
    """Only what is done in the captured stream becomes part of a graph, and a spoiled capture is over some time."""
    report, = odd("capture", way)
    assert memory(report) == [4000, 5, 4] and lost(report) == {}
    assert counts(report)["cuMemAllocAsync"] == 4
    whole = sum(n for n, _ in devices(report).values())
    assert whole == (14 if way == "cupti" else 10)  # a graph of three kernels, twice


@both_ways
def test_memory_in_odd_ways(odd, way):
    report, = odd("freed", way)
    assert memory(report) == [4000, 10, 9] and lost(report) == {}
    assert sum(r.get("driver_memory", 0) for r in report["call_tree"] if r["parent"] is None) == 4000


@both_ways
def test_the_program_says_when(odd, way):
    report, = odd("profiler", way, GPUTALLY_WINDOW="paused")
    assert kernels(report) == (4, 40) and lost(report) == {}


def test_events_are_given_back(odd, tmp_path):
    """However many launches wait; and who has not ended is not asked for again and again."""
    report, = odd("bursts", "events", GTSIM_POLL_NS="0")
    assert kernels(report) == (6000, 60000)
    calls = Counter((tmp_path / "trace").read_text().splitlines())
    assert calls["call cuEventCreate 0"] - calls["call cuEventDestroy_v2 0"] <= 256
    assert calls["call cuEventQuery 600"] < 10 * 6000


@pytest.mark.parametrize("failure, untimed", [("cuEventRecord:3=400", 1), ("cuEventRecord:4=400", 1),
                                              ("cuEventCreate:*=2", 6000), ("cuEventQuery:*=719", 6000)])
def test_launches_that_could_not_be_timed(odd, failure, untimed):
    report, = odd("bursts", "events", GTSIM_FAIL=failure)
    assert kernels(report)[0] == 6000 - untimed and lost(report) == ({"device_records": untimed})


def test_no_device(odd):
    for report in odd("nothing", GTSIM_DEVICES="0"):
        assert devices(report) == {} and lost(report) == {}


def test_a_clock_from_before_the_driver(odd):
    """The clock's unit is a third of a nanosecond; the time is a simulated one on a real clock."""
    report, = odd("own_before", GTSIM_CLOCK="wall", GPUTALLY_SOURCES="cuda")
    n, us = kernels(report)
    assert n == 5 and us < 100  # 50 in its own unit


@pytest.mark.parametrize("what, launches, way", [
    ("own_again", 25, "cupti"), ("own_inside", 1500, "cupti"), ("own_serial", 7, "cupti"), ("own_child", 5, "cupti"),
    ("own_flush", 1000, "cupti"), ("own_flush", 1000, "events")])
def test_the_program_uses_cupti(odd, what, launches, way):
    report = odd(what, way)[-1]
    assert kernels(report) == (launches, 10 * launches) and lost(report) == {}


def test_cupti_ends_while_another_thread_launches(odd):
    """The program asks for dropped records in its callback: it must not wait for who ends CUPTI, who waits for it."""
    report = odd("own_ends")[-1]
    assert kernels(report)[0] > 0


def test_program_is_complete():
    """Every function of the program is called by a test here."""
    text = (ROOT / "tests/apps/cuda_odd.py").read_text()
    mine = (ROOT / "tests/e2e/test_cuda_odd.py").read_text()
    for name in re.findall(r"(?m)^def (\w+)\(\)", text):
        assert f'"{name}"' in mine or name in ("main", "forever", "many"), name
