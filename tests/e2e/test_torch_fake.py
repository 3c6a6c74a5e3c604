"""PyTorch's operators against the stand-in of tests/sim/torch, which has the names and layouts of 2.13
and 1.13: exact reports, and nothing changed for the program. The real ones: test_torch.py."""
import csv
import io

import pytest

from conftest import APPS, BUILD, chain, clean_env, execute, load_report, preload, reports, rows, run, tool, tree

pytestmark = [pytest.mark.san, pytest.mark.usefixtures("no_leftovers")]

VERSIONS = ["213", "113"]
MODES = ["basic", "shapes", "odd", "threads", "throws", "forks", "profiles", "unloads", "twice", "nvtx", "backward",
         "elsewhere"]
ALL_ON = {"GPUTALLY_RECORD_SHAPES": "1", "GPUTALLY_WITH_FLOPS": "1", "GPUTALLY_CAPTURE_OVERLOAD_NAMES": "1"}


def sim(version, mode):
    folder = BUILD / "sim" / f"torch{version}"
    assert (folder / "libtorch_cpu.so").exists(), "not built: make apps"
    return [APPS / "torch_sim", mode, folder]


def recorded(tmp_path, version, mode, **env):
    done = run(*sim(version, mode), cwd=tmp_path, env=clean_env(**env))
    assert done.returncode == 0, done.stdout + done.stderr
    return load_report(tmp_path)


def by_shape(report, field="count"):
    out = {}
    for row in report["call_tree"]:
        at = row["key"], row.get("shapes")
        out[at] = out.get(at, 0) + row.get(field, 0)
    return out


def nothing_lost(report, **but):
    assert {k: n for k, n in report["lost"].items() if n} == but


# ---- the program sees nothing of us ----

@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("version", VERSIONS + ["plugin"])
def test_output_is_the_same(version, mode, both):
    bare, _, _ = both(*sim(version, mode))
    assert bare.returncode == 0 and bare.stdout.endswith("done\n"), bare.stdout + bare.stderr


@pytest.mark.parametrize("settings", [ALL_ON, {"GPUTALLY_PROFILE_MEMORY": "0"}, {"GPUTALLY_SOURCES": "-torch"},
                                      {"GPUTALLY_DISABLE": "1"}], ids=lambda s: "-".join(s))
@pytest.mark.parametrize("mode", ["basic", "shapes", "odd", "profiles", "unloads"])
def test_output_is_the_same_whatever_is_asked_for(mode, settings, both):
    both(*sim("213", mode), env=settings)


def test_constructors_run_in_their_order(tmp_path):
    done = run(*sim("plugin", "basic"), cwd=tmp_path)
    assert done.stdout.splitlines()[:2] == ["plugin: found", "torch: constructor"]
    assert rows(load_report(tmp_path))["aten::linear"]["count"] == 3


# ---- what is recorded ----

@pytest.mark.parametrize("version", VERSIONS)
def test_operators(version, tmp_path):
    report = recorded(tmp_path, version, "basic")
    t = tree(report)
    step = ("ProfilerStep*",)
    linear = step + ("aten::linear",)
    # what PyTorch leaves out is no row, and addmm in addmm is one call
    assert t == {step: 1, linear: 3, linear + ("mine",): 3, linear + ("aten::addmm",): 3,
                 step + ("MmBackward0",): 1, step + ("forward",): 1}
    got = rows(report)
    assert {k: got[k]["scope"] for k in got} == {"ProfilerStep*": 7, "aten::linear": 0, "mine": 7, "aten::addmm": 0,
                                                 "MmBackward0": 1, "forward": 2}
    assert got["ProfilerStep*"]["is_user_annotation"] and not got["aten::linear"]["is_user_annotation"]
    nothing_lost(report)


@pytest.mark.parametrize("version", VERSIONS)
def test_memory(version, tmp_path):
    got = rows(recorded(tmp_path, version, "basic"))
    cpu = {k: (r["cpu_memory_usage"], r["self_cpu_memory_usage"]) for k, r in got.items()}
    # 100 bytes allocated in linear, freed in addmm; 10 allocated and freed in the user's range
    assert cpu == {"ProfilerStep*": (0, 0), "aten::linear": (0, 300), "aten::addmm": (-300, -300), "mine": (0, 0),
                   "MmBackward0": (0, 0), "forward": (0, 0)}
    # cuda and a private device; meta is no memory
    assert got["ProfilerStep*"]["self_device_memory_usage"] == 4096 - 96


def test_memory_off(tmp_path):
    got = rows(recorded(tmp_path, "213", "basic", GPUTALLY_PROFILE_MEMORY="0"))
    assert all(r["cpu_memory_usage"] == r["device_memory_usage"] == 0 for r in got.values())


