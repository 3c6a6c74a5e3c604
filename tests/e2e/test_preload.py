"""Living with others in one process: other preloaded libraries, allocators, programs that look closely."""
import glob
import platform
import shutil
import sys
import time

import pytest

from life import (GPUTALLY, LIBRARY, WAYS, app, bare, call, clean, compile_c, compile_preload,  # noqa: F401
                  environment, plain, report, reports, run)


def preloaded(*libraries, **variables):
    return environment(":".join(str(x) for x in libraries), **variables)


def orders(other):
    return [(other, LIBRARY), (LIBRARY, other)]


# ---- case 1: a constructor that looks functions up from four threads

LOOKUPS = """
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
static void *look(void *bad)
{
    for (int i = 0; i < 2000; i++) {
        void *own = dlsym(RTLD_DEFAULT, "life_marker"), *next = dlsym(RTLD_NEXT, "malloc");
        void *libc = dlsym(RTLD_DEFAULT, "malloc"), *none = dlsym(RTLD_NEXT, "life_marker");
        if (!own || !next || !libc || none || dlsym(RTLD_DEFAULT, "no_such_function_here"))
            *(int *)bad = 1;
        getenv("NVTX_INJECTION64_PATH");
    }
    return NULL;
}
void life_marker(void);
void life_marker(void) {}
__attribute__((constructor)) static void begin(void)
{
    pthread_t id[4];
    int bad = 0;
    for (int i = 0; i < 4; i++)
        pthread_create(&id[i], NULL, look, &bad);
    for (int i = 0; i < 4; i++)
        pthread_join(id[i], NULL);
    printf("looked %d\\n", bad);
    fflush(stdout);
}
"""


def test_constructor_looks_up_from_threads(tmp_path):
    """Both libraries at an odd path, both orders, and under `run`; it ends within 2 s, the machine's slow
    moments apart."""
    odd = tmp_path / "odd,(1)ä"
    odd.mkdir()
    for f in (LIBRARY, GPUTALLY):
        shutil.copy(f, odd)
    ours = odd / "libgputally.so"
    looker = compile_preload(odd, "looker.so", LOOKUPS)
    program = [app("life_exec"), "COUNT=2"]
    for command, env in ((program, preloaded(looker, ours)), (program, preloaded(ours, looker)),
                         ([odd / "gputally", "run", "--", *program], environment(looker))):
        took = []
        while not took or (min(took) >= 2 and len(took) < 5):
            begin = time.monotonic()
            done = call(command, tmp_path, env, timeout=30)
            took.append(time.monotonic() - begin)
            # `run` itself has the other library too
            assert done.status == 5 and set(done.out.splitlines()) == {"looked 0", "done"}, done.err
            r = report(tmp_path)
            assert r.counts == {"step 2": 2}
            r.path.unlink()
        assert min(took) < 2, took


@pytest.mark.parametrize("name", ["odd,path(1)", "ü", "a=b", "%p", "-dash", "q'uote\"", "new\\nline", "x" * 200])
def test_our_library_at_an_odd_path(name, tmp_path):
    folder = tmp_path / name
    folder.mkdir()
    for f in (LIBRARY, GPUTALLY):
        shutil.copy(f, folder)
    done = call([app("life_exec")], tmp_path, environment(folder / "libgputally.so"))
    assert (done.status, done.out) == (5, "done\n")
    assert report(tmp_path).counts == {"step 1": 1}
    assert "error" not in done.err


# ---- case 2: a second preload that interposes the allocator and mmap and looks them up

ALLOCATOR = """
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
static char first[65536];
static size_t used;
static int depth;
static unsigned long calls;
static void *(*real_calloc)(size_t, size_t), *(*real_malloc)(size_t), *(*real_mmap)(void *, size_t, int, int, int, off_t);
static void (*real_free)(void *);
static void find(void)
{
    if (++depth > 1) { /* looked up by the look-up: what dlsym itself needs comes from `first` */
        if (depth > 50)
            abort();
    } else {
        real_calloc = dlsym(RTLD_NEXT, "calloc");
        real_malloc = dlsym(RTLD_NEXT, "malloc");
        real_mmap = dlsym(RTLD_NEXT, "mmap");
        real_free = dlsym(RTLD_NEXT, "free");
        if (dlsym(RTLD_NEXT, "no_such_function_here")) /* fails: its message allocates */
            abort();
    }
    depth--;
}
static void *small(size_t n)
{
    void *p = first + used;
    used += (n + 15) & ~(size_t)15;
    if (used > sizeof first)
        abort();
    return p;
}
void *calloc(size_t n, size_t size)
{
    calls++;
    if (!real_calloc)
        find();
    return real_calloc ? real_calloc(n, size) : small(n * size);
}
void *malloc(size_t n)
{
    calls++;
    if (!real_malloc)
        find();
    return real_malloc ? real_malloc(n) : small(n);
}
void free(void *p)
{
    if ((char *)p >= first && (char *)p < first + sizeof first)
        return;
    if (!real_free)
        find();
    if (real_free)
        real_free(p);
}
void *mmap(void *a, size_t n, int prot, int flags, int fd, off_t at)
{
    if (!real_mmap)
        find();
    return real_mmap(a, n, prot, flags, fd, at);
}
__attribute__((destructor)) static void end(void)
{
    if (strcmp(program_invocation_short_name, "mallocs") == 0)
        printf("%s\\n", calls > 100 ? "allocator used" : "allocator not used");
    fflush(stdout);
}
"""

