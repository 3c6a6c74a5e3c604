"""A process that becomes another program, and the programs that must not be touched: no report is lost,
none is doubled, and where nothing was recorded nothing is left."""
import pytest

from life import (GPUTALLY, WAYS, app, bare, call, clean, compile_c, environment, finish,  # noqa: F401
                  plain, report, reports, run, sessions, sole_session)

STEP = "step 1"


def same(way, command, tmp_path, variables=None, status=5):
    """Same status and output without and with us; returns what it said and the reports in order."""
    without = bare(command, tmp_path)
    assert without.status == status, without.err
    done = way(command, tmp_path, variables)
    assert (done.status, done.out) == (without.status, without.out), done.err
    return done, sorted(reports(tmp_path), key=lambda r: r.process["sequence"])


@WAYS
def test_exec_of_another_program(way, tmp_path):
    _, (before, after) = same(way, [app("life_exec"), "COUNT=3", app("life_exec"), "COUNT=2"], tmp_path)
    assert before.pid == after.pid
    assert (before.counts, before.ended, before.process["sequence"]) == ({"step 3": 3}, "exec", 0)
    assert (after.counts, after.ended, after.process["sequence"]) == ({"step 2": 2}, "exit", 1)


@WAYS
def test_chain(way, tmp_path):
    chain = [w for n in (4, 3, 2, 1) for w in (app("life_exec"), f"COUNT={n}")]
    _, found = same(way, chain, tmp_path)
    assert [r.counts for r in found] == [{f"step {n}": n} for n in (4, 3, 2, 1)]
    assert [r.ended for r in found] == ["exec"] * 3 + ["exit"]
    assert [r.process["sequence"] for r in found] == [0, 1, 2, 3]


@WAYS
def test_the_last_one_records_nothing(way, tmp_path):
    done, (before,) = same(way, [app("life_exec"), "true"], tmp_path, status=0)
    assert before.counts == {STEP: 1} and before.ended == "exec"
    assert "gputally: wrote " in done.err


@WAYS
def test_one_between_records_nothing(way, tmp_path):
    chain = [app("life_exec"), "COUNT=2", app("life_exec"), "COUNT=0", app("life_exec"), "COUNT=3"]
    _, (before, after) = same(way, chain, tmp_path)
    assert (before.counts, before.ended) == ({"step 2": 2}, "exec")
    assert (after.counts, after.ended) == ({"step 3": 3}, "exit")


@WAYS
def test_script(way, tmp_path):
    script = tmp_path / "script"
    script.write_text(f"#!/bin/sh\necho script\n{app('life_exec')} COUNT=2\nexit 9\n")
    script.chmod(0o755)
    _, found = same(way, [app("life_exec"), script], tmp_path, status=9)
    assert sorted((r.ended, tuple(r.counts.items())) for r in found) == \
        [("exec", ((STEP, 1),)), ("exit", (("step 2", 2),))]


@WAYS
def test_closed_descriptors(way, tmp_path):
    _, (before, after) = same(way, [app("life_exec"), "close", app("life_exec"), "COUNT=2"], tmp_path)
    assert before.counts == {STEP: 1} and after.counts == {"step 2": 2}


def static_program(tmp_path):
    folder = tmp_path / "static"
    folder.mkdir()
    return compile_c(folder, "still", 'int puts(const char *); int main(void) { puts("still"); return 6; }',
                     "-static")


def test_static_program_under_run(tmp_path):
    """It can't tell that it is the process's second program; what went before is reported."""
    _, (before,) = same(run, [app("life_exec"), static_program(tmp_path)], tmp_path, status=6)
    assert before.counts == {STEP: 1}


def test_static_program_alone(tmp_path, sessions):
    program = static_program(tmp_path)
    done = plain([app("life_exec"), program], tmp_path, {"SESSION_DIR": sessions})
    assert (done.status, done.out, done.err) == (6, "still\n", "")
    assert reports(tmp_path) == []
    done = call([GPUTALLY, "recover", sessions], tmp_path, environment())
    assert done.status == 0 and report(tmp_path).counts == {STEP: 1}


