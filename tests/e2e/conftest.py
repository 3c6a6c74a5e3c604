"""What the end-to-end tests share: the build, a clean environment, running with and without us, reports.

Plain functions and constants are for `from conftest import ...`; fixtures wrap those that belong to
one test. A process a test starts has its folder, its time limit and none of the user's settings.
"""
import ctypes
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("GT_TEST_BUILD", ROOT / "build")).resolve()
GPUTALLY = BUILD / "gputally"
LIBRARY = BUILD / "libgputally.so"
APPS = BUILD / "apps"
SHM = Path("/dev/shm")
TIMEOUT = float(os.environ.get("GT_TEST_TIMEOUT", 60))
# the sanitizers that this build was made with, "" if none
SAN = BUILD.name[4:] if BUILD.name.startswith("san-") else ""
NO_HEADERS = 77


def pytest_configure(config):
    # a shell's background jobs start with these ignored, and what we start would inherit that
    for sig in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGTERM):
        if signal.getsignal(sig) == signal.SIG_IGN:
            signal.signal(sig, signal.SIG_DFL)
    config.addinivalue_line("markers", "san: also run with a build that has sanitizers")
    # nohup and a shell's & leave these ignored, which programs inherit
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)
    if "address" in SAN:
        # Python leaks by design, and the shells and tools that a test calls may
        os.environ["ASAN_OPTIONS"] = "detect_leaks=0"
    if "thread" in SAN:
        # ThreadSanitizer can't map its memory where the kernel randomises more bits than it knows;
        # children inherit this
        ctypes.CDLL(None).personality(0x0040000)


def sanitizer_runtime(name):
    """Path of libasan, libtsan... of the compiler that made the build, or None."""
    done = subprocess.run(["gcc", f"-print-file-name=lib{name}.so"], capture_output=True, text=True)
    path = done.stdout.strip()
    return os.path.realpath(path) if "/" in path else None


def clean_env(**more):
    """This environment without anything that is ours or would change what is measured."""
    env = {k: v for k, v in os.environ.items()
           if not k.startswith("GPUTALLY_") and k not in ("LD_PRELOAD", "RANK", "COLUMNS")}
    env.update(more)
    return env


def preload(*before, **more):
    """Environment for plain injection, without `gputally run`."""
    first = [str(b) for b in before]
    if "address" in SAN:
        first.append(sanitizer_runtime("asan"))
    if "thread" in SAN:
        first.append(sanitizer_runtime("tsan"))
    return clean_env(LD_PRELOAD=":".join(first + [str(LIBRARY)]), **more)


# process ids of what the tests have started; exec keeps them
started = set()


def execute(command, cwd=None, env=None, timeout=TIMEOUT, **more):
    """Runs a program, never through us unless `command` or `env` say so. Output as text, bytes that
    are no UTF-8 kept by surrogates."""
    more.setdefault("stdin", subprocess.DEVNULL)
    more.setdefault("stdout", subprocess.PIPE)
    more.setdefault("stderr", subprocess.PIPE)
    text = more.pop("input", None)
    if text is not None:
        more["stdin"] = subprocess.PIPE
    p = subprocess.Popen([str(c) for c in command], cwd=cwd, env=clean_env() if env is None else env,
                         encoding="utf-8", errors="surrogateescape", **more)
    started.add(p.pid)
    try:
        out, err = p.communicate(text, timeout=timeout)
    except subprocess.TimeoutExpired:
        p.kill()
        p.wait()
        raise
    done = subprocess.CompletedProcess(p.args, p.returncode, out, err)
    if SAN and done.stderr:
        # of the program, of us in it, or of the report's maker, whose status is not seen
        for word in ("Sanitizer:", "runtime error:", "Sanitizer CHECK"):
            assert word not in done.stderr, done.stderr
    return done


def tool(*args, **more):
    """gputally ARGS"""
    return execute([GPUTALLY, *args], **more)


def run(*command, options=(), **more):
    """gputally run OPTIONS -- COMMAND"""
    return tool("run", *options, "--", *command, **more)


