"""`gputally run` stands in for the program: status, signals, environment, job control, what it declines.

The programs here record nothing, so this holds whatever the library records.
"""
import os
import pty
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("GT_TEST_BUILD", ROOT / "build")).resolve()
GPUTALLY = BUILD / "gputally"
LIBRARY = BUILD / "libgputally.so"


def run(*args, **more):
    more.setdefault("timeout", 60)
    return subprocess.run([GPUTALLY, "run", *map(str, args)], capture_output=True, text=True, **more)


def read_line(stream, want):
    line = stream.readline()
    assert line.strip() == want
    return line


def compile_c(folder, name, text, *flags):
    source = folder / f"{name}.c"
    source.write_text(text)
    out = folder / name
    done = subprocess.run(["gcc", source, "-o", out, *flags], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"gcc {' '.join(flags)} does not work here: {done.stderr.splitlines()[0]}")
    return out


@pytest.mark.san
@pytest.mark.parametrize("status", [0, 1, 7, 255])
def test_exit_status_and_output(status):
    done = run("--", "sh", "-c", f"echo out; echo err >&2; cat; exit {status}", input="in\n")
    assert done.returncode == status
    assert done.stdout == "out\nin\n"
    assert done.stderr == "err\n"


@pytest.mark.parametrize("sig", ["KILL", "TERM", "SEGV", "ABRT", "HUP", "USR1", "PIPE", "RTMIN+3"])
def test_dies_of_the_same_signal(sig, tmp_path):
    bare = subprocess.run(["bash", "-c", f"kill -{sig} $$"], cwd=tmp_path)
    done = run("bash", "-c", f"kill -{sig} $$", cwd=tmp_path)
    assert bare.returncode < 0
    assert done.returncode == bare.returncode
    assert done.stderr == ""


@pytest.mark.san
@pytest.mark.parametrize("sig", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT,
                                 signal.SIGUSR1, signal.SIGUSR2, signal.SIGALRM, signal.SIGRTMIN + 2])
def test_signal_to_us_alone_reaches_the_program_once(sig):
    code = f"""
import signal, sys
got = []
signal.pthread_sigmask(signal.SIG_BLOCK, [{int(sig)}, signal.SIGCONT])
print("ready", flush=True)
signal.sigwait([{int(sig)}])
print("got", flush=True)
print("again" if signal.sigtimedwait([{int(sig)}], 0.3) else "once", flush=True)
sys.exit(9)
"""
    p = subprocess.Popen([GPUTALLY, "run", "--", sys.executable, "-c", code],
                         stdout=subprocess.PIPE, text=True)
    read_line(p.stdout, "ready")
    p.send_signal(sig)
    read_line(p.stdout, "got")
    read_line(p.stdout, "once")
    assert p.wait(60) == 9


def test_terminal_interrupt_comes_once_and_job_control_works():
    """^C goes to the whole group: passing it on would double it. ^Z stops us with the program."""
    code = """
import os, signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
print("ready", os.getpgrp() == os.tcgetpgrp(0), flush=True)
signal.sigwait([signal.SIGINT])
print("got", "twice" if signal.sigtimedwait([signal.SIGINT], 0.3) else "once", flush=True)
sys.stdin.readline()
sys.exit(5)
"""
    pid, master = pty.fork()
    if not pid:
        os.execv(GPUTALLY, ["gputally", "run", "--", sys.executable, "-c", code])
    text = b""

    def until(word):
        nonlocal text
        while word not in text:
            text += os.read(master, 1000)

    until(b"ready True")
    os.write(master, b"\x03")
    until(b"got once")
    # we are the session's leader and nobody above can continue us, so a stop must not stick: the
    # group is orphaned and the kernel drops ^Z, with and without us
    os.write(master, b"\x1a")
    os.write(master, b"\n")
    _, status = os.waitpid(pid, 0)
    os.close(master)
    assert os.WIFEXITED(status) and os.WEXITSTATUS(status) == 5


def test_stops_and_continues_with_the_program():
    p = subprocess.Popen([GPUTALLY, "run", "--", "sh", "-c", "echo ready; kill -TSTP $$; echo on; exit 3"],
                         stdout=subprocess.PIPE, text=True, process_group=0)
    read_line(p.stdout, "ready")
    _, status = os.waitpid(p.pid, os.WUNTRACED)
    assert os.WIFSTOPPED(status)
    os.kill(p.pid, signal.SIGCONT)  # us alone, as `kill -CONT $!` does
    read_line(p.stdout, "on")
    assert p.wait(60) == 3


