"""Where there is no room or no right to write: the program goes on as it would, its status is kept, one
line on stderr says what is missing."""
import os
import subprocess

import pytest

from conftest import (APPS, GPUTALLY, LIBRARY, SAN, SHM, clean_env, counts, execute, let_others_reach, load_report, preload,
                      run, tool)

pytestmark = [
    pytest.mark.usefixtures("no_leftovers"),
    pytest.mark.skipif("address" in SAN or "thread" in SAN, reason="sanitizers need terabytes of address space"),
]
ROWS = {"probe": 1, "outer": 4, "inner": 100, "blas:gemm": 6, "old header": 1, "(null)": 5, "transfer": 3,
        "around": 1, "after": 1, "checkpoint": 5, "queue": 4}
PROGRAM = APPS / "api_basic"
NOBODY = 65534
WAYS = pytest.mark.parametrize("way", ["run", "plain"])


def go(way, command, folder, **env):
    if way == "run":
        return run(*command, cwd=folder, env=clean_env(**env))
    return execute(command, cwd=folder, env=preload(**env))


def ours(done):
    return [line for line in done.stderr.splitlines() if line.startswith("gputally: ")]


@pytest.fixture
def kept():
    """Removes the sessions that a test leaves on purpose: those named in a message."""
    named = []
    yield named
    for done in named:
        for word in done.stderr.replace("'", " ").replace(")", " ").split():
            if word.startswith("/dev/shm/gputally-") and word.endswith(".session"):
                folder = os.path.dirname(word)
                if os.path.exists(word):
                    os.unlink(word)
                if folder != "/dev/shm":
                    subprocess.run(["rm", "-rf", folder], check=True)


def root(why):
    if os.getuid() != 0:
        pytest.skip(f"needs root {why}")


def in_namespace(*setup):
    """A shell prefix: mounts that only this test sees."""
    root("to mount")
    probe = subprocess.run(["unshare", "-m", "true"], capture_output=True, text=True)
    if probe.returncode:
        pytest.skip(f"unshare -m does not work here: {probe.stderr.strip()}")
    return ["unshare", "-m", "sh", "-c", "; ".join(("set -e", "mount --make-rprivate /", *setup, 'set +e', 'exec "$@"')), "sh"]


def finished_later(done, folder):
    """The session that the message names can be finished where there is room."""
    words = done.stderr.replace("'", " ").replace(")", " ").split()
    sessions = [w for w in words if w.endswith(".session")]
    assert sessions, done.stderr
    return sessions[0]


@WAYS
def test_unwritable_folder(tmp_path, way, kept):
    root("to become somebody else")
    folder = tmp_path / "closed"
    folder.mkdir()
    os.chmod(folder, 0o555)
    let_others_reach(tmp_path)
    prefix = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    if subprocess.run([*prefix, "test", "-x", PROGRAM]).returncode:
        pytest.skip("another user can't reach the build folder")
    command = [*prefix, PROGRAM]
    if way == "run":
        done = execute([*prefix, GPUTALLY, "run", "--", PROGRAM], cwd=folder)
    else:
        done = execute(command, cwd=folder, env=preload())
    kept.append(done)
    assert (done.returncode, done.stdout) == (0, "done\n")
    said = ours(done)
    assert len(said) == 1 and "Permission denied" in said[0], done.stderr
    assert os.listdir(folder) == []


@WAYS
def test_output_below_a_file(tmp_path, way, kept):
    (tmp_path / "file").write_text("x")
    done = go(way, [PROGRAM], tmp_path, GPUTALLY_OUTPUT="file/x")
    kept.append(done)
    assert (done.returncode, done.stdout) == (0, "done\n")
    said = ours(done)
    assert len(said) == 1 and "file" in said[0], done.stderr
    assert sorted(os.listdir(tmp_path)) == ["file"]
    # nothing is lost: the line says how to get it
    session = finished_later(done, tmp_path)
    os.unlink(tmp_path / "file")
    assert tool("finish", "-q", session, cwd=tmp_path).returncode == 0
    assert counts(load_report(tmp_path / "file" / "x.json")) == ROWS


@WAYS
def test_full_disk_for_outputs(tmp_path, way, kept):
    disk = tmp_path / "disk"
    disk.mkdir()
    shell = in_namespace(f"mount -t tmpfs -o size=16k none {disk}", f"head -c 14000 /dev/zero >{disk}/filler",
                         f"cd {disk}")
    tail = ["sh", "-c", '"$@"; s=$?; ls -A; exit $s', "sh"]
    command = [GPUTALLY, "run", "--", PROGRAM] if way == "run" else ["env", f"LD_PRELOAD={LIBRARY}", PROGRAM]
    done = execute([*shell, *tail, *command])
    kept.append(done)
    assert done.returncode == 0
    said = ours(done)
    assert len(said) == 1 and "No space left" in said[0], done.stderr
    assert done.stdout == "done\nfiller\n"  # no half of a report, no temporary file
    session = finished_later(done, tmp_path)
    assert tool("report", session).returncode == 0