def forbid(*numbers, error=1):
    """The beginning of a Python script that may not make system calls of these numbers any more, nor
    what it executes."""
    return f"""
import ctypes, struct
def op(code, jt, jf, k):
    return struct.pack("HBBI", code, jt, jf, k)
program = op(0x20, 0, 0, 0)
for n in {numbers}:
    program += op(0x15, 0, 1, n) + op(0x06, 0, 0, 0x00050000 | {error})
program += op(0x06, 0, 0, 0x7fff0000)
data = ctypes.create_string_buffer(program)
libc = ctypes.CDLL(None)
assert libc.prctl(38, 1, 0, 0, 0) == 0
pad = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(data))
assert libc.prctl(22, 2, pad, 0, 0) == 0
"""


def reports(folder):
    """Every report that was left in a folder, oldest process id first."""
    found = [json.loads(p.read_bytes()) for p in sorted(Path(folder).glob("*.json"))]
    return sorted(found, key=lambda r: r["processes"][0]["pid"])


def load_report(path):
    """The one report in a folder, or that file."""
    path = Path(path)
    if path.is_dir():
        found = list(path.glob("*.json"))
        assert len(found) == 1, f"one report expected: {sorted(os.listdir(path))}"
        path = found[0]
    text = path.read_bytes().decode("utf-8")  # strict: a report is always UTF-8
    return json.loads(text, parse_constant=lambda c: pytest.fail(f"{c} in {path}"))


def rows(report):
    """{key: row} of the key averages, marks and counters. Where a name is a range and a mark too, the
    range's."""
    out = {}
    for part in ("counters", "marks", "key_averages"):
        out.update({row["key"]: row for row in report[part]})
    return out


def counts(report):
    """{key: calls}, over all kinds that have that name"""
    out = {}
    for part in ("key_averages", "marks", "counters"):
        for row in report[part]:
            out[row["key"]] = out.get(row["key"], 0) + row["count"]
    return out


def chain(report, row):
    """Keys from the root down to a row of the call tree."""
    by_id = {r["id"]: r for r in report["call_tree"]}
    keys = []
    while row is not None:
        keys.append(row["key"])
        row = by_id[row["parent"]] if row["parent"] is not None else None
    return tuple(reversed(keys))


def tree(report):
    """{chain of keys: count} over all threads; async rows apart by a trailing kind."""
    out = {}
    for row in report["call_tree"]:
        at = chain(report, row)
        if row["kind"] != "range":
            at += (f"<{row['kind']}>",)
        out[at] = out.get(at, 0) + row["count"]
    return out


MASKED = {
    "pid", "ppid", "start_time", "boot_id", "tid", "start", "start_unix_ns", "since_ns", "duration_ns",
    "wall_ns", "inside_ns", "outside_ns", "recorded_ns", "self_ns", "total_ns", "min_ns", "max_ns", "sumsq_ns2",
    "cpu_time_total", "self_cpu_time_total", "device_time_total", "self_device_time_total", "cpu_time", "device_time",
    "call_ns", "ns", "share", "min", "max", "stddev", "argv", "cwd", "variables", "output",
}


def masked(value, name="", inside=""):
    """A report with everything that differs from run to run replaced by its type."""
    if isinstance(value, dict):
        return {k: masked(v, k, name) for k, v in value.items()}
    if name in MASKED and inside != "values":
        return f"<{type(value).__name__}>" if not isinstance(value, (int, float)) else "<number>"
    if isinstance(value, list):
        return [masked(v, name, inside) for v in value]
    return value


