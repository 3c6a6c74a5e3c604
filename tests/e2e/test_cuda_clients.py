"""Programs of the driver's API with kernels that nvcc compiled, on the simulated GPU: results and wrong use, streams
whose times are exact, graphs. All that they call, allocate and run is in the report, with CUPTI and with pairs of events."""
import sys

import pytest

from conftest import SAN, load_report, rows, tool
from test_cuda_device import REFUSED, above, check_sums, device_rows
from test_cuda_sim import both, device, program, sim, traced  # noqa: F401 (fixtures)

pytestmark = [pytest.mark.usefixtures("no_leftovers"),
              pytest.mark.skipif(bool(SAN), reason="the simulated GPU's programs are built without sanitizers")]
FILL = "fill_20us(float*, int, float)"
SCALE = "void scale_3us<double>(double*, int, double)"

# {what the device did: (times, microseconds)} as each program's source has it; copies and sets together, with their bytes
DID = {
    "cuda_saxpy": {"saxpy": (4, 40), "mixed_1ms": (1, 1000), "Memcpy": (11, 11, 18120), "Memset": (3, 3, 522)},
    "cuda_timeline": {FILL: (5, 100), SCALE: (2, 6), "mixed_1ms": (1, 1000), "nothing_500ns": (3008, 1504),
                      "Memcpy": (1, 10, 160000), "Memset": (1, 2.5, 160000)},
    "cuda_graph": {FILL: (7, 140), "saxpy": (5, 50), "Memcpy": (4, 4, 44), "Memset": (7, 7, 224)},
}
# by events a graph is one thing; and queries that took time would come between the program's own events: it does not poll
EVENTS = {
    "cuda_timeline": {FILL: (4, 80)},
    "cuda_graph": {"(graph)": (7, 4 * 31 + 21 + 21 + 30), FILL: None, "saxpy": None, "Memcpy": (3, 3, 12), "Memset": None},
}
# live, peak, how often it was given
MEMORY = {"cuda_saxpy": (0, 2097152, 7), "cuda_timeline": (4096, 164096, 2), "cuda_graph": (0, 64, 2)}


def did(report):
    out = {}
    for r in device_rows(report):
        name = r["key"].split(" (")[0].split(" ")[0] if r["key"].startswith("Mem") else r["key"]
        seen = (r["count"], r["self_device_ns"] / 1000) + ((r["bytes"],) if name != r["key"] or name[:3] == "Mem" else ())
        out[name] = tuple(a + b for a, b in zip(out.get(name, (0, 0, 0)), seen))
    return out


@pytest.fixture(params=["cupti", "events"])
def way(request):
    return request.param


@pytest.fixture
def client(sim, program, both, way):  # noqa: F811
    """Runs one: (bare, run, plain), all with the same output and status."""
    def go(name, *words, image="cubin", **more):
        env = dict(sim, GTSIM_KERNELS=str(program("cuda_kernels.so")), **more)
        if way == "events":
            env.update(REFUSED, GTSIM_POLL_NS="0")
        done = both(program(name), *words, program(f"cuda_kernels.{image}"), env=env)
        assert done[0].returncode == 0 and done[0].stdout.endswith("SUCCESS\n"), done[0].stdout
        return done
    return go


@pytest.mark.parametrize("name", DID)
def test_all_that_it_did(client, way, name):
    bare, *ours = client(name, image="fatbin" if name == "cuda_saxpy" else "cubin")
    called = traced(bare.folder)
    want = {k: v for k, v in (DID[name] | (EVENTS.get(name, {}) if way == "events" else {})).items() if v}
    for done in ours:
        report = load_report(done.folder)
        # each call as often, and failed as often, as without us
        assert {k: (r["count"], r["failed"]) for k, r in rows(report).items()
                if k.startswith("cu") and r["device_type"] == "CPU"} == called
        check_sums(report)
        assert did(report) == want
        memory = device(report)
        live, peak, given = MEMORY[name]
        assert (memory["live (bytes)"], memory["peak (bytes)"], memory["allocations"], memory["frees"]) == \
            (live, peak, given, given - bool(live))
        assert {(r["key"], r["leaked"]) for r in report["call_tree"] if "leaked" in r} == \
            ({("cuMemAlloc", live)} if live else set())


def test_what_a_graph_did_is_its_launchs(client, way):
    """Nothing is below the calls that only put a node into a graph, and each launch has all that its graph did."""
    for done in client("cuda_graph")[1:]:
        report = load_report(done.folder)
        launched, copied = {}, 0
        for r in device_rows(report):
            if above(report, r)[0] == "cuGraphLaunch":
                launched[r["key"].split(" (")[0]] = launched.get(r["key"].split(" (")[0], 0) + r["count"]
            else:
                assert above(report, r)[0] == "cuMemcpyDtoH"
                copied += r["count"]
        assert copied == 3
        assert launched == ({"(graph)": 7} if way == "events" else {FILL: 7, "saxpy": 5, "Memset": 7, "Memcpy DtoH": 1})
        by_call = {r["key"]: r["device_time_total"] for r in report["key_averages"] if r["device_type"] == "CPU"}
        assert by_call["cuLaunchKernel"] == by_call["cuMemsetD32Async"] == 0
        assert by_call["cuGraphLaunch"] == (196 if way == "events" else 7 + 140 + 50 + 1)


# what goes from one device to the other: CUPTI has records of a kind of their own for it, whatever the call is named
PEER = {"cupti": {"Memcpy PtoP": (5, 9, 136000), "Memcpy DtoD": (1, 2, 32000)},
        "events": {"Memcpy PtoP": (3, 7, 104000), "Memcpy": (1, 1, 16000), "Memcpy DtoD": (2, 3, 48000)}}