MALLOCS = """
#include "gputally.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int main(void)
{
    unsigned long sum = 0;
    char *kept[256] = {NULL};
    for (unsigned i = 0; i < 100000; i++) {
        unsigned n = 1 + i * 2654435761u % 5000;
        gputally_range_push("malloc");
        free(kept[i % 256]);
        kept[i % 256] = i % 3 ? malloc(n) : calloc(1, n);
        kept[i % 256][n - 1] = (char)i;
        if (i % 7 == 0)
            kept[i % 256] = realloc(kept[i % 256], n + 100);
        sum = sum * 31 + (unsigned char)kept[i % 256][n - 1];
        gputally_range_pop();
    }
    printf("%lu\\n", sum);
    return 5;
}
"""


def mallocs_with(other, tmp_path):
    program = compile_c(tmp_path, "mallocs", MALLOCS, "-ldl")
    without = call([program], tmp_path, environment(other))
    assert without.status == 5, without.err
    for order in orders(other):
        done = call([program], tmp_path, preloaded(*order))
        assert (done.status, done.out) == (5, without.out), done.err
        r = report(tmp_path)
        assert r.counts == {"malloc": 100000} and r.lost == {}
        r.path.unlink()
    done = call([GPUTALLY, "run", "--", program], tmp_path, environment(other))
    assert (done.status, done.out) == (5, without.out), done.err
    assert report(tmp_path).counts == {"malloc": 100000}


def test_interposing_allocator(tmp_path):
    mallocs_with(compile_preload(tmp_path, "allocator.so", ALLOCATOR, "-fno-builtin"), tmp_path)


@pytest.mark.parametrize("library", ["libjemalloc.so.2", "libtcmalloc_minimal.so.4"])
def test_real_allocator(library, tmp_path):
    found = sorted(glob.glob(f"/usr/lib/*/{library}") + glob.glob(f"/usr/lib*/{library}"))
    if not found:
        pytest.skip(f"{library} is not installed (libjemalloc2, libtcmalloc-minimal4)")
    mallocs_with(found[0], tmp_path)


# ---- ourselves in odd ways

def test_listed_twice(tmp_path):
    """By two names of the same file the loader loads it once; by two files twice, and one records."""
    other = tmp_path / "other.so"
    other.symlink_to(LIBRARY)
    copy = tmp_path / "copy.so"
    shutil.copy(LIBRARY, copy)
    for order in ((LIBRARY, LIBRARY), (LIBRARY, other), (LIBRARY, copy)):
        done = call([app("life_exec"), "COUNT=3"], tmp_path, preloaded(*order))
        assert (done.status, done.out) == (5, "done\n"), done.err
        r = report(tmp_path)
        assert r.counts == {"step 3": 3}
        r.path.unlink()


def test_relative_path_and_chdir(tmp_path):
    folder = tmp_path / "lib"
    folder.mkdir()
    for f in (LIBRARY, GPUTALLY):
        shutil.copy(f, folder)
    done = call([app("life_exit"), "moved"], tmp_path, environment("lib/libgputally.so"))
    assert done.status == 7
    assert report(tmp_path).counts == {"work": 5, "open": 1}


def test_relative_path_of_run(tmp_path):
    (tmp_path / "bin").mkdir()
    for f in (LIBRARY, GPUTALLY):
        shutil.copy(f, tmp_path / "bin")
    done = call(["bin/gputally", "run", "-o", "out", app("life_exit"), "moved"], tmp_path, environment())
    assert done.status == 7
    assert report(tmp_path).path.name == "out.json"


# ---- what a program can see of us

def test_environment(tmp_path):
    for way in (plain, run):
        for command in (["env"], ["sh", "-c", "env"], [sys.executable, "-c", "import os\nfor i in os.environ.items(): print('%s=%s' % i)"]):
            without = set(bare(command, tmp_path).out.splitlines())
            done = set(way(command, tmp_path).out.splitlines())
            assert without <= done, without - done
            assert {line.split("=")[0] for line in done - without} <= {"LD_PRELOAD", "GPUTALLY_RUN_DIR"}


