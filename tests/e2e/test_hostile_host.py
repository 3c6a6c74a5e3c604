"""Programs that leave us little to work with: each must end as it does without us."""
import os
import signal
import subprocess
import sys

import pytest

from conftest import GPUTALLY, ROOT, clean_env, counts, execute, load_report, preload, reports, tool

HEAD = """
#include <gputally.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <ucontext.h>
#include <unistd.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/syscall.h>
static void pair(const char *n) { gputally_range_push(n); gputally_range_pop(); }
"""

PROGRAMS = {
    # the TSC is forbidden before our first call: the other clock serves
    "tsc": ("""int main(void) {
        if (prctl(PR_SET_TSC, PR_TSC_SIGSEGV)) return 77;
        for (int i = 0; i < 5; i++) pair("a");
        return 5; }""", {"a": 5}),
    # threads cancelled in the middle of anything, ours included; those that come after are right
    "cancel": ("""static void *loop(void *x) {
        pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
        for (;;) pair("torn"); return x; }
    static void *good(void *x) { for (int i = 0; i < 1000; i++) pair("good"); return x; }
    int main(void) { pthread_t t; pair("warm");
        for (int i = 0; i < 60; i++) {
            pthread_create(&t, NULL, loop, NULL); usleep(300 + i * 7); pthread_cancel(t); pthread_join(t, NULL);
            pthread_create(&t, NULL, good, NULL); pthread_join(t, NULL); }
        return 5; }""", {"good": 60000, "warm": 1}),
    # a timer that would have come after the end
    "timer": ("""int main(void) { pair("a");
        struct itimerval v = {.it_value = {.tv_usec = 2000}}; setitimer(ITIMER_REAL, &v, NULL);
        return 5; }""", {"a": 1}),
    # environ points into a stack frame that is gone
    "environ": ("""extern char **environ;
    static __attribute__((noinline)) void spoil(void) {
        char junk[65536]; memset(junk, 0x41, sizeof junk); __asm__ volatile("" : : "r"(junk) : "memory"); }
    static __attribute__((noinline)) void set(void) { char *e[512]; memset(e, 0, sizeof e); e[0] = "A=b"; environ = e; }
    int main(void) { pair("a"); set(); spoil(); _exit(5); }""", {"a": 1}),
    # the first call of all comes on a fibre with a small stack
    "fibre": ("""static ucontext_t back, fibre;
    static void run(void) { pair("a"); }
    int main(void) { static char stack[16384] __attribute__((aligned(64)));
        getcontext(&fibre); fibre.uc_stack.ss_sp = stack; fibre.uc_stack.ss_size = sizeof stack;
        fibre.uc_link = &back; makecontext(&fibre, run, 0); swapcontext(&back, &fibre); return 5; }""", {"a": 1}),
    # a sandbox that kills for any call but these, in a program that never annotates
    "sandbox": ("""int main(void) {
        struct sock_filter f[] = {
            BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
            BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 1, 0),
            BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_write, 0, 1),
            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)};
        struct sock_fprog p = {sizeof f / sizeof *f, f};
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &p)) return 77;
        return 5; }""", None),
    # a second copy of the library in a namespace of its own
    "dlmopen": ("""#include <dlfcn.h>
    int main(void) { pair("a"); const char *l = getenv("GT_LIBRARY");
        if (!l || !dlmopen(LM_ID_NEWLM, l, RTLD_NOW)) return 77;
        for (int i = 0; i < 100; i++) pair("a"); return 5; }""", {"a": 101}),
    # two threads leave at the same time
    "both": ("""static pthread_barrier_t b;
    static void *leave(void *x) { pthread_barrier_wait(&b); _exit(5); return x; }
    int main(void) { pthread_t t; pair("a"); pthread_barrier_init(&b, NULL, 2);
        pthread_create(&t, NULL, leave, NULL); pthread_barrier_wait(&b); _exit(5); }""", {"a": 1}),
}


