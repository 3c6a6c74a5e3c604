"""Coverage, and what we cost: estimated by whoever makes the report."""
import json
import shutil
from pathlib import Path

import pytest

from conftest import APPS, BUILD, GPUTALLY, SAN, SHM, counts, execute, load_report, preload, run, tool

APP = APPS / "win_app"
pytestmark = pytest.mark.skipif(bool(SAN), reason="not measured with a sanitizer")


def check(report, known=True):
    for o, process, coverage in zip(report["overhead"], report["processes"], report["coverage"]):
        assert o["process"] == process["id"]
        assert o["call_ns"] == process["call_ns"] and (o["call_ns"] > 0) == known
        assert o["ns"] == pytest.approx(o["calls"] * o["call_ns"])
        inside = sum(t["inside_ns"] for t in coverage["threads"])
        assert o["share"] == pytest.approx(o["ns"] / inside if inside else 0)
        for t in coverage["threads"]:
            assert t["outside_ns"] == max(0, coverage["recorded_ns"] - t["inside_ns"])
        assert 0 < coverage["recorded_ns"] <= coverage["wall_ns"]


def test_every_report_has_it(tmp_path):
    assert run(APP, "nest", "2", options=["-f", "json"], cwd=tmp_path).returncode == 0
    report = load_report(tmp_path)
    check(report)
    assert report["overhead"][0]["calls"] == sum(counts(report).values()) == 100
    # saved and read again it is the same: not measured anew
    file = next(tmp_path.glob("*.json"))
    again = json.loads(tool("report", "-f", "json", file).stdout)
    assert again["overhead"] == report["overhead"] and again["coverage"] == report["coverage"]


def test_measuring_leaves_no_session(tmp_path):
    """Where /dev/shm and /tmp would take one."""
    def left(p):
        try:
            return b"calibration" in p.read_bytes()
        except OSError:
            return False  # somebody else's, gone meanwhile
    def sessions():
        return {p for folder in (SHM, Path("/tmp")) for p in folder.glob("gputally-*.session")}
    before = sessions()
    assert run(APP, "nest", "1", options=["-f", "json"], cwd=tmp_path).returncode == 0
    assert load_report(tmp_path)["overhead"][0]["call_ns"] > 0
    assert not [p for p in sessions() - before if left(p)]


def test_calls_that_were_left_out_cost_too(tmp_path):
    done = execute([APP, "nest", "1"], cwd=tmp_path, env=preload(GPUTALLY_EXCLUDE="op", GPUTALLY_FORMAT="json"))
    assert done.returncode == 0
    report = load_report(tmp_path)
    check(report)
    assert report["overhead"][0]["calls"] == 50


def test_told_only_where_it_matters(tmp_path):
    done = run(APP, "nest", "1", cwd=tmp_path)
    assert "of this time is gputally's own (50 calls of some " in done.stderr
    done = run(APP, "sleep", "50", cwd=tmp_path)
    assert "# of Calls" in done.stderr and "gputally's own" not in done.stderr


def test_without_the_library_it_is_not_known(tmp_path):
    execute([APP, "nest", "1"], cwd=tmp_path, env=preload(GPUTALLY_FORMAT="json"))
    alone = tmp_path / "alone"
    alone.mkdir()
    shutil.copy(GPUTALLY, alone)
    assert (BUILD / "libgputally.so").exists() and not (alone / "libgputally.so").exists()
    saved = next(tmp_path.glob("*.json"))
    old = json.loads(saved.read_text())
    del old["processes"][0]["call_ns"], old["processes"][0]["recorded_ns"]
    saved.write_text(json.dumps(old))
    done = execute([alone / "gputally", "report", "-f", "json", saved], cwd=tmp_path)
    report = json.loads(done.stdout)
    check(report, known=False)
    assert report["coverage"][0]["recorded_ns"] == report["coverage"][0]["wall_ns"]
