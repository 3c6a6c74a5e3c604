"""Rows of the list of public bug reports that are about names, nesting, privileges and places: 11, 12, 23,
24, 31, 32, 34, 38."""
import csv
import json
import math
import os
import re
import shutil
import subprocess

import pytest

from conftest import (APPS, BUILD, GPUTALLY, LIBRARY, ROOT, SAN, Expected, chain, clean_env, counts, execute,
                      let_others_reach, load_report, masked, preload, rows, run, tool)

pytestmark = pytest.mark.usefixtures("no_leftovers")
NAMES = APPS / "e2e_names"
WAYS = pytest.mark.parametrize("way", ["run", "plain"])
NOBODY = 65534

# what e2e_names.c calls its ranges, and what the report must say: bytes that are no UTF-8 are replaced
ODD = [
    b'double " quote', b"single ' quote", b"back\\slash", b"new\nline", b"tab\there", b"one \x01 byte", b"bell \a",
    b"escape \x1b[31mred", b"del \x7f", b'operator""_kg', b"=cmd()", b"+1", b"-1", b"@sum", b"comma, here",
    b"semi; colon", b"bad \xff\xfe utf-8", b"cut \xe2\x82", b"overlong \xc0\xaf", b"surrogate \xed\xa0\x80",
    b"too high \xf5\x80\x80\x80", b"snow \xe2\x98\x83", b"c1 \xc2\x9b", b"null \\u0000", b"</script><b>", b"%s%n%d",
    b"", b" ", b"carriage\rreturn", b"rtl \xe2\x80\xae", b"bom \xef\xbb\xbf", b"a:b", b":", b"domain:",
    b"\xf0\x9f\x98\x80",
]


def go(way, command, folder, **env):
    if way == "run":
        return run(*command, cwd=folder, env=clean_env(**env))
    return execute(command, cwd=folder, env=preload(**env))


def plain(name):
    """A name without what may be replaced: the rest must be there as it was."""
    return re.sub("\ufffd+", "\ufffd", name)


@pytest.mark.san
@WAYS
def test_31_odd_names(tmp_path, way):
    done = go(way, [NAMES, "odd"], tmp_path, GPUTALLY_FORMAT="table,json,csv,tree", GPUTALLY_OUTPUT="x")
    assert (done.returncode, done.stdout) == (0, f"{len(ODD) + 4}\n")
    report = load_report(tmp_path / "x.json")
    got = {plain(k): n for k, n in counts(report).items()}
    for name in ODD:
        assert got.pop(plain(name.decode("utf-8", "replace"))) == 1, name
    long = [k for k in got if k.startswith("yyyy")]
    assert len(long) == 1 and got.pop(long[0]) == 1
    assert 256 <= len(long[0]) <= 65536
    assert got == {plain('do"main\n\ufffd:in it'): 1, 'mark \x01"': 1, "counter \ufffd,": 1}

    # CSV: every row has every field, and comes back as it was
    with open(tmp_path / "x.csv", newline="", encoding="utf-8") as f:
        table = list(csv.reader(f))
    assert {len(row) for row in table} == {len(table[0])}
    column = table[0].index("key")
    keys = [row[column] for row in table[1:]]
    assert sorted(keys) == sorted(r["key"] for r in report["key_averages"])
    assert len(keys) == len(ODD) + 2

    # the JSON again, through `report`: nothing changes
    again = tool("report", "-f", "json", "x.json", cwd=tmp_path)
    assert again.stdout.encode("utf-8", "surrogateescape") == (tmp_path / "x.json").read_bytes()
    # what goes to a terminal holds no control character of a name
    for text in (done.stderr, (tmp_path / "x.tree.txt").read_text()):
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f\x80-\x9f]", text)
        assert "new\\nline" in text
    lines = [line for line in (tmp_path / "x.tree.txt").read_text().splitlines()]
    assert len(lines) == 2 + len(ODD) + 2


def test_31_names_in_argv_and_paths(tmp_path):
    """The program's own name, arguments and folder are texts like others."""
    folder = tmp_path / 'fol"der\n\\ü'
    folder.mkdir()
    program = folder / 'pro"gram \x01'
    shutil.copy(NAMES, program)
    done = run(program, "nest", "3", cwd=folder, options=["-f", "table,json"])
    assert (done.returncode, done.stdout) == (0, "3\n")
    report = load_report(folder)
    process = report["processes"][0]
    assert (process["exe"], process["cwd"]) == (str(program), str(folder))
    assert process["argv"] == [str(program), "nest", "3"]
    file = next(folder.glob("*.json"))
    # a file's name stays on one line of ours; the report has the true one
    assert file.name.startswith('gputally.pro"gram _.')


