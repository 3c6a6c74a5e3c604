"""Where relative outputs go."""
import os
import sys

from conftest import APPS, execute, preload, reports, tool


def test_run_means_where_it_was_started(tmp_path):
    """A child in another folder leaves its report where `run` was typed, and it says so by that name."""
    (tmp_path / "sub").mkdir()
    script = f"cd sub && {APPS}/nvtx_threads 1 5 && cd / && {APPS}/nvtx_threads 1 5"
    done = tool("run", "-o", "out/r%n", "--", "sh", "-c", script, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert sorted(os.listdir(tmp_path / "out")) == ["r0.json", "r1.json"]
    assert os.listdir(tmp_path / "sub") == []
    assert {r["processes"][0]["cwd"] for r in reports(tmp_path / "out")} == {str(tmp_path / "sub"), "/"}
    assert "out/r0.json" in done.stderr and str(tmp_path) not in done.stderr


def test_preload_alone_means_the_program(tmp_path):
    """Without `run` there is only the folder the program was started in."""
    (tmp_path / "sub").mkdir()
    done = execute(["sh", "-c", f"cd sub && {APPS}/nvtx_threads 1 5"], cwd=tmp_path,
                   env=preload(GPUTALLY_OUTPUT="here"))
    assert done.returncode == 0, done.stderr
    assert os.listdir(tmp_path / "sub") == ["here.json"]


def test_a_chain_of_many_execs(tmp_path):
    """Every image of a process that execs itself 70 times has its report; `finish` is given the last."""
    code = ("import nvtx, os, sys\nn = int(sys.argv[1])\nnvtx.push_range('work'); nvtx.pop_range()\n"
            "n and os.execv(sys.executable, [sys.executable, '-c', os.environ['CODE'], str(n - 1)])")
    done = execute([sys.executable, "-c", code, "70"], cwd=tmp_path,
                   env=preload(GPUTALLY_FORMAT="json", CODE=code))
    assert done.returncode == 0, done.stderr
    found = reports(tmp_path)
    assert len(found) == 71
    assert all(r["key_averages"][0]["count"] == 1 for r in found)
    assert sorted(r["processes"][0]["sequence"] for r in found) == list(range(71))
