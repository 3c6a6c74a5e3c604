"""Stacks in reports: of a C program, of Python, joined; in every view that shows them or leaves them out."""
import csv
import io
import json
import os
import re
import subprocess

import pytest
from conftest import GPUTALLY, clean_env, execute, load_report, run, tool

RANGES = ["--with-stack", "1,ranges"]


def stacks(report, which="native"):
    """{key: {functions, innermost first}} of the call tree."""
    frames, out = report["frames"], {}
    for row in report["call_tree"]:
        if "stack" in row:
            ids = report["stacks"][row["stack"]][which]
            out.setdefault(row["key"], set()).add(tuple(frames[i]["function"] for i in ids))
    return out


def until_main(found):
    return {s[:s.index("main") + 1] for s in found}


def parse(text):
    return dict(line.rsplit(" ", 1) for line in text.splitlines())


def view(path, *options):
    done = tool("report", path, *options)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout


@pytest.fixture
def saved(app, tmp_path):
    done = run(app("stack_ranges"), cwd=tmp_path, options=["-q", "-o", "x", "-f", "json", *RANGES])
    assert done.returncode == 0, done.stderr
    return tmp_path / "x.json"


@pytest.mark.san
def test_functions_of_a_program(saved):
    """Each row has the program's own functions, none of ours; lost stacks are told."""
    report = load_report(saved)
    found = stacks(report)
    assert until_main(found["outer"]) == {("work", "main")}
    assert until_main(found["inner"]) == {("part", "work", "main"), ("part", "main")}
    assert not [f for f in report["frames"] if "gputally" in f["function"]]
    assert report["lost"]["stack_missing"] == report["lost"]["stack_cut"] == report["lost"]["stack_truncated"] == 0
    program = {m["path"]: m["build_id"] for m in report["modules"]}[report["processes"][0]["exe"]]
    assert re.fullmatch("([0-9a-f]{2})+", program)


def test_offsets_are_what_addr2line_wants(saved):
    report = load_report(saved)
    program = [m["path"] for m in report["modules"]].index(report["processes"][0]["exe"])
    frames = [f for f in report["frames"] if f.get("module") == program and f["function"] in ("work", "part", "main")]
    assert len(frames) >= 3
    try:
        done = execute(["addr2line", "-aife", report["processes"][0]["exe"], *(hex(f["offset"] - 1) for f in frames)])
    except FileNotFoundError:
        pytest.skip("addr2line is not installed")
    # of each address the outermost: our header's functions are inlined
    found = [group.splitlines()[-2] for group in re.split(r"^0x\w+\n", done.stdout, flags=re.M)[1:]]
    assert found == [f["function"] for f in frames]


def test_views_that_do_not_ask(app, saved, tmp_path):
    """They look as they do without stacks, but for times."""
    run(app("stack_ranges"), cwd=tmp_path, options=["-q", "-o", "none", "-f", "json", "--with-stack", "0"])
    none = tmp_path / "none.json"
    assert not load_report(none)["stacks"] and len(load_report(saved)["call_tree"]) > len(load_report(none)["call_tree"])
    for options in (["-f", "tree"], ["-f", "folded"], ["-f", "tvm-csv"], []):
        shape = [re.sub(r"[\d.]+(us|ms|%)?|^ *-+[- ]*$", "", view(p, *options).replace(str(p), "")) for p in (saved, none)]
        shape = [re.sub("[ -]+", " ", s) for s in shape]
        assert shape[0] == shape[1], options
    rows = [{k: (r["count"], len(r["cpu_children"])) for r in load_report(p)["key_averages"] for k in [r["key"]]}
            for p in (saved, none)]
    assert rows[0] == rows[1] == {"outer": (3, 1), "inner": (4, 0)}


def test_averages_by_stack(saved):
    rows = list(csv.DictReader(io.StringIO(view(saved, "-f", "csv", "-g", "stack"))))
    found = {(r["key"], *re.findall(r"^(\w+) \(stack_ranges\)$", r["stack"], re.M)[:3]): int(r["count"]) for r in rows}
    assert found == {("outer", "work", "main", "_start"): 3, ("inner", "part", "work", "main"): 3,
                     ("inner", "part", "main", "_start"): 1}
    rows = list(csv.DictReader(io.StringIO(view(saved, "-f", "csv", "-g", "stack:1"))))
    assert {(r["key"], r["stack"]): int(r["count"]) for r in rows} == {
        ("outer", "work (stack_ranges)"): 3, ("inner", "part (stack_ranges)"): 4}
    assert not [r for r in csv.DictReader(io.StringIO(view(saved, "-f", "csv", "--stack", "python"))) if r["stack"]]
    table = view(saved, "--stack", "native")
    assert "Source Location" in table and "work (stack_ranges)" in table