@pytest.mark.san
def test_31_folded_names_keep_the_sum(tmp_path):
    done = run(NAMES, "fold", "5000", cwd=tmp_path)
    assert done.stdout == "5000\n"
    report = load_report(tmp_path)
    assert sum(counts(report).values()) == 5000
    template = [r for r in report["key_averages"] if r.get("folded")]
    assert [r["key"] for r in template] == ["step *"]
    assert report["lost"]["folded"] == template[0]["count"] > 0
    assert report["lost"]["memory"] == 0


@WAYS
def test_31_distinct_names_stay_in_their_memory(tmp_path, way):
    done = go(way, [NAMES, "distinct", "50000"], tmp_path, GPUTALLY_MEMORY="2M", GPUTALLY_FORMAT="json")
    assert done.stdout == "50000\n"
    report = load_report(tmp_path)
    assert sum(counts(report).values()) + report["lost"]["memory"] == 50000
    assert report["processes"][0]["memory_full"] is True
    assert counts(report).get("(other)", 0) > 0
    assert report["lost"]["folded"] >= counts(report)["(other)"]


def numbers(value):
    if isinstance(value, dict):
        for v in value.values():
            yield from numbers(v)
    elif isinstance(value, list):
        for v in value:
            yield from numbers(v)
    elif isinstance(value, float):
        yield value


@WAYS
def test_32_zero_durations(tmp_path, way):
    done = go(way, [NAMES, "zero"], tmp_path, GPUTALLY_FORMAT="table,json,csv,tree")
    assert done.stdout == "100004\n"
    report = load_report(tmp_path)  # refuses NaN and Infinity
    assert all(map(math.isfinite, numbers(report)))
    assert counts(report) == {"nothing": 100000, "zeros": 3, "async nothing": 1}
    assert rows(report)["zeros"]["values"] == {"count": 3, "sum": 0, "min": 0, "max": 0, "last": 0}
    with open(next(tmp_path.glob("*.csv")), newline="") as f:
        for row in csv.DictReader(f):
            assert not {v.lower() for v in row.values()} & {"nan", "-nan", "inf", "-inf"}


def test_32_a_single_call_does_not_deviate(app, tmp_path):
    run(app("nvtx_basic"), cwd=tmp_path)
    for row in load_report(tmp_path)["key_averages"]:
        assert 0 <= row["stddev"] <= (row["max"] - row["min"]) / 2 + 0.001, row["key"]
        if row["count"] == 1:
            assert row["stddev"] == 0 and row["min"] == row["max"], row["key"]


def test_32_nothing_counted(tmp_path):
    """A report of a program that only ever had an open range, then of no rows at all."""
    done = run(NAMES, "fold", "0", cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "0\n", "")
    assert os.listdir(tmp_path) == []
    run(NAMES, "nest", "1", cwd=tmp_path, options=["-q", "-o", "x"])
    report = load_report(tmp_path / "x.json")
    for part in ("key_averages", "call_tree", "marks", "counters", "open"):
        report[part] = []
    (tmp_path / "none.json").write_text(json.dumps(report))
    for format in ("table", "json", "csv", "tree"):
        done = tool("report", "-f", format, "none.json", cwd=tmp_path)
        assert (done.returncode, done.stderr) == (0, ""), format
        assert not re.search(r"\b-?(nan|inf)\b", done.stdout, re.I) or format == "table"


@pytest.mark.san
@WAYS
def test_34_ten_thousand_nested(tmp_path, way):
    done = go(way, [NAMES, "nest", "10000"], tmp_path, GPUTALLY_FORMAT="table,json,csv,tree", GPUTALLY_OUTPUT="x")
    assert (done.returncode, done.stdout) == (0, "10000\n")
    report = load_report(tmp_path / "x.json")
    got = counts(report)
    assert sum(got.values()) + sum(report["lost"][k] for k in ("deep", "memory")) == 10000
    if not report["lost"]["deep"] and not report["lost"]["memory"]:
        assert got == {"even": 5000, "odd": 5000}
    by_id = {r["id"]: r for r in report["call_tree"]}
    deepest, depth = 0, {}
    for row in report["call_tree"]:  # parents come first
        depth[row["id"]] = depth.get(row["parent"], 0) + 1
        deepest = max(deepest, depth[row["id"]])
    assert deepest + report["lost"]["deep"] + report["lost"]["memory"] == 10000
    assert len(by_id) == len(report["call_tree"])
    again = tool("report", "-f", "json", "x.json", cwd=tmp_path)
    assert (again.returncode, again.stdout) == (0, (tmp_path / "x.json").read_text())