def test_ignored_and_blocked_signals_stay_so():
    code = ("import signal; print(signal.getsignal(signal.SIGHUP), signal.getsignal(signal.SIGCHLD),"
            "sorted(signal.pthread_sigmask(signal.SIG_BLOCK, [])))")

    def prepare():
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2])

    bare = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, preexec_fn=prepare)
    done = run(sys.executable, "-c", code, preexec_fn=prepare)
    assert "SIGUSR2" in bare.stdout
    assert (done.returncode, done.stdout) == (bare.returncode, bare.stdout)


def test_environment_and_files_differ_only_by_ours():
    probe = "env; ls -l /proc/self/fd | sed 's/.* \\([0-9]*\\) -> .*/fd \\1/'"
    bare = subprocess.run(["sh", "-c", probe], capture_output=True, text=True)
    done = run("sh", "-c", probe)
    extra = set(done.stdout.splitlines()) - set(bare.stdout.splitlines())
    assert {e.split("=")[0] for e in extra} == {"LD_PRELOAD", "GPUTALLY_RUN_DIR"}
    assert set(bare.stdout.splitlines()) <= set(done.stdout.splitlines())


@pytest.mark.parametrize("closed", ["0<&-", "1>&-", "2>&-", "0<&- 1>&- 2>&-"])
def test_closed_descriptors_stay_closed(closed, tmp_path):
    code = "import os; fds = [f for f in range(9) if os.path.lexists(f'/proc/self/fd/{f}')]; open('fds', 'w').write(str(fds))"
    found = []
    for tool in ("", f"'{GPUTALLY}' run -- "):
        (tmp_path / "fds").unlink(missing_ok=True)
        done = subprocess.run(["bash", "-c", f"{tool}'{sys.executable}' -c \"$1\" {closed}; exit $?", "x", code],
                              cwd=tmp_path, capture_output=True, text=True, timeout=60)
        found.append((done.returncode, done.stdout, done.stderr, (tmp_path / "fds").read_text()))
    assert found[0] == found[1]


def test_runs_inside_itself():
    done = run(GPUTALLY, "run", "--", "sh", "-c", "echo $LD_PRELOAD; exit 5")
    assert (done.returncode, done.stderr) == (5, "")
    assert done.stdout.split() == [str(LIBRARY)]


def test_broken_pipe_is_not_ours():
    done = subprocess.run(["bash", "-c", f"'{GPUTALLY}' run no-such-command 2>&1 >/dev/null | true; echo ${{PIPESTATUS[0]}}"],
                          capture_output=True, text=True, timeout=60)
    assert done.stdout == "127\n"


def test_users_preload_is_kept():
    env = dict(os.environ, LD_PRELOAD="libm.so.6")
    done = run("sh", "-c", "echo $LD_PRELOAD", env=env)
    assert done.stdout.strip().split(":")[-2:] == [str(LIBRARY), "libm.so.6"]
    env["LD_PRELOAD"] = str(LIBRARY)
    done = run("sh", "-c", "echo $LD_PRELOAD", env=env)
    assert done.stdout.strip().split(":").count(str(LIBRARY)) == 1


@pytest.mark.san
def test_what_cannot_start(tmp_path):
    done = run("no-such-command-here")
    assert (done.returncode, done.stderr) == (127, "gputally: no-such-command-here: command not found\n")
    plain = tmp_path / "plain"
    plain.write_text("x")
    done = run(plain)
    assert (done.returncode, done.stderr) == (126, f"gputally: {plain}: Permission denied\n")
    plain.write_text("#!/no/such/interpreter\n")
    plain.chmod(0o755)
    assert run(plain).returncode == 127
    plain.write_text("echo shell $1\nexit 4\n")
    done = run(plain, "x")
    assert (done.returncode, done.stdout) == (4, "shell x\n")


@pytest.mark.san
def test_usage():
    bare = subprocess.run([GPUTALLY], capture_output=True, text=True)
    assert bare.returncode == 1 and "Usage" in bare.stderr and bare.stdout == ""
    assert run().returncode == 1
    done = run("--help")
    assert done.returncode == 0 and done.stderr == "" and "mpirun" in done.stdout
    done = subprocess.run([GPUTALLY, "rnu"], capture_output=True, text=True)
    assert done.returncode == 2 and "did you mean 'run'?" in done.stderr
    for args, word in ((["--frmat", "json"], "unknown option"), (["-f", "jsn", "true"], "did you mean json?"),
                       (["--output"], "needs a value"), (["--no-output", "true"], "unknown option")):
        done = run(*args)
        assert done.returncode == 2 and word in done.stderr and done.stderr.count("\n") == 1
    clean = {k: v for k, v in os.environ.items() if not k.startswith("GPUTALLY_")}
    # a wrong value names the option as it was typed, and the variable only where that is to blame
    for args, typed in ((["--format", "foo"], "--format foo: "), (["--format=foo"], "--format foo: "),
                        (["-f", "foo"], "-f foo: "), (["-ffoo"], "-f foo: "), (["--log", "9"], "--log 9: "),
                        (["-q", "--memory", "1Q", "-o", "x"], "--memory 1Q: "), (["-o", "%y"], "-o %y: ")):
        done = run(*args, "true", env=clean)
        assert done.returncode == 2 and done.stderr.startswith(f"gputally: {typed}"), done.stderr
        assert done.stderr.count("\n") == 1 and "GPUTALLY_" not in done.stderr
    done = run("-f", "json", "true", env=dict(clean, GPUTALLY_LOG="9"))
    assert done.returncode == 0 and done.stderr.startswith("gputally: GPUTALLY_LOG=9: ")


