"""GPUTALLY_SNAPSHOT, _SNAPSHOT_SIGNAL and gputally_flush in real programs: tests/apps/win_app.c."""
import fcntl
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest

from conftest import APPS, SHM, counts, execute, load_report, owner, preload, run, started, tool

APP = APPS / "win_app"


def snapshots(folder):
    """The reports by number, and the real one last if there is one."""
    found = {int(p.name.split(".snapshot-")[1].split(".")[0]): p for p in Path(folder).glob("*.snapshot-*.json")}
    assert sorted(found) == list(range(1, len(found) + 1))
    assert not list(Path(folder).glob(".*"))
    final = [p for p in Path(folder).glob("*.json") if ".snapshot-" not in p.name]
    assert len(final) <= 1
    return [load_report(found[n]) for n in sorted(found)] + [load_report(p) for p in final]


def only_grow(reports):
    last = {}
    for report in reports:
        now = counts(report)
        for key, count in last.items():
            assert now[key] >= count, key
        for row in report["call_tree"]:
            assert 0 <= row["self_ns"] <= row["total_ns"]
        last = now
    for report in reports[:-1]:
        assert report["processes"][0]["ended"] == "running"
    assert reports[-1]["processes"][0]["ended"] == "exit"


def wait_for(what, seconds=20):
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end
        time.sleep(0.02)


def popen(tmp_path, *args, **variables):
    p = subprocess.Popen([str(a) for a in args], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                         text=True, env=preload(GPUTALLY_SESSION_DIR=str(tmp_path / "s"), **variables))
    started.add(p.pid)
    return p


def has_session(tmp_path):
    return any((tmp_path / "s").glob("*.session"))


def records(tmp_path):
    """A range named tick has begun: the file is there a moment before it is complete, and a signal then is too early."""
    for session in (tmp_path / "s").glob("*.session"):
        with open(session, "rb") as f:
            return b"tick" in f.read(1 << 20)


@pytest.fixture(autouse=True)
def own_sessions(tmp_path_factory):
    started.clear()
    before = set(SHM.glob("gputally-*"))
    yield
    # other tests run programs at the same time
    wait_for(lambda: not [p for p in set(SHM.glob("gputally-run-*")) - before
                          if owner(p.name) in started and p.is_dir() and not any(p.iterdir())])


@pytest.mark.parametrize("way", ["run", "preload"])
def test_every_so_often(tmp_path, way):
    (tmp_path / "s").mkdir()
    if way == "run":
        done = run(APP, "timed", "1500", options=["--snapshot", "0.2", "-f", "json"], cwd=tmp_path)
    else:
        done = execute([APP, "timed", "1500"], cwd=tmp_path,
                       env=preload(GPUTALLY_SNAPSHOT="0.2", GPUTALLY_FORMAT="json", GPUTALLY_SESSION_DIR=str(tmp_path / "s")))
    assert (done.returncode, done.stdout) == (0, "done\n")
    assert "napshot" not in done.stderr
    reports = snapshots(tmp_path)
    assert len(reports) >= 3
    only_grow(reports)
    assert counts(reports[-1])["tick"] > counts(reports[0])["tick"]
    assert counts(reports[0])["all"] == 1 and [o["key"] for o in reports[0]["open"]][0] == "all"
    assert not any((tmp_path / "s").iterdir())


def by_process(folder):
    """[(number of snapshots, the reports of one process, its real one last)]"""
    found = {}
    for p in Path(folder).glob("*.json"):
        number = int(p.name.split(".snapshot-")[1].split(".")[0]) if ".snapshot-" in p.name else 1 << 30
        report = load_report(p)
        found.setdefault(report["processes"][0]["pid"], []).append((number, report))
    for numbered in found.values():
        numbered.sort(key=lambda n: n[0])
        assert [n for n, _ in numbered] == [*range(1, len(numbered)), 1 << 30]
    return [[r for _, r in numbered] for numbered in found.values()]