@pytest.mark.parametrize("version", VERSIONS)
def test_memory_outside_operators(version, tmp_path):
    report = recorded(tmp_path, version, "profiles")
    row = rows(report)["[memory]"]
    # 1000 + 2000, twice 30 + 40, 50; freed: all
    assert row["self_cpu_memory_usage"] == 0
    assert row["self_device_memory_usage"] == 1
    assert row["count"] == 2 + 2 + 2 * 4 + 2 + 2 * 2 + 1


@pytest.mark.parametrize("version", VERSIONS)
def test_shapes_and_flops(version, tmp_path):
    report = recorded(tmp_path, version, "shapes", GPUTALLY_RECORD_SHAPES="1", GPUTALLY_WITH_FLOPS="1")
    conv = "[[1, 3, 8, 8], [4, 3, 3, 3], [], [], [], [], []]"
    assert by_shape(report) == {
        ("aten::mm", "[[2, 3], [3, 4]]"): 20, ("aten::add", "[[5], [], []]"): 20,
        ("aten::list", "[[], [], [1, 0, 9, 2, 3]]"): 20, ("aten::mul", "[[], [], [2, 4]]"): 20, ("aten::conv2d", conv): 2,
        ("aten::relu", "[[6, 7]]"): 1,  # a subclass
        ("aten::relu", "[[]]"): 2,      # a symbolic one, a nested one
    }
    got = rows(report)
    # 2.13: what PyTorch says, once: the overload with a word for the padding can't be asked
    assert {k: r["flops"] for k, r in got.items()} == {
        "aten::mm": 20 * 2 * 2 * 3 * 4, "aten::add": 20 * 5, "aten::mul": 0, "aten::list": 0, "aten::relu": 0,
        "aten::conv2d": 2000 if version == "213" else 0}


def test_what_pytorch_lends_is_given_back(tmp_path):
    done = run(*sim("213", "shapes"), cwd=tmp_path, env=clean_env(GPUTALLY_WITH_FLOPS="1"))
    assert "values 0\n" in done.stdout


@pytest.mark.parametrize("version", VERSIONS)
def test_tensors_that_must_not_be_asked_come_first(version, tmp_path):
    report = recorded(tmp_path, version, "odd", GPUTALLY_RECORD_SHAPES="1")
    shapes = by_shape(report)
    assert shapes[("aten::mm", "[[2, 3], [3, 4]]")] == 20
    assert shapes[("aten::tan", "[[]]")] == 4
    nothing_lost(report)


@pytest.mark.parametrize("way", ["run", "plain"])
@pytest.mark.parametrize("shapes", ["1", "0"])
def test_next_is_by_shape_where_there_are_some(shapes, way, tmp_path):
    asked = {"GPUTALLY_RECORD_SHAPES": shapes}
    command = sim("213", "shapes")
    done = run(*command, cwd=tmp_path, env=clean_env(**asked)) if way == "run" else \
        execute(command, cwd=tmp_path, env=preload(**asked))
    assert done.stderr.endswith(f" --group-by {'shape' if shapes == '1' else 'thread'}\n")


ASKED = {"shape": ("no input shapes recorded; for PyTorch: gputally run --record-shapes", "GPUTALLY_RECORD_SHAPES"),
         "overload": ("no overloads recorded; for PyTorch: gputally run --capture-overload-names",
                      "GPUTALLY_CAPTURE_OVERLOAD_NAMES"),
         "flops": ("no FLOPs recorded; for PyTorch: gputally run --with-flops", "GPUTALLY_WITH_FLOPS"),
         "self_cpu_memory_usage": ("no memory recorded", "GPUTALLY_PROFILE_MEMORY"),
         "device_time": ("no device times recorded", None),
         "cuda_time_total": ("no device times recorded", None)}


@pytest.mark.parametrize("word", ASKED)
def test_what_was_not_recorded_is_told(word, tmp_path):
    """The table would look as if nothing was asked for."""
    said, variable = ASKED[word]
    option = "--group-by" if word in ("shape", "overload") else "--sort-by"
    for value in "01":
        env = clean_env(**({variable: value} if variable else {}))
        mode = "basic" if "memory" in word else "shapes"
        run(*sim("213", mode), cwd=tmp_path, env=env, options=["-q", "-o", f"r{value}"])
        done = tool("report", option, word, f"r{value}.json", cwd=tmp_path)
        told = f"gputally: {option} {word}: {said}\n"
        assert (done.returncode, done.stderr) == (0, "" if variable and value == "1" else told)
        assert done.stdout.startswith("---")


