"""Python with the nvtx package from PyPI: exact counts, workers, and every way to end."""
import os
import signal
import subprocess
import sys

import pytest

from conftest import GPUTALLY, ROOT, Expected, clean_env, counts, execute, load_report, preload, reports, rows, run

pytestmark = pytest.mark.usefixtures("no_leftovers")
APP = ROOT / "tests" / "apps" / "nvtx_app.py"
HEAD = "import nvtx, os, sys, time\ndef work(n, name='work'):\n    for _ in range(n):\n        with nvtx.annotate(name):\n            pass\n"


@pytest.mark.san
def test_exact_and_the_same_both_ways(python_nvtx, both):
    bare, under_run, plain = both(python_nvtx, APP, "--expect")
    assert bare.returncode == 0, bare.stderr
    expected = Expected(bare.stdout)
    assert len(expected.counts) == 11
    for done in (under_run, plain):
        report = load_report(done.folder)
        expected.check(report)
        domains = {(r["domain"], r["key"]) for r in report["call_tree"]}
        assert {("pydom", "in domain"), ("", "decorated"), ("fast", "quick")} <= domains
        assert {r["category_name"] for r in report["call_tree"] if r["key"] == "inner"} == {"io"}
        assert rows(report)["pydom:async"]["is_async"]


@pytest.mark.parametrize("way", ["run", "plain"])
def test_source_off_is_silent(python_nvtx, tmp_path, way):
    env = {"GPUTALLY_SOURCES": "-nvtx"}
    if way == "run":
        done = run(python_nvtx, APP, cwd=tmp_path, env=clean_env(**env))
    else:
        done = execute([python_nvtx, APP], cwd=tmp_path, env=preload(**env))
    bare = execute([python_nvtx, APP])
    assert (done.returncode, done.stdout, done.stderr) == (0, bare.stdout, "")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("way", ["run", "plain"])
@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_multiprocessing(python_nvtx, tmp_path, method, way):
    script = tmp_path / "script.py"
    script.write_text(HEAD + f"""
import multiprocessing
def child(i):
    work(10 + i, 'child')
    return os.getpid()
if __name__ == '__main__':
    work(7, 'parent')
    context = multiprocessing.get_context('{method}')
    with nvtx.annotate('around'):
        workers = [context.Process(target=child, args=(i,)) for i in range(4)]
        for w in workers:
            w.start()
        for w in workers:
            w.join()
            assert w.exitcode == 0
    work(7, 'parent')
    print('done', os.getpid())
""")
    folder = tmp_path / "out"
    folder.mkdir()
    command = [python_nvtx, script]
    if way == "run":
        done = run(*command, cwd=folder)
    else:
        done = execute(command, cwd=folder, env=preload())
    assert done.returncode == 0, done.stderr
    parent = int(done.stdout.split()[1])
    found = {r["processes"][0]["pid"]: r for r in reports(folder)}
    assert counts(found.pop(parent)) == {"parent": 14, "around": 1}
    assert sorted(counts(r)["child"] for r in found.values()) == [10, 11, 12, 13]
    assert all(set(counts(r)) <= {"child"} for r in found.values())
    assert len(found) == 4


def test_thread_pool(python_nvtx, tmp_path):
    done = run(python_nvtx, "-c", HEAD + """
from concurrent.futures import ThreadPoolExecutor
def task(i):
    with nvtx.annotate('task'):
        work(5)
    return i
with ThreadPoolExecutor(4) as pool:
    print(sum(pool.map(task, range(100))))
""", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "4950\n")
    report = load_report(tmp_path)
    assert counts(report) == {"task": 100, "work": 500}
    assert {r["key"] for r in report["call_tree"] if r["parent"] is None} == {"task"}


ENDS = {
    "sys.exit": ("sys.exit(3)", 3, "exit"),
    "unhandled": ("raise ValueError('x')", 1, "exit"),
    "os._exit": ("os._exit(5)", 5, "exit"),
    "killed": ("os.kill(os.getpid(), 9)", -9, "killed"),
    "aborted": ("os.abort()", -6, "killed"),
    "segfault": ("import ctypes; ctypes.string_at(1)", -11, "killed"),
}


@pytest.mark.parametrize("end", ENDS)
def test_every_end_keeps_status_and_report(python_nvtx, tmp_path, end):
    code, status, how = ENDS[end]
    command = [python_nvtx, "-c", HEAD + "work(9)\n" + code]
    bare = execute(command)
    assert bare.returncode == status
    # with plain LD_PRELOAD nobody is left to finish a killed program: that is `recover`
    for way in ("run",) if how == "killed" else ("run", "plain"):
        folder = tmp_path / way
        folder.mkdir()
        done = run(*command, cwd=folder) if way == "run" else execute(command, cwd=folder, env=preload())
        assert (done.returncode, done.stdout) == (status, bare.stdout)
        assert done.stderr.startswith(bare.stderr)
        report = load_report(folder)
        assert counts(report) == {"work": 9}
        assert report["processes"][0]["ended"] == how


def test_keyboard_interrupt(python_nvtx, tmp_path):
    """SIGINT in the middle of a range: Python's own traceback and status 130 or the signal, and a report
    with that range closed by `with`."""
    code = HEAD + """
work(4)
with nvtx.annotate('interrupted'):
    print('ready', flush=True)
    while True: # no end of input may come before the signal, which passes through `run`
        time.sleep(0.02)
"""
    results = []
    for prefix in ([], [GPUTALLY, "run", "--"]):
        p = subprocess.Popen([*map(str, prefix), sys.executable, "-c", code], cwd=tmp_path, env=clean_env(),
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert p.stdout.readline() == "ready\n"
        p.send_signal(signal.SIGINT)
        _, err = p.communicate(timeout=60)
        results.append((p.returncode, "KeyboardInterrupt" in err))
    assert results[0] == (-signal.SIGINT, True)
    assert results[1] == results[0]
    report = load_report(tmp_path)
    assert counts(report) == {"work": 4, "interrupted": 1}
    assert report["open"] == []


def test_subprocess_of_a_stranger_is_silent(python_nvtx, both, tmp_path):
    bare, under_run, plain = both(python_nvtx, "-c", "import subprocess, os; os.chdir('/'); "
                                  "print(subprocess.run(['ls'], capture_output=True, text=True))")
    for done in (under_run, plain):
        assert done.stderr == ""
        assert list(done.folder.iterdir()) == []


def test_report_of_parent_with_strangers(python_nvtx, tmp_path):
    done = run(python_nvtx, "-c", HEAD + "import subprocess\nwork(3)\n"
               "print(subprocess.run(['sh', '-c', 'ls / | wc -l'], capture_output=True, text=True).stderr)\nwork(3)",
               cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "\n")
    assert counts(load_report(tmp_path)) == {"work": 6}
    assert len(os.listdir(tmp_path)) == 1
