"""GPUTALLY_INCLUDE and GPUTALLY_EXCLUDE in real programs: tests/apps/win_app.c."""
import pytest

from conftest import APPS, counts, execute, load_report, preload, run, tree

APP = APPS / "win_app"


@pytest.mark.san
def test_exclude_with_nesting_and_threads(tmp_path):
    done = run(APP, "nest", "4", options=["--exclude", "layer*", "-f", "json"], cwd=tmp_path)
    assert done.returncode == 0 and done.stdout == "done\n"
    report = load_report(tmp_path)
    # 4 threads, 10 steps, each step{layer{op, op}, op}
    assert tree(report) == {("step",): 40, ("step", "op"): 120}
    assert report["processes"][0]["excluded"] == 40
    assert sum(report["lost"].values()) == 0
    for row in report["call_tree"]:
        below = sum(r["total_ns"] for r in report["call_tree"] if r["parent"] == row["id"])
        assert row["total_ns"] == row["self_ns"] + below


def test_include(tmp_path):
    done = execute([APP, "nest", "1"], cwd=tmp_path, env=preload(GPUTALLY_INCLUDE="op,nothing", GPUTALLY_FORMAT="json"))
    assert done.returncode == 0
    report = load_report(tmp_path)
    assert tree(report) == {("op",): 30}
    assert report["processes"][0]["excluded"] == 20


def test_hundred_thousand_names(tmp_path):
    done = execute([APP, "names", "100000"], cwd=tmp_path,
                   env=preload(GPUTALLY_EXCLUDE="id ?*", GPUTALLY_FORMAT="json", GPUTALLY_MEMORY="1M"))
    assert done.returncode == 0
    report = load_report(tmp_path)
    assert counts(report) == {"all": 1, "work": 100000}
    assert report["processes"][0]["excluded"] == 100000
    assert not report["processes"][0]["memory_full"] and report["lost"]["folded"] == 0


def test_everything_left_out_leaves_nothing(tmp_path):
    done = execute([APP, "nest", "1"], cwd=tmp_path, env=preload(GPUTALLY_EXCLUDE="*"))
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")
    assert list(tmp_path.iterdir()) == []
