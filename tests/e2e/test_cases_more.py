"""More of the list of public bug reports, replayed as it tells them: 11, 16, 23, 34; a status that is not 0
where the outputs go wrong; and the memory that many names take."""
import os
import shutil
import struct

import pytest

from conftest import APPS, GPUTALLY, LIBRARY, SAN, clean_env, counts, execute, load_report, preload, reports, run, tool
from life import compile_c
from test_cases_names import as_nobody, open_folder  # noqa: F401
from test_limits import in_namespace, kept, ours  # noqa: F401

pytestmark = pytest.mark.usefixtures("no_leftovers")
WAYS = pytest.mark.parametrize("way", ["run", "plain"])
EXITS = APPS / "life_exit"
WORK = {"work": 5, "open": 1}


def go(way, command, folder, **env):
    if way == "run":
        return run(*command, cwd=folder, env=clean_env(**env))
    return execute(command, cwd=folder, env=preload(**env))


SURPLUS = """
#include "gputally.h"
static void good(void)
{
    for (int i = 0; i < 10; i++) {
        gputally_range_push("later outer");
        gputally_range_push("later inner");
        gputally_range_pop();
        gputally_range_pop();
    }
}
int main(void)
{
    gputally_range_push("one push");
    for (int i = 0; i < 3; i++)
        gputally_range_pop();
    good();
    return 3;
}
"""


@WAYS
def test_11_three_pops_for_one_push(tmp_path, way):
    """Nothing else is wrong in this program, so the count is the two pops and the one line says so."""
    program = compile_c(tmp_path, "surplus", SURPLUS, "-ldl")
    done = go(way, [program], tmp_path)
    assert done.returncode == 3
    report = load_report(tmp_path)
    assert counts(report) == {"one push": 1, "later outer": 10, "later inner": 10}
    assert {k: n for k, n in report["lost"].items() if n} == {"unbalanced": 2}
    by_id = {r["id"]: r for r in report["call_tree"]}
    assert {r["key"]: by_id[r["parent"]]["key"] if r["parent"] is not None else None for r in by_id.values()} == \
        {"one push": None, "later outer": None, "later inner": "later outer"}
    said = [line for line in done.stderr.splitlines() if "unbalanced" in line]
    assert len(said) == 1 and said[0].startswith("2 "), done.stderr


STORM = """
#include "gputally.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
enum { THREADS = 3, FORKS = 45 };
static atomic_int stop;
static atomic_long rounds, ranges;
static pthread_barrier_t first;
/* the long ways: names and domains never seen, ids given back elsewhere, slots taken and left */
static void *lives_once(void *id)
{
    gputally_range_end(*(uint64_t *)id);
    gputally_mark("short lived");
    return NULL;
}
static void *worker(void *unused)
{
    static atomic_long next;
    /* names leave nothing for what an id needs: each worker has its own before there are many */
    gputally_range_end(gputally_range_start("first"));
    pthread_barrier_wait(&first);
    while (!atomic_load(&stop)) {
        uint64_t id = gputally_range_start("across");
        pthread_t t;
        for (int k = 0; k < 300; k++) {
            struct gputally_attributes a = GPUTALLY_ATTRIBUTES_INIT;
            char name[32] = "name ", domain[32];
            size_t at = 5;
            long i = atomic_fetch_add(&next, 1);
            snprintf(domain, sizeof domain, "domain %ld", i % 50);
            for (long n = i; n || at == 5; n /= 20)
                name[at++] = (char)('g' + n % 20); /* neither digits nor hex: no template */
            name[at] = 0;
            a.name = name;
            a.domain = domain;
            gputally_range_push_ex(&a);
            gputally_range_pop_domain(domain);
            atomic_fetch_add(&ranges, 1);
        }
        if (pthread_create(&t, NULL, lives_once, &id))
            abort();
        pthread_join(t, NULL);
        atomic_fetch_add(&rounds, 1);
    }
    return unused;
}
int main(void)
{
    pthread_t t[THREADS];
    int bad = 0;
    pthread_barrier_init(&first, NULL, THREADS);
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&t[i], NULL, worker, NULL))
            return 99;
    for (int i = 0; i < FORKS; i++) {
        pid_t pid = fork();
        int status;
        if (pid == 0) {
            if (i % 3) {
                struct gputally_attributes a = GPUTALLY_ATTRIBUTES_INIT;
                a.name = "child";
                a.domain = "of the child";
                gputally_range_push_ex(&a);
                gputally_range_pop_domain(a.domain);
                gputally_range_end(gputally_range_start("child async"));
            }
            _exit(i % 100);
        }
        if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status) || WEXITSTATUS(status) != i % 100)
            bad = 1;
    }
    atomic_store(&stop, 1);
    for (int i = 0; i < THREADS; i++)
        pthread_join(t[i], NULL);
    printf("%ld %ld\\n", (long)rounds, (long)ranges);
    return bad;
}
"""