@WAYS
@pytest.mark.parametrize("kilobytes", [0, 64, 700, 4096])
def test_full_disk_for_sessions(tmp_path, way, kilobytes):
    """The session's folder has this much room: it goes elsewhere, or into private memory, or is small."""
    disk = tmp_path / "disk"
    disk.mkdir()
    shell = in_namespace(f"mount -t tmpfs -o size={kilobytes or 16}k none {disk}",
                         *([f"head -c 20000 /dev/zero >{disk}/filler || true"] if not kilobytes else []))
    command = [GPUTALLY, "run", "--", PROGRAM] if way == "run" else ["env", f"LD_PRELOAD={LIBRARY}", PROGRAM]
    done = execute([*shell, *command], cwd=tmp_path, env=clean_env(GPUTALLY_SESSION_DIR=str(disk)))
    assert (done.returncode, done.stdout) == (0, "done\n")
    assert counts(load_report(tmp_path)) == ROWS


@WAYS
def test_no_room_anywhere(tmp_path, way):
    """/dev/shm, /tmp and the rest are full: private memory, told once, and a full report."""
    shell = in_namespace("mount -t tmpfs -o size=16k none /dev/shm", "head -c 20000 /dev/zero >/dev/shm/x 2>/dev/null || true",
                         "cd /dev/shm")
    out = tmp_path / "out"
    out.mkdir()
    # /tmp must stay for the test's own files, so it is too small by quota of memory instead: only
    # the folders the library tries are hidden
    shell[-2] = shell[-2].replace("cd /dev/shm", f"mount --bind {out} /mnt; mount -t tmpfs -o size=16k none /tmp; "
                                  "head -c 20000 /dev/zero >/tmp/x 2>/dev/null || true; cd /mnt")
    if str(APPS).startswith("/tmp/"):
        pytest.skip("the build lies in /tmp, which this test hides")
    command = [GPUTALLY, "run", "--", PROGRAM] if way == "run" else ["env", f"LD_PRELOAD={LIBRARY}", PROGRAM]
    done = execute([*shell, *command])
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
    said = [line for line in ours(done) if "wrote" not in line]
    assert len(said) == 1 and "lost if the program is killed" in said[0], done.stderr
    report = load_report(out)
    assert counts(report) == ROWS
    assert report["processes"][0]["crash_safe"] is False


