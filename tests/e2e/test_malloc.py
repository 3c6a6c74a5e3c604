"""The hot path allocates nothing; the command line bears every allocation that fails."""
import json
import os
import re
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from conftest import APPS, GPUTALLY, SAN, SHM, clean_env, counts, execute, load_report, masked, preload, run, tool

pytestmark = [
    pytest.mark.usefixtures("no_leftovers"),
    pytest.mark.skipif(bool(SAN), reason="a sanitizer is the allocator itself"),
]
HERE = Path(__file__).parent
PAIRS = 100000


def expected(nvtx):
    turns = 1 + 2 * (10 + PAIRS)
    want = {"outer": turns, "inner": turns, "domain:attributes": turns, "mark": turns, "counter": turns,
            "async": 2 * turns, "deep": 300 * 5}
    if nvtx:
        want.update({"nvtx": turns, "nvtx ex": turns, "nvtx mark": turns, "nvtx async": turns})
    return want


def test_hot_path_calls_no_malloc(tmp_path):
    program = APPS / "e2e_malloc"
    bare = execute([program], cwd=tmp_path)
    assert (bare.returncode, bare.stdout) == (0, "hot 0 0\n")
    for way in ("run", "plain"):
        folder = tmp_path / way
        folder.mkdir()
        done = run(program, cwd=folder) if way == "run" else execute([program], cwd=folder, env=preload())
        assert (done.returncode, done.stdout) == (0, "hot 0 0\n"), done.stderr
        report = load_report(folder)
        got = counts(report)
        assert got == expected("nvtx" in got)
        assert report["lost"]["memory"] == 0


@pytest.fixture(scope="module")
def shim(tmp_path_factory):
    out = tmp_path_factory.mktemp("shim") / "fail_malloc.so"
    done = subprocess.run(["gcc", "-shared", "-fPIC", "-O1", HERE / "shims" / "fail_malloc.c", "-o", out],
                          capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"gcc -shared does not work here: {done.stderr}")
    return out


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    """A session of a killed program, and its report."""
    folder = tmp_path_factory.mktemp("session")
    before = set(SHM.glob("gputally-*.session"))
    done = execute(["sh", "-c", f"echo $$; exec {APPS / 'e2e_killed'}"], cwd=folder,
                   env=preload(GPUTALLY_MEMORY="512K", GPUTALLY_FORMAT="table,json,csv,tree", GPUTALLY_OUTPUT="out/x"))
    assert done.returncode == -signal.SIGKILL
    pid = done.stdout.strip()
    left = [p for p in set(SHM.glob("gputally-*.session")) - before if p.name.split("-")[4] == pid]
    if not left:
        pytest.skip("no session in /dev/shm: read-only or full here")
    shutil.copy(left[0], folder / "x.session")
    left[0].unlink()
    return folder / "x.session"


OUTPUTS = ["x.csv", "x.json", "x.tree.txt"]
NUMBERS = [*range(1, 41), *range(41, 200, 3)]


def failing(shim, tmp_path, n, *args, all_after=False):
    env = clean_env(LD_PRELOAD=str(shim), FAIL_AT=str(n), FAIL_COUNT=str(tmp_path / "count"))
    if all_after:
        env["FAIL_ALL"] = "1"
    (tmp_path / "count").unlink(missing_ok=True)
    done = tool(*args, cwd=tmp_path, env=env)
    assert done.returncode in (0, 2), (n, done.returncode, done.stderr)
    if done.returncode == 2:
        assert re.match(r"gputally: [^\n]*memory[^\n]*\n\Z", done.stderr), (n, done.stderr)
        assert done.stdout == "", n
    total = int((tmp_path / "count").read_text()) if (tmp_path / "count").exists() else 0
    return done, n > total and total > 0


