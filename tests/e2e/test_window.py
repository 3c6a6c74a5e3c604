"""GPUTALLY_WINDOW in real programs: tests/apps/win_app.c."""
import signal

import pytest

from conftest import APPS, counts, execute, load_report, preload, reports, rows, run, tree

APP = APPS / "win_app"
STEP = {("step",): 1, ("step", "layer"): 1, ("step", "layer", "op"): 2, ("step", "op"): 1}


def steps(n):
    return {at: n * calls for at, calls in STEP.items()}


def sums_hold(report):
    for row in report["call_tree"]:
        below = sum(r["total_ns"] for r in report["call_tree"] if r["parent"] == row["id"])
        assert row["kind"] != "range" or row["total_ns"] == row["self_ns"] + below, row["key"]


@pytest.mark.san
def test_exactly_three_steps(tmp_path):
    done = run(APP, "steps", "10", options=["--window", "range=step,skip=2,count=3", "-f", "json"], cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "done\n")
    report = load_report(tmp_path)
    assert tree(report) == steps(3)
    assert report["lost"]["cut"] == 0 and report["lost"]["silent"] == 7 * 5 + 10 * 2
    inside = rows(report)["step"]["cpu_time_total"] * 1000
    on = report["coverage"][0]
    assert on["recorded_ns"] >= inside and on["recorded_ns"] < on["wall_ns"]
    sums_hold(report)


@pytest.mark.parametrize("value, want", [("range=step", 10), ("range=s*,skip=8", 2), ("range=step,count=1", 1)])
def test_other_ranges(tmp_path, value, want):
    done = execute([APP, "steps", "10"], cwd=tmp_path, env=preload(GPUTALLY_WINDOW=value, GPUTALLY_FORMAT="json"))
    assert done.returncode == 0
    assert tree(load_report(tmp_path)) == steps(want)


SOURCES = [
    ("nvtx_basic", "range=outer,skip=1,count=1", 0,
     {("outer",): 1, ("outer", "inner"): 10, ("outer", "inner", "leaf"): 10}),
    # each ends while another domain's is open on top of it, which the window cuts
    ("nvtx_basic", "range=alpha:work,skip=2,count=3", 3, {("work",): 3, ("work", "work"): 3}),
    ("itt_basic", "range=alpha:outer,skip=1,count=1", 0,
     {("outer",): 1, ("outer", "inner"): 10, ("outer", "inner", "leaf"): 10}),
    ("roctx_basic", "range=outer,skip=1,count=1", 0, {("outer",): 1, ("outer", "inner"): 4}),
    # the section is stopped when the step is over
    ("kokkos_basic", "range=step,skip=1,count=1", 1,
     {("step",): 1, ("step", "solve"): 1, ("step", "solve", "axpy"): 1, ("step", "converged", "<mark>"): 1,
      ("assembly", "<async>"): 1}),
    ("kokkos_basic", "range=axpy,skip=2,count=3", 0, {("axpy",): 3}),
    ("kokkos_real", "range=step,skip=1,count=1", 0,
     {("step",): 1, ("step", "fill"): 1, ("step", "sum"): 1, ("step", "scan"): 1, ("step", "copy"): 1,
      ("step", "copy", "deep_copy Host:a <- Host:b"): 1, ("step", "done", "<mark>"): 1, ("section", "<async>"): 1}),
]


