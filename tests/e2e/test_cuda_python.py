"""Python programs of CUDA on the simulated GPU: cuda-bindings, and numba-cuda with its real compiler. Their own results
are right with and without us, kernels have exact counts and times, launches the script's stack."""
import os
import subprocess
import sys

import pytest

from conftest import BUILD, ROOT, SAN, load_report, rows
from test_cuda_device import check_sums, device_rows, kernels
from test_cuda_sim import both, sim  # noqa: F401 (fixtures)

ENV = ROOT / "build/cuda-env"
APPS = ROOT / "tests/apps"
pytestmark = [pytest.mark.usefixtures("no_leftovers"),
              pytest.mark.skipif(bool(SAN), reason="the simulated GPU's programs are built without sanitizers"),
              pytest.mark.skipif(not (ENV / ".made").exists(), reason="build/cuda-env is not here: scripts/cuda-env")]
# numba-cuda comes in by a .pth file, which only folders of sites have
START = "import runpy, site, sys; site.addsitedir(sys.argv[1]); del sys.argv[:2]; runpy.run_path(sys.argv[0], run_name='__main__')"

HOST = """
void %s(void **a, unsigned *grid, unsigned *block)
{
    const float *x = *(const float **)a[4], *y = *(const float **)a[11];
    float *out = *(float **)a[18];
    for (long i = 0; i < *(long *)a[19] && i < (long)grid[0] * block[0]; i++)
        out[i] = x[i] + y[i];
}
"""


def command(script, *arguments):
    return [sys.executable, "-c", START, str(ENV), str(APPS / script), *arguments]


def stacks_of(report, key):
    """Functions of Python of the calls of that name."""
    out = set()
    for r in report["call_tree"]:
        if r["key"] == key and "stack" in r:
            out.update(report["frames"][i]["function"] for i in report["stacks"][r["stack"]]["python"])
    return out


@pytest.mark.parametrize("way", ["cupti", "events"])
def test_cuda_bindings(sim, both, way):
    demo = BUILD / "sim/demo"
    if not (demo / "train.cubin").exists():
        pytest.fail("build/sim/demo is not built: make sim-demo")
    env = dict(sim, GTSIM_KERNELS=str(demo / "kernels.so"), PYTHONDONTWRITEBYTECODE="1",
               **({"GTSIM_CUPTI_REFUSE": "999"} if way == "events" else {}))
    bare, *ours = both(*command("cuda_bindings.py", str(demo / "train.cubin")), env=env)
    assert bare.returncode == 0 and bare.stdout == "right\n", bare.stderr
    for done in ours:
        report = load_report(done.folder)
        check_sums(report)
        got = kernels(report)
        assert got.pop("update_10us") == (3, 30)
        assert sorted((k.split(" (")[0], v) for k, v in got.items()) == [("Memcpy DtoH", (1, 1)), ("Memcpy HtoD", (1, 1))]
        assert {r["bytes"] for r in device_rows(report) if r["key"].startswith("Memcpy")} == {4000}
        assert rows(report)["cuLaunchKernel"]["count"] == 3
        assert {"launch", "main"} <= stacks_of(report, "cuLaunchKernel")


def test_numba(sim, both, tmp_path):
    env = dict(sim, PYTHONDONTWRITEBYTECODE="1", NUMBA_CACHE_DIR=str(tmp_path))
    first = subprocess.run(command("cuda_numba.py"), env=dict(os.environ, **env), cwd=tmp_path, text=True,
                           capture_output=True, timeout=120)
    if "libnvvm" in first.stderr.lower() or "nvvm" in first.stderr.lower():
        pytest.skip("numba's compiler needs the CUDA toolkit")
    assert first.stdout.endswith("wrong\n"), first.stderr  # nobody runs the kernel yet
    name = first.stdout.split()[1]
    (tmp_path / "host.c").write_text(HOST % name)
    subprocess.run(["gcc", "-shared", "-fPIC", "-O1", "host.c", "-o", "host.so"], cwd=tmp_path, check=True)
    env["GTSIM_KERNELS"] = str(tmp_path / "host.so")
    bare, *ours = both(*command("cuda_numba.py"), env=env)
    assert bare.stdout == f"kernel {name}\nright\n", bare.stderr
    for done in ours:
        report = load_report(done.folder)
        check_sums(report)
        [kernel] = [r for r in device_rows(report) if r["key"].startswith("__main__::add")]
        assert (kernel["count"], kernel["self_device_ns"]) == (3, 30000)
        assert (kernel["launch"]["grid"], kernel["launch"]["block"]) == ([4, 1, 1], [32, 1, 1])
        assert report["call_tree"][kernel["parent"]]["key"].startswith("cuLaunchKernel")
        assert {"launch", "main"} <= stacks_of(report, report["call_tree"][kernel["parent"]]["key"])