@pytest.mark.parametrize("mode", ["busy", "busyfork"])
@pytest.mark.parametrize("way", ["run", "preload"])
def test_of_threads_that_never_rest(tmp_path, way, mode):
    """Two threads, millions of calls a second, while they are read; in a fork's child too. A snapshot's numbers fit
    together but where it says itself that they may not."""
    (tmp_path / "s").mkdir()
    if way == "run":
        done = run(APP, mode, "1500", options=["--snapshot", "0.1", "-f", "json"], cwd=tmp_path)
    else:
        done = execute([APP, mode, "1500"], cwd=tmp_path,
                       env=preload(GPUTALLY_SNAPSHOT="0.1", GPUTALLY_FORMAT="json", GPUTALLY_SESSION_DIR=str(tmp_path / "s")))
    assert done.returncode == 0, done.stderr
    said = {int(line.split()[-1]) for line in done.stdout.splitlines() if "steps " in line}
    found = by_process(tmp_path)
    assert len(found) == (2 if mode == "busyfork" else 1)
    for reports in found:
        assert len(reports) >= 3
        only_grow(reports)
        for report in reports[:-1]:
            now, threads = counts(report), 2
            assert {k: n for k, n in report["lost"].items() if n and k != "torn"} == {}
            if report["lost"]["torn"]:
                continue
            # of each thread at most one step has begun and is not yet all there
            assert now["step"] - threads <= now["layer"] <= now["step"]
            assert 3 * (now["step"] - threads) <= now["op"] <= 3 * now["step"]
            assert now["step"] - threads - (mode == "busyfork") <= now["mark"] <= now["step"] and now["counter"] <= now["mark"]
            for row in report["call_tree"]:
                below = sum(r["total_ns"] for r in report["call_tree"] if r["parent"] == row["id"])
                assert row["kind"] != "range" or row["total_ns"] == row["self_ns"] + below, row["key"]
        last = counts(reports[-1])
        assert last["step"] in said and last["layer"] == last["step"] and last["op"] == 3 * last["step"]
        assert last["step"] - 1 <= last["mark"] == last["counter"] == 100 * last["around"] <= last["step"]
    assert not any((tmp_path / "s").iterdir())


