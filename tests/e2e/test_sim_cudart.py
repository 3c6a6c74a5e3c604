"""The simulated CUDA runtime: binaries as `nvcc -cudart shared` makes them run on it with right results, and it reaches
the driver the way the real one does. Nothing of the product runs here."""
import subprocess
from pathlib import Path

import pytest

from conftest import SAN, clean_env, execute
from test_cuda_sim import SIM, program, sim  # noqa: F401 (fixtures)

pytestmark = pytest.mark.skipif(bool(SAN), reason="the simulated GPU's programs are built without sanitizers")
REAL = [Path(p) for p in ("/usr/local/cuda/lib64/libcudart.so.13", "/usr/local/cuda/lib/libcudart.so.13")]

SAXPY = """\
saxpy ok
stream ok
between events 0.0600 ms
graph of 3 nodes
graph ok
bad direction: cudaErrorInvalidMemcpyDirection
peek cudaErrorInvalidMemcpyDirection
last cudaErrorInvalidMemcpyDirection
then cudaSuccess
done
"""
MEMORY = "".join(f"{what} ok\n" for what in (
    "pitched", "volume", "volume set", "array", "cube", "mapped", "attributes", "variable", "constant", "managed variable",
    "too much", "pool", "info")) + "done\n"
FUNCTIONS = """\
by address ok
configured ok
cooperative ok
no kernel: cudaErrorInvalidDeviceFunction
kernel saxpy threads 1024 registers some blocks some parameter at 8 of 8 bytes
device has a name: 1 warp 32 memory: 1
by hand ok
entry point ok, none 1
host function ok
done
"""


@pytest.fixture
def go(sim, program, tmp_path):
    def run_it(name, **more):
        return execute([program(name)], cwd=tmp_path, env=clean_env(**dict(sim, **more)))
    return run_it


@pytest.mark.parametrize("name, out", [("saxpy", SAXPY), ("saxpy_pt", SAXPY), ("memory", MEMORY),
                                       ("functions", FUNCTIONS)])
def test_results(go, name, out):
    done = go(name)
    assert (done.stdout, done.stderr, done.returncode) == (out, "", 0)


@pytest.mark.parametrize("name", ["threads", "threads_pt"])
def test_threads_and_streams(go, name):
    done = go(name, THREADS_LAUNCHES="50")
    assert (done.stdout, done.returncode) == ("stream ok\n" * 12 + "done\n", 0)


def test_the_way_to_the_driver(go, tmp_path):
    """A probe with an empty name first, then every function with flags 0; those that have a variant for the
    per-thread stream once more with flag 2. All are found, and nothing else is called before cuInit."""
    go("saxpy")
    lines = (tmp_path / "trace").read_text().splitlines()
    until = next(i for i, line in enumerate(lines) if line.startswith("call cuInit "))
    assert {line for line in lines[:until] if line.startswith("call")} == {"call cuGetProcAddress_v2 0"}
    looks = [line.split()[1:] for line in lines if line.startswith("lookup")]
    assert looks[0] == ["-", "0", "0", "-"]
    names = [name for name, version, flags, found in looks[3:] if flags == "0"]
    variants = [(name, found) for name, version, flags, found in looks[3:] if flags == "2"]
    assert len(names) == len(set(names)) > 180 and len(names) + len(variants) == len(looks) - 3
    assert all(found.endswith(("_ptsz", "_ptds")) for name, found in variants) and len(variants) > 40
    assert {name for name, found in variants} < set(names)
    assert not [look for look in looks[1:] if look[3] == "-"]


def test_per_thread_calls(go, tmp_path):
    """What was compiled for per-thread streams calls the driver's variants."""
    go("saxpy_pt")
    variants = (tmp_path / "trace").read_text()
    (tmp_path / "trace").unlink()
    go("saxpy")
    plain = (tmp_path / "trace").read_text()
    for name in ("cuLaunchKernel_ptsz", "cuMemcpyHtoD_v2_ptds", "cuStreamSynchronize_ptsz", "cuMemsetD8Async_ptsz"):
        assert f"call {name} " in variants and f"call {name} " not in plain


def test_no_device(go):
    done = go("saxpy", GTSIM_DEVICES="0")
    assert (done.stdout, done.returncode) == ("no device: cudaErrorNoDevice\n", 1)


def test_no_driver(program, tmp_path):
    (tmp_path / "libcudart.so.13").symlink_to(SIM / "libcudart.so.13")
    done = execute([program("saxpy")], env=clean_env(LD_LIBRARY_PATH=str(tmp_path)))
    assert (done.stdout, done.returncode) == ("no device: cudaErrorInsufficientDriver\n", 1)


def test_a_failing_call_of_the_runtime(go):
    done = go("saxpy", GTSIM_FAIL="cudaMalloc:2=2")
    assert "cudaMalloc(&y, sizeof host): cudaErrorMemoryAllocation" in done.stdout and done.returncode == 1


def test_an_error_that_stays(go):
    """An illegal address breaks the context: every later call returns it, whatever it is."""
    done = go("saxpy", GTSIM_FAIL="cuLaunchKernel:3=700")
    assert "cudaEventRecord(from, s): cudaErrorIllegalAddress" in done.stdout and done.returncode == 1


def exported(path):
    out = subprocess.run(["nm", "-D", "--defined-only", path], capture_output=True, text=True, check=True).stdout
    return {line.split()[-1] for line in out.splitlines()}


def test_exports_what_the_real_one_does(sim):
    """With the version, which linked programs ask for."""
    real = next((p for p in REAL if p.exists()), None)
    if not real:
        pytest.skip("the CUDA toolkit is not here")
    assert exported(real) - exported(SIM / "libcudart.so.13") == set()
