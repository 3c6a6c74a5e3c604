"""Kokkos Tools: what Kokkos does is recorded, exactly, whatever version looks for its tool; and a program
that has a tool of its own, or a Kokkos that would complain, notices nothing."""
import shutil

import pytest

from conftest import (APPS, LIBRARY, Expected, clean_env, counts, execute, load_report, masked, reports, rows, run, tool,
                      tree)

pytestmark = pytest.mark.usefixtures("no_leftovers")
TOOL = APPS / "libkokkostool.so"
LONG = "S" * 63  # a name of a space that fills its place


def categories(report):
    """{category: {keys}} of the rows that have one"""
    found = {}
    for row in report["call_tree"]:
        if "category" in row:
            found.setdefault(row["category_name"], set()).add(row["key"])
    return found


@pytest.mark.san
@pytest.mark.parametrize("name", ["kokkos_basic", "kokkos_bad"])
def test_exact_and_the_same_both_ways(name, app, both):
    bare, under_run, plain = both(app(name), "--expect")
    expected = Expected(bare.stdout)
    assert bare.returncode == 0 and "wrong" not in bare.stdout and expected.counts
    one, two = load_report(under_run.folder), load_report(plain.folder)
    for report in (one, two):
        also = [k for k in counts(report) if k not in expected.counts]
        expected.check(report, also)
        assert {r["source"] for r in report["call_tree"]} == {"kokkos"}
        assert report["processes"][0]["ended"] == "exit" and report["open"] == []
        if name == "kokkos_basic":
            assert also == []
            assert masked(one) == masked(two)


def test_nesting(app, tmp_path):
    assert run(app("kokkos_basic"), cwd=tmp_path).returncode == 0
    got = tree(load_report(tmp_path))
    assert {k: n for k, n in got.items() if not k[-1].startswith("<") or k[-1] == "<async>"} == {
        ("step",): 3, ("step", "solve"): 3, ("step", "solve", "axpy"): 3, ("axpy",): 4, ("dot",): 4,
        ("dot", "inside dot"): 4, ("offsets",): 4, ("wait here",): 1, ("deep_copy Cuda:x <- Host:x",): 2,
        ("assembly", "<async>"): 5,
    }
    assert got[("step", "converged", "<mark>")] == 3
    assert got[("Host memory", "<counter>")] == 6


def test_categories_say_what_it_was_and_where(app, tmp_path):
    assert run(app("kokkos_basic"), cwd=tmp_path).returncode == 0
    assert categories(load_report(tmp_path)) == {
        "parallel_for on Cuda": {"axpy"}, "parallel_for on Serial": {"inside dot"},
        "parallel_reduce on Serial": {"dot"}, "parallel_scan": {"offsets"}, "fence on Cuda": {"wait here"},
        "deep_copy": {"deep_copy Cuda:x <- Host:x"},
        "allocate": {"allocate Host:x", "allocate Host:y", "allocate Cuda:x"},
        "deallocate": {"deallocate Host:x", "deallocate Host:y"},
        "dual_view": {"modify d on device", "sync d to host"},
    }


def test_what_the_user_named_is_an_annotation(app, tmp_path):
    assert run(app("kokkos_basic"), cwd=tmp_path).returncode == 0
    averages = load_report(tmp_path)["key_averages"]
    marked = {r["key"] for r in averages if r["is_user_annotation"]}
    assert marked == {"step", "solve", "assembly"}
    assert {r["scope"] for r in averages if r["key"] in marked} == {7}
    assert {r["scope"] for r in averages if r["key"] not in marked} == {0}
    assert [r["key"] for r in averages if r["is_async"]] == ["assembly"]


def test_live_and_peak_memory(app, tmp_path):
    assert run(app("kokkos_basic"), cwd=tmp_path).returncode == 0
    got = rows(load_report(tmp_path))
    assert got["Host memory"]["values"] == {"count": 6, "sum": 4200, "min": 0, "max": 1500, "last": 0}
    assert got["Cuda memory"]["values"]["last"] == 4096


