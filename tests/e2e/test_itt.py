"""ITT: programs that call it, in all its forms, and ittapi from PyPI: exact reports, and nothing changed
for the program."""
import json
import signal
import sys

import pytest

from conftest import (LIBRARY, Expected, chain, clean_env, counts, execute, load_report, masked, preload,
                      reports, rows, run, tree)

pytestmark = [pytest.mark.san, pytest.mark.usefixtures("no_leftovers")]

PROGRAMS = ["itt_basic", "itt_bad", "itt_threads", "itt_library"]


@pytest.mark.parametrize("name", PROGRAMS)
def test_exact_and_the_same_both_ways(name, app, both):
    bare, under_run, plain = both(app(name), "--expect", env={"GPUTALLY_SOURCES": "all"})
    assert bare.returncode == 0, bare.stdout + bare.stderr
    assert bare.stdout.endswith("done\n") and "\na " not in bare.stdout
    expected = Expected(bare.stdout)
    assert expected.counts
    one, two = load_report(under_run.folder), load_report(plain.folder)
    for report in (one, two):
        expected.check(report)
        assert report["processes"][0]["ended"] == "exit"
        assert report["open"] == []
    if name != "itt_threads":  # which thread starts first is chance
        assert masked(one) == masked(two)


def test_nesting_of_itt_basic(app, tmp_path):
    assert run(app("itt_basic"), cwd=tmp_path).returncode == 0
    report = load_report(tmp_path)
    # a sanitizer has its own name for atoi
    t = {tuple(k.replace("__interceptor_", "") for k in at): n for at, n in tree(report).items()
         if n and "+0x" not in at[-1]}
    assert t == {
        ("outer",): 4, ("outer", "inner"): 30, ("outer", "inner", "leaf"): 30,
        # alpha's ends while beta's inside is open
        ("inner",): 5, ("inner", "above"): 5,
        ("early name",): 4, ("atoi",): 2, ("running",): 3,
        ("overlapped", "<async>"): 8, ("phase", "<async>"): 1, ("frame", "<async>"): 8,
        ("event", "<async>"): 6, ("never ends", "<async>"): 5,
        ("group", "<mark>"): 1, ("marker", "<mark>"): 3, ("tick", "<mark>"): 3,
        ("queue", "<counter>"): 6, ("load", "<counter>"): 1, ("v3", "<counter>"): 1,
        ("early", "<counter>"): 2, ("by name", "<counter>"): 4, ("bytes", "<counter>"): 2,
    }
    assert report["processes"][0]["threads"][0]["name"] == "the main one"
    for row in report["call_tree"]:
        assert row["source"] == "itt" and row.get("scope") == 7
        if row["kind"] == "async":
            assert row["self_ns"] == 0
        if row["key"] == "never ends":  # four instants, and one that has an end
            assert row["min_ns"] == 0
    # paused: three tasks and an overlapped one
    assert report["lost"]["silent"] == 4


def test_frames_have_the_time_they_were_given(app, tmp_path):
    """frame_submit with times of get_timestamp: one of 1,000 ticks, one until now"""
    assert run(app("itt_basic"), cwd=tmp_path).returncode == 0
    frame = rows(load_report(tmp_path))["beta:frame"]
    assert frame["count"] == 2 and 0 < frame["cpu_time_total"]


def test_threads_and_who_ends_a_task(app, tmp_path):
    assert run(app("itt_threads"), cwd=tmp_path).returncode == 0
    report = load_report(tmp_path)
    t = tree(report)
    assert t == {("worker",): 4, ("worker", "step"): 4000, ("worker", "step", "inner"): 4000,
                 ("handed on", "<async>"): 4000}
    assert not any(v for k, v in report["lost"].items() if k != "silent")


def test_fork(app, both):
    _, under_run, plain = both(app("itt_threads"), "fork")
    for done in (under_run, plain):
        child, parent = sorted(reports(done.folder), key=lambda r: "one:child" not in counts(r))
        assert counts(child) == {"one:child": 5}
        assert tree(child)["around", "child"] == 5
        assert child["lost"]["inherited"] == 1
        # the child did not end the parent's overlapped task
        assert counts(parent) == {"one:worker": 4, "two:handed on": 4000, "two:step": 4000, "one:inner": 4000,
                                  "one:around": 1, "two:parent's": 1}
        assert parent["open"] == [] and parent["lost"]["unbalanced"] == 0


def test_killed_with_everything_open(app, tmp_path):
    done = run(app("itt_threads"), "kill", cwd=tmp_path)
    assert done.returncode == -signal.SIGKILL
    report = load_report(tmp_path)
    assert report["processes"][0]["ended"] == "killed"
    assert counts(report) == {"one:worker": 4, "two:handed on": 4000, "two:step": 4000, "one:inner": 4000,
                              "one:open": 1, "two:open": 1, "one:open region": 1}
    assert sorted(o["key"] for o in report["open"]) == ["open", "open", "open region"]


def test_thousands_of_everything(app, tmp_path):
    """More domains, strings, ids and counters than there is room for: names fold, counts do not."""
    done = run(app("itt_bad"), "many", "--expect", cwd=tmp_path)
    assert done.returncode == 0
    few = Expected(done.stdout).counts
    report = load_report(tmp_path)
    seen = {k: n for k, n in counts(report).items() if k not in few}

    def together(word):
        return sum(n for k, n in seen.items() if word in k)

    assert together(" step ") + seen.get("good:(other)", 0) == 70000
    assert seen.get("good:(other)", 0) == 0
    assert together("domain ") == 3000
    assert {k for k in seen if k.startswith("domain ")} == {f"domain {i}:in many" for i in range(3000)}
    assert seen["good:in many"] == 5000
    assert together("counter ") + together("mark ") + seen["(other)"] == 12000
    # what is no template of many kept its name
    assert all(seen[f"mark {i}"] == seen[f"counter {i}"] == 1 for i in range(1000))
    assert {k: n for k, n in counts(report).items() if k in few} == few
    assert report["open"] == []