PEER_CALLS = {"cuMemcpyPeer": 4, "cuMemcpyPeerAsync": 2, "cuMemcpy": 1, "cuMemcpyDtoD": 3, "cuMemcpy3DPeer": 1}


def test_copies_between_devices(client, way):
    for done in client("cuda_peer", GTSIM_DEVICES="2")[1:]:
        report = load_report(done.folder)
        check_sums(report)
        got, times = {}, {}
        for r in device_rows(report):
            name = r["key"].split(" (")[0]
            if name.startswith("Memcpy") and name != "Memcpy DtoH":
                seen = (r["count"], r["self_device_ns"] / 1000, r["bytes"])
                got[name] = tuple(a + b for a, b in zip(got.get(name, (0, 0, 0)), seen))
                times[above(report, r)[0]] = times.get(above(report, r)[0], 0) + r["self_device_ns"] / 1000
        assert got == PEER[way] and times == PEER_CALLS
        assert {d: m["Memory peak (bytes)"]["count"] for d, m in report["device_metrics"].items()} == {"cuda0": 64000, "cuda1": 64000}


@pytest.mark.parametrize("way", ["cupti"])
@pytest.mark.parametrize("kinds", ["22", "1", "1 2 22", "4 1 22"])
def test_a_program_gets_the_copies_that_it_asked_for(client, way, kinds):
    """Those between devices are of another kind than the rest: one it did not ask for stays ours. With 4 it has a record of
    each call of the driver, but of none that we make."""
    bare, *ours = client("cuda_peer", "own", GTSIM_DEVICES="2", OWN_KINDS=kinds)
    assert ("copy kind 10 from 0 to 1 64000" in bare.stdout) == ("22" in kinds)
    assert ("copy kind 2 " in bare.stdout) == ("1" in kinds.split())
    for done in ours:
        report = load_report(done.folder)
        check_sums(report)
        assert sum(r["count"] for r in device_rows(report) if r["key"].startswith("Memcpy PtoP")) == 5


@pytest.mark.parametrize("way", ["cupti"])
@pytest.mark.parametrize("fails", [False, True])
def test_memory_goes_with_its_context(client, fails):
    """It is given back by the call that ends the context; what is of pools or has a handle of its own stays."""
    more = {"GTSIM_FAIL": "cuCtxDestroy:2=999"} if fails else {}
    for done in client("cuda_contexts", **more)[1:]:
        report = load_report(done.folder)
        got = rows(report)
        assert got["cuCtxDestroy"]["failed"] == 1 + fails
        ended = {k: r["driver_memory_usage"] for k, r in got.items() if "Ctx" in k and "driver_memory_usage" in r}
        assert ended == {"cuCtxDestroy": -3000, "cuDevicePrimaryCtxRelease": -5000, "cuDevicePrimaryCtxReset": -700}
        leaked = {r["key"]: r["leaked"] for r in report["call_tree"] if "leaked" in r}
        assert leaked == {"cuMemAllocAsync": 1000, "cuMemAllocFromPoolAsync": 1000, "cuMemCreate": 2 << 20, "cuMemAlloc": 300}
        memory = device(report)
        assert memory["live (bytes)"] == sum(leaked.values()) and memory["allocations"] - memory["frees"] == len(leaked)
        assert memory["peak (bytes)"] == sum(leaked.values()) - 300 + 5000


RESET = """import ctypes
runtime = ctypes.CDLL("libcudart.so.13")
p = ctypes.c_void_p()
for n in 100, 10:
    print(runtime.cudaMalloc(ctypes.byref(p), n), runtime.cudaDeviceReset())
print(runtime.cudaMalloc(ctypes.byref(p), 1))"""


def test_the_runtime_resets_its_device(sim, both):  # noqa: F811
    for done in both(sys.executable, "-c", RESET, env=sim)[1:]:
        report = load_report(done.folder)
        got = rows(report)
        assert done.stdout == "0 0\n0 0\n0\n" and got["cudaDeviceReset"]["driver_memory_usage"] == -110
        assert sum(r.get("leaked", 0) for r in report["call_tree"]) == 1


def column(table, title):
    """{name: what it has in that column} of a table or tree whose cells have no blanks, names aside."""
    lines = table.splitlines()
    at = next(i for i, line in enumerate(lines) if title in line and "Name" in line)
    end = lines[at].index(title) + len(title)
    name = lines[at].index("Name")
    cut = (lambda line: line[name:]) if lines[at].endswith("Name") else (lambda line: line[:name + 4])
    return {cut(line).strip(): line[:end].split("  ")[-1].strip() for line in lines[at + 1:] if len(line) > end}


def test_what_the_views_show_of_it(client):
    """Bytes, failures, and in the tree the device's time beside the CPU's."""
    _, ran, _ = client("cuda_saxpy", "fatbin")
    report = rows(load_report(ran.folder))
    failed, moved = column(ran.stderr, "# Failed"), column(ran.stderr, "Bytes")
    for key, row in report.items():
        assert failed[key] == str(row["failed"])
        assert (moved[key] == "0 B") == (not row["bytes"])
    assert sum(map(int, (v for k, v in failed.items() if k in report))) > 0
    assert f"{sum(r['failed'] for r in report.values())} calls failed" in ran.stderr
    tree = tool("report", *ran.folder.glob("*.json"), "--format", "tree").stdout
    device, total = column(tree, "Device total"), column(tree, "Total")
    assert (device["mixed_1ms [CUDA]"], total["mixed_1ms [CUDA]"]) == ("1.000ms", "")
    assert device["cuInit"] == "" and total["cuInit"] != ""