def test_memory_of_all_threads_and_of_too_many_spaces(app, tmp_path):
    assert run(app("kokkos_bad"), cwd=tmp_path).returncode == 0
    report = load_report(tmp_path)
    counters = {r["key"]: r for r in report["counters"]}
    threads = counters["Threads memory"]["values"]
    # all four may hold their 8 bytes at the same time, never more
    assert threads["min"] == 0 and 8 <= threads["max"] <= 32
    # 15 spaces have a counter: "", Threads, the long one, and A to L
    assert set(counters) == {" memory", "Threads memory", LONG + " memory", "(other) memory",
                             *(f"Space{c} memory" for c in "ABCDEFGHIJKL")}
    assert counters["(other) memory"]["count"] == 8
    assert counters["(other) memory"]["values"]["max"] == 8
    assert counters[LONG + " memory"]["count"] == 1
    assert counters["SpaceA memory"]["count"] == 3
    assert counters["SpaceA memory"]["values"]["last"] == 1
    # a name that is too long is cut, not lost
    long = [k for k in counts(report) if k.startswith("allocate SpaceA:ll")]
    assert [len(k) for k in long] == [511]


@pytest.mark.parametrize("name,region", [("kokkos_old", "old region"), ("kokkos_oldest", "oldest kernel")])
def test_older_versions(name, region, app, both):
    _, under_run, plain = both(app(name))
    for done in (under_run, plain):
        report = load_report(done.folder)
        assert counts(report)[region] == 1
        want = {"parallel_for on OpenMP": {"old kernel"}} if name == "kokkos_old" else {
            "parallel_for": {"oldest kernel"}}
        assert categories(report) == want


def test_one_that_can_load_no_tool_is_not_told_of_us(app, both):
    _, under_run, plain = both(app("kokkos_nodl"))
    assert "Warning" not in under_run.stdout
    assert reports(under_run.folder) == reports(plain.folder) == []


USERS = [
    ("kokkos_basic", {"KOKKOS_TOOLS_LIBS": str(TOOL)}),
    ("kokkos_basic", {"KOKKOS_PROFILE_LIBRARY": str(TOOL)}),
    ("kokkos_basic", {"KOKKOS_TOOLS_LIBS": f"{TOOL};/nonexistent.so"}),
    ("kokkos_basic", {"KOKKOS_TOOLS_LIBS": "/nonexistent.so"}),
    ("kokkos_basic", {"KOKKOS_TOOLS_LIBS": ""}),
    ("kokkos_old", {"KOKKOS_PROFILE_LIBRARY": str(TOOL)}),
    ("kokkos_old", {"KOKKOS_PROFILE_LIBRARY": ""}),
    ("kokkos_old", {"KOKKOS_TOOLS_LIBS": str(TOOL)}),
]


@pytest.mark.parametrize("name,variables", USERS)
def test_the_users_own_tool(name, variables, app, both):
    bare, under_run, plain = both(app(name), env=variables)
    if str(TOOL) in variables.get("KOKKOS_PROFILE_LIBRARY", "") or name == "kokkos_basic":
        assert ("tool: region" in bare.stdout) == (str(TOOL) in "".join(variables.values()))
    assert reports(under_run.folder) == reports(plain.folder) == []


@pytest.mark.parametrize("at", [0, 2031, 2040, 2047, 4090, 9000])
def test_the_users_own_tool_as_an_option(at, app, both):
    """3.3 to 3.6 throw if the variable names another one; the option may lie anywhere in the command line,
    which is read 2048 bytes at a time."""
    path = app("kokkos_old")
    before = ["x" * (at - len(str(path)) - 2)] if at else []
    bare, under_run, plain = both(path, *before, f"--kokkos-tools-library={TOOL}")
    assert bare.returncode == 0 and "tool: region old region" in bare.stdout
    assert reports(under_run.folder) == reports(plain.folder) == []


def test_a_tool_that_is_linked_in(app, both):
    bare, under_run, plain = both(app("kokkos_linked"))
    assert bare.returncode == 0, bare.stdout
    assert reports(under_run.folder) == reports(plain.folder) == []


def test_named_by_the_user(app, tmp_path):
    done = run(app("kokkos_basic"), cwd=tmp_path, env=clean_env(KOKKOS_TOOLS_LIBS=str(LIBRARY)))
    assert done.returncode == 0 and "wrong" not in done.stdout
    assert counts(load_report(tmp_path))["axpy"] == 7


