"""fork in all its forms: each process has its own report, with its own counts, once."""
import os
import stat

import pytest

from life import (WAYS, app, bare, clean, environment, plain, report, reports, run, start,  # noqa: F401
                  GPUTALLY, LIBRARY)

FORKS = pytest.mark.parametrize("fork", ["fork", "_Fork", "clone"])


def both_ways(way, mode, *args, tmp_path, variables=None, status=0):
    """Runs it without and with us: same status, same output. The reports, parent first (by pid the
    parent is the one whose child the others are)."""
    command = [app("life_fork"), mode, *args]
    without = bare(command, tmp_path)
    if without.status == 77:
        pytest.skip("no _Fork in this glibc (before 2.34)")
    assert without.status == status
    done = way(command, tmp_path, variables)
    assert done.status == status, done.err
    if mode != "threads":  # prints what it did
        assert done.out == without.out
    found = reports(tmp_path)
    pids = {r.pid for r in found}
    assert all(r.ended == "exit" for r in found)
    assert len(pids) == len(found)
    return done, sorted(found, key=lambda r: r.process["ppid"] in pids)


@WAYS
@FORKS
def test_both_go_on(way, fork, tmp_path):
    _, (parent, child) = both_ways(way, "both", fork, tmp_path=tmp_path)
    assert parent.counts == {"before": 3, "parent": 7} and parent.lost == {}
    assert child.counts == {"child": 5} and child.lost == {}
    assert child.process["ppid"] == parent.pid


@WAYS
@FORKS
def test_open_ranges_are_inherited_in_silence(way, fork, tmp_path):
    _, (parent, child) = both_ways(way, "inherit", fork, tmp_path=tmp_path)
    assert parent.counts == {"outer": 1, "inner": 1} and parent.lost == {}
    assert child.counts == {"leaf": 2, "own": 3}
    assert child.lost == {"inherited": 2}
    assert child.open == []
    rows = {r["id"]: r for r in child.data["call_tree"]}
    leaf = next(r for r in rows.values() if r["key"] == "leaf")
    inner = rows[leaf["parent"]]
    assert (inner["key"], inner["count"]) == ("inner", 0)
    assert (rows[inner["parent"]]["key"], rows[inner["parent"]]["count"]) == ("outer", 0)
    own = next(r for r in rows.values() if r["key"] == "own")
    assert own["parent"] is None


@WAYS
@FORKS
def test_child_that_records_nothing(way, fork, tmp_path):
    _, (parent,) = both_ways(way, "silent", fork, tmp_path=tmp_path)
    assert parent.counts == {"outer": 1} and parent.open == []


@WAYS
def test_fork_while_threads_record(way, tmp_path):
    done, (parent, *children) = both_ways(way, "threads", tmp_path=tmp_path)
    assert parent.counts == {"busy": int(done.out.split()[1]), "forks": 40} and parent.lost == {}
    assert len(children) == 20
    assert all(c.counts == {"child": 1} and c.lost == {} for c in children)


@WAYS
def test_generations(way, tmp_path):
    _, found = both_ways(way, "generations", 4, tmp_path=tmp_path)
    assert sorted(r.counts.popitem() for r in found) == [(f"gen{i}", i + 1) for i in range(5)]
    assert all(len(r.counts) == 1 for r in found)
    by_key = {next(iter(r.counts)): r for r in found}
    for i in range(4):
        assert by_key[f"gen{i + 1}"].process["ppid"] == by_key[f"gen{i}"].pid


@WAYS
def test_fork_in_a_signal_handler(way, tmp_path):
    """Also in the middle of a call of ours, which then goes on in both: it counts in the parent, once."""
    for _ in range(2):
        done = way([app("life_fork"), "handler"], tmp_path, {"FORMAT": "json"})
        assert done.status == 0, done.err
        found = reports(tmp_path)
        assert len(found) == 201
        (parent,) = [r for r in found if "child" not in r.counts]
        assert parent.counts == {"main": int(done.out.split()[1])} and parent.lost == {}
        for r in found:
            if r is not parent:
                # forked before the call took its place: then it is the child's own
                assert r.counts in ({"child": 3}, {"child": 3, "main": 1}) and set(r.lost) <= {"inherited"}
            r.path.unlink()


