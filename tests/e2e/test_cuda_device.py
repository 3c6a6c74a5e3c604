"""Times of the simulated GPU: exact, whichever way they come (CUPTI's records, pairs of events, CUPTI shared with the
program's own use of it), below the ranges and calls that launched what they are of."""
import json
import re
import shutil
import sys

import pytest

from conftest import BUILD, GPUTALLY, ROOT, SAN, clean_env, execute, load_report
from test_cuda_sim import both, program, sim  # noqa: F401 (fixtures)

pytestmark = [pytest.mark.usefixtures("no_leftovers"),
              pytest.mark.skipif(bool(SAN), reason="the simulated GPU's programs are built without sanitizers")]
REFUSED = {"GTSIM_CUPTI_REFUSE": "999"}
FILL = "void fill<float>(float*, int, float)"
# simulated: 10 us a kernel but for those whose name says more, 1 us a copy or set of this size
KERNELS = {FILL: (2, 20), "saxpy": (1, 10)}
SCALED = {"cupti": (5, 100), "events": (3, 60)}  # two are in a graph, which events time as a whole


def device_rows(report):
    return [r for r in report["call_tree"] if r.get("device") == "CUDA"]


def above(report, row):
    """Keys from the row up to the outermost one."""
    out = []
    while row["parent"] is not None:
        row = report["call_tree"][row["parent"]]
        out.append(row["key"])
    return out


def check_sums(report):
    """Device time of the outermost rows is that of all rows of devices, and no launch lacks its record."""
    tree = report["call_tree"]
    assert sum(r.get("device_ns", 0) for r in tree if r["parent"] is None) == \
        sum(r["self_device_ns"] for r in device_rows(report))
    lost = report["lost"]
    assert (lost["unattributed"], lost["device_records"], lost["unfinished"]) == (0, 0, 0)


def check_folded(folder, report):
    """Each kernel below the call that launched it, and all together what the rows have (here whole microseconds)."""
    path, = folder.glob("*.json")
    lines = execute([GPUTALLY, "report", path, "-f", "folded", "--metric", "device"]).stdout.splitlines()
    times = {line.rsplit(" ", 1)[0]: int(line.rsplit(" ", 1)[1]) for line in lines}
    assert times["main;launch;cudaLaunchKernel;cuLaunchKernel;saxpy"] == 10
    assert times["main;streams;cudaLaunchKernel;cuLaunchKernel;scale_20us"] == 60
    assert "main;launch;cudaLaunchKernel;cuLaunchKernel" not in times
    assert sum(times.values()) * 1000 == sum(r["self_device_ns"] for r in device_rows(report))


def kernels(report):
    return {r["key"]: (r["count"], r["self_device_time_total"]) for r in report["key_averages"]
            if r["device_type"] == "CUDA"}


@pytest.mark.parametrize("way", ["cupti", "events"])
def test_every_kernel_below_its_range(sim, program, both, way):
    _, under_run, plain = both(program("saxpy"), env=dict(sim, **(REFUSED if way == "events" else {})))
    for done in (under_run, plain):
        report = load_report(done.folder)
        check_sums(report)
        check_folded(done.folder, report)
        got = kernels(report)
        assert {k: got[k] for k in KERNELS} == KERNELS and got["scale_20us"] == SCALED[way]
        assert all(bool(r.get("is_legacy")) == (way == "events") for r in device_rows(report))
        ranges = {}
        for r in device_rows(report):
            ranges.setdefault(r["key"], set()).update(k for k in above(report, r) if not k.startswith("cu"))
        assert ranges["saxpy"] == {"main", "launch"} and {"main", "streams"} <= ranges["scale_20us"]
        for r in device_rows(report):  # the innermost is the driver's call, the next one the runtime's
            inner, outer = above(report, r)[:2]
            assert inner.startswith("cu") and outer.startswith("cuda")
        told = "CUPTI does not work here (error 999)" in done.stderr
        assert told == (way == "events"), done.stderr


