"""CUDA's calls, on stubs of the driver and the runtime: every function by each way in, what it moved, which variant."""
import re

import pytest

from conftest import APPS, SAN, Expected, counts, execute, load_report, run, tool

# AddressSanitizer's dlopen does not know the program's own path of libraries
STUB = {"LD_LIBRARY_PATH": str(APPS / "cuda")}
pytestmark = pytest.mark.usefixtures("no_leftovers")


@pytest.mark.san
@pytest.mark.parametrize("api", ["driver", "runtime"])
@pytest.mark.parametrize("internal", ["0", "1"])
def test_every_function_by_each_way(app, both, api, internal):
    """The client fails if an argument does not arrive; counts and failures are exact for each of them. With
    `internal` the driver hands out other functions than those that it exports."""
    bare, under_run, plain = both(app("cuda_all"), api, "--expect", env={"STUB_INTERNAL": internal})
    assert bare.returncode == 0 and f"{373 if api == 'driver' else 258} functions, 0 wrong" in bare.stdout
    expected = Expected(bare.stdout)
    assert len(expected.counts) > 150
    for done in (under_run, plain):
        report = load_report(done.folder)
        expected.check(report)
        assert {r["source"] for r in report["call_tree"]} == {"cuda"}
        assert {r["scope"] for r in report["key_averages"]} == {0}
        assert not any(r["is_user_annotation"] for r in report["key_averages"])
        assert report["open"] == []


@pytest.mark.san
def test_bytes_and_failures(app, both):
    bare, under_run, plain = both(app("cuda_bytes"), "--expect")
    expected = Expected(bare.stdout)
    assert expected.sums["cuMemcpyHtoD", "bytes"] == 2 << 40
    for done in (under_run, plain):
        expected.check(load_report(done.folder))


@pytest.mark.san
@pytest.mark.parametrize("internal", ["0", "1"])
def test_the_right_variant_each_time(app, both, internal):
    """Case 6: names, versions, per-thread streams, empty and missing names, no status: `both` compares what the driver saw."""
    bare, under_run, plain = both(app("cuda_proc"), "proc", env=dict(STUB, STUB_INTERNAL=internal))
    seen = [line.split(": ", 1) for line in bare.stdout.splitlines() if ", call " in line]
    want = {}
    for _, what in seen:
        key = re.sub(r"(_v\d)?(_ptsz|_ptds)?,.*", "", what)
        want[key] = want.get(key, 0) + 1
    # one has no line, and the third cuMemAlloc came after the table: nobody stands in front of them
    del want["cuCtxGetFlags"]
    want["cuMemAlloc"] -= 2
    for done in (under_run, plain):
        assert counts(load_report(done.folder)) == want


@pytest.mark.san
def test_closed_and_opened_elsewhere(app, both):
    """`both` compares that the driver was really gone, and which life of it was called."""
    bare, under_run, plain = both(app("cuda_proc"), "reload", env=STUB)
    assert bare.stdout.count("gone") == 4 and bare.stdout.count("another place") >= 2
    for done in (under_run, plain):
        assert counts(load_report(done.folder)) == {"cuLaunchKernel": 4, "cuMemFree": 4, "cuCtxSynchronize": 2}


@pytest.mark.san
@pytest.mark.parametrize("mode", ["plugin", "deepbind"])
def test_linked_into_a_plugin(app, both, mode):
    """Each life of the plugin has a driver of its own, at another place; RTLD_DEEPBIND would bind it past us."""
    if mode == "deepbind" and SAN:
        pytest.skip("sanitizers refuse RTLD_DEEPBIND")
    bare, under_run, plain = both(app("cuda_proc"), mode, env=dict(STUB, GPUTALLY_SOURCES="cuda"))
    assert bare.stdout == "plugin: cuLaunchKernel, call 1, gave 0\ngone\n" * 3
    for done in (under_run, plain):
        assert counts(load_report(done.folder)) == {"cuLaunchKernel": 3}


def test_an_old_driver(app, both):
    bare, under_run, plain = both(app("cuda_proc"), "old", env={"LD_LIBRARY_PATH": str(APPS / "cuda/old")})
    assert "second: none, error told" in bare.stdout and "newer by name: none" in bare.stdout
    for done in (under_run, plain):
        assert counts(load_report(done.folder)) == {"cuMemAlloc": 1, "cuMemFree": 1, "cuMemsetD8": 1}


def test_what_the_driver_looks_up_is_its_own(app, both):
    bare, under_run, plain = both(app("cuda_proc"), "inside", env=STUB)
    assert "the driver finds its own" in bare.stdout
    for done in (under_run, plain):
        assert counts(load_report(done.folder)) == {"cuCtxSynchronize": 1}


@pytest.mark.parametrize("window, want", [("all", {"cuLaunchKernel": 1, "cuMemFree": 1, "cuEventRecord": 1}),
                                          ("paused", {"cuMemFree": 1, "cuEventRecord": 1})])
def test_the_program_says_when(app, both, window, want):
    """cuProfilerStop pauses, once; cuProfilerStart resumes, and opens a window that waits for that."""
    _, under_run, plain = both(app("cuda_proc"), "profiler", env=dict(STUB, GPUTALLY_WINDOW=window))
    for done in (under_run, plain):
        assert counts(load_report(done.folder)) == want


def test_no_driver(app, both):
    """Who looks finds nothing, as without us; and nothing is recorded, so nothing is told."""
    bare, under_run, plain = both(app("cuda_proc"), "absent")
    assert "found" not in bare.stdout and "not told" not in bare.stdout
    for done in (under_run, plain):
        # CUDA_ERROR_NOT_INITIALIZED, from a name that we have and nobody else
        assert done.stderr == "weak 3\n"
        assert list(done.folder.iterdir()) == []


@pytest.mark.san
def test_calls_at_the_very_end(app, both):
    bare, under_run, plain = both(app("cuda_proc"), "late", env=STUB)
    assert bare.returncode == 3 and bare.stdout.count("cuMemFree_v2") == 4
    for done in (under_run, plain):
        report = load_report(done.folder)
        assert counts(report).get("cuMemFree", 0) + report["lost"]["late"] == 4


def test_switched_off(app, tmp_path):
    for args in (["driver", "off"], ["runtime", "off"]):
        done = run(app("cuda_all"), *args, cwd=tmp_path, options=["--sources=-cuda"])
        assert done.returncode == 0 and "0 wrong" in done.stdout and done.stderr == ""
    absent = run(app("cuda_proc"), "absent", cwd=tmp_path, options=["--sources=-cuda"])
    assert absent.stdout == execute([app("cuda_proc"), "absent"]).stdout
    assert list(tmp_path.iterdir()) == []


def test_listed(tmp_path):
    assert "cuda " in tool("list", "sources", cwd=tmp_path).stdout
