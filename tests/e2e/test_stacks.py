"""Stacks of whole programs: libraries that come and go, exceptions, odd stacks; and that a program that
has none is left alone."""
import json
import os
import platform
import re
import struct
import sys
from random import Random

import pytest

from conftest import APPS, BUILD, GPUTALLY, SAN, clean_env, counts, execute, forbid, load_report, preload, run

pytestmark = pytest.mark.usefixtures("no_leftovers")
ALL = ["--with-stack", "1,ranges"]
ROUNDS = 10 if SAN else 60


def native(report, kind="range"):
    """[(key, functions innermost first, modules, how it ends, count)] of the rows that have a stack"""
    out = []
    for row in report["call_tree"]:
        if row["kind"] != kind or row.get("stack") is None:
            continue
        frames = [report["frames"][i] for i in report["stacks"][row["stack"]]["native"]]
        note = [f["function"] for f in frames if f["kind"] == "note"]
        frames = [f for f in frames if f["kind"] == "native"]
        paths = [report["modules"][f["module"]]["path"] for f in frames if f.get("module") is not None]
        out.append((row["key"], [f.get("function") for f in frames], paths, note, row["count"]))
    return out


def recorded(tmp_path, program, *args, options=ALL):
    bare = execute([APPS / program, *args])
    done = run(APPS / program, *args, options=["-q", *options], cwd=tmp_path)
    assert (done.returncode, done.stdout) == (bare.returncode, bare.stdout) and bare.returncode == 0
    return done, load_report(tmp_path)


def plugin_rows(report):
    """Checks that each call from a library goes through that library's function, and no other's."""
    calls, modules = {}, set()
    for key, functions, paths, _, count in native(report):
        if not key.startswith("in plug_"):
            continue
        number = key[-1]
        plugs = [f for f in functions if f and f.startswith("plug_")]
        files = [p for p in paths if "stacks_plug" in p and p.endswith(".so")]
        assert plugs and set(plugs) == {f"plug_{number}"}, (key, functions)
        assert {p.rsplit("/", 1)[1] for p in files} == {f"libstacks_plug{number}.so"}, (key, paths)
        assert len(files) == len(plugs)
        calls[key] = calls.get(key, 0) + count
        modules.update(files)
    return calls