def test_a_folder_that_kokkos_would_split(app, tmp_path):
    folder = tmp_path / "a;b"
    folder.mkdir()
    library = shutil.copy(LIBRARY, folder)
    done = execute([app("kokkos_basic")], cwd=tmp_path, env=clean_env(LD_PRELOAD=library))
    assert done.returncode == 0 and done.stdout == "done\n"
    assert list(tmp_path.glob("*.json")) == []


def test_switched_off(app, both, tmp_path):
    _, under_run, plain = both(app("kokkos_basic"), env={"GPUTALLY_SOURCES": "-kokkos"})
    assert reports(under_run.folder) == reports(plain.folder) == []
    # named by the user all the same: opened, and has nothing to give
    done = run(app("kokkos_basic"), cwd=tmp_path, options=["--sources", "-kokkos"],
               env=clean_env(KOKKOS_TOOLS_LIBS=str(LIBRARY)))
    assert done.returncode == 0 and done.stdout == "done\n"
    assert list(tmp_path.glob("*.json")) == []


def test_killed(app, tmp_path):
    done = run(app("kokkos_basic"), "kill", cwd=tmp_path)
    assert done.returncode == -9
    report = load_report(tmp_path)
    assert report["processes"][0]["ended"] == "killed"
    keys = {r["id"]: r["key"] for r in report["call_tree"]}
    assert sorted(keys[o["row"]] for o in report["open"]) == ["endless", "running", "step"]
    got = counts(report)
    assert (got["axpy"], got["endless"], got["step"], got["running"]) == (4, 1, 1, 1)


def test_fork(app, both):
    _, under_run, plain = both(app("kokkos_basic"), "fork")
    for done in (under_run, plain):
        parent, child = sorted(reports(done.folder), key=lambda r: "axpy" in counts(r))
        assert counts(parent) == {"running": 1, "allocate Host:x": 1, "Host memory": 1}
        assert parent["lost"]["unbalanced"] == 0
        got = counts(child)
        assert (got["running"], got["axpy"], got["deallocate Host:x"]) == (1, 4, 1)
        # it stopped its parent's section once
        assert child["lost"]["unbalanced"] == 1
        # what the parent allocated is the child's too
        assert rows(child)["Host memory"]["values"]["last"] == 0


def test_real_kokkos(app, both):
    path = app("kokkos_real")
    bare, under_run, plain = both(path)
    assert bare.returncode == 0
    for done in (under_run, plain):
        report = load_report(done.folder)
        got = tree(report)
        ranges = {k: n for k, n in got.items()
                  if not k[-1].startswith("<") and not k[-1].startswith("Kokkos::")}
        assert {k: n for k, n in ranges.items() if "fence" not in k[-1].lower()} == {
            ("step",): 3, ("step", "fill"): 3, ("step", "sum"): 3, ("step", "scan"): 3, ("step", "copy"): 3,
            ("step", "copy", "deep_copy Host:a <- Host:b"): 3,
        }
        assert got[("section", "<async>")] == 3 and got[("step", "done", "<mark>")] == 3
        averages = rows(report)
        assert averages["deep_copy Host:a <- Host:b"]["bytes"] == 3 * 8000
        for view in "ab":
            # Kokkos adds its own header to each
            allocated = averages[f"allocate Host:{view}"]
            assert allocated["count"] == averages[f"deallocate Host:{view}"]["count"] == 1
            assert allocated["values"]["sum"] >= 8000
        assert averages["Host memory"]["values"]["max"] >= 16000
        assert report["lost"]["unbalanced"] == 0
        by_kind = categories(report)
        assert "fill" in by_kind["parallel_for on Serial"]
        assert by_kind["parallel_reduce on Serial"] == {"sum"}
        assert by_kind["parallel_scan on Serial"] == {"scan"}


def test_real_kokkos_and_its_own_words(app, both):
    """Its help goes on as without a tool."""
    both(app("kokkos_real"), "--kokkos-tools-help")
    path = app("kokkos_real")
    bare, under_run, _ = both(path, "--kokkos-help")
    assert bare.stdout == under_run.stdout


def test_listed(tmp_path):
    assert "kokkos " in tool("list", "sources", cwd=tmp_path).stdout