@WAYS
def test_static_child(way, tmp_path):
    command = ["sh", "-c", f"{static_program(tmp_path)}; {app('life_exec')}"]
    _, (r,) = same(way, command, tmp_path)
    assert r.counts == {STEP: 1} and r.ended == "exit"


@WAYS
@pytest.mark.parametrize("without", [["-i"], ["-u", "LD_PRELOAD"]], ids=["none", "no LD_PRELOAD"])
def test_child_without_our_environment(way, without, tmp_path):
    inner = f"env {' '.join(without)} {app('life_exec')} COUNT=2"
    _, (r,) = same(way, ["sh", "-c", f"{inner}; {app('life_exec')}"], tmp_path)
    assert r.counts == {STEP: 1} and r.ended == "exit"


def test_exec_without_our_environment(tmp_path, sessions):
    _, (r,) = same(run, [app("life_exec"), "env", "-i", app("life_exec"), "COUNT=2"], tmp_path)
    assert r.counts == {STEP: 1}
    r.path.unlink()
    # alone, nobody is left who could make the report: `env` itself still was one of ours
    done = plain([app("life_exec"), "env", "-i", app("life_exec")], tmp_path, {"SESSION_DIR": sessions})
    assert (done.status, done.out) == (5, "done\n")
    done = finish(sole_session(sessions), tmp_path)
    assert done.status == 0, done.err
    r = report(tmp_path)
    assert r.counts == {STEP: 1} and r.ended == "exec"


@WAYS
def test_shells_leave_nothing(way, tmp_path):
    script = 'for i in $(seq 100); do bash -c env >/dev/null || exit 1; done; (exit 3); (:); echo $(echo sub)'
    done, found = same(way, ["bash", "-c", script], tmp_path, status=0)
    assert found == [] and done.err == ""
    assert list(tmp_path.iterdir()) == []


@WAYS
def test_silent_where_nothing_was_recorded(way, tmp_path):
    done, found = same(way, [app("life_exec"), "COUNT=0"], tmp_path)
    assert found == [] and done.err == ""
    assert list(tmp_path.iterdir()) == []


@WAYS
def test_no_children(way, tmp_path):
    command = ["sh", "-c", f"{app('life_exec')}; true"]
    _, found = same(way, command, tmp_path, {"CHILDREN": 0}, status=0)
    assert found == []
    done = way([app("life_fork"), "both", "fork"], tmp_path, {"CHILDREN": 0})
    assert done.status == 0
    r = report(tmp_path)
    assert r.counts == {"before": 3, "parent": 7}


@WAYS
def test_program_globs(way, tmp_path):
    command = ["sh", "-c", f"{app('life_exec')}; {app('life_fork')} leaf 2; {app('life_exec')}"]
    for globs, want in (("life_exec", [STEP, STEP]), ("*_fo?k,other", ["leaf"]), ("no*", []),
                        ("life_*", [STEP, STEP, "leaf"])):
        _, found = same(way, command, tmp_path, {"EXE": globs})
        assert sorted(k for r in found for k in r.counts) == sorted(want), globs
        for r in found:
            r.path.unlink()


@WAYS
def test_disabled(way, tmp_path):
    done, found = same(way, [app("life_exec")], tmp_path, {"DISABLE": 1})
    assert found == [] and done.err == ""
    done, found = same(way, [app("life_exec")], tmp_path, {"DISABLE": 0})
    assert len(found) == 1


@WAYS
def test_environment_that_is_ours_no_more(way, tmp_path):
    """A child that gets a variable of ours changed by the program obeys the change."""
    command = ["sh", "-c", f"GPUTALLY_DISABLE=1 {app('life_exec')}; GPUTALLY_OUTPUT=mine {app('life_exec')}"]
    _, (r,) = same(way, command, tmp_path)
    assert r.path.name == "mine.json"
