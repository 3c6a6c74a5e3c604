"""The simulated CUPTI, by programs that use it themselves: exact times, sums and correlation, and what it refuses.
Nothing of the product runs here."""
import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from conftest import SAN, clean_env, execute
from test_cuda_sim import SIM, program, sim  # noqa: F401 (fixtures)

pytestmark = pytest.mark.skipif(bool(SAN), reason="the simulated GPU's programs are built without sanitizers")

FILL = "_Z4fillIfEvPT_iS0_"
STUB, GRAPH = "__cudaLaunchKernel_v13000", "cudaGraphLaunch_v10000"
# by name or by its end, 10 us where it says nothing; captured kernels run twice
SAXPY_KERNELS = Counter({
    (FILL, 10000, STUB): 2, ("saxpy", 10000, STUB): 1, ("scale_20us", 20000, STUB): 3, ("add_5us", 5000, STUB): 1,
    ("scale_20us", 20000, GRAPH): 2, ("add_5us", 5000, GRAPH): 2})
KERNEL = re.compile(r"kernel (\S+) (\d+) ns .*?(?: in a graph)?(?: by (\S+))?$")


@pytest.fixture
def go(sim, program, tmp_path):
    """A program's lines about CUPTI, and its other ones."""
    def run_it(name, **more):
        done = execute([program(name)], cwd=tmp_path, env=clean_env(**dict(sim, **more)))
        assert done.stderr == "" and done.returncode == 0, done.stderr + done.stdout
        lines = done.stdout.splitlines()
        mine = [line[len("cupti: "):] for line in lines if line.startswith("cupti: ")]
        return mine, [line for line in lines if not line.startswith("cupti: ")]
    return run_it


def kernels(lines):
    found = [KERNEL.match(line) for line in lines if line.startswith("kernel")]
    return Counter((m[1], int(m[2]), m[3]) for m in found)


def sums(lines):
    words = next(line for line in lines if line.startswith("sums ")).split()[1:]
    return {k: int(v) for k, v in zip(words[::2], words[1::2])}


def totals(lines):
    words = next(line for line in lines if line.startswith("records ")).split()
    return dict(zip(words[::2], words[1::2]))


def test_records_of_a_program(go):
    """Every kernel, copy and set once, with its exact time, below the runtime's call that launched it; the program
    prints the same as without CUPTI."""
    lines, rest = go("saxpy_cupti")
    assert rest == go("saxpy")[1]
    assert kernels(lines) == SAXPY_KERNELS
    copies = Counter(line for line in lines if line.startswith(("copy", "set")))
    assert copies == {
        "copy kind 1 4000 bytes 1000 ns by cudaMemcpy_v3020": 2,
        "copy kind 2 4000 bytes 1000 ns by cudaMemcpy_v3020": 2,
        "copy kind 2 4000 bytes 1000 ns async by cudaMemcpyAsync_v3020": 1,
        f"copy kind 8 4000 bytes 1000 ns async in a graph by {GRAPH}": 2,
        "set 4000 bytes to 0 1000 ns by cudaMemsetAsync_v3020": 1}
    assert sums(lines) == {"kernels": 145000, "copies": 7000, "sets": 1000, "graphs": 0}
    assert "call returns 21 by cudaMemcpy_v3020" in lines  # it failed
    assert totals(lines)["dropped"] == "0"
    # the runtime's calls hide the driver's below them
    assert not [line for line in lines if re.match(r"call .* by cu[A-Z]", line)]
    waits = Counter(line for line in lines if line.startswith("synchronization"))
    assert waits == {"synchronization type 3 by cudaStreamSynchronize_v3020": 2,
                     "synchronization type 4 by cudaDeviceSynchronize_v3020": 2}


def test_threads_and_streams(go):
    lines, rest = go("threads_cupti", THREADS_LAUNCHES="50")
    assert kernels(lines) == {(FILL, 10000, STUB): 12, ("add_5us", 5000, STUB): 600}
    assert sums(lines)["kernels"] == 12 * 10000 + 600 * 5000
    assert rest.count("stream ok") == 12


def test_without_the_runtime_the_driver(go):
    """With only the driver's calls recorded, the kernels lead to those."""
    lines, _ = go("saxpy_cupti", OWN_KINDS="10 4")
    assert {call for _, _, call in kernels(lines)} == {"cuLaunchKernel", "cuGraphLaunch"}
    assert sum(line == "call returns 0 by cuLaunchKernel" for line in lines) == 9


def test_a_whole_graph_is_one_record(go):
    """20 + 5 us and a copy, for each launch; its kernels have none then."""
    lines, _ = go("saxpy_cupti", OWN_KINDS="51 10 1 5")
    assert lines.count(f"graph 26000 ns by {GRAPH}") == 2 and "in a graph" not in " ".join(lines)
    assert sums(lines) == {"kernels": 95000, "copies": 5000, "sets": 0, "graphs": 52000}