def build(tmp_path, name):
    source, program = tmp_path / f"{name}.c", tmp_path / name
    source.write_text("#define _GNU_SOURCE\n" + HEAD + PROGRAMS[name][0])
    done = execute(["gcc", "-O1", "-o", program, source, f"-I{ROOT / 'include'}", "-pthread", "-ldl"])
    assert done.returncode == 0, done.stderr
    return program


@pytest.mark.parametrize("way", ["run", "preload"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_ends_as_without_us(name, way, tmp_path):
    program = build(tmp_path, name)
    library = {"GT_LIBRARY": str(preload()["LD_PRELOAD"])}
    bare = execute([program], cwd=tmp_path, env=clean_env(**library))
    if bare.returncode == 77:
        pytest.skip("this kernel or C library can't do what the test is about")
    wanted = PROGRAMS[name][1]
    for again in range(10 if name == "both" else 1):
        folder = tmp_path / f"{way}{again}"
        folder.mkdir()
        if way == "run":
            done = tool("run", "--", program, cwd=folder, env=clean_env(**library))
        else:
            done = execute([program], cwd=folder, env=preload(**library))
        assert (done.returncode, done.stdout) == (bare.returncode, bare.stdout), done.stderr
        if wanted is None:
            assert reports(folder) == []
            continue
        got = counts(load_report(folder))
        assert {k: got.get(k, 0) for k in wanted} == wanted


def test_pipes_end_with_the_program(tmp_path):
    """Who reads from the program sees the end when it closes, not when `run` ends."""
    script = "import os, sys, time; os.write(1, b'x'); os.close(1); sys.stdin.read()"
    p = subprocess.Popen([GPUTALLY, "run", "--", "python3", "-c", script], cwd=tmp_path, env=clean_env(),
                         stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    # hangs for ever if `run` holds the other end: the program itself waits for us
    assert p.stdout.read() == b"x"
    p.stdin.close()
    assert p.wait(60) == 0


def test_a_planted_session_is_refused(tmp_path):
    """Another user's file under a session's name must not decide what is written, and where."""
    if os.geteuid() != 0:
        pytest.skip("only root can make a file of another user")
    folder = tmp_path / "sessions"
    folder.mkdir()
    code = "import os, nvtx; nvtx.push_range('a'); os.kill(os.getpid(), 9)"
    done = execute([sys.executable, "-c", code], cwd=tmp_path, env=preload(GPUTALLY_SESSION_DIR=str(folder)))
    assert done.returncode == -signal.SIGKILL
    (session,) = folder.glob("*.session")
    os.chown(session, 65534, 65534)
    refused = tool("finish", session, cwd=tmp_path)
    assert refused.returncode == 2 and "belongs to another user" in refused.stderr
    assert session.exists() and reports(tmp_path) == []
    os.chown(session, 0, 0)
    assert tool("finish", session, cwd=tmp_path).returncode == 0
    assert len(reports(tmp_path)) == 1


def test_the_helper_is_not_taken_from_another_root(tmp_path):
    """After chroot our path names a file of whoever made that root."""
    if os.geteuid() != 0:
        pytest.skip("only root can chroot")
    root = tmp_path / "root"
    fake = root / str(GPUTALLY)[1:]
    fake.parent.mkdir(parents=True)
    fake.write_text("#!/bin/sh\n: > /taken\n")
    fake.chmod(0o755)
    (root / "dev/shm").mkdir(parents=True)
    PROGRAMS["chroot"] = ("int main(int c, char **v) { pair(\"a\"); (void)c; if (chroot(v[1]) || chdir(\"/\")) return 77; "
                          "return 5; }", None)
    program = build(tmp_path, "chroot")
    folder = tmp_path / "sessions"
    folder.mkdir()
    done = execute([program, root], cwd=tmp_path, env=preload(GPUTALLY_SESSION_DIR=str(folder)))
    assert done.returncode == 5
    assert not (root / "taken").exists()
    assert "the session is kept" in done.stderr and str(folder) in done.stderr
    assert tool("recover", folder, cwd=tmp_path).returncode == 0
    assert counts(load_report(tmp_path)) == {"a": 1}