@pytest.mark.parametrize("name, value, cut, want", SOURCES, ids=lambda v: v if isinstance(v, str) else "")
def test_steps_of_every_source(app, tmp_path, name, value, cut, want):
    done = run(app(name), options=["--window", value, "-f", "json"], cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    report = load_report(tmp_path)
    # a real Kokkos adds fences of its own
    assert {at: n for at, n in tree(report).items() if "fence" not in at[-1].lower()} == want
    assert report["lost"]["cut"] == cut
    sums_hold(report)


@pytest.mark.san
def test_fork_inside(tmp_path):
    done = run(APP, "fork", "4", options=["--window", "range=step,skip=1,count=2", "-f", "json"], cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "done\n")
    parent, *children = reports(tmp_path)
    assert tree(parent) == {("step",): 2, ("step", "op"): 2}
    # of the four children two were born in the window, and theirs shuts with the step
    assert len(children) == 2
    for child in children:
        assert tree(child) == {("step",): 0, ("step", "child"): 1, ("step", "child", "op"): 1}
        assert child["lost"]["inherited"] == 1 and child["lost"]["unbalanced"] == 0


@pytest.mark.parametrize("skip, n, want", [(1, 1, None), (0, 2, 2)])
def test_kill_inside(tmp_path, skip, n, want):
    done = run(APP, "kill", str(n), options=["--window", f"range=step,skip={skip},count=3", "-f", "json"], cwd=tmp_path)
    assert done.returncode == -signal.SIGKILL
    report = load_report(tmp_path)
    killed = {("step",): 1, ("step", "layer"): 1, ("step", "layer", "op"): 2}
    whole = steps(want or 0)
    assert tree(report) == {at: whole.get(at, 0) + killed.get(at, 0) for at in STEP if whole.get(at) or at in killed}
    assert [o["key"] for o in report["open"]] == ["step", "layer"]
    sums_hold(report)


def test_kill_after_the_window(tmp_path):
    done = run(APP, "kill", "5", options=["--window", "range=step,count=2", "-f", "json"], cwd=tmp_path)
    assert done.returncode == -signal.SIGKILL
    report = load_report(tmp_path)
    assert tree(report) == steps(2) and report["open"] == []


def test_paused_until_resume(tmp_path):
    done = run(APP, "resume", "3", options=["--window", "paused", "-f", "json"], cwd=tmp_path)
    assert done.returncode == 0
    assert tree(load_report(tmp_path)) == steps(3)


@pytest.mark.san
def test_delay_and_duration(tmp_path):
    done = run(APP, "timed", "600", options=["--window", "delay=0.2,duration=0.2", "-f", "json"], cwd=tmp_path)
    assert done.returncode == 0
    report = load_report(tmp_path)
    # how many ticks fit is the machine's affair; that they are inside is not
    assert set(counts(report)) == {"tick"}
    assert report["coverage"][0]["recorded_ns"] <= 200_000_000
    assert rows(report)["tick"]["cpu_time_total"] <= 200_000
    assert report["lost"]["cut"] <= 1 and report["lost"]["silent"] > 1
    sums_hold(report)


def test_delay_alone(tmp_path):
    done = run(APP, "timed", "300", options=["--window", "delay=0.1", "-f", "json"], cwd=tmp_path)
    assert done.returncode == 0
    report = load_report(tmp_path)
    assert set(counts(report)) == {"tick"} and report["lost"]["cut"] == 0


@pytest.mark.parametrize("end", ["exit", "kill"])
def test_nobody_calls_when_it_shuts(tmp_path, end):
    """The one range is open over the edge, and no call comes before the end."""
    mode = "sleep" if end == "exit" else "sleepkill"
    run(APP, mode, "500", options=["--window", "duration=0.3", "-f", "json"], cwd=tmp_path)
    report = load_report(tmp_path)
    assert counts(report) == {"all": 1}
    assert rows(report)["all"]["cpu_time_total"] <= 300_000
    assert report["lost"]["cut"] == 1 and report["open"] == []
    assert report["coverage"][0]["recorded_ns"] <= 300_000_000


def test_nothing_inside_says_so(tmp_path):
    for done in (run(APP, "steps", "3", options=["--window", "range=stop"], cwd=tmp_path),
                 execute([APP, "steps", "3"], cwd=tmp_path, env=preload(GPUTALLY_WINDOW="range=stop"))):
        assert (done.returncode, done.stdout) == (0, "done\n")
        assert done.stderr == ("gputally: win_app: nothing recorded: all 21 calls were outside of the window "
                               "(GPUTALLY_WINDOW=range=stop)\n")
    assert list(tmp_path.iterdir()) == []
    for more in ({"GPUTALLY_QUIET": "1"}, {"GPUTALLY_LOG": "0"}):
        done = execute([APP, "steps", "3"], cwd=tmp_path, env=preload(GPUTALLY_WINDOW="range=stop", **more))
        assert (done.returncode, done.stderr) == (0, "")


def test_bad_window_is_one_warning(tmp_path):
    done = execute([APP, "steps", "2"], cwd=tmp_path, env=preload(GPUTALLY_WINDOW="range", GPUTALLY_FORMAT="json"))
    assert done.returncode == 0
    assert done.stderr.count("GPUTALLY_WINDOW=range: give all, paused, torch, delay=S") == 1
    assert tree(load_report(tmp_path))[("step",)] == 2
    done = run(APP, "steps", "2", options=["--window", "range"], cwd=tmp_path)
    assert done.returncode == 2 and "--window range: give all" in done.stderr
