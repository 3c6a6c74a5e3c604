"""Unmodified annotated programs: exact reports, the same under `gputally run` and plain LD_PRELOAD,
and nothing changed for the program."""
import json
import subprocess

import pytest

from conftest import (LIBRARY, SAN, Expected, chain, clean_env, counts, execute, load_report, masked, preload,
                      rows, run, tool, tree)

pytestmark = [pytest.mark.san, pytest.mark.usefixtures("no_leftovers")]

# names that can't be told on one line of --expect, see its long_names()
ALSO = {"nvtx_bad": 3}
PROGRAMS = ["nvtx_basic", "nvtx_bad", "nvtx_threads", "nvtx_torchtext", "nvtx_v2", "nvtx_cpp", "api_basic",
            "api_nopie"]


def by_place(report):
    places = {}
    for row in report["call_tree"]:
        at = row["domain"], chain(report, row), row["kind"], row["source"]
        places[at] = places.get(at, 0) + row["count"]
    return places, masked(report["lost"]), report["open"]


@pytest.mark.parametrize("name", PROGRAMS)
def test_exact_and_the_same_both_ways(name, app, both):
    path = app(name)
    bare, under_run, plain = both(path, "--expect")
    assert bare.returncode == 0, bare.stdout + bare.stderr
    expected = Expected(bare.stdout)
    assert expected.counts
    one, two = load_report(under_run.folder), load_report(plain.folder)
    for report in (one, two):
        also = set(counts(report)) - set(expected.counts)
        assert len(also) == ALSO.get(name, 0), also
        expected.check(report, also)
        assert report["processes"][0]["ended"] == "exit"
        assert report["open"] == []
    if name == "nvtx_threads":
        # which thread starts first, and whether a slot is used again, is chance
        assert by_place(one) == by_place(two)
    else:
        assert masked(one) == masked(two)


@pytest.mark.parametrize("name", ["nvtx_basic", "nvtx_threads"])
def test_self_and_total_add_up(name, app, tmp_path):
    run(app(name), cwd=tmp_path)
    report = load_report(tmp_path)
    by_id = {r["id"]: r for r in report["call_tree"]}
    kids = {}
    for row in report["call_tree"]:
        if row["kind"] == "range" and row["parent"] is not None:
            kids[row["parent"]] = kids.get(row["parent"], 0) + row["total_ns"]
    if report["lost"]["overlapped"] == 0:
        for i, row in by_id.items():
            if row["kind"] == "range":
                assert 0 <= row["self_ns"] <= row["total_ns"]
                # ticks become ns row by row: each may be off by one
                assert abs(row["total_ns"] - kids.get(i, 0) - row["self_ns"]) <= 2 + len(kids)
    for row in report["call_tree"]:
        if row["kind"] == "async":
            assert row["self_ns"] == 0
        assert row["count"] == 0 or row["min_ns"] <= row["max_ns"]


def test_nesting_of_nvtx_basic(app, tmp_path):
    assert run(app("nvtx_basic"), cwd=tmp_path).returncode == 0
    t = tree(load_report(tmp_path))
    want = {
        ("outer",): 3, ("outer", "inner"): 30, ("outer", "inner", "leaf"): 30, ("leaf",): 1000,
        ("wide",): 2, ("wide", "Größe €"): 2, ("read",): 5, ("load",): 7,
        # 7 of alpha, 5 with beta's inside, which stays open when alpha's ends
        ("work",): 7, ("work", "work"): 5, ("registered name",): 4, ("wide registered",): 1,
        ("async", "<async>"): 6, ("wide async", "<async>"): 1,
    }
    for depth in range(1, 6):
        want[("rec",) * depth] = 1
    for what in ("<mark>",):
        want.update({("tick", what): 4, ("wide mark", what): 1})
    assert t == want


