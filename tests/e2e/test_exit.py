"""All the ways out of a process: the status is its own, what it recorded is reported, nothing hangs."""
import signal

import pytest

from life import (GPUTALLY, LIBRARY, WAYS, app, bare, call, clean, compile_preload,  # noqa: F401
                  environment, finish, plain, report, reports, run, sessions, sole_session)

WORK = {"work": 5, "open": 1}
IN_ORDER = {"return": 7, "exit": 7, "_exit": 7, "_Exit": 7, "quick_exit": 7, "closed_stderr": 7, "moved": 7,
            "blocked": 7, "ignored": 7}
DEATHS = {"abort": -signal.SIGABRT, "segv": -signal.SIGSEGV, "term": -signal.SIGTERM, "exit_group": 7}


def both(way, mode, tmp_path, status, variables=None, program="life_exit"):
    without = bare([app(program), mode], tmp_path)
    if without.status == 77:
        pytest.skip("needs root" if mode == "dropped" else "the kernel takes no seccomp filter here")
    assert without.status == status, without.err
    done = way([app(program), mode], tmp_path, variables)
    assert done.status == status, done.err
    return without, done


@WAYS
@pytest.mark.parametrize("mode", IN_ORDER)
def test_ends_in_order(way, mode, tmp_path):
    without, done = both(way, mode, tmp_path, IN_ORDER[mode])
    assert done.out == without.out == ""
    r = report(tmp_path)
    assert (r.counts, r.open, r.ended, r.lost) == (WORK, ["open"], "exit", {})
    if way is plain and mode == "closed_stderr":
        assert done.err == ""
    else:
        assert r.path.name in done.err


@pytest.mark.parametrize("mode", DEATHS)
def test_dies_under_run(mode, tmp_path):
    _, done = both(run, mode, tmp_path, DEATHS[mode])
    r = report(tmp_path)
    assert (r.counts, r.open, r.ended) == (WORK, ["open"], "killed")
    assert r.path.name in done.err


@pytest.mark.parametrize("mode", DEATHS)
def test_dies_alone(mode, tmp_path, sessions):
    _, done = both(plain, mode, tmp_path, DEATHS[mode], {"SESSION_DIR": sessions})
    assert done.err == "" and reports(tmp_path) == []
    assert finish(sole_session(sessions), tmp_path).status == 0
    r = report(tmp_path)
    assert (r.counts, r.open, r.ended) == (WORK, ["open"], "killed")


@WAYS
def test_thread_exits_while_others_record(way, tmp_path):
    for _ in range(5):
        both(way, "thread", tmp_path, 7)
        r = report(tmp_path)
        assert r.ended == "exit"
        assert {k: n for k, n in r.counts.items() if k != "busy"} == {**WORK, "last": 3}
        assert set(r.lost) <= {"torn", "late"}
        r.path.unlink()


@WAYS
def test_main_leaves_first(way, tmp_path):
    both(way, "main_leaves", tmp_path, 0)
    r = report(tmp_path)
    # the range that main left open ended with its thread
    assert (r.counts, r.open, r.ended) == ({**WORK, "last": 3}, [], "exit")
    assert r.lost == {"left_open": 1}


@WAYS
@pytest.mark.parametrize("stacks, memory", [("1", "64M"), ("ranges", "256M")])
def test_many_threads(way, stacks, memory, tmp_path):
    """300 at a time. What each needs to follow its stack, 72 KiB, may take half of the memory together."""
    both(way, "many_threads", tmp_path, 7, {"WITH_STACK": stacks, "MEMORY": memory})
    r = report(tmp_path)
    assert r.counts == {"short": 4000, "never closed": 2000}
    assert r.lost == {"left_open": 2000} and r.open == []
    slots = r.process["threads"]
    assert sum(t["threads"] for t in slots) == 2000
    assert len(slots) <= 301  # memory follows the peak
    assert not r.process["memory_full"]


@WAYS
def test_atexit_and_key_destructors_record(way, tmp_path):
    both(way, "still_recording", tmp_path, 7)
    r = report(tmp_path)
    assert r.counts == {**WORK, "thread": 1, "key destructor": 4, "atexit": 2} and r.lost == {}


@WAYS
def test_cpp_destructors_record(way, tmp_path):
    without, done = both(way, "", tmp_path, 7, program="life_dtor")
    assert done.out == without.out
    assert sorted(done.out.split("\n")[:-1]) == ["function static", "static", "thread local", "thread local"]
    r = report(tmp_path)
    assert r.counts == {"work": 5, "static": 2, "function static": 3, "thread local": 8} and r.lost == {}


LATE = """
#include "gputally.h"
#include <stdio.h>
static int push(void) { return gputally_range_push("late"); }
__attribute__((destructor)) static void late(void)
{
    int a = push(), b = gputally_range_pop();
    gputally_mark("late");
    gputally_range_end(gputally_range_start("late"));
    printf("%d %d\\n", a, b);
    fflush(stdout);
}
"""


def test_records_after_our_end(tmp_path):
    """A preloaded library whose destructor comes after ours: not counted, no harm."""
    late = compile_preload(tmp_path, "late.so", LATE)
    done = call([app("life_exit"), "return"], tmp_path, environment(f"{LIBRARY}:{late}"))
    assert (done.status, done.out) == (7, "-1 -1\n"), done.err
    assert report(tmp_path).counts == WORK


