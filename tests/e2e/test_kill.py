"""SIGKILL at any instant: while the program records, and while its report is made.

The program keeps its own counters in a file: what it has finished must be in the report, what it has not
started must not (DESIGN: each count is n or n+1).
"""
import os
import random
import select
import shutil
import signal
import struct
import time

import pytest

from life import (GPUTALLY, LIBRARY, app, call, clean, environment, finish, report, reports, sessions,  # noqa: F401
                  sole_session, start, strict)

NAMES = ["one", "two", "three", "four", "async", "mark"]
AROUND = ["one", "two", "three", "async"]
THREADS = 4
KILLS = 150


def truth(path):
    """[{name: (started, finished)}] of each thread."""
    words = struct.unpack(f"{THREADS * len(NAMES) * 2}Q", path.read_bytes())
    pairs = list(zip(words[::2], words[1::2]))
    return [dict(zip(NAMES, pairs[i * len(NAMES):])) for i in range(THREADS)]


def inside(name):
    """What life_kill.c does only while that range is open: the deeper ones, and the marks."""
    if name == "async":
        return NAMES[:4]
    return NAMES[NAMES.index(name) + 1:4] + (["mark"] if name == "one" else [])


def check(r, counters):
    seen = r.by_thread()
    assert r.ended == "killed"
    assert set(r.lost) <= {"torn"}, r.lost
    still_open = {}
    names = {t["id"]: t["name"] for t in r.process["threads"]}
    for o in r.data["open"]:
        key = names[o["thread"]], o["key"]
        still_open[key] = still_open.get(key, 0) + 1
    for i, mine in enumerate(truth(counters)):
        thread = f"worker {i}"
        for name, (started, finished) in mine.items():
            count = seen[thread][name]
            assert finished <= count <= started, (thread, name, finished, count, started)
            # an open range is counted, so it is the one that was started and has not finished
            assert still_open.get((thread, name), 0) <= started - finished, (thread, name)
            # the listed ones are all: what lies around a call in flight was open for sure
            if r.lost == {} and name in AROUND and any(mine[n][0] > mine[n][1] for n in inside(name)):
                assert still_open.get((thread, name), 0) == started - finished, (thread, name)
    assert set(seen) <= {f"worker {i}" for i in range(THREADS)}


def kill_after(p, delay):
    """Kills the program, which says its pid when it is ready; returns that pid."""
    pid = int(p.stdout.readline())
    time.sleep(delay)  # the point in time is what is tested
    os.kill(pid, signal.SIGKILL)
    return pid


def test_killed_under_run(tmp_path):
    rng = random.Random(1)
    for i in range(KILLS):
        early = ["early"] if i % 5 == 4 else []
        counters = tmp_path / f"counters{i}"
        folder = tmp_path / f"run{i}"
        folder.mkdir()
        p = start([GPUTALLY, "run", "--", app("life_kill"), counters, *early], folder, environment())
        pid = kill_after(p, rng.uniform(0, 0.02))
        out, err = p.communicate(timeout=60)
        assert p.returncode == -signal.SIGKILL
        assert out == ""
        found = reports(folder)
        if not found:
            assert early and not any(finished for t in truth(counters) for _, finished in t.values())
            continue
        assert len(found) == 1 and found[0].pid == pid
        assert "Self CPU time total" in err and found[0].path.name in err, err
        check(found[0], counters)
        shutil.rmtree(folder)


def test_killed_and_recovered(tmp_path, sessions):
    rng = random.Random(2)
    env = environment(LIBRARY, SESSION_DIR=sessions)
    for i in range(KILLS):
        early = ["early"] if i % 5 == 4 else []
        counters = tmp_path / f"counters{i}"
        folder = tmp_path / f"run{i}"
        folder.mkdir()
        p = start([app("life_kill"), counters, *early], folder, env)
        pid = kill_after(p, rng.uniform(0, 0.02))
        p.communicate(timeout=60)
        assert p.returncode == -signal.SIGKILL
        done = call([GPUTALLY, "recover", sessions], folder, environment())
        assert done.status == 0, done.err
        found = reports(folder)
        assert list(sessions.iterdir()) == []
        if not found:
            assert early and not any(finished for t in truth(counters) for _, finished in t.values())
            continue
        assert len(found) == 1 and found[0].pid == pid
        assert "Self CPU time total" in done.err and "1 recovered" in done.err
        check(found[0], counters)
        shutil.rmtree(folder)


def big_session(tmp_path, sessions):
    p = start([app("life_kill"), "many"], tmp_path,
              environment(LIBRARY, SESSION_DIR=sessions, FORMAT="json,csv,table"))
    kill_after(p, 0)
    p.communicate(timeout=60)
    return sole_session(sessions)


