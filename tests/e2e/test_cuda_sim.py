"""CUDA's calls on the simulated GPU: unmodified programs behave the same, and what the report counts is what the
driver's own trace says, call for call."""
import csv
import io
import json
import re
import shutil
import sys
from collections import Counter

import pytest

from conftest import BUILD, GPUTALLY, ROOT, SAN, chain, clean_env, counts, execute, load_report, preload, rows, run, tool, tree

pytestmark = [pytest.mark.usefixtures("no_leftovers"),
              pytest.mark.skipif(bool(SAN), reason="the simulated GPU's programs are built without sanitizers")]
SIM = BUILD / "sim"
PYTHON_APPS = ROOT / "tests/apps"


def names(table):
    text = (ROOT / f"preload/hooks/{table}.def").read_text()
    return {name for name, kind in re.findall(r"(?m)^(?:HOOK|WIDE)\((\w+), \w+, (?:\d+, )?(\w+)", text)
            if kind not in ("LOOKUP", "CONTROL")}


DRIVER = names("cuda")


def key(name):
    return re.sub(r"(_v\d+)?(_ptsz|_ptds)?$", "", name)


@pytest.fixture
def sim():
    """Environment of the simulated GPU, the trace in each run's own folder."""
    if not (SIM / "libcuda.so.1").exists():
        pytest.skip("the simulated GPU is not built: no CUDA 13 headers (scripts/cuda-include)")
    return {"LD_LIBRARY_PATH": str(SIM), "GTSIM_KERNELS": str(SIM / "apps/kernels.so"), "GTSIM_TRACE": "trace"}


@pytest.fixture
def both(tmp_path):
    """As conftest's, for programs that leave a file (the trace)."""
    def go(*command, env):
        out = []
        for name in ("bare", "run", "plain"):
            folder = tmp_path / name
            folder.mkdir()
            line = ([GPUTALLY, "run", "--"] if name == "run" else []) + list(command)
            done = execute(line, cwd=folder, env=preload(**env) if name == "plain" else clean_env(**env))
            done.folder = folder
            out.append(done)
        for done in out[1:]:
            assert (done.returncode, done.stdout) == (out[0].returncode, out[0].stdout), done.stderr
        return out
    return go


@pytest.fixture
def program():
    def find(name):
        path = SIM / "apps" / name
        if not path.exists():
            if not shutil.which("nvcc") and not shutil.which("/usr/local/cuda/bin/nvcc"):
                pytest.skip("nvcc is not here")
            pytest.fail(f"{path} is not built: make sim-apps")
        return path
    return find


def traced(folder):
    """What the driver saw: {key: (calls, failed)} of the functions that have a line, outside of what the program did
    not want recorded."""
    seen, failed, stopped = Counter(), Counter(), False
    for line in (folder / "trace").read_text().splitlines():
        word, name, *rest = line.split()
        if word != "call":
            continue
        stopped = name == "cuProfilerStop" or (stopped and name != "cuProfilerStart")
        if name in DRIVER and not stopped:
            seen[key(name)] += 1
            failed[key(name)] += rest[0] not in ("0", "600")
    return {k: (n, failed[k]) for k, n in seen.items()}


def agrees(done):
    """The report's driver calls are those of the trace."""
    report = load_report(done.folder)
    got = {k: (r["count"], r["failed"]) for k, r in rows(report).items()
           if re.match(r"cu[A-Z]", k) and r.get("device_type", "CPU") == "CPU"}
    seen = traced(done.folder)
    if any(r["is_legacy"] for r in report["key_averages"]):
        for name in {"cuEventCreate", "cuEventQuery", "cuEventRecord"} - set(got):
            del seen[name]  # those of our own pairs; no such program has events of its own
    assert got == seen, report["lost"]
    assert report["lost"]["unbalanced"] == report["lost"]["overlapped"] == 0
    return report


@pytest.mark.parametrize("suffix", ["", "_pt"])
def test_a_program_of_nvcc(sim, program, both, suffix):
    bare, under_run, plain = both(program("saxpy" + suffix), env=sim)
    assert bare.returncode == 0 and "graph ok" in bare.stdout
    # the driver was called as often without us, and for the same
    without = traced(bare.folder)
    for done in (under_run, plain):
        report = agrees(done)
        assert traced(done.folder) == without
        got = rows(report)
        # each launch once at each level; the failed copy moved nothing
        assert got["cudaLaunchKernel"]["count"] == got["cuLaunchKernel"]["count"] == 9
        assert (got["cudaMemcpy"]["count"], got["cudaMemcpy"]["failed"]) == (5, 1)
        assert {k: r["bytes"] for k, r in got.items() if r["bytes"] and r["device_type"] == "CPU"} == {
            "cudaMalloc": 8000, "cudaMallocAsync": 4000, "cudaMemcpy": 16000, "cudaMemcpyAsync": 8000, "cudaMemsetAsync": 4000}
        chains = tree(report)
        assert chains["main", "launch", "cudaMalloc", "cuMemAlloc"] == 2
        assert chains["main", "streams", "cudaLaunchKernel", "cuLaunchKernel"] == 4
        assert chains["main", "graph", "cudaGraphLaunch", "cuGraphLaunch"] == 2
        assert chains["main", "errors", "cudaMemcpy"] == 1
        assert got["cuInit"]["failed"] == 0