def test_wrong_variable_is_one_warning():
    done = run("true", env=dict(os.environ, GPUTALLY_FROMAT="json", GPUTALLY_LOGG="1"))
    assert done.returncode == 0
    assert done.stderr.count("\n") == 1 and done.stderr.startswith("gputally: GPUTALLY_")


def test_options_become_variables():
    done = run("-q", "--no-children", "-f", "json,csv", "--memory=1M", "-oX%%", "sh", "-c",
               "env | grep GPUTALLY_ | grep -v RUN_DIR | sort")
    # the library shuts children out by its own variable
    assert "GPUTALLY_FORMAT=json,csv\n" in done.stdout
    assert "GPUTALLY_MEMORY=1M\nGPUTALLY_OUTPUT=X%%\nGPUTALLY_QUIET=1\n" in done.stdout


def test_static_program_runs(tmp_path):
    app = compile_c(tmp_path, "still", 'int puts(const char *); int main(void) { puts("x"); return 6; }',
                    "-static")
    done = run(app)
    assert (done.returncode, done.stdout) == (6, "x\n")
    assert "statically linked" in done.stderr and done.stderr.count("\n") == 1
    assert run("-q", app).stderr == ""


def test_setuid_program_runs(tmp_path):
    if os.getuid() != 0:
        pytest.skip("needs root to make a setuid program of another user")
    app = compile_c(tmp_path, "other", "int main(void) { return 6; }")
    os.chown(app, 65534, 65534)
    app.chmod(0o4755)
    done = run(app)
    assert done.returncode == 6 and "setuid" in done.stderr


def test_32_bit_program_runs(tmp_path):
    app = compile_c(tmp_path, "small", "int main(void) { return 6; }", "-m32")
    done = run(app)
    assert done.returncode == 6
    assert "32-bit" in done.stderr and "ld.so" not in done.stderr


def test_sanitized_program_runs(tmp_path):
    app = compile_c(tmp_path, "sane", "int main(void) { return 6; }", "-fsanitize=address")
    done = run(app)
    assert (done.returncode, done.stderr) == (6, "")


def test_installed_in_a_folder_with_a_blank(tmp_path):
    home = tmp_path / "a b"
    home.mkdir()
    for f in (GPUTALLY, LIBRARY):
        shutil.copy(f, home)
    done = subprocess.run([home / "gputally", "run", "sh", "-c", "echo $LD_PRELOAD"],
                          capture_output=True, text=True)
    assert done.returncode == 0 and done.stderr == ""
    assert " " not in done.stdout.strip() and done.stdout.endswith("/lib/libgputally.so\n")


def test_folder_is_private_and_goes_away(tmp_path):
    done = run("sh", "-c", "stat -c %a $GPUTALLY_RUN_DIR; echo $GPUTALLY_RUN_DIR",
               env=dict(os.environ, GPUTALLY_SESSION_DIR=str(tmp_path)))
    mode, folder = done.stdout.split()
    assert mode == "700" and folder.startswith(str(tmp_path))
    assert list(tmp_path.iterdir()) == []
    done = run("true", env=dict(os.environ, GPUTALLY_SESSION_DIR="/no/such/folder"))
    assert done.returncode == 0 and "/no/such/folder" in done.stderr


def test_does_not_wait_for_a_daemon():
    start = time.monotonic()
    done = run("sh", "-c", "sleep 20 >/dev/null 2>&1 & echo $!")
    os.kill(int(done.stdout), signal.SIGKILL)
    assert done.returncode == 0
    assert time.monotonic() - start < 20


@pytest.mark.san
def test_list_and_doctor():
    for what, variable in (("formats", "GPUTALLY_FORMAT"), ("sources", "GPUTALLY_SOURCES")):
        done = subprocess.run([GPUTALLY, "list", what], capture_output=True, text=True)
        names = [line.split()[0] for line in done.stdout.splitlines()]
        assert done.returncode == 0 and len(names) > 2
        for name in names:
            # each name that is listed is one that is taken
            assert run("true", env=dict(os.environ, **{variable: name})).stderr == ""
    done = subprocess.run([GPUTALLY, "doctor"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    assert "libgputally.so" in done.stdout and "FAIL" not in done.stdout