def test_many_forks(tmp_path):
    _, (parent, *children) = both_ways(run, "loop", 200, tmp_path=tmp_path, variables={"FORMAT": "json"})
    assert parent.counts == {"p": 200}
    assert len(children) == 200
    assert all(c.counts == {"c": 1} and c.lost == {} for c in children)


@WAYS
@pytest.mark.parametrize("mode", ["vfork", "spawn"])
def test_vfork_and_spawn(way, mode, tmp_path):
    _, (parent, child) = both_ways(way, mode, tmp_path=tmp_path)
    assert parent.counts == {"before": 2, "around": 1, "after": 3} and parent.lost == {}
    assert child.counts == {"leaf": 4} and child.lost == {}


@WAYS
def test_system_and_popen(way, tmp_path):
    _, (parent,) = both_ways(way, "shell", tmp_path=tmp_path)
    assert parent.counts == {"before": 1, "after": 1}
    assert [p.suffix for p in tmp_path.iterdir()] == [".json"]


@WAYS
@pytest.mark.parametrize("output", ["same", "same-%n", "folder/same"])
def test_one_name_for_all(way, output, tmp_path):
    command = [app("life_fork"), "together", 8]
    done = way(command, tmp_path, {"OUTPUT": output, "FORMAT": "json,csv"})
    assert done.status == 0, done.err
    folder = tmp_path / os.path.dirname(output)
    found = reports(folder)
    assert len(found) == 9
    assert sorted(r.counts.get("child", 0) for r in found) == list(range(9))
    assert [r.counts for r in found if "parent" in r.counts] == [{"parent": 9}]
    assert len(list(folder.glob("*.csv"))) == 9
    for r in found:  # the two files of a process bear one name
        assert f'"{next(iter(r.counts))}",{next(iter(r.counts.values()))},' in r.path.with_suffix(".csv").read_text()


@WAYS
def test_daemon_outlives_run(way, tmp_path):
    go = tmp_path / "go"
    os.mkfifo(go)
    r, w = os.pipe()
    env = environment() if way is run else environment(LIBRARY)
    command = [app("life_fork"), "daemon", go]
    p = start([GPUTALLY, "run", "--", *command] if way is run else command, tmp_path, env, pass_fds=[w])
    os.close(w)
    holder = os.open(go, os.O_RDWR)  # the daemon reads until this is closed; never blocks us
    _, err = p.communicate(timeout=60)
    assert p.returncode == 0
    first = report(tmp_path)
    assert first.counts == {"parent": 1}
    if way is run:
        assert ("gputally: 1 process still running; its report comes when it ends; "
                "if it is killed: gputally recover") in err
    os.close(holder)
    assert os.read(r, 1) == b""  # the daemon is gone
    os.close(r)
    (second,) = [x for x in reports(tmp_path) if x.pid != first.pid]
    assert second.counts == {"early": 2, "late": 3} and second.ended == "exit" and second.lost == {}
    go.unlink()


def test_children_end_while_run_ends(tmp_path):
    """`run` looks for the last time while they end: each has its report from one of the two."""
    script = f"i=0; while [ $i -lt 12 ]; do {app('life_exec')} COUNT=2 >&2 & i=$((i+1)); done"
    for i in range(8):
        folder = tmp_path / str(i)
        folder.mkdir()
        done = run(["sh", "-c", script], folder)  # they hold stderr, so all are gone
        assert done.status == 0
        found = reports(folder)
        assert [r.counts for r in found] == [{"step 2": 2}] * 12, done.err
        assert all(r.ended == "exit" for r in found)