def test_domains_async_categories(app, tmp_path):
    assert run(app("nvtx_basic"), cwd=tmp_path).returncode == 0
    report = load_report(tmp_path)
    got = {}
    for row in report["call_tree"]:
        if row["key"] in ("work", "async", "tick", "read", "registered name"):
            at = row["domain"], row["key"], row["kind"], row.get("category_name")
            got[at] = got.get(at, 0) + row["count"]
    assert got == {
        ("alpha", "work", "range", None): 7, ("beta", "work", "range", None): 5,
        ("", "async", "async", None): 4, ("alpha", "async", "async", None): 2,
        ("", "tick", "mark", None): 3, ("alpha", "tick", "mark", None): 1,
        ("", "read", "range", "io"): 3, ("", "read", "range", "net"): 2,
        ("alpha", "registered name", "range", None): 4,
    }
    averages = rows(report)
    assert {k for k, r in averages.items() if r.get("is_async")} == {"async", "alpha:async", "wide async"}
    for key in ("async", "alpha:async"):
        assert averages[key]["self_cpu_time_total"] == 0 and averages[key]["cpu_time_total"] > 0
    assert report["processes"][0]["threads"][0]["name"] == "the main one"
    assert averages["load"]["values"] == {"count": 6, "sum": 5, "min": -3, "max": 7, "last": 1.5}


def test_threads_have_their_own_rows(app, tmp_path):
    assert run(app("nvtx_threads"), "3", "50", cwd=tmp_path).returncode == 0
    report = load_report(tmp_path)
    assert counts(report) == {"worker": 3, "pair": 100, "odd:pair": 50}
    done = tool("report", "--group-by", "thread", "-f", "json", next(tmp_path.glob("*.json")))
    assert done.returncode == 0
    by_thread = [r for r in json.loads(done.stdout)["key_averages"] if r["key"] == "worker"]
    # slots are reused when a thread has ended before the next begins
    assert sum(r["count"] for r in by_thread) == 3
    assert len(by_thread) == len({r["thread"] for r in by_thread})
    assert sum(t["threads"] for t in report["processes"][0]["threads"]) == 3


def test_shapes_are_kept_apart_when_asked(app, tmp_path):
    done = run(app("nvtx_torchtext"), "--expect", options=["--record-shapes"], cwd=tmp_path)
    expected = Expected(done.stdout)
    assert expected.shapes
    file = next(tmp_path.glob("*.json"))
    done = tool("report", "--group-by", "shape", "-f", "json", file)
    got = {(r["key"], json.dumps(r["input_shapes"])): r["count"]
           for r in json.loads(done.stdout)["key_averages"] if r["input_shapes"]}
    assert got == expected.shapes


@pytest.mark.parametrize("name", ["api_basic", "api_nopie"])
def test_own_api_without_the_library(name, app):
    done = execute([app(name)])
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")


def test_own_api_is_off_by_its_source(app, tmp_path):
    """Without its source the calls find a library that does not listen; nothing is left or said."""
    done = run(app("api_basic"), options=["--sources=-api"], cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")
    assert list(tmp_path.iterdir()) == []


def test_exceptions_keep_their_unwinder(app, both, tmp_path):
    if SAN:
        pytest.skip("a sanitizer interposes the unwinder itself")
    path = app("nvtx_cpp")
    both(path)  # the checksum over 10^5 exceptions is the same
    log = tmp_path / "bindings"
    done = execute([path], cwd=tmp_path, env=preload(LD_DEBUG="bindings", LD_DEBUG_OUTPUT=str(log),
                                                     GPUTALLY_FORMAT="none"))
    assert done.returncode == 0
    bound = [line for f in tmp_path.glob("bindings.*") for line in f.read_text(errors="replace").splitlines()
             if "symbol `_Unwind_RaiseException'" in line]
    assert bound
    assert all(line.split(" to ")[1].split(" ")[0].split("/")[-1].startswith("libgcc_s.so") for line in bound), bound


def test_library_needs_only_libc():
    if SAN:
        pytest.skip("a sanitizer adds its runtime")
    done = subprocess.run(["readelf", "-d", LIBRARY], capture_output=True, text=True, env=clean_env())
    if done.returncode:
        pytest.skip("readelf is not installed")
    needed = [line.split("[")[1].rstrip("]") for line in done.stdout.splitlines() if "(NEEDED)" in line]
    assert set(needed) <= {"libc.so.6", "libdl.so.2", "libpthread.so.0", "ld-linux-x86-64.so.2",
                           "ld-linux-aarch64.so.1"}


def test_a_program_that_records_nothing_is_left_alone(both):
    bare, under_run, plain = both("sh", "-c", "echo out; echo err >&2; exit 3")
    for done in (under_run, plain):
        assert done.stderr == bare.stderr
        assert list(done.folder.iterdir()) == []