@pytest.mark.parametrize("way", ["cupti", "events"])
@pytest.mark.parametrize("launches", [10, 200])
def test_four_threads_of_three_streams(sim, program, both, way, launches):
    env = dict(sim, THREADS_LAUNCHES=str(launches), **(REFUSED if way == "events" else {}))
    _, under_run, _ = both(program("threads"), env=env)
    report = load_report(under_run.folder)
    check_sums(report)
    got = kernels(report)
    per_thread = [r for r in report["call_tree"] if re.fullmatch(r"thread \d", r["key"])]
    want = {FILL: (12, 120), "add_5us": (12 * launches, 60 * launches)}
    ns = 3 * (10 + 5 * launches + 1) * 1000
    assert {k: got[k] for k in want} == want and [r["device_ns"] for r in per_thread] == [ns] * 4
    copies = [r for r in report["key_averages"] if r["key"].startswith("Memcpy DtoH")]
    assert [(r["count"], r["bytes"]) for r in copies] == [(12, 12 * 256 * 4)]


@pytest.mark.parametrize("name, own", [
    ("saxpy_cupti", {}), ("threads_cupti", {}), ("saxpy_cupti", {"OWN_DUMP": "1"}), ("threads_cupti", {"OWN_BUFFER": "1024"}),
    ("saxpy_cupti", {"OWN_KINDS": "39 10 5", "OWN_EXTERNAL": "1"}), ("threads_cupti", {"OWN_CALLBACKS": "1", "OWN_KINDS": "10"})])
def test_a_program_that_uses_cupti_itself(sim, program, both, name, own, tmp_path):
    """Its records, which it prints, are those that it gets alone; ours are those without it."""
    bare, under_run, plain = both(program(name), env=dict(sim, **own))
    assert len(bare.stdout.splitlines()) > (20 if "OWN_KINDS" in own else 80)
    done = execute([GPUTALLY, "run", "-q", "-o", "alone", "--", program(name.replace("_cupti", ""))], cwd=tmp_path, env=clean_env(**sim))
    assert done.returncode == 0, done.stderr
    alone = kernels(json.loads((tmp_path / "alone.json").read_text()))
    for done in (under_run, plain):
        report = load_report(done.folder)
        check_sums(report)
        assert kernels(report) == alone
        assert not any(r.get("is_legacy") for r in device_rows(report))


def test_launches_outside_of_ranges(sim, program, both):
    """They are below their own call, which is below nothing."""
    _, under_run, _ = both(program("saxpy"), env=dict(sim, GPUTALLY_SOURCES="cuda"))
    report = load_report(under_run.folder)
    check_sums(report)
    for r in device_rows(report):
        assert [k[:4] for k in above(report, r)][-1] == "cuda" and len(above(report, r)) == 2


@pytest.mark.parametrize("error", ["39", "15", "1"])
def test_cupti_that_refuses(sim, program, both, error):
    _, under_run, _ = both(program("saxpy"), env=dict(sim, GTSIM_CUPTI_REFUSE=error))
    report = load_report(under_run.folder)
    check_sums(report)
    assert under_run.stderr.count("CUPTI does not work here") == 1 and f"error {int(error):03}" in under_run.stderr
    assert all(r["is_legacy"] for r in device_rows(report))


def test_sizes_of_launches(sim, program, both):
    _, under_run, _ = both(program("saxpy"), env=sim)
    report = load_report(under_run.folder)
    row = next(r for r in device_rows(report) if r["key"] == "saxpy")
    assert (row["launch"]["grid"], row["launch"]["block"]) == ([4, 1, 1], [256, 1, 1])
    assert row["launch"]["delays"] == row["count"]
    again = execute([GPUTALLY, "report", next(under_run.folder.glob("*.json")), "-f", "json"], cwd=under_run.folder)
    assert again.returncode == 0
    assert [r.get("launch") for r in json.loads(again.stdout)["call_tree"]] == \
        [r.get("launch") for r in report["call_tree"]]