def test_tree_and_flame_graph(saved):
    tree = view(saved, "-f", "tree", "-g", "stack").splitlines()
    names = [line[42:] for line in tree]
    at = next(i for i, n in enumerate(names) if n.strip() == "main (stack_ranges)")
    below = [(len(n) - len(n.lstrip()), n.strip()) for n in names[at:]]
    deep = below[0][0]
    assert sorted((d - deep, n) for d, n in below) == sorted([
        (0, "main (stack_ranges)"), (2, "work (stack_ranges)"), (4, "outer"), (6, "part (stack_ranges)"), (8, "inner"),
        (2, "part (stack_ranges)"), (4, "inner")])
    folded = parse(view(saved, "-f", "folded", "--stack", "auto"))
    ends = {p[p.index("main_(stack"):] for p in folded}
    main, work, part = ("%s_(stack_ranges)" % f for f in ("main", "work", "part"))
    assert ends >= {";".join([main, work, "outer", part, "inner"]), ";".join([main, part, "inner"])}
    plain = parse(view(saved, "-f", "folded"))
    assert abs(sum(map(int, folded.values())) - sum(map(int, plain.values()))) <= len(folded)


def test_device_time_of_a_list_of_events(tmp_path):
    """What each operator launched itself, below its frames."""
    def event(name, start, end, us, *stack):
        return {"name": name, "start_us": start, "end_us": end, "stack": list(stack), "kernels": [{"duration_us": us}]}
    path = tmp_path / "events.json"
    path.write_text(json.dumps({"format": "gputally-events", "version": 1, "use_device": "cuda", "events": [
        event("a", 0, 100, 500, "f", "main"), event("b", 10, 30, 70, "g", "f", "main"), event("b", 40, 50, 7, "f", "main"),
        event("b", 60, 70, 1, "f", "main")]}))
    assert parse(view(path, "-f", "folded", "--metric", "device", "-g", "stack")) == {
        "main;f;a": "500", "main;f;a;g;b": "70", "main;f;a;b": "8"}
    assert parse(view(path, "-f", "folded", "--metric", "device")) == {"a": "500", "a;b": "78"}
    assert parse(view(path, "-f", "folded", "-g", "stack")) == {"main;f;a": "60", "main;f;a;g;b": "20", "main;f;a;b": "20"}
    path.write_text(path.read_text().replace('"duration_us"', '"duration_us": 0, "was"'))
    done = tool("report", path, "-f", "folded", "--metric", "device")
    assert (done.stdout, done.stderr) == ("", "gputally: --metric device: no device times recorded\n")


def test_options_that_can_not_be(saved):
    for options, why in ((["--stack", "x"], "auto python native both"), (["--metric", "x"], "cpu device"),
                         (["-f", "tree", "-g", "stack,shape"], "--group-by is for tables"),
                         (["-f", "tvm", "--stack", "auto"], "TVM's forms have no stacks"),
                         (["-f", "csv", "--metric", "device"], "--format folded")):
        done = tool("report", saved, *options)
        assert (done.returncode, done.stdout) == (2, "") and why in done.stderr


def test_a_living_program_and_a_killed_one(app, tmp_path):
    """Its session has whole stacks at any moment."""
    env = clean_env(GPUTALLY_WITH_STACK="ranges,native", GPUTALLY_SESSION_DIR=str(tmp_path))
    p = subprocess.Popen([str(GPUTALLY), "run", "-o", str(tmp_path / "x"), "-f", "json", "-q", "--", str(app("stack_ranges")),
                          "wait"], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=tmp_path)
    try:
        assert p.stdout.readline() == "waiting\n"
        session, = tmp_path.rglob("*.session")
        (tmp_path / "live.txt").write_text(view(session, "-f", "json"))
        report = load_report(tmp_path / "live.txt")
        pid = report["processes"][0]["pid"]
        os.kill(pid, 9)
    finally:
        p.stdin.close()
        p.wait(60)
        p.stdout.close()
    for r in (report, load_report(tmp_path / "x.json")):
        assert until_main(stacks(r)["inner"]) == {("part", "work", "main"), ("part", "main")}
        assert r["processes"][0]["ended"] == ("running" if r is report else "killed")


