"""`gputally run` turns every session in its folder into a report, however the processes ended."""
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("GT_TEST_BUILD", ROOT / "build")).resolve()
GPUTALLY = BUILD / "gputally"

# One range of each name that is given; the body of {} runs before the end.
PROGRAM = """
import nvtx, os, signal, sys, time
for name in sys.argv[1:]:
    with nvtx.annotate(name):
        pass
sys.stdout.flush()
"""

try:
    import nvtx  # noqa: F401
except ImportError:
    pytest.skip("needs the Python package nvtx", allow_module_level=True)


@pytest.fixture
def env(tmp_path):
    shm = tmp_path / "shm"
    shm.mkdir()
    e = {k: v for k, v in os.environ.items() if not k.startswith("GPUTALLY_")}
    e["GPUTALLY_SESSION_DIR"] = str(shm)
    e["GPUTALLY_OUTPUT"] = "report.%p"
    return e


def run(tmp_path, env, *args, **more):
    return subprocess.run([GPUTALLY, "run", *map(str, args)], capture_output=True, text=True, cwd=tmp_path,
                          env=env, timeout=100, **more)


def names(path):
    """Names of the ranges of a report."""
    report = json.loads(path.read_text())
    return {a["key"] for a in report["key_averages"]}


def left(tmp_path):
    return sorted(str(p.relative_to(tmp_path)) for p in (tmp_path / "shm").rglob("*"))


def python(body="", *ranges):
    return [sys.executable, "-c", PROGRAM + body, *ranges]


@pytest.mark.san
def test_report_and_last_line(tmp_path, env):
    done = run(tmp_path, env, *python("print('mine')", "one"))
    assert done.returncode == 0 and done.stdout == "mine\n"
    (report,) = tmp_path.glob("report.*.json")
    assert names(report) == {"one"}
    assert "one" in done.stderr
    assert done.stderr.splitlines()[-1].startswith(f"gputally: wrote {report.name}; next: gputally report ")
    assert left(tmp_path) == []


@pytest.mark.parametrize("sig", [signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM])
def test_killed_program_has_its_report(tmp_path, env, sig):
    done = run(tmp_path, env, *python(f"os.kill(os.getpid(), {int(sig)})", "before"))
    assert done.returncode == -sig
    (report,) = tmp_path.glob("report.*.json")
    assert names(report) == {"before"}
    assert left(tmp_path) == []


def test_quiet_says_nothing(tmp_path, env):
    done = run(tmp_path, env, "-q", *python("", "one"))
    assert (done.returncode, done.stderr) == (0, "")
    assert len(list(tmp_path.glob("*.json"))) == 1


def test_each_child_has_a_report(tmp_path, env):
    children = 12
    code = f"""
import os, sys, nvtx
for i in range({children}):
    if not os.fork():
        with nvtx.annotate(f"child {{chr(97 + i)}}"):
            pass
        os._exit(0)
for i in range({children}):
    os.wait()
"""
    done = run(tmp_path, env, sys.executable, "-c", code)
    assert done.returncode == 0, done.stderr
    reports = list(tmp_path.glob("report.*.json"))
    assert len(reports) == children
    assert sorted(n for r in reports for n in names(r)) == [f"child {chr(97 + i)}" for i in range(children)]
    # one table, a line for each file
    assert done.stderr.count("Self CPU time total") == 1
    assert done.stderr.count("gputally: wrote ") == children
    assert left(tmp_path) == []


def test_sessions_are_taken_out_while_the_program_runs(tmp_path, env):
    """The program goes on only when the report of its dead child is there: else it would run for ever."""
    body = """
import glob
if not os.fork():
    with nvtx.annotate("short life"):
        pass
    os._exit(0)
os.wait()
deadline = time.monotonic() + 60
while not glob.glob("report.*.json"):
    if time.monotonic() > deadline:
        sys.exit(1)
    time.sleep(0.02)
"""
    done = run(tmp_path, env, *python(body, "parent"))
    assert done.returncode == 0, done.stderr
    assert sorted(n for r in tmp_path.glob("report.*.json") for n in names(r)) == ["parent", "short life"]


def test_daemon_outlives_run_and_reports_itself(tmp_path, env):
    body = """
if not os.fork():
    os.setsid()
    with nvtx.annotate("daemon"):
        pass
    open("daemon.pid", "w").write(str(os.getpid()))
    while not os.path.exists("go"):
        time.sleep(0.02)
    sys.exit(0)
while not os.path.exists("daemon.pid"):
    time.sleep(0.02)
"""
    done = subprocess.run([GPUTALLY, "run", *python(body, "parent")], cwd=tmp_path, env=env, timeout=100,
                          stdout=subprocess.DEVNULL, stderr=(tmp_path / "stderr").open("w"))
    said = (tmp_path / "stderr").read_text()
    assert done.returncode == 0, said
    assert "1 process still running" in said
    assert [n for r in tmp_path.glob("report.*.json") for n in names(r)] == ["parent"]
    (tmp_path / "go").touch()
    deadline = time.monotonic() + 60
    while len(list(tmp_path.glob("report.*.json"))) < 2 and time.monotonic() < deadline:
        time.sleep(0.02)
    assert sorted(n for r in tmp_path.glob("report.*.json") for n in names(r)) == ["daemon", "parent"]


def test_damaged_session_costs_one_line(tmp_path, env):
    """A session that its process trampled on: the status stays, the file is kept and named."""
    body = """
import glob
(mine,) = glob.glob(os.environ["GPUTALLY_RUN_DIR"] + "/*.session")
if not os.fork():
    with nvtx.annotate("trampled"):
        pass
    for path in glob.glob(os.environ["GPUTALLY_RUN_DIR"] + "/*.session"):
        if path != mine:
            with open(path, "r+b") as f:
                f.seek(8)
                f.write(b"\\xff" * 4000)
    os.kill(os.getpid(), signal.SIGKILL)
os.wait()
sys.exit(7)
"""
    done = run(tmp_path, env, *python(body, "good"))
    assert done.returncode == 7
    assert [n for r in tmp_path.glob("report.*.json") for n in names(r)] == ["good"]
    complaints = [line for line in done.stderr.splitlines() if ".session" in line]
    assert len(complaints) == 1, done.stderr
    assert [p for p in left(tmp_path) if p.endswith(".session")]


def test_unwritable_output_keeps_status_and_session(tmp_path, env):
    env["GPUTALLY_OUTPUT"] = "/proc/no/such/%p"
    done = run(tmp_path, env, *python("sys.exit(3)", "one"))
    assert done.returncode == 3
    assert "gputally: /proc/no" in done.stderr
    (session,) = (tmp_path / "shm").rglob("*.session")
    assert str(session) in done.stderr


def test_without_children(tmp_path, env):
    body = "import subprocess\nsubprocess.run([sys.executable, '-c', 'import nvtx; nvtx.push_range(\"c\"); nvtx.pop_range()'])"
    done = run(tmp_path, env, "--no-children", *python(body, "parent"))
    assert done.returncode == 0
    assert [n for r in tmp_path.glob("report.*.json") for n in names(r)] == ["parent"]