def test_11_surplus_pops(app, tmp_path):
    """1 push, 3 pops, then good ranges: those are right and one line of the table tells of the rest."""
    done = run(app("nvtx_bad"), "--expect", cwd=tmp_path)
    expected = Expected(done.stdout)
    report = load_report(tmp_path)
    got = rows(report)
    assert {k: got[k]["count"] for k in ("one push", "later outer", "later inner")} == \
        {"one push": 1, "later outer": 10, "later inner": 10}
    later = {chain(report, r): r["count"] for r in report["call_tree"] if r["key"].startswith("later")}
    assert later == {("later outer",): 10, ("later outer", "later inner"): 10}
    lines = [line for line in done.stderr.splitlines() if "unbalanced" in line]
    assert len(lines) == 1 and str(expected.totals["unbalanced"]) in lines[0]


def test_12_across_threads(app, tmp_path):
    """A range that is popped elsewhere ends with its thread; start/end by id may cross."""
    done = run(app("nvtx_bad"), cwd=tmp_path)
    report = load_report(tmp_path)
    averages = rows(report)
    assert averages["across"]["count"] == 2 and averages["across"]["is_async"]
    assert averages["across"]["self_cpu_time_total"] == 0 < averages["across"]["cpu_time_total"]
    assert averages["popped elsewhere"]["count"] == 1
    assert report["lost"]["left_open"] == 1
    assert "1 range was open when its thread ended" in done.stderr


def test_38_library_listed_twice(tmp_path):
    env = clean_env(LD_PRELOAD=f"{preload()['LD_PRELOAD']}:{LIBRARY}")
    done = execute([APPS / "api_basic"], cwd=tmp_path, env=env)
    assert (done.returncode, done.stdout) == (0, "done\n")
    once = load_report(tmp_path)
    assert counts(once)["inner"] == 100
    folder = tmp_path / "run"
    folder.mkdir()
    done = execute([GPUTALLY, "run", "--", APPS / "api_basic"], cwd=folder, env=clean_env(LD_PRELOAD=f"{LIBRARY}:{LIBRARY}"))
    assert (done.returncode, done.stdout) == (0, "done\n")
    twice = load_report(folder)
    assert masked(twice["key_averages"]) == masked(once["key_averages"])


def test_38_null_and_foreign(app, tmp_path):
    done = run(app("nvtx_bad"), "--expect", cwd=tmp_path)
    assert done.returncode == 0
    got = counts(load_report(tmp_path))
    assert got["(null)"] == 17 and got["(invalid domain):good name"] == 4 and got["(invalid string)"] == 4
    assert got["two:of one"] == 1


def as_nobody():
    if os.getuid() != 0:
        pytest.skip("needs root to make a setuid program and to become somebody else")
    prefix = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    if subprocess.run([*prefix, "test", "-r", LIBRARY]).returncode:
        pytest.skip("another user can't reach the build folder")
    return prefix


@pytest.fixture
def open_folder(tmp_path):
    """A folder that everybody may write, reachable by all."""
    let_others_reach(tmp_path)
    folder = tmp_path / "open"
    folder.mkdir()
    os.chmod(folder, 0o777)
    return folder


@WAYS
def test_23_setuid_program(open_folder, tmp_path, way):
    """The loader drops our library there; nothing is written with the privilege, the program runs."""
    prefix = as_nobody()
    program = tmp_path / "setuid"
    shutil.copy(APPS / "api_basic", program)
    os.chmod(program, 0o4755)
    if subprocess.run([*prefix, "test", "-x", program]).returncode or \
            os.statvfs(tmp_path).f_flag & os.ST_NOSUID:
        pytest.skip("no setuid programs on this file system")
    env = clean_env(GPUTALLY_OUTPUT=str(tmp_path / "stolen"), GPUTALLY_SESSION_DIR=str(open_folder))
    if way == "run":
        done = execute([*prefix, GPUTALLY, "run", "--", program], cwd=open_folder, env=env)
    else:
        env["LD_PRELOAD"] = str(LIBRARY)
        done = execute([*prefix, program], cwd=open_folder, env=env)
    assert (done.returncode, done.stdout) == (0, "done\n")
    assert os.listdir(open_folder) == [] and not list(tmp_path.glob("stolen*"))
    said = [line for line in done.stderr.splitlines() if "setuid" in line]
    assert len(said) == (1 if way == "run" else 0)