PYTHON = """
import ctypes, nvtx
libc = ctypes.CDLL(None)
TYPE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)

def compare(a, b):
    with nvtx.annotate("compare"):
        return 0

def sort():
    numbers = (ctypes.c_int * 2)(2, 1)
    libc.qsort(numbers, 2, 4, TYPE(compare))

with nvtx.annotate("outer"):
    sort()
"""


def test_python_and_native_joined(python_nvtx, tmp_path):
    """Python calls C calls Python: each frame in its place."""
    (tmp_path / "app.py").write_text(PYTHON)
    done = run(python_nvtx, "app.py", cwd=tmp_path, options=["-q", "-o", "x", "-f", "json", *RANGES])
    assert done.returncode == 0, done.stderr
    report = load_report(tmp_path / "x.json")
    python, = stacks(report, "python")["compare"]
    if "compare" not in python:
        pytest.skip("no Python frames on this interpreter")
    at = python.index("compare")
    assert python[at:] == ("compare", "sort", "<module>")
    lines = {f["function"]: f["line"] for f in report["frames"] if f.get("file", "").endswith("app.py")}
    text = PYTHON.split("\n")
    assert text[lines["compare"] - 1].strip().startswith("with nvtx") and "qsort" in text[lines["sort"] - 1]
    row, = [r for r in csv.DictReader(io.StringIO(view(tmp_path / "x.json", "-f", "csv", "--stack", "both")))
            if r["key"] == "compare"]
    both = row["stack"].split("\n")
    order = [next(i for i, f in enumerate(both) if re.search(p, f)) for p in
             (r"app\.py\(\d+\): compare$", r"^\w*(qsort|msort)\w* ", r"app\.py\(\d+\): sort$", r"app\.py\(\d+\): <module>$")]
    assert order == sorted(order), both
    assert "_PyEval_EvalFrameDefault" not in row["stack"]
    auto, = [r for r in csv.DictReader(io.StringIO(view(tmp_path / "x.json", "-f", "csv", "-g", "stack")))
             if r["key"] == "compare"]
    assert [f.rpartition(" ")[2] for f in auto["stack"].split("\n")] == list(python)
    native = view(tmp_path / "x.json", "-f", "csv", "--stack", "native")
    assert "_PyEval_EvalFrameDefault" in native and "app.py(" not in native


def test_frames_that_are_hidden(python_nvtx, tmp_path):
    """The lines of the script alone, which nvtx's own frames stand before; and none where all are hidden."""
    script = tmp_path / "mine.py"
    script.write_text("import nvtx\n\ndef work():\n    with nvtx.annotate('inner'):\n        pass\n\n"
                      "with nvtx.annotate('outer'):\n    work()\n    work()\n")
    done = run(python_nvtx, script, cwd=tmp_path, options=["-q", "-o", "x", "-f", "json", *RANGES])
    assert done.returncode == 0, done.stderr

    def lines(*options):
        table = csv.DictReader(io.StringIO(view(tmp_path / "x.json", "-f", "csv", *options)))
        return {(r["key"], r["stack"]): int(r["count"]) for r in table}
    assert not any(s.startswith(str(script)) for _, s in lines("--stack", "python"))
    mine = {("outer", f"{script}(7): <module>"): 1,
            ("inner", f"{script}(4): work\n{script}(8): <module>"): 1,
            ("inner", f"{script}(4): work\n{script}(9): <module>"): 1}
    assert lines("--hide", "*/nvtx/*") == mine
    assert lines("--hide", "nothing,*/nvtx/*", "--group-by", "stack:1") == {
        ("outer", f"{script}(7): <module>"): 1, ("inner", f"{script}(4): work"): 2}
    assert lines("--hide", "*") == {("outer", ""): 1, ("inner", ""): 2}
    assert view(tmp_path / "x.json", "-f", "folded", "--hide", "*/nvtx/*").count("mine.py(8)") == 1