@WAYS
def test_read_only_shm(tmp_path, way):
    shell = in_namespace("mount -o remount,ro,bind /dev/shm 2>/dev/null || { mount -t tmpfs none /dev/shm; mount -o remount,ro /dev/shm; }")
    command = [GPUTALLY, "run", "--", PROGRAM] if way == "run" else ["env", f"LD_PRELOAD={LIBRARY}", PROGRAM]
    done = execute([*shell, *command], cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
    assert counts(load_report(tmp_path)) == ROWS


@WAYS
@pytest.mark.parametrize("blocks", [1, 64, 1024])
def test_file_size_limit(tmp_path, way, blocks, kept):
    """`ulimit -f`: bash counts in 1,024 bytes. SIGXFSZ would kill the program."""
    # bash, as dash counts in 512
    prefix = f"ulimit -f {blocks}; exec "
    command = f"{GPUTALLY} run -- {PROGRAM}" if way == "run" else f"env LD_PRELOAD={LIBRARY} {PROGRAM}"
    done = execute(["bash", "-c", prefix + command], cwd=tmp_path)
    kept.append(done)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
    left = sorted(os.listdir(tmp_path))
    if blocks > 1:
        assert counts(load_report(tmp_path)) == ROWS
    else:
        said = ours(done)
        assert len(said) == 1 and "File too large" in said[0] and left == [], (done.stderr, left)


@WAYS
@pytest.mark.parametrize("megabytes", [16, 64, 400])
def test_address_space_limit(tmp_path, way, megabytes):
    """`ulimit -v` for the program alone. The limit that the program itself can live with must do."""
    kilobytes = megabytes * 1024
    inner = f"ulimit -v {kilobytes}; exec {PROGRAM}"
    bare = execute(["bash", "-c", inner], cwd=tmp_path)
    if bare.returncode:
        pytest.skip(f"the program itself can't start in {megabytes} MB")
    if way == "run":
        done = run("bash", "-c", inner, cwd=tmp_path)
    else:
        done = execute(["bash", "-c", f"ulimit -v {kilobytes}; LD_PRELOAD={LIBRARY} exec {PROGRAM}"], cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
    assert counts(load_report(tmp_path)) == ROWS


@WAYS
@pytest.mark.parametrize("closed", ["0", "1", "2", "0 1 2"])
def test_closed_files(tmp_path, way, closed):
    close = " ".join(f"{fd}{'<' if fd == '0' else '>'}&-" for fd in closed.split())
    # the status is the program's own: it fails to print "done", which it does not look at
    bare = execute(["sh", "-c", f"exec {PROGRAM} {close}"], cwd=tmp_path)
    command = f"{GPUTALLY} run -- {PROGRAM}" if way == "run" else f"env LD_PRELOAD={LIBRARY} {PROGRAM}"
    done = execute(["sh", "-c", f"exec {command} {close}"], cwd=tmp_path)
    assert (done.returncode, done.stdout) == (bare.returncode, bare.stdout), done.stderr
    if "2" in closed:
        assert done.stderr == ""
    assert counts(load_report(tmp_path)) == ROWS
    for file in tmp_path.iterdir():
        # nothing that was meant for a closed descriptor went into a file that took its number
        assert b"done\n" not in file.read_bytes() and b"# of Calls" not in file.read_bytes()


@pytest.mark.parametrize("closed", ["0", "2", "0 1 2"])
def test_closed_files_and_no_session_file(tmp_path, closed):
    """The session goes through a pipe, whose ends take the free numbers."""
    close = " ".join(f"{fd}{'<' if fd == '0' else '>'}&-" for fd in closed.split())
    done = execute(["bash", "-c", f"ulimit -f 64; LD_PRELOAD={LIBRARY} exec {PROGRAM} {close}"], cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert counts(load_report(tmp_path)) == ROWS


REUSED = """
import nvtx, os, sys
with nvtx.annotate('work'):
    pass
os.close(2)
fd = os.open('mine', os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
assert fd == 2
with nvtx.annotate('work'):
    pass
os.write(2, b'only this')
"""


def test_reused_stderr_stays_the_programs(python_nvtx, tmp_path):
    """With plain LD_PRELOAD fd 2 is somebody else's now; under `run` our own stderr is not touched."""
    done = execute([python_nvtx, "-c", REUSED], cwd=tmp_path, env=preload())
    assert done.returncode == 0 and done.stderr == ""
    assert (tmp_path / "mine").read_text() == "only this"
    (tmp_path / "mine").unlink()
    assert counts(load_report(tmp_path)) == {"work": 2}
    for f in tmp_path.iterdir():
        f.unlink()
    done = run(python_nvtx, "-c", REUSED, cwd=tmp_path)
    assert done.returncode == 0
    assert (tmp_path / "mine").read_text() == "only this"
    assert counts(load_report(next(tmp_path.glob("*.json")))) == {"work": 2}


def test_reused_stderr_and_failure(python_nvtx, tmp_path, kept):
    """What goes wrong then can't be told anywhere, but not in the program's file either."""
    (tmp_path / "file").write_text("x")
    before = set(SHM.glob("gputally-*.session"))
    done = execute([python_nvtx, "-c", REUSED], cwd=tmp_path, env=preload(GPUTALLY_OUTPUT="file/x"))
    assert done.returncode == 0 and done.stderr == ""
    assert (tmp_path / "mine").read_text() == "only this"
    for path in set(SHM.glob("gputally-*.session")) - before:
        if str(tmp_path).encode() in path.read_bytes()[:65536]:
            path.unlink()


@WAYS
def test_chdir_before_exit(python_nvtx, tmp_path, way):
    """case 30: relative names are meant from where the program started"""
    code = "import nvtx, os\nwith nvtx.annotate('work'):\n    pass\nos.chdir('/')\n"
    before = set(os.listdir("/"))
    done = go(way, [python_nvtx, "-c", code], tmp_path)
    assert done.returncode == 0
    assert counts(load_report(tmp_path)) == {"work": 1}
    assert set(os.listdir("/")) == before


@WAYS
def test_working_folder_removed(python_nvtx, tmp_path, way, kept):
    folder = tmp_path / "gone"
    folder.mkdir()
    code = "import nvtx, os\nwith nvtx.annotate('work'):\n    pass\nos.rmdir(os.getcwd())\n"
    done = go(way, [python_nvtx, "-c", code], folder)
    kept.append(done)
    assert done.returncode == 0
    if folder.exists():  # missing folders are made
        assert counts(load_report(folder)) == {"work": 1}
    else:
        assert len(ours(done)) == 1


@WAYS
@pytest.mark.parametrize("wrong", ["", "x"])
def test_nobody_reads_stderr(tmp_path, way, wrong):
    """Our lines must not raise SIGPIPE in a program that itself never writes there: neither the table
    nor a warning from inside."""
    r, w = os.pipe()
    os.close(r)
    env = {"GPUTALLY_FROMAT": wrong} if wrong else {}
    env = clean_env(**env) if way == "run" else preload(**env)
    command = [GPUTALLY, "run", "--", PROGRAM] if way == "run" else [PROGRAM]
    done = execute(command, cwd=tmp_path, env=env, stderr=w)
    os.close(w)
    assert (done.returncode, done.stdout) == (0, "done\n")
    assert counts(load_report(tmp_path)) == ROWS