@pytest.mark.parametrize("name", ["memory", "functions"])
def test_others_of_nvcc(sim, program, both, name):
    bare, under_run, plain = both(program(name), env=sim)
    assert bare.returncode == 0
    for done in (under_run, plain):
        agrees(done)
        assert traced(done.folder) == traced(bare.folder)


@pytest.mark.parametrize("suffix", ["", "_pt"])
def test_threads_and_streams(sim, program, both, suffix):
    bare, under_run, plain = both(program("threads" + suffix), env=dict(sim, THREADS_LAUNCHES="50"))
    assert bare.returncode == 0
    for done in (under_run, plain):
        chains = tree(agrees(done))
        for t in range(4):
            # three streams: a fill and fifty launches each
            assert chains[f"thread {t}", "cudaLaunchKernel", "cuLaunchKernel"] == 153
            assert chains[f"thread {t}", "cudaMemcpyAsync"] == 3


def test_launches_that_fail(sim, program, both):
    env = dict(sim, GTSIM_FAIL="cuLaunchKernel:3=719")
    bare, under_run, plain = both(program("saxpy"), env=env)
    assert bare.returncode == 1
    for done in (under_run, plain):
        got = rows(agrees(done))
        assert (got["cuLaunchKernel"]["count"], got["cuLaunchKernel"]["failed"]) == (3, 1)
        assert got["cudaLaunchKernel"]["failed"] == 1


@pytest.mark.parametrize("driver", ["", "11040", "10020"])
def test_ctypes_on_drivers_new_and_old(sim, both, driver):
    """11.4 has cuGetProcAddress without its second version, 10.2 has none."""
    env = dict(sim, LD_LIBRARY_PATH=str(SIM / driver))
    bare, under_run, plain = both(sys.executable, PYTHON_APPS / "cuda_ctypes.py", env=env)
    assert bare.returncode == 0, bare.stderr
    assert ("newer True" in bare.stdout) == (driver == "") and ("by pointer 0" in bare.stdout) == (driver != "10020")
    for done in (under_run, plain):
        got = rows(agrees(done))
        assert (got["cuMemFree"]["count"], got["cuMemFree"]["failed"]) == (2, 1)
        assert got["cuMemcpyHtoD"]["failed"] == 1 and got["cuMemcpyHtoD"]["bytes"] == 0
        assert got["cuMemcpyDtoHAsync"]["bytes"] == got["cuMemsetD8Async"]["bytes"] == 5 * 4096


@pytest.mark.parametrize("sources, there", [("cuda", "True"), ("-cuda", "False")])
def test_cupti_comes_only_if_asked_for(sim, tmp_path, sources, there):
    done = run(sys.executable, PYTHON_APPS / "cuda_ctypes.py", "maps", cwd=tmp_path, env=clean_env(**sim),
               options=["--sources", sources] if sources == "cuda" else ["--sources=-cuda"])
    assert done.returncode == 0 and f"CUPTI {there}" in done.stdout


def test_no_device(sim, both):
    bare, under_run, plain = both(sys.executable, PYTHON_APPS / "cuda_ctypes.py", env=dict(sim, GTSIM_DEVICES="0"))
    assert (bare.returncode, bare.stdout) == (1, "cuInit 100\n")
    for done in (under_run, plain):
        row = rows(agrees(done))["cuInit"]
        assert (row["count"], row["failed"]) == (1, 1)


def test_the_real_runtime_looks_the_driver_up(sim, program, both, tmp_path):
    """Linked into the program it ends with an error of its own on a driver that is not NVIDIA's: but its hundreds of
    look-ups are answered as without us, and what it calls is counted."""
    program("saxpy")
    nvcc = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    source = tmp_path / "static.cu"
    source.write_text('#include <cstdio>\n#include <cuda_runtime.h>\nint main() { void *p; int n = -1;\n'
                      'printf("%d ", (int)cudaGetDeviceCount(&n)); printf("%d\\n", (int)cudaMalloc(&p, 100)); }\n')
    done = execute([nvcc, "-cudart", "static", "-o", tmp_path / "static", source], timeout=300)
    if done.returncode:
        pytest.skip("nvcc can't link the static runtime here")
    bare, under_run, plain = both(tmp_path / "static", env=sim)

    def lookups(folder):
        return [line for line in (folder / "trace").read_text().splitlines() if line.startswith("lookup")]
    assert len(lookups(bare.folder)) > 400
    for done in (under_run, plain):
        assert lookups(done.folder) == lookups(bare.folder)
        if traced(done.folder):
            agrees(done)


def device(report):
    """{what: number} of the one device."""
    (name, metrics), = report["device_metrics"].items()
    assert name == "cuda0" and report["processes"][0]["device_metrics"] == report["device_metrics"]
    return {k.removeprefix("Memory "): v["count"] for k, v in metrics.items()}