def test_flops_alone_keep_no_shapes_apart(tmp_path):
    report = recorded(tmp_path, "213", "shapes", GPUTALLY_WITH_FLOPS="1")
    assert {row.get("shapes") for row in report["call_tree"]} == {None}
    assert rows(report)["aten::mm"]["flops"] == 20 * 48


def test_overloads(tmp_path):
    run(*sim("213", "basic"), cwd=tmp_path, env=clean_env(GPUTALLY_CAPTURE_OVERLOAD_NAMES="1"))
    report, = tmp_path.glob("*.json")
    out = tool("report", report, "--group-by", "overload", "--format", "csv").stdout
    overloads = {r["key"]: r["overload_name"] for r in csv.DictReader(io.StringIO(out))}
    assert overloads["aten::addmm"] == "out" and overloads["aten::linear"] == ""


def test_overloads_that_the_version_lacks(tmp_path):
    done = run(*sim("113", "basic"), cwd=tmp_path, env=clean_env(GPUTALLY_CAPTURE_OVERLOAD_NAMES="1"))
    assert done.stderr.count("does not tell the overloads") == 1
    assert rows(load_report(tmp_path))["aten::linear"]["count"] == 3


# ---- what may go wrong ----

def test_a_version_without_what_we_need(tmp_path):
    done = run(*sim("old", "basic"), cwd=tmp_path)
    assert done.returncode == 0
    assert [line for line in done.stderr.splitlines() if "libtorch_cpu" in line] == [
        "gputally: libtorch_cpu.so lacks _ZNK2at14RecordFunction4nameEv: PyTorch's operators are not recorded"]
    assert list(tmp_path.glob("*.json")) == []


def test_all_threads_and_one_that_ends_an_operator_of_another(tmp_path):
    report = recorded(tmp_path, "213", "threads")
    got = rows(report)
    assert got["aten::mm"]["count"] == 51
    assert got["aten::here"]["count"] == 1
    assert got["crossing"]["count"] == 1


def test_exceptions_through_operators(tmp_path):
    report = recorded(tmp_path, "213", "throws")
    assert tree(report) == {("aten::outer",): 3, ("aten::outer", "aten::inner"): 3}
    nothing_lost(report)


def test_fork(tmp_path):
    done = run(*sim("213", "forks"), cwd=tmp_path)
    assert done.returncode == 0
    parent, child = reports(tmp_path)
    assert rows(parent)["aten::mm"]["count"] == 1 and rows(parent)["aten::before"]["count"] == 1
    assert rows(child)["aten::mm"]["count"] == 4


@pytest.mark.parametrize("mode, count", [("unloads", 4), ("twice", 3)])
@pytest.mark.parametrize("version", VERSIONS)
def test_opened_again(version, mode, count, tmp_path):
    report = recorded(tmp_path, version, mode)
    assert rows(report)["aten::mm"]["count"] == count
    nothing_lost(report)


def test_a_program_that_is_linked_with_it(both):
    _, under_run, plain = both(APPS / "torch_linked")
    for done in (under_run, plain):
        report = load_report(done.folder)
        t = tree(report)
        assert t.pop(("[memory]",), None) == 2
        assert t == {("aten::linear",): 5, ("aten::linear", "aten::mm"): 5}
        assert rows(report)["aten::mm"]["self_cpu_memory_usage"] == 0


def test_nvtx_text_of_an_operator_counts_once(tmp_path):
    report = recorded(tmp_path, "213", "nvtx")
    mine = [r for r in report["call_tree"] if r["source"] == "torch"]
    nvtx = [r for r in report["call_tree"] if r["source"] == "nvtx"]
    assert {(r["key"], r["count"]) for r in mine} == {("aten::mm", 5)}
    # the one outside of operators is nobody else's
    assert {(chain(report, r), r["count"]) for r in nvtx} == {(("aten::mm", "the user's own"), 5), (("aten::mm",), 5)}
    nothing_lost(report, duplicates=5)


def test_nvtx_text_counts_where_operators_do_not(tmp_path):
    report = recorded(tmp_path, "213", "nvtx", GPUTALLY_SOURCES="nvtx")
    assert {(chain(report, r), r["count"]) for r in report["call_tree"]} == {
        (("aten::mm", "the user's own"), 5), (("aten::mm",), 10)}
    nothing_lost(report)


def test_window_of_the_programs_own_profiler(tmp_path):
    report = recorded(tmp_path, "213", "profiles", GPUTALLY_WINDOW="torch")
    got = rows(report)
    assert got["aten::inside"]["count"] == 2 and "aten::outside" not in got
    whole = tmp_path / "whole"
    whole.mkdir()
    assert rows(recorded(whole, "213", "profiles"))["aten::outside"]["count"] == 2