@pytest.mark.skipif("thread" in SAN, reason="ThreadSanitizer takes the loader's own allocations for races")
@pytest.mark.parametrize("threads", [False, True], ids=["alone", "threads"])
def test_libraries_come_and_go(tmp_path, threads):
    """Libraries that take each other's place and are the same but for a name: no frame is taken for the
    other's. With threads: four load and unload, four record all the while."""
    done, report = recorded(tmp_path, "stacks_plugins", str(ROUNDS), *([] if threads else ["alone"]))
    if "the same place" not in done.stdout or "never" in done.stdout:
        pytest.skip("the loader never took the same place again")
    calls = plugin_rows(report)
    assert calls["in plug_0"] == calls["in plug_1"] == ROUNDS * 5 + (ROUNDS // 2 * 5 if threads else 0)
    lost = report["lost"]
    assert lost["stack_missing"] == lost["stack_truncated"] == 0
    if not threads:
        assert lost["stack_cut"] == lost["stack_folded"] == 0
        return
    assert sum(calls.values()) == ROUNDS * 10 + ROUNDS * 4 * 5
    stays = [r for r in native(report) if r[0] == "stays"]
    assert sum(r[4] for r in stays) == int(re.search(r"stays (\d+)", done.stderr)[1])
    for key, functions, _, note, _ in stays:
        assert not note and "stay_inner" in functions and "walk" in functions, functions
        assert functions.count("stay_outer") in range(1, 8)


@pytest.mark.skipif(bool(SAN), reason="takes its time with sanitizers")
def test_libraries_without_end(tmp_path):
    """20,000 loads: the last one costs as much as the first; it took hours."""
    _, report = recorded(tmp_path, "stacks_plugins", "10000", "alone")
    assert counts(report) == {"in plug_0": 50000, "in plug_1": 50000}


def test_exceptions(tmp_path):
    """10^5 C++ exceptions through frames whose stacks are kept: the same ones, and none is lost."""
    throws = 4000 if SAN else 100000
    done, report = recorded(tmp_path, "stacks_throw", str(throws))
    lines = re.findall(r"thrown (\d+), caught (\d+), rethrown \d+, destroyed (\d+)", done.stdout)
    assert sum(int(a) for a, _, _ in lines) == sum(int(b) for _, b, _ in lines) == throws
    got = counts(report)
    assert got["outer"] == throws
    assert got["odd"] + got["even"] == sum(int(c) for _, _, c in lines)
    assert report["lost"]["unbalanced"] == report["lost"]["stack_missing"] == report["lost"]["stack_cut"] == 0
    below = [functions for key, functions, *_ in native(report) if key == "odd"]
    assert below and all("below" in " ".join(f or "" for f in fs) for fs in below)


@pytest.mark.skipif(bool(SAN), reason="a sanitizer's runtime has unwinding of its own in front")
def test_exceptions_are_libgccs(tmp_path):
    """libunwind defines _Unwind_* functions of its own: when it is in, C++ must not get them."""
    env = preload(GPUTALLY_WITH_STACK="1,ranges", GPUTALLY_FORMAT="none", LD_DEBUG="bindings,files",
                  LD_DEBUG_OUTPUT=str(tmp_path / "ld"))
    assert execute([APPS / "stacks_throw", "100"], env=env, cwd=tmp_path).returncode == 0
    text = "".join(p.read_text(errors="replace") for p in tmp_path.glob("ld.*"))
    if "libunwind.so" not in text:
        pytest.skip("libunwind is not installed")
    assert re.search(r"calling init: \S*libunwind\.so\.8", text)
    bound = re.findall(r"binding file (\S+) \[0\] to (\S+) \[0\]: normal symbol `_Unwind_RaiseException'", text)
    assert bound and all("libgcc_s" in to for who, to in bound if "libunwind" not in who), bound
    assert any("libstdc++" in who for who, _ in bound)


@pytest.mark.skipif(bool(SAN), reason="a sanitizer's stacks are larger and its handlers others")
def test_odd_stacks(tmp_path):
    _, report = recorded(tmp_path, "stacks_odd")
    check_odd_stacks(report)


@pytest.mark.skipif(bool(SAN) or os.uname().machine != "x86_64", reason="numbers of system calls")
def test_odd_stacks_of_an_old_kernel(tmp_path):
    """Before Linux 6.11 /proc/self/maps has to be read: there is no ioctl that knows one address."""
    command = [str(GPUTALLY), "run", "-q", *ALL, "--", str(APPS / "stacks_odd")]
    done = execute([sys.executable, "-c", f"import os\n{forbid(16, error=25)}\nos.execv({command[0]!r}, {command!r})"],
                   cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
    check_odd_stacks(load_report(tmp_path))


@pytest.mark.skipif(bool(SAN), reason="takes its time with sanitizers")
def test_many_fibres(tmp_path):
    """5,000 stacks that take turns, each a mapping: a look for one does not read all of them."""
    if tuple(int(n) for n in re.findall(r"\d+", platform.release())[:2]) < (6, 11):
        pytest.skip("the kernel can't be asked for one mapping")
    _, report = recorded(tmp_path, "stacks_odd", "many")
    (key, functions, *_, count), = native(report)
    assert (key, count) == ("fibre", 20000) and "many_main" in functions


def check_odd_stacks(report):
    assert counts(report) == {"tiny": 2000, "on an alternate stack": 50, "home": 50, "home again": 1,
                              "fibre one": 50, "fibre two": 50, "deep": 3, "before the jump": 90,
                              "after the jump": 1}
    rows = {}
    for key, functions, _, note, count in native(report):
        rows.setdefault(key, []).append((functions, note, count))

    def of(key):
        """The functions of the one stack that the range has."""
        assert len(rows[key]) == 1, rows[key]
        return rows[key][0][0]
    assert "tiny_thread" in of("tiny") and "main" not in of("tiny")
    assert of("on an alternate stack").index("handler") < of("on an alternate stack").index("interrupted")
    assert "main" in of("on an alternate stack")
    assert "fibre_one" in of("fibre one") and of("fibre one").count("turns") == 6
    assert "fibre_two" in of("fibre two") and of("fibre two").count("turns") == 10
    assert not {"fibre_two", "fibres", "main"} & set(of("fibre one"))
    assert "fibres" in of("home") and "turns" not in of("home")
    functions, note, count = rows["deep"][0]
    assert (note, count) == (["(truncated)"], 3) and set(functions[2:]) == {"recurse"}
    assert len(rows["before the jump"]) == 5
    assert sum(count for _, _, count in rows["before the jump"]) == 90
    assert report["lost"]["stack_truncated"] == 3 and report["lost"]["stack_missing"] == 0


def sections(elf, prefix):
    """[(offset, bytes)] of the sections of an ELF file whose names begin so"""
    table, = struct.unpack_from("<Q", elf, 40)
    count, names = struct.unpack_from("<2H", elf, 60)
    headers = [struct.unpack_from("<2I4Q", elf, table + 64 * i) for i in range(count)]
    return [h[4:6] for h in headers if elf[headers[names][4] + h[0]:].startswith(prefix)]


@pytest.mark.skipif(bool(SAN), reason="the sanitizers' own unwinders crash")
def test_damaged_unwind_data(tmp_path):
    """A program whose .eh_frame is damaged at random runs as well as without us: what can't be believed is
    not believed, and libunwind, which would, is not asked."""
    good = (APPS / "stacks_odd").read_bytes()
    places = sections(good, b".eh_frame")
    assert len(places) == 2
    random = Random(1)
    env = preload(GPUTALLY_WITH_STACK="native,ranges", GPUTALLY_FORMAT="none")
    program = tmp_path / "damaged"
    for n in range(60):
        bad = bytearray(good)
        for _ in range(random.choice([1, 4, 16, 64])):
            offset, size = random.choice(places)
            bad[offset + random.randrange(size)] = random.choice([0, 0xff, 0x0f, 0x16, random.randrange(256)])
        program.write_bytes(bad)
        program.chmod(0o755)
        done = execute([program], env=env, cwd=tmp_path)
        assert (done.returncode, done.stdout) == (0, "done\n"), n
        program.unlink()


@pytest.mark.skipif(bool(SAN), reason="sanitizers take more of the stack")
def test_first_call_in_a_handler(tmp_path):
    """The first call of all comes from a signal handler with a small stack of its own: nothing is loaded there."""
    _, report = recorded(tmp_path, "stacks_odd", "first")
    (_, functions, _, note, count), = native(report)
    assert (count, note) == (50, []) and "interrupted" in functions


@pytest.mark.skipif(bool(SAN), reason="for the ordinary library")
@pytest.mark.parametrize("program", [["/bin/true"], [APPS / "api_basic"], [APPS / "nvtx_basic"]],
                         ids=["nothing", "api", "nvtx"])
def test_nothing_is_loaded(tmp_path, program):
    """Who needs no stacks gets nothing loaded, by default."""
    env = preload(GPUTALLY_FORMAT="none", LD_DEBUG="files", LD_DEBUG_OUTPUT=str(tmp_path / "ld"))
    execute(program, env=env, cwd=tmp_path)
    text = "".join(p.read_text(errors="replace") for p in tmp_path.glob("ld.*"))
    assert "libgputally.so" in text and "libunwind" not in text


def test_views_without_stacks_are_the_same(tmp_path):
    """Rows that differ in their stack only are one row where nobody asked for stacks."""
    def table(name, value):
        base = tmp_path / name
        base.mkdir()
        run(APPS / "stacks_odd", options=["-q", "--with-stack", value, "--format", "json"], cwd=base)
        report = load_report(base)
        return {r["key"]: r["count"] for r in report["key_averages"]}
    assert table("with", "1,ranges") == table("without", "0")


@pytest.mark.skipif(bool(SAN), reason="for the ordinary library")
def test_little_memory(tmp_path):
    """Hardly any memory: calls count, stacks are told as missing."""
    done = run(APPS / "stacks_odd", options=["-q", *ALL, "--memory", "256K"], cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "done\n")
    report = load_report(tmp_path)
    assert sum(counts(report).values()) == 2295
    assert report["lost"]["stack_missing"] > 0