def test_finish_killed(tmp_path, sessions):
    session = big_session(tmp_path, sessions)
    done = finish(session, tmp_path, "--keep")
    assert done.status == 0, done.err
    whole = {p.suffix: p.read_bytes() for p in tmp_path.iterdir()}
    names = {p.name for p in tmp_path.iterdir()}
    assert set(whole) == {".json", ".csv"}
    assert len(strict(whole[".json"])["call_tree"]) == 40 * 51
    for p in tmp_path.iterdir():
        p.unlink()

    rng = random.Random(3)
    copy = sessions / session.name  # with another number it would be one from before an exec
    session = session.rename(sessions / "kept")
    cut_short = 0
    for _ in range(100):
        shutil.copy(session, copy)
        p = start([GPUTALLY, "finish", copy], tmp_path, environment())
        time.sleep(rng.uniform(0, 0.03))  # the point in time is what is tested
        p.kill()
        p.communicate(timeout=60)
        for path in tmp_path.iterdir():  # what has its name is whole
            if not path.name.endswith(".tmp"):
                assert path.read_bytes() == whole[path.suffix]
        if copy.exists():
            cut_short += 1
            done = finish(copy, tmp_path)
            assert done.status == 0, done.err
        else:
            assert {p.name for p in tmp_path.iterdir()} == names
        assert not copy.exists()
        assert {p.name for p in tmp_path.iterdir()} == names
        for path in tmp_path.iterdir():
            assert path.read_bytes() == whole[path.suffix]
            path.unlink()
    assert 10 < cut_short  # else the points were not where the work is


def test_recover_while_finishing(tmp_path, sessions):
    """Many at once on one session: one makes the report."""
    session = big_session(tmp_path, sessions)
    workers = [start([GPUTALLY, "recover", sessions], tmp_path, environment()) for _ in range(6)]
    for p in workers:
        p.communicate(timeout=60)
    assert not session.exists()
    assert len(list(tmp_path.glob("*.csv"))) == 1
    r = report(tmp_path)
    assert r.ended == "killed" and len(r.data["call_tree"]) == 40 * 51


def test_run_itself_killed(tmp_path, sessions):
    """The program goes on; what it recorded is found in the folder that `run` left."""
    counters = tmp_path / "counters"
    p = start([GPUTALLY, "run", "--", app("life_kill"), counters], tmp_path, environment(SESSION_DIR=sessions))
    pid = int(p.stdout.readline())
    p.kill()
    p.wait(60)
    before = sorted(sessions.rglob("*"))
    done = call([GPUTALLY, "recover", "--list", sessions], tmp_path, environment())
    assert done.status == 0 and f"leave    {pid:8}  life_kill" in done.out and done.err == ""
    assert sorted(sessions.rglob("*")) == before
    done = call([GPUTALLY, "recover", sessions], tmp_path, environment())
    assert done.status == 0 and "0 recovered" in done.err and "1 still in use" in done.err
    assert reports(tmp_path) == []
    gone = os.pidfd_open(pid)
    os.kill(pid, signal.SIGKILL)
    assert select.select([gone], [], [], 60)[0]
    os.close(gone)
    p.communicate(timeout=60)
    done = call([GPUTALLY, "recover", sessions], tmp_path, environment())
    assert done.status == 0 and "1 recovered" in done.err
    check(report(tmp_path), counters)
    assert list(sessions.iterdir()) == []


def test_killed_at_its_end(tmp_path, sessions):
    """While the program waits for `finish`: that one goes on alone, or nobody has begun."""
    rng = random.Random(4)
    env = environment(LIBRARY, SESSION_DIR=sessions)
    for i in range(60):
        folder = tmp_path / f"run{i}"
        folder.mkdir()
        p = start([app("life_exit"), "return"], folder, env)
        time.sleep(rng.uniform(0, 0.02))  # the point in time is what is tested
        p.kill()
        p.communicate(timeout=60)  # its helper holds stderr: it is gone too
        done = call([GPUTALLY, "recover", sessions], folder, environment())
        assert done.status == 0, done.err
        assert list(sessions.iterdir()) == []
        found = reports(folder)
        assert len(found) <= 1
        for r in found:
            assert {k: r.counts[k] for k in r.counts if k != "open"}.items() <= {"work": 5}.items() or \
                r.ended == "killed" and r.counts["work"] < 5
            assert r.path.name == f"gputally.life_exit.{p.pid}.json"
        if p.returncode == 7:
            assert found[0].ended == "exit"


@pytest.mark.parametrize("clean_up", [[], ["--clean"]], ids=["recover", "clean"])
def test_recover_leaves_a_living_run_its_sessions(tmp_path, sessions, clean_up):
    """The program is dead, its `run` has not seen it yet: the report and the table are the `run`'s to make."""
    p = start([GPUTALLY, "run", "--", app("life_kill"), "many"], tmp_path, environment(SESSION_DIR=sessions))
    pid = int(p.stdout.readline())
    p.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, p.pid, os.WSTOPPED | os.WNOWAIT)
    gone = os.pidfd_open(pid)
    os.kill(pid, signal.SIGKILL)
    assert select.select([gone], [], [], 60)[0]
    os.close(gone)
    (folder,) = sessions.iterdir()
    for where in (sessions, folder):
        done = call([GPUTALLY, "recover", *clean_up, where], tmp_path, environment())
        assert done.status == 0 and "1 still in use" in done.err, done.err
    p.send_signal(signal.SIGCONT)
    _, err = p.communicate(timeout=60)
    assert p.returncode == -signal.SIGKILL
    assert "Self CPU time total" in err and report(tmp_path).path.name in err
    assert list(sessions.iterdir()) == []
