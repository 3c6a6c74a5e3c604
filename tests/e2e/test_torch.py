"""PyTorch: what we say of an unmodified script is what torch.profiler says of its main().

torch.profiler runs in one process (tests/apps/torch_profile.py), the script alone under us in another. Every
row of both views, by name and by name and input shapes, must have the same count, memory, self memory, FLOPs
and scope, and neither may have a row that the other lacks. The scripts are single-threaded: torch.profiler
gives memory to what was open at that time on any thread.
"""
import json

import pytest

from conftest import load_report, reports
from torch_env import FIELDS, RECORD, differences, profiled, self_and_roots, start, views

pytestmark = pytest.mark.usefixtures("no_leftovers")
SCRIPTS = {
    "mlp": ["mlp"],
    "conv and Adam": ["conv"],
    "transformer": ["transformer"],
    "LSTM": ["lstm"],
    "compiled": ["compiled"],
    "TorchScript": ["script"],
    "autograd.Function": ["function"],
    "names": ["names"],
    "odd tensors": ["odd"],
    "fork": ["loader", "fork"],
    "spawn": ["loader", "spawn"],
}


def report_of_main(folder):
    """Path of the report of the script's own process: where there are workers, their parent's."""
    found = {r["processes"][0]["pid"]: p for p in folder.glob("*.json") for r in [load_report(p)]}
    parents = [r["processes"][0]["pid"] for r in reports(folder) if r["processes"][0]["ppid"] not in found]
    assert len(parents) == 1
    return found[parents[0]]


@pytest.mark.parametrize("name", SCRIPTS)
def test_every_row_is_torchs(tmp_path, name):
    script = SCRIPTS[name]
    printed, golden = profiled(*script)
    done = start(*script, way="run", folder=tmp_path, **RECORD)
    assert (done.returncode, done.stdout) == (0, printed), done.stderr
    path = report_of_main(tmp_path)
    ours = views(path)
    for view in ("by_key", "by_shape"):
        assert len(golden[view]) > 10
        assert differences(golden[view], ours[view]) == [], view
    report = load_report(path)
    own, outermost = self_and_roots(report)
    assert own == outermost > 0
    assert not any(report["lost"].values()), report["lost"]


def test_defaults_are_the_same_by_name(tmp_path):
    """Shapes and FLOPs off: the same rows, memory is on."""
    _, golden = profiled("mlp")
    done = start("mlp", way="plain", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    ours = load_report(tmp_path)["key_averages"]
    assert differences(golden["by_key"], ours, [f for f in FIELDS if f != "flops"]) == []
    assert not any(r["flops"] for r in ours)


def test_wrapped_tensors(tmp_path):
    """torch.func. With shapes or FLOPs torch.profiler keeps a weak reference to each input, and a wrapper held
    so does not let go of the tensor inside of it: what the script frees in main() is then freed after it. So
    with shapes memory is left out, and compared with a profiler that looks at no inputs."""
    printed, golden = profiled("wrapped")
    _, looks_at_no_inputs = profiled("--no-shapes", "wrapped")
    done = start("wrapped", way="run", folder=tmp_path, **RECORD)
    assert (done.returncode, done.stdout) == (0, printed), done.stderr
    ours = views(report_of_main(tmp_path))
    for view in ("by_key", "by_shape"):
        rows = {at: [r for r in found[view] if r["key"] != "[memory]"] for at, found in (("torch", golden), ("ours", ours))}
        assert differences(rows["torch"], rows["ours"], ["count", "flops", "scope"]) == [], view
    assert differences(looks_at_no_inputs["by_key"], ours["by_key"], [f for f in FIELDS if f != "flops"]) == []


def test_wrapped_tensors_in_the_profilers_own_process(tmp_path):
    """Where torch.profiler itself holds them, both see that: every row is the same, memory too."""
    golden_path = tmp_path / "golden"
    done = start("profile", golden_path, "wrapped", way="run", folder=tmp_path, GPUTALLY_WINDOW="torch", **RECORD)
    assert done.returncode == 0, done.stderr
    golden, ours = json.loads(golden_path.read_text()), views(report_of_main(tmp_path))
    assert sum(r["self_cpu_memory_usage"] for r in golden["by_key"]) > 0  # held
    for view in ("by_key", "by_shape"):
        assert len(golden[view]) > 10
        assert differences(golden[view], ours[view]) == [], view


def test_memory_off(tmp_path):
    _, golden = profiled("mlp")
    done = start("mlp", way="run", folder=tmp_path, GPUTALLY_PROFILE_MEMORY="0")
    assert done.returncode == 0, done.stderr
    ours = load_report(tmp_path)["key_averages"]
    assert differences([r for r in golden["by_key"] if r["key"] != "[memory]"], ours, ["count", "scope"]) == []
    assert not any(r["cpu_memory_usage"] or r["self_cpu_memory_usage"] for r in ours)


def test_symbolic_shapes_stay_symbolic(tmp_path):
    """A tensor that torch.compile traces with symbolic sizes must not be asked for them: the size would be
    compiled in. (torch.profiler does ask with with_flops, and the script compiles four times.)"""
    printed, golden = profiled("--no-flops", "dynamic")
    assert printed.endswith("compiled 1 times\n")
    done = start("dynamic", way="run", folder=tmp_path, **RECORD)
    assert (done.returncode, done.stdout) == (0, printed), done.stderr
    ours = views(report_of_main(tmp_path))
    fields = [f for f in FIELDS if f != "flops"]
    assert differences(golden["by_key"], ours["by_key"], fields) == []
    # what is not asked for sizes has none here; torch.profiler has as many [] as there are inputs
    sized = {view: [r for r in rows if any(r["input_shapes"])] for view, rows in
             (("torch", golden["by_shape"]), ("ours", ours["by_shape"]))}
    assert len(sized["torch"]) > 20
    assert differences(sized["torch"], sized["ours"], fields) == []