def test_libraries_are_not_the_user(app, tmp_path):
    assert run(app("itt_library"), options=["--sources=all"], cwd=tmp_path).returncode == 0
    report = load_report(tmp_path)
    got = {(r["source"], r["domain"][:7], r["key"]): (chain(report, r)[0], r.get("scope", 0)) for r in report["call_tree"]}
    assert got == {
        ("itt", "user", "step"): ("step", 7), ("onednn", "dnnl::p", "convolution"): ("step", 0),
        ("itt", "main$om", "frame"): ("frame", 0), ("itt", "PyTorch", "aten::mm"): ("aten::mm", 0),
        ("itt", "PyTorch", "AddmmBackward0"): ("AddmmBackward0", 0),
        ("itt", "PyTorch", "my own range"): ("my own range", 7),
    }


@pytest.mark.parametrize("sources, has", [
    ("itt", {"user", "main$om", "PyTorch"}), ("onednn", {"dnnl::p"}), ("-onednn", {"user", "main$om", "PyTorch"}),
    ("-nvtx", {"user", "main$om", "PyTorch"}), ("all", {"user", "main$om", "PyTorch", "dnnl::p"}),
    ("all,-itt", {"dnnl::p"}), ("-itt", set()), ("nvtx", set())])
def test_each_source_is_switched_by_its_name(sources, has, app, tmp_path):
    path = app("itt_library")
    done = run(path, "who", options=[f"--sources={sources}"], cwd=tmp_path)
    found = reports(tmp_path)
    if has:
        assert done.stdout == f"collector: {LIBRARY}\ndone\n"
        assert {r["domain"][:7] for r in found[0]["call_tree"]} == has
    else:  # as if we were not there
        assert (done.stdout, done.stderr, found) == ("collector: none\ndone\n", "", [])


def test_its_resume_opens_a_window_that_waits_for_one(app, tmp_path):
    """The first resume comes late and has no pause: only what comes after it is recorded."""
    assert run(app("itt_basic"), options=["--window=paused"], cwd=tmp_path).returncode == 0
    assert counts(load_report(tmp_path)) == {"alpha:running": 3}


def test_a_source_that_is_off_is_not_paused_by(app, tmp_path):
    """--sources=-itt: the program's pause and detach concern nobody."""
    done = run(app("itt_basic"), options=["--sources=-itt"], cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("way", ["run", "plain"])
def test_the_users_own_collector_is_left_alone(way, app, tmp_path):
    path = app("itt_library")
    own = str(path.parent / "itt_collector.so")
    bare = execute([path, "who"], env=clean_env(INTEL_LIBITTNOTIFY64=own))
    assert bare.stdout == (f"collector: {own}\nin the environment: INTEL_LIBITTNOTIFY64={own}\ndone\n"
                           "their collector saw 10 tasks\n")
    if way == "run":
        done = run(path, "who", cwd=tmp_path, env=clean_env(INTEL_LIBITTNOTIFY64=own))
    else:
        done = execute([path, "who"], cwd=tmp_path, env=preload(INTEL_LIBITTNOTIFY64=own))
    assert (done.returncode, done.stdout, reports(tmp_path)) == (0, bare.stdout, [])


# ---- ittapi from PyPI: Intel's own code on the program's side ----

IN_PYTHON = """
import ittapi, threading
ittapi.thread_set_name("python's")
d = ittapi.domain("my.domain")

@ittapi.task("decorated", domain=d)
def decorated(n):
    return n * n

def work():
    for i in range(50):
        with ittapi.task("outer", domain=d):
            with ittapi.task("inner", domain="other"):
                decorated(i)
threads = [threading.Thread(target=work) for _ in range(2)]
for t in threads: t.start()
for t in threads: t.join()
tasks = [ittapi.overlapped_task("over", domain=d) for _ in range(4)]
for t in tasks: t.begin()
for t in tasks: t.end()
e = ittapi.event("event")
for i in range(3):
    e.begin()
    e.end()
ittapi.pause()
with ittapi.task("paused", domain=d): pass
ittapi.resume()
with ittapi.task("Größe €", domain=d): pass
for i in range(2000):
    with ittapi.task("step %d" % i, domain=d): pass
print("done")
"""


@pytest.fixture
def python_ittapi():
    try:
        import ittapi  # noqa: F401
    except ImportError:
        pytest.skip("the ittapi package is not installed; run scripts/bootstrap")
    return sys.executable


def test_ittapi(python_ittapi, both):
    bare, under_run, plain = both(python_ittapi, "-c", IN_PYTHON)
    assert bare.stdout == "done\n" and bare.returncode == 0
    for done in (under_run, plain):
        report = load_report(done.folder)
        t = {at: n for at, n in tree(report).items() if n and not at[0].startswith("step ")}
        assert t == {("outer",): 100, ("outer", "inner"): 100, ("outer", "inner", "decorated"): 100,
                     ("over", "<async>"): 4, ("event", "<async>"): 3, ("Größe €",): 1}
        steps = {at: n for at, n in tree(report).items() if at[0].startswith("step ")}
        assert sum(steps.values()) == 2000 and steps["step *",] == 2000 - 1024
        assert {r["domain"] for r in report["call_tree"]} == {"my.domain", "other", ""}
        assert {k: v for k, v in report["lost"].items() if v} == {"silent": 1, "folded": 2000 - 1024}
        assert "python's" in {t["name"] for t in report["processes"][0]["threads"]}