@WAYS
def test_vfork_children_exit(way, tmp_path):
    both(way, "vfork", tmp_path, 7)
    assert report(tmp_path).counts == {"work": 20}


def test_vfork_child_calls_exit(tmp_path, sessions):
    both(run, "vfork_exit", tmp_path, 7)
    r = report(tmp_path)
    assert r.counts == {**WORK, "after": 2} and r.open == ["open"]
    r.path.unlink()
    both(plain, "vfork_exit", tmp_path, 7, {"SESSION_DIR": sessions})
    assert reports(tmp_path) == []  # the exit handlers were the child's: `recover` finds it
    assert finish(sole_session(sessions), tmp_path).status == 0
    assert report(tmp_path).counts == {**WORK, "after": 2}


@WAYS
@pytest.mark.parametrize("stacks", ["1", "ranges"])
@pytest.mark.parametrize("mode", ["handler", "early_handler"])
def test_exit_from_a_handler(way, mode, stacks, tmp_path):
    """The timer finds the thread inside a hook, inside malloc, while the session is made, or while it takes a stack."""
    without = bare([app("life_exit"), mode], tmp_path)
    assert without.status == 7
    for _ in range(50):
        done = way([app("life_exit"), mode], tmp_path, {"FORMAT": "json", "WITH_STACK": stacks})
        assert done.status == 7, done.err
        found = reports(tmp_path)
        assert len(found) <= 1
        for r in found:
            # a push in the act is not open yet, so one range at most
            assert r.ended == "exit" and len(r.open) <= 1
            assert set(r.counts) <= {"odd", "even", "work"}
            assert abs(r.counts.get("odd", 0) - r.counts.get("even", 0)) <= max(1, r.counts.get("work", 0))
            r.path.unlink()


@WAYS
def test_handler_that_records(way, tmp_path):
    _, done = both(way, "recording_handler", tmp_path, 7)
    n = int(done.out.split()[1])
    handled = int(done.out.split()[3])
    r = report(tmp_path)
    # main's own are never lost; a handler that comes inside one of our calls is told as lost, both of
    # its calls
    assert r.counts["main"] == n
    lost = r.lost.pop("nested", 0)
    seen = r.counts.get("handler", 0)
    unbalanced = r.lost.pop("unbalanced", 0)
    assert r.lost == {}
    assert seen + lost / 2 == handled and unbalanced == 0


WATCH = """
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
static volatile sig_atomic_t deaths;
static pid_t known;
static void on_child(int sig) { (void)sig; deaths++; }
__attribute__((constructor)) static void begin(void)
{
    signal(SIGCHLD, on_child);
    known = fork();
    if (known == 0)
        for (;;)
            pause();
}
__attribute__((destructor)) static void look(void)
{
    int before = deaths, stranger = waitpid(-1, NULL, WNOHANG) != 0 || waitpid(-1, NULL, WNOHANG | __WALL) != 0;
    kill(known, SIGKILL);
    int own = waitpid(-1, NULL, 0) == known, none = waitpid(-1, NULL, __WALL) == -1 && errno == ECHILD;
    printf("%d %d %d %d %d\\n", before, stranger, own, none, (int)deaths);
    fflush(stdout);
}
"""


@pytest.mark.parametrize("mode", ["return", "exit", "ignored", "blocked", "main_leaves"])
def test_no_stranger_among_the_children(mode, tmp_path):
    """A library that looks after our end sees its own child and no other, and no SIGCHLD of ours."""
    watch = compile_preload(tmp_path, "watch.so", WATCH)
    without = call([app("life_exit"), mode], tmp_path, environment(watch))
    assert without.out.split()[:2] == ["0", "0"]
    done = call([app("life_exit"), mode], tmp_path, environment(f"{LIBRARY}:{watch}"))
    assert (done.status, done.out) == (without.status, without.out)
    assert report(tmp_path).counts["work"] == 5


@pytest.mark.parametrize("mode", ["no_processes", "no_exec", "no_clone", "dropped"])
def test_no_helper_can_be_started(mode, tmp_path, sessions):
    without, done = both(plain, mode, tmp_path, 7, {"SESSION_DIR": sessions})
    assert done.out == without.out == ""
    path = sole_session(sessions)
    assert done.err.count("\n") == 1 and str(path) in done.err
    assert reports(tmp_path) == []
    assert finish(path, tmp_path).status == 0
    r = report(tmp_path)
    assert (r.counts, r.ended) == (WORK, "exit")


@pytest.mark.parametrize("mode", ["no_processes", "no_exec", "no_clone"])
def test_no_helper_is_needed_under_run(mode, tmp_path):
    both(run, mode, tmp_path, 7)
    r = report(tmp_path)
    assert (r.counts, r.ended) == (WORK, "exit")


def test_library_alone_without_the_cli(tmp_path, sessions):
    """The CLI is not where the library looks for it."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    copy = folder / "libgputally.so"
    copy.write_bytes(LIBRARY.read_bytes())
    done = call([app("life_exit"), "return"], tmp_path, environment(copy, SESSION_DIR=sessions))
    assert done.status == 7
    assert done.err.count("\n") == 1 and str(sole_session(sessions)) in done.err
    assert finish(sole_session(sessions), tmp_path).status == 0
    assert report(tmp_path).counts == WORK
