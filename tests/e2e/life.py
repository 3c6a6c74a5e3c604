"""Helpers of the tests about the life and death of processes: start real programs with and without the
library, read the reports they leave, see that nothing else is left.

A session file names the working folder of its process, so what lies in /dev/shm is ours if it names the
test's own folder: other tests and users may be at work there at the same time.
"""
import collections
import contextlib
import json
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("GT_TEST_BUILD", ROOT / "build")).resolve()
GPUTALLY = BUILD / "gputally"
LIBRARY = BUILD / "libgputally.so"
SHM = Path("/dev/shm")
TIMEOUT = 60

_started = set()  # pids: the names of session files and of the folders of `run` hold them


def app(name):
    return str(BUILD / "apps" / name)


def environment(preload=None, **variables):
    """The caller's environment without anything of ours, then `preload` and GPUTALLY_ variables."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("GPUTALLY_") and k != "LD_PRELOAD"}
    if preload:
        env["LD_PRELOAD"] = str(preload)
    for name, value in variables.items():
        env[f"GPUTALLY_{name}"] = str(value)
    return env


Done = collections.namedtuple("Done", "status out err")


def _finish(process, timeout):
    try:
        out, err = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, 9)
        out, err = process.communicate(timeout=TIMEOUT)
        pytest.fail(f"no end after {timeout} s: {process.args}\n{out}\n{err}")
    return Done(process.returncode, out, err)


def start(command, cwd, env, **more):
    """A process of its own group, with its texts in pipes."""
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = subprocess.Popen([str(c) for c in command], cwd=cwd, env=env, text=True, process_group=0,
                               **{**pipes, **more})
    _started.add(process.pid)
    return process


def call(command, cwd, env, timeout=TIMEOUT, **more):
    return _finish(start(command, cwd, env, **more), timeout)


def bare(command, cwd, **more):
    """Without us."""
    return call(command, cwd, environment(), **more)


def plain(command, cwd, variables=None, **more):
    """With LD_PRELOAD alone."""
    return call(command, cwd, environment(LIBRARY, **(variables or {})), **more)


def run(command, cwd, variables=None, **more):
    """Under `gputally run`."""
    return call([GPUTALLY, "run", "--", *command], cwd, environment(**(variables or {})), **more)


WAYS = pytest.mark.parametrize("way", [plain, run], ids=["preload", "run"])


def strict(text):
    """JSON without NaN, infinities and double keys."""
    def pairs(items):
        keys = [k for k, _ in items]
        assert len(keys) == len(set(keys)), keys
        return dict(items)

    def refuse(word):
        raise AssertionError(f"{word} in JSON")

    return json.loads(text, parse_constant=refuse, object_pairs_hook=pairs)


class Report:
    def __init__(self, path):
        self.path = path
        self.data = strict(Path(path).read_text())
        assert self.data["format"] == "gputally-report"
        self.process = self.data["processes"][0]
        self.pid = self.process["pid"]
        self.exe = os.path.basename(self.process["exe"])
        self.ended = self.process["ended"]
        self.lost = {k: v for k, v in self.data["lost"].items() if v}
        self.open = sorted(o["key"] for o in self.data["open"])
        self.marks = {m["key"]: m["count"] for m in self.data["marks"]}

    @property
    def counts(self):
        """Calls a key; what was never called does not count."""
        return {a["key"]: a["count"] for a in self.data["key_averages"] if a["count"]}

    def by_thread(self):
        """{name of the thread: {key: calls}}, marks too."""
        names = {t["id"]: t["name"] for t in self.process["threads"]}
        sums = collections.defaultdict(collections.Counter)
        for row in self.data["call_tree"]:
            sums[names[row["thread"]]][row["key"]] += row["count"]
        return sums


def reports(folder):
    """All of them, and there is nothing half-written beside them."""
    hidden = [p.name for p in Path(folder).iterdir() if p.name.endswith(".tmp")]
    assert hidden == []
    found = [Report(p) for p in sorted(Path(folder).glob("*.json"))]
    # a process that execs has several sessions, a pid may come again: these three tell them apart
    names = [(r.pid, r.process["start_time"], r.process["sequence"]) for r in found]
    assert len(names) == len(set(names)), names
    return found


def report(folder):
    found = reports(folder)
    assert len(found) == 1, [r.path for r in found]
    return found[0]


def leftovers(folder):
    """What processes that were started in `folder` left in /dev/shm."""
    mark, left = str(folder).encode(), []
    for path in SHM.glob("gputally-*"):
        inside = [path]
        with contextlib.suppress(OSError):
            if path.is_dir():
                inside = list(path.iterdir())
            # one that was half made names no folder, but its process
            pid = re.match(r"gputally-(?:run-\d+|\d+-[^-]+-\d+)-(\d+)-", path.name)
            if pid and int(pid[1]) in _started:
                left.append(path)
                continue
            for file in inside:
                if file.is_file():
                    with open(file, "rb") as f:
                        if mark in f.read(1 << 16):
                            left.append(file)
    return left


@pytest.fixture(autouse=True)
def clean(tmp_path):
    """Nothing of the test stays in /dev/shm."""
    _started.clear()
    before = set(SHM.glob("gputally-*"))  # a pid comes again
    yield
    left = [path for path in leftovers(tmp_path) if path not in before]
    for path in left:  # not twice for one defect
        with contextlib.suppress(OSError):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    assert [str(path) for path in left] == []


@pytest.fixture
def sessions():
    """A folder of our own for session files, on a file system that keeps them safe."""
    folder = Path(tempfile.mkdtemp(prefix="life-", dir=SHM))
    yield folder
    shutil.rmtree(folder)


def finish(path, cwd, *options, **more):
    return call([GPUTALLY, "finish", *options, path], cwd, environment(), **more)


def sole_session(folder):
    found = list(Path(folder).glob("gputally-*.session"))
    assert len(found) == 1, found
    return found[0]


def compile_c(folder, name, text, *flags):
    source, out = folder / f"{name}.c", folder / name
    source.write_text(text)
    done = subprocess.run(["gcc", "-O1", "-D_GNU_SOURCE", f"-I{ROOT / 'include'}", source, "-o", out, *flags],
                          capture_output=True, text=True, timeout=TIMEOUT)
    assert done.returncode == 0, done.stderr
    return out


def compile_preload(folder, name, text, *flags):
    return compile_c(folder, name, text, "-shared", "-fPIC", *flags, "-ldl", "-pthread")