@WAYS
@pytest.mark.parametrize("stacks", ["1", "ranges"])
def test_16_fork_while_threads_take_the_long_ways(tmp_path, way, stacks):
    """The threads make names, domains, slots and ids all the time, so a child that waited for any of them, or
    found a list half linked, would not end or not say what it did. The names may use up the memory, and then
    three threads at once may come that had no slot before: they leave room for these."""
    program = compile_c(tmp_path, "storm", STORM, "-ldl", "-pthread")
    folder = tmp_path / "out"
    folder.mkdir()
    done = go(way, [program], folder, GPUTALLY_FORMAT="json", GPUTALLY_MEMORY="24M", GPUTALLY_WITH_STACK=stacks)
    assert done.returncode == 0, done.stderr
    rounds, ranges = map(int, done.stdout.split())
    (parent,) = [r for r in reports(folder) if "short lived" in counts(r)]
    children = [r for r in reports(folder) if "short lived" not in counts(r)]
    got = counts(parent)
    assert got.pop("short lived") == got.pop("across") == rounds
    assert got.pop("first") == 3
    assert parent["lost"]["memory"] == 0
    assert sum(got.values()) == ranges and not [k for k in got if "child" in k]
    assert len(children) == 30
    for r in children:
        assert counts(r) == {"of the child:child": 1, "child async": 1}
        assert set(k for k, n in r["lost"].items() if n) <= {"inherited"}


# VFS_CAP_REVISION_2 with the effective bit, and CAP_NET_BIND_SERVICE, which containers have too
CAPABILITY = struct.pack("<5I", 0x02000001, 1 << 10, 0, 0, 0)


@WAYS
def test_23_helper_with_file_capabilities(open_folder, tmp_path, way):  # noqa: F811
    """A child that the loader calls secure: it runs, leaves nothing, and the others are recorded."""
    prefix = as_nobody()
    helper = tmp_path / "helper"
    shutil.copy(APPS / "api_basic", helper)
    os.chmod(helper, 0o755)
    try:
        os.setxattr(helper, "security.capability", CAPABILITY)
    except OSError as e:
        pytest.skip(f"no file capabilities on this file system: {e}")
    # the loader ignores this variable in a secure program
    probe = execute([*prefix, "env", "LD_SHOW_AUXV=1", helper])
    if probe.returncode or "AT_SECURE" in probe.stdout:
        pytest.skip("no file capabilities here")
    script = f"{helper}; {EXITS} exit"
    env = {"GPUTALLY_SESSION_DIR": str(open_folder)}
    inner = [GPUTALLY, "run", "--", "sh", "-c", script] if way == "run" else \
        ["env", f"LD_PRELOAD={LIBRARY}", "sh", "-c", script]
    done = execute([*prefix, *inner], cwd=open_folder, env=clean_env(**env))
    assert (done.returncode, done.stdout) == (7, "done\n"), done.stderr
    (file,) = open_folder.iterdir()
    assert counts(load_report(file)) == WORK
    # and as the program itself: `run` says why it has no report
    file.unlink()
    inner = [GPUTALLY, "run", "--", helper] if way == "run" else ["env", f"LD_PRELOAD={LIBRARY}", helper]
    done = execute([*prefix, *inner], cwd=open_folder, env=clean_env(**env))
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
    assert list(open_folder.iterdir()) == []
    assert sum("file capabilities" in line for line in done.stderr.splitlines()) == (way == "run")


@WAYS
def test_34_deeper_than_we_follow(tmp_path, way):
    """70,000 nested ranges: those beyond the limit are told, and every walk does with a stack of 128 KiB."""
    done = go(way, [APPS / "e2e_names", "nest", "70000"], tmp_path, GPUTALLY_OUTPUT="x")
    assert (done.returncode, done.stdout) == (0, "70000\n")
    report = load_report(tmp_path / "x.json")
    assert counts(report) == {"even": 32768, "odd": 32768}
    assert {k: n for k, n in report["lost"].items() if n} == {"deep": 70000 - 65536}
    assert len([line for line in done.stderr.splitlines() if "4464" in line and "deep" in line]) == 1
    if SAN or way == "plain":
        return  # a sanitizer's frames are larger; the same report again
    for format in ("table", "json", "csv", "tree"):
        shown = execute(["sh", "-c", 'ulimit -s 128; exec "$@"', "sh", GPUTALLY, "report", "-f", format, "x.json"],
                        cwd=tmp_path)
        assert (shown.returncode, shown.stderr) == (0, ""), format
        if format == "json":
            assert shown.stdout == (tmp_path / "x.json").read_text()
        if format == "tree":
            assert len(shown.stdout.splitlines()) >= 65536


RECURSION = """
#include "gputally.h"
#include <stdlib.h>
__attribute__((noinline)) static int deeper(int n)
{
    int r;
    gputally_range_push(n % 2 ? "odd" : "even");
    r = n > 1 ? deeper(n - 1) + 1 : 1;
    gputally_range_pop();
    return r;
}
int main(int argc, char **argv)
{
    return argc > 1 && deeper(atoi(argv[1])) == atoi(argv[1]) ? 0 : 1;
}
"""