@pytest.mark.parametrize("way", ["cupti", "events"])
@pytest.mark.parametrize("end", ["exit", "quit", "kill", "destroy", "again", "fork"])
def test_launches_that_nobody_waited_for(sim, tmp_path, way, end):
    """Each of the five kernels has its record, or is told as unfinished; status and output are the program's."""
    demo = BUILD / "sim/demo"
    env = clean_env(**sim, **(REFUSED if way == "events" else {}))
    env["GTSIM_KERNELS"] = str(demo / "kernels.so")
    command = [sys.executable, ROOT / "tests/apps/cuda_left.py", demo / "train.cubin", end]
    bare = execute(command, cwd=tmp_path, env=env)
    done = execute([GPUTALLY, "run", "-q", "-f", "json", "-o", "left.%n", "--"] + command, cwd=tmp_path, env=env)
    # a shell's status is 128 and the signal's number
    assert done.stdout == bare.stdout == "launched\n" and done.returncode % 256 == bare.returncode % 256, done.stderr
    reports = [json.loads(p.read_text()) for p in tmp_path.glob("left.*.json")]
    report = max(reports, key=lambda r: sum(a["count"] for a in r["key_averages"] if a["key"] == "cuLaunchKernel"))
    launches = 10 if end == "again" else 5
    seen, ns = kernels(report).get("update_10us", (0, 0))
    assert (seen + report["lost"]["unfinished"], report["lost"]["device_records"]) == (launches, 0)
    assert ns == 10 * seen
    if end in ("destroy", "again"):
        assert seen == launches


@pytest.mark.parametrize("way", ["cupti", "events"])
def test_a_driver_program_with_an_image_of_nvcc(sim, program, both, way):
    env = dict(sim, **(REFUSED if way == "events" else {}))
    bare, *ours = both(program("driver"), program("saxpy.cubin"), env=env)
    assert bare.stdout == "stream 0: right, 0.010 ms\nstream 1: right, 0.010 ms\n" and bare.returncode == 0
    for done in ours:
        report = load_report(done.folder)
        check_sums(report)
        got = kernels(report)
        assert got["saxpy"] == (2, 20)
        assert sorted((k.split(" (")[0], v) for k, v in got.items() if k != "saxpy") == \
            [("Memcpy DtoH", (2, 2)), ("Memcpy HtoD", (4, 4))]


SHARED = """extern "C" __global__ void k(float *y)
{
    __shared__ float s[128];
    s[threadIdx.x] = y[threadIdx.x];
    __syncthreads();
    y[threadIdx.x] = s[127 - threadIdx.x];
}"""
ASK = """import ctypes as c
d = c.CDLL("libcuda.so.1")
v, x, m, f = c.c_int(), c.c_void_p(), c.c_void_p(), c.c_void_p()
d.cuInit(0), d.cuCtxCreate_v2(c.byref(x), 0, 0), d.cuModuleLoad(c.byref(m), b"k.cubin")
print(d.cuModuleGetFunction(c.byref(f), m, b"k"), d.cuFuncGetAttribute(c.byref(v), 1, f), v.value)"""


def test_shared_memory_without_what_the_system_reserves(sim, tmp_path):
    """nvcc's section for sm_90 counts 1,024 bytes of the system's, the attribute does not."""
    nvcc = shutil.which("nvcc") or shutil.which("/usr/local/cuda/bin/nvcc")
    if not nvcc:
        pytest.skip("nvcc is not here")
    (tmp_path / "k.cu").write_text(SHARED)
    assert execute([nvcc, "-arch=sm_90", "-cubin", "k.cu", "-o", "k.cubin"], cwd=tmp_path).returncode == 0
    done = execute([sys.executable, "-c", ASK], cwd=tmp_path, env=clean_env(**sim))
    assert done.stdout == "0 0 512\n", done.stderr