def test_names_that_came_while_it_was_read(tmp_path):
    """A name that is new when the file has just been copied has its text all the same, and a value its numbers."""
    done = run(APP, "fresh", "1500", options=["--snapshot", "0.1", "-f", "json"], cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    reports = snapshots(tmp_path)
    assert len(reports) >= 3
    only_grow(reports)
    for report in reports:
        assert [k for k in counts(report) if not re.fullmatch(r"(range|value) of [a-z]+\.", k)] == []
        assert set(counts(report).values()) == {1}
        assert {r["values"]["count"] for r in report["counters"]} == {1}
        assert not report["lost"]["folded"]


def test_who_watches_ends_with_the_program_and_holds_nothing(tmp_path):
    """A reader of the program's pipe sees its end when the program ends, and no process is left."""
    (tmp_path / "s").mkdir()
    begin = time.monotonic()
    p = popen(tmp_path, APP, "timed", "300", GPUTALLY_SNAPSHOT="1000", GPUTALLY_FORMAT="json")
    wait_for(lambda: has_session(tmp_path) or p.poll() is not None)
    out, _ = p.communicate(timeout=20)
    assert out == "done\n" and p.returncode == 0 and time.monotonic() - begin < 20

    def watchers():
        found = []
        for f in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                text = f.read_bytes()
            except OSError:
                continue
            if b"--every" in text and str(tmp_path).encode() in text:
                found.append(f)
        return found
    wait_for(lambda: not watchers())
    assert len(snapshots(tmp_path)) == 1


def test_who_adopts_orphans_has_no_child_of_ours(tmp_path):
    """It would wait for the watcher, which waits for it."""
    (tmp_path / "s").mkdir()
    done = execute([APP, "adopts"], cwd=tmp_path, timeout=20,
                   env=preload(GPUTALLY_SNAPSHOT="0.2", GPUTALLY_FORMAT="json", GPUTALLY_SESSION_DIR=str(tmp_path / "s")))
    assert (done.returncode, done.stdout) == (0, "children 1\ndone\n")
    assert done.stderr.count("no snapshots: this process adopts orphans") == 1
    assert counts(load_report(tmp_path)) == {"all": 1}


def test_flush(tmp_path):
    (tmp_path / "s").mkdir()
    for way in ("run", "preload"):
        folder = tmp_path / way
        folder.mkdir()
        if way == "run":
            done = run(APP, "flush", "3", options=["-f", "json,csv"], cwd=folder)
        else:
            done = execute([APP, "flush", "3"], cwd=folder, env=preload(GPUTALLY_FORMAT="json,csv"))
        assert (done.returncode, done.stdout) == (0, "flush 0\nflush 0\nflush 0\ndone\n")
        reports = snapshots(folder)
        assert [counts(r) for r in reports] == [{"all": 1, "step": n, "layer": n, "op": 3 * n} for n in (1, 2, 3, 3)]
        only_grow(reports)
        assert len(list(folder.glob("*.csv"))) == 4
    # without the library it does nothing
    done = execute([APP, "flush", "1"], cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "flush 0\ndone\n")


def test_flush_where_it_cant_write(tmp_path):
    (tmp_path / "file").write_text("")
    done = execute([APP, "flush", "1"], cwd=tmp_path,
                   env=preload(GPUTALLY_OUTPUT=str(tmp_path / "file" / "x"), GPUTALLY_LOG="0",
                               GPUTALLY_SESSION_DIR=str(tmp_path)))
    assert (done.returncode, done.stdout) == (0, "flush -1\ndone\n")
    for session in tmp_path.glob("*.session"):
        session.unlink()


def test_signal(tmp_path):
    (tmp_path / "s").mkdir()
    p = popen(tmp_path, APP, "timed", "3000", GPUTALLY_SNAPSHOT_SIGNAL="USR1", GPUTALLY_FORMAT="json")
    wait_for(lambda: records(tmp_path))
    for n in (1, 2):
        p.send_signal(signal.SIGUSR1)
        wait_for(lambda: len(list(tmp_path.glob("*.snapshot-*.json"))) == n)
    out, err = p.communicate(timeout=20)
    assert (p.returncode, out) == (0, "done\n") and "handler" not in err
    reports = snapshots(tmp_path)
    assert len(reports) == 3
    only_grow(reports)


def running(*words):
    """How many processes have all these words among their arguments."""
    n = 0
    for f in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            text = f.read_bytes()
        except OSError:
            continue
        n += all(w.encode() in text for w in words)
    return n


def test_a_storm_of_signals_is_one_snapshot_at_a_time(tmp_path):
    """While one is being made (here: the lock is held) one process waits, however many signals come."""
    (tmp_path / "s").mkdir()
    p = popen(tmp_path, APP, "timed", "3000", GPUTALLY_SNAPSHOT_SIGNAL="USR1", GPUTALLY_FORMAT="json")
    wait_for(lambda: has_session(tmp_path))
    session = next((tmp_path / "s").glob("*.session"))
    wait_for(lambda: session.stat().st_blocks and session.read_bytes()[16] == 1)
    with session.open() as f:
        fcntl.flock(f, fcntl.LOCK_EX)
        for _ in range(20):
            p.send_signal(signal.SIGUSR1)
            time.sleep(0.02)
        wait_for(lambda: running("--snapshot", str(session)) == 1, 2)
    wait_for(lambda: running("--snapshot", str(session)) == 0)
    assert len(list(tmp_path.glob("*.snapshot-*.json"))) == 1
    # the next one is made as ever
    p.send_signal(signal.SIGUSR1)
    wait_for(lambda: len(list(tmp_path.glob("*.snapshot-*.json"))) == 2)
    out, err = p.communicate(timeout=20)
    assert (p.returncode, out) == (0, "done\n") and "has ended" not in err
    only_grow(snapshots(tmp_path))


def test_a_merged_snapshot_of_what_has_ended_is_silent(tmp_path):
    done = tool("finish", "--snapshot", "--merge", tmp_path / "gone.session")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert tool("finish", "--snapshot", tmp_path / "gone.session").returncode == 2


def test_signal_before_anything_was_recorded(tmp_path):
    (tmp_path / "s").mkdir()
    p = popen(tmp_path, APP, "idle", "500", GPUTALLY_SNAPSHOT_SIGNAL="SIGUSR1")

    def ready():
        status = Path(f"/proc/{p.pid}/status").read_text()
        caught = int(status.split("SigCgt:")[1].split()[0], 16)
        return caught >> (signal.SIGUSR1 - 1) & 1
    wait_for(ready)
    p.send_signal(signal.SIGUSR1)
    out, err = p.communicate(timeout=20)
    assert (p.returncode, out, err) == (0, "done\n", "")
    assert snapshots(tmp_path) == []


def test_the_programs_own_handler_wins(tmp_path):
    (tmp_path / "s").mkdir()
    p = popen(tmp_path, APP, "mine", "400", GPUTALLY_SNAPSHOT_SIGNAL="USR1", GPUTALLY_FORMAT="json")
    assert p.stdout.readline() == "ready\n"
    p.send_signal(signal.SIGUSR1)
    out, err = p.communicate(timeout=20)
    assert (p.returncode, out) == (0, "caught 1\ndone\n")
    assert err.count("the program has its own handler") == 1
    assert len(snapshots(tmp_path)) == 1


def test_no_handler_unless_asked_for(tmp_path):
    p = popen(tmp_path, APP, "idle", "300", GPUTALLY_FORMAT="json")
    time.sleep(0.15)
    status = Path(f"/proc/{p.pid}/status").read_text()
    assert int(status.split("SigCgt:")[1].split()[0], 16) >> (signal.SIGUSR1 - 1) & 1 == 0
    p.communicate(timeout=20)
    assert p.returncode == 0


@pytest.mark.parametrize("name, value", [("SNAPSHOT", "0"), ("SNAPSHOT", "0.01"), ("SNAPSHOT", "soon"),
                                         ("SNAPSHOT_SIGNAL", "KILL"), ("SNAPSHOT_SIGNAL", "SEGV"),
                                         ("SNAPSHOT_SIGNAL", "10"), ("SNAPSHOT_SIGNAL", "RTMIN+99")])
def test_bad_values(tmp_path, name, value):
    option = "--" + name.lower().replace("_", "-")
    done = run(APP, "idle", "0", options=[option, value], cwd=tmp_path)
    assert done.returncode == 2 and f"{option} {value}: give " in done.stderr


def test_by_hand(tmp_path):
    """`gputally finish --snapshot SESSION` of a program that nobody asked to."""
    (tmp_path / "s").mkdir()
    p = popen(tmp_path, APP, "timed", "1500", GPUTALLY_FORMAT="json")
    wait_for(lambda: has_session(tmp_path))
    session = next((tmp_path / "s").glob("*.session"))
    # the file is there a moment before it is complete
    wait_for(lambda: session.stat().st_blocks and session.read_bytes()[16] == 1)
    done = tool("finish", "--snapshot", session, cwd=tmp_path)
    assert done.returncode == 0 and "gputally: wrote" in done.stderr, done.stderr
    p.communicate(timeout=20)
    assert len(snapshots(tmp_path)) == 2
    done = tool("finish", "--snapshot", session, cwd=tmp_path)
    assert done.returncode == 2
    assert tool("finish", "--every", "x", session).returncode == 2