@WAYS
def test_23_library_in_a_trusted_folder(open_folder, tmp_path, way):
    """Even where the loader would take it (a setuid library in a system folder, named without a
    slash), the variables of the caller must not say where root writes."""
    prefix = as_nobody()
    probe = subprocess.run(["unshare", "-m", "true"], capture_output=True)
    if probe.returncode:
        pytest.skip("unshare -m does not work here")
    program = tmp_path / "setuid"
    shutil.copy(APPS / "api_basic", program)
    os.chmod(program, 0o4755)
    library = tmp_path / "libgputally.so"
    shutil.copy(LIBRARY, library)
    os.chmod(library, 0o4755)
    target = next((p for p in ("/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64")
                   if os.path.isdir(p)), None)
    if not target:
        pytest.skip("no system folder of libraries")
    if os.statvfs(tmp_path).f_flag & os.ST_NOSUID:
        pytest.skip("no setuid programs on this file system")
    secret = tmp_path / "only_root"
    secret.mkdir(mode=0o700)
    # an overlay of our own mount namespace: nothing of the system is touched
    upper, work = tmp_path / "upper", tmp_path / "work"
    upper.mkdir()
    work.mkdir()
    mounts = (f"set -e; mount --make-rprivate /; mount -t tmpfs none {work}; mkdir {work}/u {work}/w; "
              f"cp -p {library} {work}/u/libgputally.so; "
              f"mount -t overlay overlay -o lowerdir={target},upperdir={work}/u,workdir={work}/w {target}; "
              'set +e; exec "$@"')
    test = subprocess.run(["unshare", "-m", "sh", "-c", mounts, "sh", "true"], capture_output=True, text=True)
    if test.returncode:
        pytest.skip(f"no overlay mounts here: {test.stderr.splitlines()[:1]}")
    env = ["env", "LD_PRELOAD=libgputally.so", f"GPUTALLY_OUTPUT={secret}/stolen", f"GPUTALLY_SESSION_DIR={secret}"]
    done = execute(["unshare", "-m", "sh", "-c", mounts, "sh", *prefix, *env, program], cwd=open_folder)
    assert done.returncode == 0 and "done" in done.stdout
    assert os.listdir(secret) == []
    assert os.listdir(open_folder) == []


def test_24_installed_below_a_blank(tmp_path, app):
    if SAN:
        pytest.skip("an installation is of the ordinary build")
    home = tmp_path / "a b" / "it's"
    done = subprocess.run(["make", "-s", "install", f"DESTDIR={tmp_path / 'stage'}", "PREFIX=/usr", f"B={BUILD}"],
                          cwd=ROOT, capture_output=True, text=True, env=clean_env())
    assert done.returncode == 0, done.stderr
    shutil.copytree(tmp_path / "stage" / "usr", home)
    tool_path = home / "bin" / "gputally"
    done = execute([tool_path, "run", "--", app("api_basic")], cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
    assert counts(load_report(next(tmp_path.glob("*.json"))))["inner"] == 100
    # plain LD_PRELOAD can't name such a path: that is the loader's word, and the program runs
    done = execute([app("api_basic")], cwd=tmp_path, env=clean_env(LD_PRELOAD=str(home / "lib/gputally/libgputally.so")))
    assert (done.returncode, done.stdout) == (0, "done\n")
    done = execute([tool_path, "doctor"], cwd=tmp_path)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("make_folder", ["plain", "a b"])
def test_24_install_and_uninstall(tmp_path, make_folder):
    """DESTDIR and PREFIX below a folder with a blank, or one clear error; uninstall leaves nothing."""
    if SAN:
        pytest.skip("an installation is of the ordinary build")
    stage = tmp_path / make_folder
    args = [f"DESTDIR={stage}", "PREFIX=/opt/gputally", f"B={BUILD}"]
    done = subprocess.run(["make", "-s", "install", *args], cwd=ROOT, capture_output=True, text=True, env=clean_env())
    assert done.returncode == 0, done.stderr
    prefix = stage / "opt" / "gputally"
    for name in ("bin/gputally", "lib/gputally/libgputally.so", "include/gputally.h", "share/man/man1/gputally.1",
                 "lib/pkgconfig/gputally.pc"):
        assert (prefix / name).is_file(), name
    assert "prefix=/opt/gputally" in (prefix / "lib/pkgconfig/gputally.pc").read_text().replace(" ", "")
    folder = tmp_path / "work"
    folder.mkdir()
    done = execute([prefix / "bin" / "gputally", "run", "-q", "--", APPS / "api_basic"], cwd=folder)
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")
    assert counts(load_report(folder))["inner"] == 100
    done = subprocess.run(["make", "-s", "uninstall", *args], cwd=ROOT, capture_output=True, text=True, env=clean_env())
    assert done.returncode == 0, done.stderr
    assert [p for p in stage.rglob("*") if not p.is_dir()] == []
