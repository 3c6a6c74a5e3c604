"""Public bug reports about CUDA, numbered as in the list of cases, replayed on the simulated GPU. No nvcc is needed."""
import pytest

from conftest import SAN, counts, load_report, rows
from test_cuda_sim import SIM, both, sim  # noqa: F401 (fixtures)

pytestmark = [pytest.mark.usefixtures("no_leftovers"),
              pytest.mark.skipif(bool(SAN), reason="the simulated GPU's programs are built without sanitizers")]


@pytest.fixture
def case(sim, both):  # noqa: F811
    """Runs a mode of the client: (bare, run, plain), all with the same output and status."""
    program = SIM / "apps/cases"
    assert program.exists(), f"{program} is not built: make sim-apps"

    def go(mode, libraries=SIM):
        return both(program, mode, SIM / "demo/train.cubin", env={
            **sim, "LD_LIBRARY_PATH": f"{libraries}:{SIM}/apps", "GTSIM_KERNELS": str(SIM / "demo/kernels.so")})
    return go


def launches(done):
    """(what the driver saw, what the report counts)"""
    seen = [line.split()[1] for line in (done.folder / "trace").read_text().splitlines() if line.startswith("call")]
    return seen.count("cuLaunchKernel"), counts(load_report(done.folder))["cuLaunchKernel"]


def test_05_plugin_bound_deeply(case):
    """RTLD_DEEPBIND binds a plugin's calls to the driver past a preloaded library."""
    bare, under_run, plain = case("deepbind")
    assert bare.stdout == "plugin: 0\n"
    for done in (under_run, plain):
        assert launches(done) == (5, 5)
        assert counts(load_report(done.folder))["cuMemAlloc"] == 1


def test_07_found_as_the_static_runtime_finds_it(case):
    """By dlsym, and by the cuGetProcAddress that cuGetProcAddress gives: each launch once."""
    bare, under_run, plain = case("static")
    assert bare.stdout == "launched 7\n"
    for done in (under_run, plain):
        assert launches(done) == (7, 7)
        assert counts(load_report(done.folder))["cuCtxSynchronize"] == 2


def test_09_calls_after_main(case):
    """A static destructor, two threads' locals and atexit free a block and end a range each: counted, or told as late."""
    bare, under_run, plain = case("late")
    assert bare.returncode == 3
    assert [line.split(": ")[0] for line in bare.stdout.splitlines()] == [
        "thread local of a thread", "thread local of main", "atexit", "static destructor"]
    for done in (under_run, plain):
        report = load_report(done.folder)
        ranges = rows(report)["held"]["count"]
        still_open = sum(1 for r in report["open"] if r["name"] == "held")
        freed = rows(report)["cuMemFree"]["count"]
        assert ranges == 4 and freed >= 1
        assert freed + ranges - still_open + report["lost"]["late"] == 8
        assert report["lost"]["unbalanced"] == 0


@pytest.mark.parametrize("way", ["cupti", "events"])
def test_10_closed_while_a_thread_has_used_it(case, tmp_path, way):
    """Three lives of the driver; each one's thread ends when its driver was closed. CUPTI holds the driver; without it the
    driver is gone, each life lies at another place, and times come from events of a driver that is no more."""
    alone = tmp_path / "alone"
    alone.mkdir()
    (alone / "libcuda.so.1").symlink_to(SIM / "libcuda.so.1")
    for end in ("", ".11.0", ".12", ".13"):  # or the one of a toolkit on this machine would be found
        (alone / f"libcupti.so{end}").write_text("none")
    bare, under_run, plain = case("reload", SIM if way == "cupti" else alone)
    assert bare.returncode == 0 and bare.stderr == "gone\n" * 3
    for done in (under_run, plain):
        assert done.stderr.count("gone\n") == (3 if way == "events" else 0), done.stderr
        assert launches(done) == (6, 6)
        got = counts(load_report(done.folder))
        assert {k: got[k] for k in ("thread", "cuInit", "cuMemAlloc", "cuModuleLoad", "cuCtxSynchronize") if k in got} == {
            "thread": 3, "cuInit": 3, "cuMemAlloc": 3, "cuModuleLoad": 3, "cuCtxSynchronize": 3}
        assert load_report(done.folder)["open"] == []