def test_external_ids_need_calls(go):
    """They come ahead of the record of a call inside push and pop; with no kind of calls there are none."""
    alone, _ = go("saxpy_cupti", OWN_KINDS="39 10", OWN_EXTERNAL="1")
    assert totals(alone)["records"] == "11" and "external" not in " ".join(alone)
    assert totals(alone)["popped"] == "4711"
    lines, _ = go("saxpy_cupti", OWN_KINDS="39 10 5", OWN_EXTERNAL="1")
    assert sum(kernels([line.replace(" external 4711", "") for line in lines]).values()) == 11
    assert all(line.endswith(" external 4711") for line in lines if line.startswith(("kernel", "call")))


def test_the_clients_clock(go):
    """Three ticks a nanosecond: times of the device are turned into it."""
    lines, _ = go("saxpy_cupti", OWN_CLOCK="1")
    assert sums(lines) == {"kernels": 435000, "copies": 21000, "sets": 3000, "graphs": 0}
    assert totals(lines)["clock"] == "read"
    assert totals(go("saxpy_cupti")[0])["clock"] == "unread"


def test_small_buffers(go):
    """Full ones are handed out on the way, nothing is lost; where a record has no room it is counted."""
    lines, _ = go("saxpy_cupti", OWN_BUFFER="1024")
    assert kernels(lines) == SAXPY_KERNELS
    assert (totals(lines)["buffers"], totals(lines)["dropped"]) == ("several", "0")
    lines, _ = go("saxpy_cupti", OWN_BUFFER="100")
    assert not kernels(lines) and totals(lines)["dropped"] == "11"


def test_callbacks_of_both_domains(go):
    """The driver's call inside the runtime's has its id; kernels carry it (the two captured ones the graph's)."""
    lines, _ = go("saxpy_cupti", OWN_CALLBACKS="1")
    assert "launches told 9 driver's 9 inside 9 same id 9 of saxpy 2 kernels of them 7" in lines
    lines, _ = go("threads_cupti", OWN_CALLBACKS="1", OWN_KINDS="10")
    assert "launches told 132 driver's 132 inside 132 same id 132 of saxpy 0 kernels of them 132" in lines


@pytest.mark.parametrize("number, name", [("999", "CUPTI_ERROR_UNKNOWN"), ("35", "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES")])
def test_refused(go, number, name):
    lines, rest = go("saxpy_cupti", GTSIM_CUPTI_REFUSE=number)
    assert lines[:2] == [f"enable 10: {name}", f"enable 1: {name}"]
    assert totals(lines)["records"] == "0" and rest == go("saxpy")[1]


def test_another_tool_has_it(go):
    lines, _ = go("saxpy_cupti", GTSIM_CUPTI_REFUSE="39", OWN_CALLBACKS="1")
    assert lines[0] == "subscribe: CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED"


def test_no_driver(program, tmp_path):
    """The callbacks are taken all the same: only enabling a kind tells."""
    for name in ("libcudart.so.13", "libcupti.so.13"):
        (tmp_path / name).symlink_to(SIM / name)
    done = execute([program("saxpy_cupti")], env=clean_env(LD_LIBRARY_PATH=str(tmp_path), OWN_KINDS="10"))
    assert done.stdout == "cupti: enable 10: CUPTI_ERROR_UNKNOWN\nno device: cudaErrorInsufficientDriver\n"


def test_refusals(go):
    """As the comments of NVIDIA's headers have them: cupti_result.h has the numbers."""
    _, lines = go("cupti_bad")
    assert lines == """\
flush with no callbacks: 7
no callback: 1
kind 0: 21
kind 9999: 21
kind that can't be: 14
disable kind 0: 21
push kind 0: 1
pop kind 99: 1
pop nothing: 18
no buffer: 1
empty buffer: 12
rubbish: 21
cut record: 21
no count: 1
no attribute: 1
short attribute: 10
no clock: 1
no timestamp: 1
no handle: 1
subscribe: 0
second subscriber: 39
domain 0: 1
no subscriber: 1
function 9999: 1
enable: 0
enable resources: 0
told 1 1 matched 1 contexts 1
unsubscribe: 0
again: 1
callbacks: 0
enable calls: 0
flush: 0
dropped: 0
dropped 2 got 40 bytes
then 0
finalize: 0
flush after it: 7
subscribe after it: 0""".splitlines()


def test_exports_of_the_activity_and_callback_interface(sim):
    """What the real one exports of these and a header declares."""
    real = next((p for p in (Path("/usr/local/cuda/lib64/libcupti.so.13"), Path("/usr/local/cuda/lib/libcupti.so.13"))
                 if p.exists()), None)
    if not real:
        pytest.skip("the CUDA toolkit is not here")
    include = real.parents[1] / "include"
    text = "".join((include / h).read_text() for h in ("cupti_activity.h", "cupti_callbacks.h", "cupti_result.h"))
    declared = set(re.findall(r"CUPTIAPI\s+(cupti\w+)", text))
    def names(path):
        out = subprocess.run(["nm", "-D", "--defined-only", path], capture_output=True, text=True, check=True).stdout
        return {line.split()[-1] for line in out.splitlines()}
    lacking = names(real) - names(SIM / "libcupti.so.13")
    assert len(declared) > 50 and {n for n in lacking if n.split("@")[0] in declared} == set()