@pytest.mark.parametrize("all_after", [False, True])
def test_report_with_each_allocation_failing(shim, session, tmp_path, all_after):
    good = {}
    for format in ("json", "table"):
        good[format] = tool("report", "-f", format, session).stdout
    saved = tmp_path / "in.json"
    saved.write_text(good["json"])
    failures = 0
    for format, source in (("json", session), ("table", saved)):
        for n in NUMBERS:
            done, beyond = failing(shim, tmp_path, n, "report", "-f", format, source, all_after=all_after)
            failures += done.returncode == 2
            if done.returncode == 0:
                # a killed program's last instant is read from the clock of now: a rounding apart
                if format == "json":
                    assert masked(json.loads(done.stdout)) == masked(json.loads(good[format])), n
                else:
                    assert done.stdout == good[format], n
            if beyond:
                assert done.returncode == 0
                break
    assert failures > 20


def test_report_into_a_file_with_each_allocation_failing(shim, session, tmp_path):
    good = tool("report", "-f", "json", session).stdout
    for n in NUMBERS:
        done, beyond = failing(shim, tmp_path, n, "report", "-f", "json", "-o", "out.json", session)
        left = sorted(set(os.listdir(tmp_path)) - {"count"})
        assert left == ([] if done.returncode else ["out.json"]), n
        if not done.returncode:
            assert masked(load_report(tmp_path / "out.json")) == masked(json.loads(good))
            (tmp_path / "out.json").unlink()
        if beyond:
            break


def test_finish_with_each_allocation_failing(shim, session, tmp_path):
    """The session is there as long as not all of its outputs are."""
    data = session.read_bytes()
    out = session.parent / "out"  # the program's folder, where its outputs belong
    path = tmp_path / "x.session"
    failures = successes = 0
    for n in NUMBERS:
        shutil.rmtree(out, ignore_errors=True)
        path.write_bytes(data)
        done, beyond = failing(shim, tmp_path, n, "finish", "-q", path)
        written = sorted(os.listdir(out)) if out.exists() else []
        assert not [w for w in written if w not in OUTPUTS], (n, written)
        if done.returncode:
            failures += 1
            assert path.exists(), n
        else:
            successes += 1
            assert written == OUTPUTS and not path.exists(), n
        if "x.json" in written:
            load_report(out / "x.json")
        # a second try makes it whole, and nothing twice
        if done.returncode:
            assert tool("finish", "-q", path).returncode == 0
            assert sorted(os.listdir(out)) == OUTPUTS, n
        if beyond:
            break
    shutil.rmtree(out, ignore_errors=True)
    assert failures > 10


@pytest.mark.parametrize("n", [*range(1, 40), 55, 89, 144])
def test_run_with_an_allocation_failing(shim, tmp_path, n):
    """Our 2 before the program has started, else its own status, never a signal; then there is a report or
    the session it can be made of, unless the program was told to run without us."""
    env = clean_env(LD_PRELOAD=str(shim), FAIL_AT=str(n))
    done = execute([GPUTALLY, "run", "-q", "--", APPS / "api_basic"], cwd=tmp_path, env=env)
    assert done.returncode in (0, 2), (done.returncode, done.stderr)
    if done.returncode == 2:
        assert "memory" in done.stderr and done.stderr.count("\n") == 1
        assert done.stdout == "" and os.listdir(tmp_path) == []
    elif "session kept" in done.stderr:
        session = re.search(r"/dev/shm/gputally-run[^) ]*\.session", done.stderr)[0]
        assert os.listdir(tmp_path) == []
        assert tool("finish", "-q", session, cwd=tmp_path).returncode == 0
        assert not os.path.exists(os.path.dirname(session))
    elif "gputally recover" in done.stderr:
        folder = done.stderr.split()[-1]
        assert tool("recover", "-q", folder, cwd=tmp_path).returncode == 0
    elif "runs without" in done.stderr:
        return
    if done.returncode == 0:
        assert counts(load_report(tmp_path))["inner"] == 100
