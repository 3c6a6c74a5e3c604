"""Python frames: in every interpreter that is here, and in what looks like one."""
import json
import os
import sys
from pathlib import Path

import pytest

from conftest import APPS, BUILD, ROOT, clean_env, counts, execute, forbid, load_report, reports, run

pytestmark = pytest.mark.usefixtures("no_leftovers")
APP = ROOT / "tests" / "apps" / "python_stacks.py"
STACKS = {"GPUTALLY_WITH_STACK": "python,ranges"}
LIMIT = 512


def pythons():
    """One interpreter of each minor version from 3.9 on, this one first."""
    found = {"%d.%d" % sys.version_info[:2]: sys.executable}
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    for path in sorted(root.glob("versions/3.*/bin/python3")):
        minor = int(path.parent.parent.name.split(".")[1])
        if 9 <= minor <= 14:
            found[f"{path.parent.parent.name} of pyenv"] = str(path)
    return [pytest.param(path, id=version) for version, path in found.items()]


def stack(report, row):
    """[[file, line, function]], and what is noted at the outer end"""
    frames = [report["frames"][i] for i in report["stacks"][row["stack"]]["python"]]
    return ([[f["file"], f["line"], f["function"]] for f in frames if f["kind"] == "python"],
            [f["function"] for f in frames if f["kind"] == "note"])


def check(report, expected):
    """Every range has one row, whose stack is as Python said."""
    got = {}
    for row in report["call_tree"]:
        assert row["key"] not in got, row["key"]
        got[row["key"]] = stack(report, row)
    for name, frames in expected.items():
        note = ["(truncated)"] if len(frames) > LIMIT else []
        assert got.pop(name) == (frames[:LIMIT], note), name
    assert got == {}
    assert report["lost"]["stack_truncated"] == sum(len(frames) > LIMIT for frames in expected.values())


@pytest.mark.parametrize("python", pythons())
def test_walk(python):
    """Hundreds of thousands of captures against the interpreter's own answers; see walk.py."""
    done = execute([python, ROOT / "tests" / "python" / "walk.py", BUILD / "tests" / "pywalk.so", "--quick"], timeout=240)
    assert done.returncode == 0, done.stdout + done.stderr
    assert ", 0 mismatches" in done.stdout
    assert int(done.stdout.split()[1]) >= 10000


@pytest.mark.parametrize("python", pythons())
def test_stacks_of_ranges(python, tmp_path):
    done = run(python, APP, cwd=tmp_path, env=clean_env(**STACKS))
    assert done.returncode == 0, done.stderr
    check(load_report(tmp_path), json.loads(done.stdout))


CHURN = """
import ctypes
library = ctypes.CDLL(None)
def mark(name):
    library.gputally_range_push(name), library.gputally_range_pop()
for i in range(20000):
    exec(compile("def f%d(): mark(b'churn')\\nf%d()" % (i, i), "made %d.py" % i, "exec"), {"mark": mark})
for i in range(600):
    mark(b"a name that comes late: %d" % i)
"""


def test_code_without_end(tmp_path):
    """Code that is made and dropped for ever fills what stacks may have, and not the place of names."""
    done = run(sys.executable, "-c", CHURN, options=["-q", "--memory", "1M"], cwd=tmp_path, env=clean_env(**STACKS))
    assert done.returncode == 0, done.stderr
    report = load_report(tmp_path)
    assert counts(report) == {"churn": 20000, **{f"a name that comes late: {i}": 1 for i in range(600)}}
    assert report["lost"]["stack_missing"] > 0 and report["lost"]["folded"] == 0


def test_fork(tmp_path):
    """The child has code objects of its own session."""
    done = run(sys.executable, APP, "fork", cwd=tmp_path, env=clean_env(**STACKS))
    assert done.returncode == 0, done.stderr
    parent, child = reports(tmp_path)
    check(parent, json.loads(done.stdout))
    got = {row["key"]: stack(child, row)[0] for row in child["call_tree"] if row["count"]}
    assert set(got) == {"child", "child again"}
    assert [f[2] for f in got["child"]] == [f[2] for f in got["child again"]] == ["mark", "<module>"]
    assert got["child again"][1][1] == got["child"][1][1] + 3


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="numbers of system calls")
@pytest.mark.parametrize("error", [1, 13, 38], ids=["EPERM", "EACCES", "ENOSYS"])
@pytest.mark.parametrize("forbidden, works", [((310,), True), ((310, 17), False)])
def test_forbidden_to_look(tmp_path, forbidden, works, error):
    """process_vm_readv is forbidden in containers of old Docker; pread64 of /proc/self/mem is the other way."""
    script = tmp_path / "script.py"
    script.write_text(forbid(*forbidden, error=error) + APP.read_text().partition('"""\n')[2])
    folder = tmp_path / "out"
    folder.mkdir()
    done = run(sys.executable, script, cwd=folder, env=clean_env(**STACKS))
    assert done.returncode == 0, done.stderr
    report = load_report(folder)
    told = [line for line in done.stderr.splitlines() if "without its frames" in line]
    if works:
        check(report, json.loads(done.stdout))
        assert told == []
    else:
        assert all(row.get("stack") is None for row in report["call_tree"])
        assert len(told) == 1 and "forbidden" in told[0]


def embed(app, tmp_path, *names, stacks="1,ranges"):
    libraries = [APPS / "python" / name / "libpython3.1.so" for name in names]
    done = run(app("python_embed"), *libraries, cwd=tmp_path, env=clean_env(GPUTALLY_WITH_STACK=stacks))
    assert (done.returncode, done.stdout) == (0, "")
    told = [line for line in done.stderr.splitlines() if "Python" in line]
    return load_report(tmp_path), told


@pytest.mark.san
def test_interpreter_in_a_plugin(app, tmp_path):
    """It comes, goes, and comes again; ranges without it have native frames only."""
    report, told = embed(app, tmp_path, "good", "good")
    assert told == []
    got = {}
    for row in report["call_tree"]:
        got.setdefault(row["key"], []).append((row["count"], stack(report, row)[0]))
    # the line of the third word on is the first one, 2 further, 3 further
    assert got["open"] == [(6, [["fake.py", 15, "inner"], ["fake.py", 25, "outer"]])]
    assert sum(n for n, _ in got["closed"]) == 2
    assert all(frames == [] for _, frames in got["closed"])


@pytest.mark.san
@pytest.mark.parametrize("name, words", [
    ("wrong", "Python 3.11 has its frames elsewhere"),
    ("free", "Python 3.13 runs without its lock"),
    ("old", "Python 3.8 is none of 3.9 to 3.14"),
    ("new", "Python 3.15 is none of 3.9 to 3.14"),
])
def test_refused(app, tmp_path, name, words):
    """Told once, and the program goes on: its ranges have native frames."""
    report, told = embed(app, tmp_path, name)
    assert len(told) == 1 and words in told[0]
    for row in report["call_tree"]:
        s = report["stacks"][row["stack"]]
        assert s["python"] == [] and s["native"]
    assert sum(row["count"] for row in report["call_tree"]) == 4


def test_not_asked_for(app, tmp_path):
    """Nobody wants to hear of an interpreter that can't be read who does not ask for its frames."""
    _, told = embed(app, tmp_path, "old", stacks="native,ranges")
    assert told == []