SEMANTICS = """
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
char *optarg_own(void);
/* the program's own definition stands before everybody's */
void *life_own(void) { return NULL; }
static const char *from(void *f)
{
    Dl_info i;
    const char *s;
    if (!f || !dladdr(f, &i))
        return "none";
    s = strrchr(i.dli_fname, '/');
    return s ? s + 1 : i.dli_fname;
}
int main(int argc, char **argv)
{
    (void)argc;
    void *libm = dlopen("libm.so.6", RTLD_NOW), *self = dlopen(NULL, RTLD_NOW), *plugin;
    printf("default own %d\\n", dlsym(RTLD_DEFAULT, "life_own") == (void *)life_own);
    printf("self own %d\\n", dlsym(self, "life_own") == (void *)life_own);
    printf("next own %d\\n", dlsym(RTLD_NEXT, "life_own") == NULL);
    printf("next puts %s\\n", from(dlsym(RTLD_NEXT, "puts")));
    printf("libm cos %s\\n", from(dlsym(libm, "cos")));
    printf("default cos %s\\n", from(dlsym(RTLD_DEFAULT, "cos")));
    printf("libm none %d %s\\n", dlsym(libm, "nvtxRangePushA") == NULL, strstr(dlerror(), "nvtxRangePushA") ? "told" : "not");
    printf("versions %s\\n", from(dlvsym(RTLD_DEFAULT, "memcpy", VERSION)));
    printf("no version %d\\n", dlvsym(RTLD_DEFAULT, "memcpy", "NO_1") == NULL);
    dlerror();
    printf("runpath %s\\n", (plugin = dlopen("libplugin.so", RTLD_LAZY)) ? "found" : dlerror());
    printf("inside %s\\n", plugin ? ((const char *(*)(void))dlsym(plugin, "inside"))() : "");
    printf("origin %s\\n", dlopen("$ORIGIN/libplugin.so", RTLD_LAZY) == plugin ? "same" : "other");
    printf("missing %d\\n", dlopen("libnone-here.so", RTLD_LAZY) == NULL && dlerror() != NULL && dlerror() == NULL);
    errno = 33;
    printf("home %s\\n", getenv("HOME") ? "set" : "unset");
    setenv("LIFE", "1", 1);
    printf("life %s %s\\n", getenv("LIFE"), secure_getenv("LIFE"));
    setenv("LIFE", "2", 1);
    printf("life %s\\n", getenv("LIFE"));
    unsetenv("LIFE");
    printf("life %p %p %p\\n", getenv("LIFE"), getenv(""), getenv("LIF"));
    setenv("NVTX_INJECTION64_PATH", "/mine", 1);
    printf("nvtx %s\\n", getenv("NVTX_INJECTION64_PATH"));
    clearenv();
    printf("clear %p\\n", getenv("HOME"));
    printf("errno %d\\n", errno);
    return argv[0] ? 5 : 0;
}
"""

PLUGIN = """
#include <dlfcn.h>
const char *inside(void);
static const char *name = "plugin";
int life_plugin_only(void) { return 1; }
/* RTLD_DEFAULT and RTLD_NEXT of a library that was opened without RTLD_GLOBAL: its own scope */
const char *inside(void)
{
    return dlsym(RTLD_DEFAULT, "life_plugin_only") && !dlsym(RTLD_NEXT, "life_plugin_only") ? name : "wrong scope";
}
"""


@WAYS
def test_lookups_mean_what_they_mean(way, tmp_path):
    version = {"x86_64": '"GLIBC_2.2.5"', "aarch64": '"GLIBC_2.17"'}.get(platform.machine())
    if not version:
        pytest.skip(f"no symbol version known for {platform.machine()}")
    (tmp_path / "plugins").mkdir()
    compile_preload(tmp_path / "plugins", "libplugin.so", PLUGIN)
    shutil.copy(tmp_path / "plugins" / "libplugin.so", tmp_path)
    program = compile_c(tmp_path, "semantics", SEMANTICS, f"-DVERSION={version}", "-rdynamic", "-ldl",
                        "-Wl,-rpath,$ORIGIN/plugins", "-Wl,--enable-new-dtags")
    without = bare([program], tmp_path)
    assert without.status == 5 and "runpath found" in without.out and "inside plugin" in without.out, without.out
    done = way([program], tmp_path)
    assert done.status == 5
    assert done.out == without.out
    assert done.err == "" and reports(tmp_path) == []


PROGRAMS = {
    "python": [sys.executable, "-c", "import json, threading, subprocess, sys\n"
               "t = threading.Thread(target=lambda: print(sum(range(10**5)))); t.start(); t.join()\n"
               "print(subprocess.check_output(['echo', 'x'])); print(json.dumps({'a': [1, None]}))\n"
               "sys.exit(4)"],
    "bash": ["bash", "-c", "x=$(seq 5 | sort -r | tr '\\n' ,); echo $x; trap 'echo bye' EXIT; (exit 3); exit 4"],
    "perl": ["perl", "-e", "$SIG{ALRM}=sub{}; print join(',', sort map {$_*$_} 1..9), `echo sub`; exit 4"],
    "git": ["git", "--git-dir=.", "hash-object", "--stdin"],
    "awk": ["awk", "BEGIN { while ((\"echo a b\" | getline l) > 0) print l; exit 4 }"],
    "tar": ["sh", "-c", "mkdir d && echo x >d/f && tar czf - d | tar tzf -; rm -r d; exit 4"],
}


@WAYS
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_are_unchanged(way, name, tmp_path):
    command = PROGRAMS[name]
    if not shutil.which(command[0]):
        pytest.skip(f"{command[0]} is not installed")
    without = bare(command, tmp_path)
    done = way(command, tmp_path)
    assert done == without
    assert list(tmp_path.iterdir()) == []