class Expected:
    """The lines that the test clients print with --expect; nvtx_basic.c tells the format."""

    def __init__(self, text):
        self.counts, self.values, self.sums, self.totals, self.shapes = {}, {}, {}, {}, {}
        for line in text.splitlines():
            word, _, rest = line.partition(" ")
            if word == "expect":
                key, count = rest.rsplit(" ", 1)
                assert key not in self.counts, key
                self.counts[key] = int(count)
            elif word == "value":
                key, *numbers = rest.rsplit(" ", 4)
                self.values[key] = dict(zip(("count", "sum", "min", "max"), map(float, numbers)))
            elif word == "sum":
                key, field, n = rest.rsplit(" ", 2)
                self.sums[key, field] = int(n)
            elif word == "total" and " " in rest:
                what, n = rest.rsplit(" ", 1)
                self.totals[what.replace(" ", "_")] = int(n)
            elif word == "shape":
                head, count = rest.rsplit(" ", 1)
                key, shape = head.split(" ", 1)
                self.shapes[key, shape] = int(count)

    def check(self, report, also=()):
        """Exact: nothing missing, nothing more but the keys in `also`."""
        got = rows(report)
        want = {k: n for k, n in self.counts.items() if n}
        assert {k: n for k, n in counts(report).items() if k not in also} == want
        for key, values in self.values.items():
            assert {k: got[key]["values"][k] for k in values} == values, key
        for (key, field), n in self.sums.items():
            assert got[key][field] == n, (key, field)
        for what in ("unbalanced", "overlapped", "left_open", "memory", "nested", "deep", "late",
                     "folded", "torn", "inherited"):
            assert report["lost"][what] == self.totals.get(what, 0), what


def leftovers():
    """Our files in /dev/shm: sessions and folders of `run`."""
    return {p.name for p in SHM.glob("gputally-*")}


def owner(name):
    """Process id in the name of a session (gputally-UID-BOOT-PIDNS-PID-START-N.session) or a folder
    of `run` (gputally-run-UID-PID-XXXXXX)."""
    parts = name.split("-")
    return int(parts[3] if parts[1] == "run" else parts[4])


@pytest.fixture
def no_leftovers(tmp_path):
    """Nothing of ours may stay in /dev/shm. Others may test on this machine at the same time, so a file
    is ours when its process was started by us, or when a folder of the tests is named in it."""
    before = leftovers()
    yield
    ours = []
    for name in leftovers() - before:
        try:
            pid = owner(name)
        except (IndexError, ValueError):
            continue
        if pid in started or (not Path(f"/proc/{pid}").exists() and names_us(SHM / name, tmp_path)):
            ours.append(name)
    assert ours == []


def names_us(path, folder):
    try:
        files = [path] if path.is_file() else list(path.glob("*.session"))
        return any(str(folder).encode() in f.read_bytes()[:65536] for f in files)
    except OSError:
        return False  # already gone


@pytest.fixture
def app():
    """Path of a test client, or a skip if this build could not make it."""
    def find(name):
        path = APPS / name
        if not path.exists():
            pytest.fail(f"{path} is not built: make apps")
        done = None
        if name.startswith("nvtx") or name == "kokkos_real":
            done = execute([path], env=clean_env(), cwd="/")
            if done.returncode == NO_HEADERS:
                pytest.skip(done.stderr.strip())
        return path
    return find


@pytest.fixture
def python_nvtx():
    """This Python, if it has the nvtx package."""
    try:
        import nvtx  # noqa: F401
    except ImportError:
        pytest.skip("the nvtx package is not installed; run scripts/bootstrap")
    return sys.executable


@pytest.fixture
def both(tmp_path):
    """Runs a command bare, under `gputally run`, and under plain LD_PRELOAD, each in a folder of its
    own; status and stdout must be the same. Gives (bare, run, plain), each with .folder."""
    def go(*command, env=None, bare_stderr=True, **more):
        out = []
        extra = env or {}
        for name in ("bare", "run", "plain"):
            folder = tmp_path / name
            folder.mkdir(exist_ok=True)
            line = ([GPUTALLY, "run", "--"] if name == "run" else []) + list(command)
            e = preload(**extra) if name == "plain" else clean_env(**extra)
            done = execute(line, cwd=folder, env=e, **more)
            done.folder = folder
            out.append(done)
        bare, under_run, plain = out
        assert under_run.returncode == bare.returncode, under_run.stderr
        assert plain.returncode == bare.returncode, plain.stderr
        assert under_run.stdout == bare.stdout
        assert plain.stdout == bare.stdout
        assert os.listdir(bare.folder) == []
        return out
    return go