def columns(table, *titles):
    """{name: cells} of the columns with these titles."""
    lines = table.splitlines()
    head = next(i for i, line in enumerate(lines) if line.split()[:1] == ["Name"])
    names = re.split(r"\s{2,}", lines[head].strip())
    cells = [re.split(r"\s{2,}", line.strip()) for line in lines[head + 2:lines.index(lines[head - 1], head + 2)]]
    return {c[0]: tuple(c[names.index(t)] for t in titles) for c in cells}


def test_memory_that_stays(sim, tmp_path):
    """With the rows that it came from; host memory is none of the device's, a free that fails gives nothing back."""
    assert run(sys.executable, PYTHON_APPS / "cuda_ctypes.py", "leak", cwd=tmp_path, env=clean_env(**sim),
               options=["--with-stack", "0"]).returncode == 0
    report = load_report(tmp_path)
    assert device(report) == {"live (bytes)": 1024, "peak (bytes)": 4096, "allocations": 3, "frees": 1}
    got = rows(report)
    assert (got["cuMemAlloc"]["driver_memory_usage"], got["cuMemAlloc"]["leaked"]) == (5120, 1024)
    assert got["cuMemFree"]["driver_memory_usage"] == got["cuMemFree"]["self_driver_memory_usage"] == -4096
    assert "driver_memory_usage" not in got["cuMemAllocHost"] and got["cuMemAllocHost"]["bytes"] == 500
    # the saved report says the same again
    path, = tmp_path.glob("*.json")
    again = tool("report", path, "--format", "json", cwd=tmp_path)
    assert json.loads(again.stdout)["call_tree"] == report["call_tree"]
    assert json.loads(again.stdout)["device_metrics"] == report["device_metrics"]
    table = tool("report", path, cwd=tmp_path).stdout
    assert "1024 bytes of devices' memory never freed (leaked)\n" in table
    assert {k: v[:2] for k, v in columns(table, "Driver Mem", "Leaked").items() if re.match("cuMem[AF]", k)} == {
        "cuMemAlloc": ("5.00 KB", "1.00 KB"), "cuMemFree": ("-4.00 KB", "0 B"), "cuMemAllocHost": ("0 B", "0 B")}
    csv_rows = {r["key"]: r for r in csv.DictReader(io.StringIO(tool("report", path, "-f", "csv", cwd=tmp_path).stdout))}
    assert [csv_rows[k][f] for k in ("cuMemAlloc", "cuMemFree")
            for f in ("driver_memory_usage", "self_driver_memory_usage", "leaked")] == ["5120", "5120", "1024", "-4096", "-4096", "0"]
    # with PyTorch's operators the table is PyTorch's; a program without a device has no such columns
    report["call_tree"][0]["source"] = "torch"
    path.write_text(json.dumps(report))
    table = tool("report", path, cwd=tmp_path).stdout
    assert "never freed (leaked)" in table and "Driver Mem" not in table
    assert "leaked" in tool("report", path, "-f", "csv", cwd=tmp_path).stdout.splitlines()[0]
    for r in report["call_tree"]:
        for field in "driver_memory", "self_driver_memory", "leaked":
            r.pop(field, None)
    path.write_text(json.dumps(report))
    assert tool("report", path, "-f", "csv", cwd=tmp_path).stdout.splitlines()[0].endswith(",host")


@pytest.mark.parametrize("name, peak, blocks", [("saxpy", 12000, 3), ("memory", 6144, 6), ("threads", None, 12)])
def test_memory_is_given_back(sim, program, tmp_path, name, peak, blocks):
    """Plain, asynchronous, from pools, pitched, managed, arrays; from four threads."""
    assert run(program(name), cwd=tmp_path, env=clean_env(**sim), options=["--with-stack", "0"]).returncode == 0
    report = load_report(tmp_path)
    got = device(report)
    assert (got["live (bytes)"], got["allocations"], got["frees"]) == (0, blocks, blocks)
    assert peak in (got["peak (bytes)"], None)
    assert not any("leaked" in r for r in report["call_tree"])
    assert "never freed" not in tool("report", *tmp_path.glob("*.json"), cwd=tmp_path).stdout
    assert sum(r.get("self_driver_memory", 0) for r in report["call_tree"]) == 0
    if name == "memory":  # three of a volume in bytes, one and a half of an array of 24 elements of 4 bytes
        assert rows(report)["cudaMemcpy3D"]["bytes"] == 3 * 384 + 96 + 48
    if name == "saxpy":
        by_chain = {chain(report, r): r.get("driver_memory", 0) for r in report["call_tree"]}
        assert by_chain["main", "launch"] == by_chain["main", "launch", "cudaMalloc"] == 8000
        assert by_chain["main", "streams"] == by_chain["main",] == 0


def test_nothing_is_counted_twice(sim, program, tmp_path):
    """Bytes of the whole program: each copy once, though the runtime and the driver both see it."""
    assert run(program("saxpy"), cwd=tmp_path, env=clean_env(**sim)).returncode == 0
    report = load_report(tmp_path)
    assert sum(r.get("bytes", 0) for r in report["call_tree"] if "device" not in r) == 40000
    assert counts(report)["cudaMalloc"] == 2