@WAYS
def test_34_ten_thousand_nested_with_stacks(tmp_path, way):
    """Each range is called from one frame further in. Stacks keep their inner frames, and say so."""
    program = compile_c(tmp_path, "recursion", RECURSION, "-ldl")
    done = go(way, [program, "10000"], tmp_path, GPUTALLY_OUTPUT="x", GPUTALLY_WITH_STACK="ranges")
    assert done.returncode == 0, done.stderr
    report = load_report(tmp_path / "x.json")
    assert counts(report) == {"even": 5000, "odd": 5000}
    lost = {k: n for k, n in report["lost"].items() if n}
    assert set(lost) == {"stack_truncated"} and 9000 < lost["stack_truncated"] < 10000
    if SAN or way == "plain":
        return  # a sanitizer's frames are larger; the same report again
    for format, *options in (("json",), ("csv",), ("tvm",), ("tvm-csv",), ("tvm-table",), ("folded",), ("table", "-g", "stack:64")):
        shown = execute(["sh", "-c", 'ulimit -s 128; exec "$@"', "sh", GPUTALLY, "report", "-f", format, *options, "x.json"],
                        cwd=tmp_path)
        assert (shown.returncode, shown.stderr) == (0, ""), format
        if format == "json":
            assert shown.stdout == (tmp_path / "x.json").read_text()
        if format == "table":
            assert f"{lost['stack_truncated']} stacks had more frames than are kept" in shown.stdout
            assert "deeper" in shown.stdout


TROUBLE = {
    "output below a file": ("touch file; GPUTALLY_OUTPUT=file/x", [], 1),
    "no file may grow": ("ulimit -f 0;", [], 1),
    "no file may hold a report": ("ulimit -f 1;", [], 1),
    "small files": ("ulimit -f 64;", [], None),
    "little address space": ("ulimit -v 60000;", [], None),
    "closed": ("exec 0<&- 1>&- 2>&-;", [], 0),
    "read-only /dev/shm": ("", ["mount -t tmpfs none /dev/shm", "mount -o remount,ro /dev/shm"], None),
    "full disk": ("", ["mount -t tmpfs -o size=8k none .", "cd \"$PWD\"", "head -c 9000 /dev/zero >filler || true"], 1),
}


@pytest.mark.skipif(bool(SAN), reason="sanitizers need terabytes of address space")
@WAYS
@pytest.mark.parametrize("trouble", TROUBLE)
def test_the_status_is_the_programs(tmp_path, way, trouble, kept):  # noqa: F811
    """As a user meets it: the limit holds for `gputally run` itself too. The program leaves with 7."""
    before, mounts, lines = TROUBLE[trouble]
    prefix = in_namespace(*mounts) if mounts else []
    line = f"{GPUTALLY} run -- {EXITS} exit" if way == "run" else f"LD_PRELOAD={LIBRARY} {EXITS} exit"
    done = execute([*prefix, "bash", "-c", f"{before} {line}"], cwd=tmp_path)
    kept.append(done)
    assert done.returncode == 7, done.stderr
    if lines is not None:
        assert len(ours(done)) == lines, done.stderr
    for file in tmp_path.glob("*.json"):
        assert counts(load_report(file)) == WORK


MANY = """
#include "gputally.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
/* memory that is not code: nothing of ours is ever given back */
static long taken(void)
{
    char line[256];
    long kib = 0;
    FILE *f = fopen("/proc/self/status", "r");
    while (f && fgets(line, sizeof line, f))
        if (!strncmp(line, "RssAnon:", 8) || !strncmp(line, "RssShmem:", 9))
            kib += atol(strchr(line, ':') + 1);
    if (f)
        fclose(f);
    return kib;
}
int main(void)
{
    long before = taken();
    for (long i = 0; i < 1000000; i++) {
        char name[32] = "name ";
        size_t at = 5;
        for (long k = i; k || at == 5; k /= 20)
            name[at++] = (char)('g' + k % 20); /* neither digits nor hex: no template */
        name[at] = 0;
        gputally_range_push(name);
        gputally_range_pop();
    }
    printf("%ld\\n", taken() - before);
    return 3;
}
"""


@pytest.mark.skipif(bool(SAN), reason="a sanitizer has memory of its own")
@WAYS
@pytest.mark.parametrize("megabytes", [2, 16])
def test_a_million_names_stay_in_their_memory(tmp_path, way, megabytes):
    program = compile_c(tmp_path, "many", MANY, "-ldl", "-O2")
    bare = int(execute([program]).stdout)
    done = go(way, [program], tmp_path, GPUTALLY_MEMORY=f"{megabytes}M", GPUTALLY_FORMAT="json", GPUTALLY_QUIET="1")
    assert (done.returncode, done.stderr) == (3, "")
    # 64 KiB for what the library has before its first record: its data, the loader's tables
    assert megabytes * 900 < int(done.stdout) - bare <= megabytes * 1024 + 64
    report = load_report(tmp_path)
    assert sum(counts(report).values()) + report["lost"]["memory"] == 1000000
    assert report["processes"][0]["memory_full"] is True
