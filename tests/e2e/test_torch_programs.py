"""PyTorch programs behave the same with us in them, and nothing of them is missed: threads, workers,
exceptions and every way out, programs that profile themselves.
"""
import signal

import pytest

from conftest import counts, load_report, reports, rows
from torch_env import RECORD, said, start

pytestmark = pytest.mark.usefixtures("no_leftovers")


def folders(tmp_path, *names):
    for name in names:
        (tmp_path / name).mkdir()
    return [tmp_path / name for name in names]


@pytest.mark.parametrize("script", ["mlp", "odd", "selfprofile"])
def test_output_is_the_same(tmp_path, script):
    """stdout to the byte: results, and what torch.profiler said to a program that uses it itself."""
    bare_in, run_in, plain_in = folders(tmp_path, "bare", "run", "plain")
    bare = start(script, folder=bare_in)
    assert bare.returncode == 0 and bare.stdout
    for way, folder in (("run", run_in), ("plain", plain_in)):
        done = start(script, way=way, folder=folder, **RECORD, GPUTALLY_QUIET="1")
        assert (done.returncode, done.stdout) == (0, bare.stdout), way
        assert said(done.stderr) == said(bare.stderr), way
        assert counts(load_report(folder))


def test_every_thread_is_seen(tmp_path):
    done = start("threads", way="run", folder=tmp_path)
    assert (done.returncode, done.stdout) == (0, "sum 512.0\n")
    report = load_report(tmp_path)
    assert counts(report)["aten::mm"] == 51
    assert sorted(r["count"] for r in report["call_tree"] if r["key"] == "aten::mm") == [1, 50]


@pytest.mark.parametrize("way,method", [("run", "fork"), ("plain", "fork"), ("plain", "spawn")])
def test_workers_have_reports(tmp_path, way, method):
    done = start("loader", method, way=way, folder=tmp_path)
    assert (done.returncode, done.stdout) == (0, "total 448.0\n"), done.stderr
    found = {r["processes"][0]["pid"]: r for r in reports(tmp_path)}
    parent = next(pid for pid, r in found.items() if r["processes"][0]["ppid"] not in found)
    assert "aten::mm" not in counts(found.pop(parent))
    assert [counts(r)["aten::mm"] for r in found.values()] == [4, 4]
    # an eye makes an empty tensor and calls an eye that fills it
    assert [counts(r)["aten::eye"] for r in found.values()] == [8, 8]


WAYS_OUT = {"none": 0, "uncaught": 1, "interrupt": -signal.SIGINT, "system-exit": 3, "os-exit": 4}


@pytest.mark.parametrize("way,out", [("run", out) for out in WAYS_OUT] +
                         # a signal's death is for `recover` where nobody ran us
                         [("plain", out) for out in ("uncaught", "os-exit")])
def test_exceptions_and_ways_out(tmp_path, way, out):
    bare_in, with_us_in = folders(tmp_path, "bare", "us")
    bare = start("raises", out, folder=bare_in)
    assert bare.returncode == WAYS_OUT[out]
    done = start("raises", out, way=way, folder=with_us_in, GPUTALLY_QUIET="1")
    assert (done.returncode, done.stdout) == (bare.returncode, bare.stdout)
    assert said(done.stderr) == said(bare.stderr)
    report = load_report(with_us_in)
    n = counts(report)
    assert n["aten::mm"] == 10 + (out == "uncaught")
    assert (n["tries"], n["outer"], n["inner"], n["last"], n["Bad"], n["BadBackward"]) == (10, 1, 1, 1, 1, 1)
    # os._exit leaves the range open, which is told; every other way closes it
    assert [o["key"] for o in report["open"]] == (["last"] if out == "os-exit" else [])
    assert report["lost"]["unbalanced"] == 0 and report["lost"]["left_open"] == 0


def test_one_that_profiles_itself_is_recorded_too(tmp_path):
    done = start("selfprofile", way="run", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    n = counts(load_report(tmp_path))
    # its schedule records two steps, and the fifth begins when the fourth has ended
    assert (n["work"], n["aten::mm"], n["ProfilerStep*"]) == (7, 7, 5)


def test_source_off_is_silent(tmp_path):
    done = start("mlp", way="run", folder=tmp_path, GPUTALLY_SOURCES="-torch")
    assert (done.returncode, said(done.stderr), list(tmp_path.iterdir())) == (0, "", [])


def test_backward_and_user_scopes(tmp_path):
    start("mlp", way="run", folder=tmp_path)
    found = rows(load_report(tmp_path))
    assert (found["step"]["scope"], found["step"]["is_user_annotation"]) == (7, True)
    assert found["autograd::engine::evaluate_function: AddmmBackward0"]["count"] == 40
