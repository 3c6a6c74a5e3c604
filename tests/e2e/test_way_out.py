"""Where the command line knows no way on, it says so and names the way out."""
import os
import shutil
import sys

import pytest

from conftest import APPS, counts, execute, load_report, preload, tool


def test_recover_of_a_folder_that_is_not_there(tmp_path):
    done = tool("recover", tmp_path / "nothing", cwd=tmp_path)
    assert done.returncode == 2 and "nothing: No such file or directory" in done.stderr


def test_a_pipe_without_end_is_not_read_to_its_end(tmp_path):
    for command in ("report", "finish"):
        done = tool(command, "/dev/zero", cwd=tmp_path, timeout=20)
        assert done.returncode == 2 and done.stderr.startswith("gputally: /dev/zero: ")


def test_a_line_break_in_a_program_name(tmp_path):
    program = tmp_path / "two\nlines"
    shutil.copy(APPS / "nvtx_threads", program)
    done = execute([program, "1", "3"], cwd=tmp_path, env=preload())
    assert done.returncode == 0
    assert sum("two" in line for line in done.stderr.splitlines()) == 1
    assert [n for n in os.listdir(tmp_path) if n.startswith("gputally.two_lines.")]


def test_killed_in_another_pid_namespace(tmp_path):
    if execute(["unshare", "-pf", "true"], cwd=tmp_path).returncode:
        pytest.skip("unshare -p does not work here")
    folder = tmp_path / "sessions"
    folder.mkdir()
    code = "import os, nvtx, signal; nvtx.push_range('a'); nvtx.pop_range(); os.kill(os.getpid(), signal.SIGKILL)"
    # the shell is pid 1 there, so that the program can be killed
    execute(["unshare", "-pf", "sh", "-c", '"$0" -c "$1"; true', sys.executable, code], cwd=tmp_path,
            env=preload(GPUTALLY_SESSION_DIR=str(folder)))
    (session,) = folder.glob("*.session")
    refused = tool("finish", session, cwd=tmp_path)
    assert refused.returncode == 2 and "gputally finish --dead" in refused.stderr
    assert session.exists()
    done = tool("finish", "--dead", session, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert counts(load_report(tmp_path)) == {"a": 1}


def test_a_session_that_never_began(tmp_path):
    """A process that dies in the first instant leaves a file of zeros: gone when it is dead, left while it
    lives, and what is no session is left and told."""
    boot = open("/proc/sys/kernel/random/boot_id").read()[:8]
    namespace = os.stat("/proc/self/ns/pid").st_ino
    start = open("/proc/self/stat").read().rsplit(")", 1)[1].split()[19]
    name = f"gputally-{os.geteuid()}-{boot}-{namespace}-{os.getpid()}-%s-0.session"
    dead, living = tmp_path / (name % (int(start) - 1)), tmp_path / (name % start)
    strange = tmp_path / (name % (int(start) - 2))
    dead.write_bytes(bytes(65536))
    living.write_bytes(bytes(65536))
    strange.write_bytes(b"mine")
    done = tool("recover", tmp_path, cwd=tmp_path)
    assert (dead.exists(), living.exists(), strange.read_bytes()) == (False, True, b"mine"), done.stderr
    assert strange.name in done.stderr
