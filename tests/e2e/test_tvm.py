"""TVM's form against TVM: what we write loads there, what it prints we print byte for byte, what it writes
we read. build/tvm is the real reader; scripts/tvm-env makes it."""
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest
import torch_env
from conftest import ROOT, clean_env, load_report, run, tool

TVM = ROOT / "build" / "tvm"
DATA = ROOT / "tests" / "data"
TABLES = {f"{s:d}{a:d}{c:d}": [n for n, on in (("--no-sort", s), ("--no-aggregate", a), ("--no-col-sums", c)) if not on]
          for s in (1, 0) for a in (1, 0) for c in (1, 0)}


class Reader:
    """TVM in a process, which takes a second to start. Its input ends with us, and so does it."""

    def __init__(self, locale):
        self.log = tempfile.TemporaryFile("w+")
        env = clean_env(PYTHONPATH=str(TVM), TVM_USE_RUNTIME_LIB="1", LC_ALL=locale)
        self.process = subprocess.Popen([sys.executable, Path(__file__).with_name("tvm_reader.py")], env=env, encoding="utf-8",
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log)

    def ask(self, texts):
        late = threading.Timer(120, self.process.kill)
        late.start()
        try:
            print(json.dumps(texts), file=self.process.stdin, flush=True)
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        finally:
            late.cancel()
        if not line:
            self.process.kill()
            self.log.seek(0)
            pytest.fail(f"TVM ended with status {self.process.wait()}: {self.log.read()[-2000:]}")
        return json.loads(line)


readers = {}


def real(*texts, locale="C.UTF-8"):
    """What TVM's Report makes of each text."""
    if not (TVM / ".made").exists():
        pytest.skip("build/tvm is not there; run scripts/tvm-env")
    at = locale, os.environ.get("LOCPATH")
    if at not in readers or readers[at].process.poll() is not None:
        readers[at] = Reader(locale)
    return readers[at].ask(texts)


def ours(path, *options, status=0, locale="C.UTF-8"):
    with tempfile.TemporaryFile() as out:  # not as text: Python would change the ends of lines
        done = tool("report", *options, path, env=clean_env(LC_ALL=locale), stdout=out)
        out.seek(0)
        shown = out.read().decode()
    assert done.returncode == status, done.stderr
    return shown if status == 0 else done.stderr


def same(path, want, quotes=False, tables=TABLES):
    """All eight tables, and the CSV; where names have quotes but for those, which TVM does not double."""
    for key in tables:
        assert ours(path, "-f", "tvm-table", *TABLES[key]) == want["tables"][key], (key, path)
    csv = ours(path, "-f", "tvm-csv")
    assert (csv.replace('"', "") if quotes else csv) == (want["csv"].replace('"', "") if quotes else want["csv"])


def check(tmp_path, *texts, quotes=False):
    """Reports that TVM loads: we print what it prints; so we do from what it writes, from our own TVM form
    (which it takes too) and from our native one."""
    wants, backs = real(*texts), []
    for text, want in zip(texts, wants):
        assert "error" not in want, (want, text[:300])
        file = tmp_path / "in.json"
        file.write_text(text, encoding="utf-8")
        same(file, want, quotes)
        native, back = tmp_path / "native.json", tmp_path / "back.json"
        native.write_text(ours(file, "-f", "json"), encoding="utf-8")
        same(native, want, quotes, ["111"])
        assert json.loads(ours(native, "-f", "json")) == json.loads(native.read_text())
        back.write_text(ours(native, "-f", "tvm"), encoding="utf-8")
        same(back, want, quotes, ["000"])
        backs.append(back.read_text())
        if not quotes:
            file.write_text(want["json"], encoding="utf-8")
            same(file, want, tables=["011"])
    for again, want in zip(real(*backs), wants):
        assert again["tables"] == want["tables"] and again["csv"] == want["csv"]


def call(name, us, **more):
    row = {"Name": {"string": name}, "Duration (us)": {"microseconds": us}}
    row.update({k.replace("_", " "): v for k, v in more.items()})
    return row


def report(calls, devices=None, configuration=None):
    return json.dumps({"calls": calls, "device_metrics": devices or {}, "configuration": configuration or {}},
                      ensure_ascii=False)


@pytest.mark.san
def test_the_reference(tmp_path):
    """The printed form that was kept, without TVM."""
    file = DATA / "tvm_report.json"
    assert ours(file, "-f", "tvm-table") == (DATA / "tvm_table.txt").read_text()
    assert ours(file, "-f", "tvm-csv") == (DATA / "tvm_report.csv").read_text()


def test_the_reference_in_tvm(tmp_path):
    check(tmp_path, (DATA / "tvm_report.json").read_text())


def test_small_and_odd(tmp_path):
    check(
        tmp_path,
        '{"calls":[]}',
        report([call("a", 1.0)]),
        report([call("a", -1.5, X={"ratio": 1e300}, Y={"ratio": 0.00001}, Z={"count": -5}), call("b", 1e30),
                call("c", -0.001, X={"ratio": 2.5}, W={"percent": 1 / 3})]),
        report([call("ü€" * 5, 1, S={"string": "日本"}), call("b\tc\\n\\", 2.0, S={"string": ""}), call("", 0.0)]),
        report([call("a", 1.0, Hash={"string": "h"}), call("b", 2.0, Hash={"string": "h"}), call("a", 4.0)]),
        report([call("a", 1.0, Device={"string": "cpu0"}, Argument_Shapes={"string": "f32[1]"}),
                call("af32[1]cpu0", 1.0), call("a", 1, Device={"string": "cuda0"})]),
        report([call("x\x7fy\u009bz", 1.0)]),
        # a ratio that not every row has; texts that differ; a column of the devices only
        report([call("a", i / 7, R={"ratio": i / 3} if i % 2 else {"ratio": 0.5}, T={"string": str(i // 3)},
                     Count={"count": 10**12 * i}) for i in range(9)],
               {"cpu0": {"Duration (us)": {"microseconds": 7.25}, "Peak": {"count": 12}}, "cuda0": {"Name": {"string": "n"}}},
               {"Number of threads": {"count": 2}, "Executor": {"string": "VM"}, "Share": {"percent": 33.333}}),
        # other words for the same: order, blanks, numbers
        '{ "configuration" : { } ,\n"device_metrics": {},"calls" :[ {"Duration (us)":{"microseconds":1},\n'
        '"Name":{"string":"a"} , "C":{"count":+5},"P":{"percent":12}} ]}',
        # a name that comes twice
        '{"calls":[{"Name":{"string":"a"},"Duration (us)":{"microseconds":1},"Duration (us)":{"microseconds":2}}],'
        '"calls":[{"Name":{"string":"b"},"Duration (us)":{"microseconds":1}}],"configuration":{'
        + ",".join(f'"{k}":{{"string":"{i}"}}' for i, k in enumerate("zyxwzvzay")) + '},"device_metrics":{'
        + ",".join(f'"{k}":{{"Device":{{"string":"{k}{i}"}}}}' for i, k in enumerate("abcdeab")) + "}}",
        '{"calls":[],"configuration":{"z":{"string":"1"},"y":{"string":"1"},"z":{"string":"2"}}}',
        report([call(f"n{i}", 1.0, **{f"c{i}": {"count": i}}) for i in range(30)]),
    )


def test_order_is_theirs(tmp_path):
    """Rows of equal length, and rows that are not sorted at all."""
    random.seed(7)
    texts = []
    for n in (2, 13, 14, 16, 17, 18, 29, 30, 33, 60, 129, 400):
        texts.append(report([call(f"n{i}", 1.0) for i in range(n)]))
        texts.append(report([call(f"node with a longer name {i % (n // 2 + 1)}", float(random.randrange(4)))
                             for i in range(n)]))
        texts.append(report([call("x" * random.randrange(20) + str(i), float(i // 5 if i < n // 2 else n - i))
                             for i in range(n)]))
    for text, want in zip(texts, real(*texts)):
        file = tmp_path / "in.json"
        file.write_text(text)
        same(file, want, tables=["111", "101", "011"])


def test_random_reports(tmp_path):
    random.seed(11)
    kinds = [lambda: {"count": random.randrange(-10**random.randrange(1, 18), 10**18)},
             lambda: {"microseconds": random.choice([0.0, -0.0, random.random(), random.expovariate(1e-5), 1e-9, 123456.789])},
             lambda: {"percent": random.random() * 100},
             lambda: {"ratio": random.choice([random.random() * 10**random.randrange(-5, 9), 0.0, 0.995, 99.5])},
             lambda: {"string": "".join(random.choice("ab ,;é=()\t'") for _ in range(random.randrange(6)))}]
    columns = [(random.choice(["Percent", "Device", "Count", "Zeta", "alpha", "Ä", "Mem (B)", "x,y"]) + str(i), k)
               for i, k in enumerate(kinds)]
    texts = []
    for _ in range(20):
        calls = []
        for _ in range(random.randrange(40)):
            row = call(random.choice("abcdefghij") * random.randrange(1, 4), random.choice([1.0, 2.5, random.random() * 1e6]))
            row.update({c: k() for c, k in columns if random.random() < 0.7})
            calls.append(row)
        devices = {f"d{i}": {c: k() for c, k in columns if random.random() < 0.5} for i in range(random.randrange(7))}
        texts.append(report(calls, devices, {f"k{i}": random.choice(kinds)() for i in range(random.randrange(9))}))
    # a header with a comma: quoted by us, not by TVM
    texts = [t.replace("x,y", "x_y") for t in texts]
    check(tmp_path, *texts)


def test_quotes_double_in_csv(tmp_path):
    check(tmp_path, report([call('say "hi"', 1.0), call('"', 2.0), call('a"b', 0.5, **{'q"c': {"string": '""'}})]), quotes=True)
    file = tmp_path / "in.json"
    file.write_text(report([call('say "hi"', 1.0, **{"x,y": {"count": 1}})]))
    assert ours(file, "-f", "tvm-csv") == 'Duration (us),Name,"x,y"\n1,"say ""hi""",1\n'


PROGRAMS = [["nvtx_basic"], ["api_basic"], ["nvtx_threads", "3", "20"], ["e2e_names", "odd"], ["e2e_names", "zero"],
            ["itt_basic"], ["itt_bad"], ["itt_threads"], ["itt_library"], ["kokkos_basic"], ["kokkos_bad"],
            ["kokkos_real"], ["roctx_basic"]]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: "-".join(p))
def test_programs(app, tmp_path, program):
    done = run(app(program[0]), *program[1:], cwd=tmp_path, options=WRITTEN)
    assert done.returncode == 0, done.stderr
    written(tmp_path, sources={program[0].split("_")[0]} & SOURCES)


def test_pytorch(tmp_path):
    """A training loop under PyTorch 2.13, everything recorded that there is."""
    command = [torch_env.python(), torch_env.SCRIPTS / "torch_mlp.py"]
    done = run(*command, cwd=tmp_path, options=WRITTEN, timeout=torch_env.TIMEOUT,
               env=clean_env(**torch_env.env(**torch_env.RECORD)))
    assert done.returncode == 0, done.stderr
    rows = written(tmp_path, sources={"torch"})
    counts = {}
    for row in rows:
        at = row["Name"]["string"], row["Argument Shapes"]["string"]
        counts[at] = counts.get(at, 0) + row["Count"]["count"]
    assert counts["forward", "[]"] == counts["backward", "[]"] == 20
    assert counts["aten::addmm", "[[128], [32, 64], [64, 128], [], []]"] == 20
    flops = sum(r["FLOPs"]["count"] for r in rows if r["Name"]["string"] == "aten::addmm")
    assert flops == 20 * 2 * 32 * (64 * 128 + 128 * 10)


WRITTEN = ["-o", "x", "-f", "json,tvm,tvm-csv,folded", "--sources=all"]
SOURCES = {"nvtx", "api", "itt", "kokkos", "roctx"}


def whatever_stack(tree):
    """Places that differ in nothing but the stacks they were called with are one, where the first of them is."""
    out, at, where = [], {}, {}
    for r in tree:
        parent = where.get(r["parent"])
        which = (parent, *(str(r.get(n)) for n in ("process", "thread", "key", "domain", "source", "kind", "category", "shapes",
                                                   "overload", "scope", "device", "folded")))
        if which not in at:
            at[which] = len(out)
            out.append(dict(r, parent=parent))
        else:
            into = out[at[which]]
            into["min_ns"], into["max_ns"] = min(into["min_ns"], r["min_ns"]), max(into["max_ns"], r["max_ns"])
            into["sumsq_ns2"] += r["sumsq_ns2"]
            for n in ("count", "self_ns", "total_ns", "failed", "bytes", "flops", "self_device_ns", "device_ns", "cpu_memory",
                      "self_cpu_memory", "device_memory", "self_device_memory"):
                if n in r:
                    into[n] = into.get(n, 0) + r[n]
        where[r["id"]] = at[which]
    return out


def written(folder, sources):
    """What a run wrote: TVM loads it and prints what we print, by all ways; from what TVM writes we print the same
    again, and all numbers come back. Gives the calls."""
    file = folder / "x.tvm.json"
    native = load_report(folder / "x.json")
    assert sources <= {r["source"] for r in native["call_tree"]}
    text = file.read_text(encoding="utf-8")
    assert ours(folder / "x.json", "-f", "tvm") == text
    assert not re.search(r"(?<!\\)(\\\\)*\\[^nrt\"\\]", text) and not any(ord(c) < 32 and c != "\n" for c in text)
    [want] = real(text)
    assert "error" not in want, want
    quotes = '\\"' in text
    same(folder / "x.json", want, quotes)
    same(file, want, quotes)
    assert (folder / "x.tvm.csv").read_bytes().decode() == ours(folder / "x.json", "-f", "tvm-csv")

    # a row for each place of the call tree that was reached, its self time in µs to the ns
    places = [r for r in whatever_stack(native["call_tree"]) if r["kind"] in ("range", "async") and r["count"]]
    calls = json.loads(text)["calls"]
    assert len(calls) == len(places) > 0
    for row, place in zip(calls, places):
        assert row["Duration (us)"]["microseconds"] * 1000 == pytest.approx(place["self_ns"], abs=0.01)
        assert row["Count"]["count"] == place["count"]
        assert row["Total (us)"]["microseconds"] * 1000 == pytest.approx(place["total_ns"], abs=0.01)
        assert row["Device"] == {"string": "cpu0"}
    if sum(p["self_ns"] for p in places):
        assert sum(r["Percent"]["percent"] for r in calls) == pytest.approx(100)
    # one type a column, in every row
    kinds = {}
    for row in calls:
        assert set(row) == set(calls[0])
        for column, value in row.items():
            assert kinds.setdefault(column, set(value)) == set(value)

    # back: equal numbers, whatever the names hold
    (folder / "tvm.json").write_text(want["json"], encoding="utf-8")
    back = json.loads(ours(folder / "tvm.json", "-f", "json"))["call_tree"]
    assert [[r.get(n, 0) for n in NUMBERS if n != "shapes"] for r in back] == \
        [[p.get(n, 0) for n in NUMBERS if n != "shapes"] for p in places]
    if want["json"].count("\\") == 0 and "\n" not in want["json"]:
        same(folder / "tvm.json", want, quotes)
        assert [(r["key"], r.get("shapes")) for r in back] == [(r["Name"]["string"], p.get("shapes")) for r, p in zip(calls, places)]
    return calls


NUMBERS = ["count", "failed", "self_ns", "total_ns", "min_ns", "max_ns", "self_device_ns", "device_ns", "bytes", "flops",
           "cpu_memory", "self_cpu_memory", "device_memory", "self_device_memory", "shapes"]


@pytest.mark.parametrize("name", ["torch_reference.json", "edge_events.json"])
def test_of_pytorch(tmp_path, name):
    """Operators with shapes, memory and flops; kernels on a device. All numbers come back."""
    native = tmp_path / "native.json"
    native.write_text(ours(DATA / name, "-f", "json"), encoding="utf-8")
    text = ours(native, "-f", "tvm")
    [want] = real(text)
    assert "error" not in want, want
    same(native, want)
    places = [r for r in json.loads(native.read_text())["call_tree"] if r["kind"] in ("range", "async") and r["count"]]
    for again in (text, want["json"]):
        (tmp_path / "tvm.json").write_text(again, encoding="utf-8")
        same(tmp_path / "tvm.json", want, tables=["111"])
        back = json.loads(ours(tmp_path / "tvm.json", "-f", "json"))["call_tree"]
        assert [[r.get(n, 0) for n in NUMBERS] for r in back] == [[r.get(n, 0) for n in NUMBERS] for r in places]


def test_annotations_on_a_device_are_not_added_up():
    """They lie over the kernels: kern 500, memset 7 are all of the device's time."""
    got = json.loads(ours(DATA / "edge_events.json", "-f", "tvm"))
    cuda = {r["Name"]["string"]: r for r in got["calls"] if r["Device"]["string"] == "cuda0"}
    assert cuda["kern"]["Percent"]["percent"] == pytest.approx(100 * 500 / 507)
    assert cuda["memset"]["Percent"]["percent"] == pytest.approx(100 * 7 / 507)
    assert got["device_metrics"]["cuda0"] == {
        "Name": {"string": "Total"}, "Duration (us)": {"microseconds": 507.0}, "Percent": {"percent": 100.0},
        "Device": {"string": "cuda0"}, "Count": {"count": 2}}


def test_a_run_shows_the_table(app, tmp_path):
    """tvm-table goes where the table goes, and both may be asked for."""
    done = run(app("api_basic"), cwd=tmp_path, options=["-o", "x", "-f", "tvm-table,json"])
    table = ours(tmp_path / "x.json", "-f", "tvm-table")
    assert table in done.stderr and "Self CPU" not in done.stderr
    assert sorted(os.listdir(tmp_path)) == ["x.json"]
    done = run(app("api_basic"), cwd=tmp_path, options=["-o", "y", "-f", "tvm-table,table,tvm,json"])
    assert "Self CPU time total" in done.stderr and "Duration (us)" in done.stderr
    assert "next: gputally report y.json --group-by" in done.stderr
    assert sorted(os.listdir(tmp_path)) == ["x.json", "y.json", "y.tvm.json"]


@pytest.mark.parametrize("name", ["en_US", "de_DE", "fr_FR", "de_CH"])
def test_numbers_as_the_locale_writes_them(tmp_path, monkeypatch, name):
    """Where such a locale can be made: separators of one byte and of three, a comma before the fraction."""
    locale = f"{name}.UTF-8"
    try:
        made = subprocess.run(["localedef", "-i", name, "-f", "UTF-8", tmp_path / locale], capture_output=True)
    except FileNotFoundError:
        pytest.skip("localedef is not installed")
    if not (tmp_path / locale).is_dir():
        pytest.skip(f"no source of the locale {name}: " + made.stderr.decode()[:200])
    monkeypatch.setenv("LOCPATH", str(tmp_path))
    file = tmp_path / "in.json"
    file.write_text(report([call("a", 1234567.891, C={"count": -1234567}, R={"ratio": 0.25}, P={"percent": 4321.0})], {},
                           {"n": {"count": 1234567}, "p": {"percent": 4321.5}}))
    [want] = real(file.read_text(), locale=locale)
    assert "1234567" not in want["tables"]["111"]
    assert ours(file, "-f", "tvm-table", locale=locale) == want["tables"]["111"]
    assert ours(file, "-f", "tvm-csv", locale=locale) == want["csv"]
    json.loads(ours(file, "-f", "tvm", locale=locale))


# What TVM writes where names hold what it does not escape
UNESCAPED = ['say "hi"', '"', '""', 'a"', '"b', 'x"}', 'x"}}', 'x"},', 'x"},"y', 'x"}]', "back\\slash \"q\"", "C:\\new \"x\"",
             'lambda x: {"a": 1}', 'end"\\', "two\nlines", 'two\nlines "and" quotes', "a\\d", 'f("a", "b")', "{", "[]", '":{"',
             'a","b', "ends in \\"]


@pytest.mark.parametrize("name", UNESCAPED)
def test_unescaped_names(tmp_path, name):
    """Loaded in TVM (escaped, which it takes), written by TVM (not escaped), read by us."""
    text = report([call("first", 5.0), call(name, 2.0, Device={"string": "cpu0"}), call("last", 1.0, T={"string": name})],
                  {"cpu0": {"Duration (us)": {"microseconds": 8.0}}}, {"what": {"string": name}})
    [want] = real(text)
    assert "error" not in want
    file = tmp_path / "tvm.json"
    file.write_text(want["json"], encoding="utf-8")
    same(file, want, quotes='"' in name)
    got = json.loads(ours(file, "-f", "json"))
    assert [r["key"] for r in got["call_tree"]] == ["first", name, "last"]


def test_what_can_be_read_two_ways_reads_as_json(tmp_path):
    """A backslash and a letter are an escape where the whole is JSON: TVM's own reader takes it so."""
    [want] = real(report([call("C:\\new", 1.0)]))
    [again] = real(want["json"])
    file = tmp_path / "tvm.json"
    file.write_text(want["json"])
    same(file, again)


NONE = '"device_metrics":{},"configuration":{}'
BAD = [
    ('{"calls":[{"Name":{"string":"a"', 1, "the file ends too early"),
    ('{"calls":[{"Name":{"string":"a', 1, "a quote opens here and nothing closes it"),
    ('{"calls":[\n{"Name":{"string":"a"},\n"C":{"count":2.5}}]}', 3, "a count that is no whole number"),
    ('{"calls":[{"C":{"count":99999999999999999999}}]}', 1, "a count that is no whole number"),
    ('{"calls":[{"C":{"microseconds":1e999}}]}', 1, "too large a number"),
    ('{"calls":[{"C":{"microseconds":NaN}}]}', 1, "no number"),
    ('{"calls":[{"C":null}]}', 1, "a { is missing"),
    ('{"calls":[{"C":{}}]}', 1, "a value without a kind"),
    ('{"calls":[{"C":{"count":1,"ratio":2.0}}]}', 1, "a value of two kinds"),
    ('{"calls":[{"C":{"bytes":1}}]}', 1, "an unknown kind of value: there is count microseconds percent ratio string"),
    ('{"calls":[{"C":{"count":"1"}}]}', 1, "no number"),
    ('{"calls":[{"C":{"string":1}}]}', 1, "a text in quotes is missing"),
    ('{"calls":[],"more":1}', 1, "an unknown member: there is calls device_metrics configuration"),
    ('{"calls":[]} {}', 1, "text behind the end of the report"),
    ('{"calls":[{}{}]}', 1, "a comma or the end of the list is missing"),
    ('{"calls":{}}', 1, "a [ is missing"),
    ('{"calls":[],}', 1, "a name in quotes is missing"),
    # where a text ends can't be told
    ('{"calls":[{"say "x" "":{"string":"a"}}]}', 1, "it can't be told where this name ends; TVM writes names as they are"),
]


@pytest.mark.san
@pytest.mark.parametrize("text, line, why", BAD, ids=range(len(BAD)))
def test_bad_reports_say_where(tmp_path, text, line, why):
    file = tmp_path / "bad.json"
    file.write_text(text)
    said = ours(file, status=2)
    assert said.startswith(f"gputally: {file}: line {line}, column ") and why in said and said.count("\n") == 1, said


def test_the_column_is_right(tmp_path):
    text = '{"calls":[{"Name":{"string":"a"},"C":{"count":2.5}}]}'
    (tmp_path / "bad.json").write_text(text)
    assert f"line 1, column {text.index('2.5') + 1}: " in ours(tmp_path / "bad.json", status=2)


@pytest.mark.san
def test_bare_values_and_escapes_of_others(tmp_path):
    """As documentation shows it, and as other JSON writers write it; TVM's reader refuses both."""
    file = tmp_path / "bare.json"
    file.write_text('{"calls": [{"Name": "x\\u00e9\\ud83d\\ude00\\/", "Duration (us)": 1.5, "Count": 3, "Percent": 20, '
                    '"Device": "cuda0", "IPC": 1.25}, {"Name": {"string": "y"}}, {"Count": {"count": 2.0}}]}', encoding="utf-8")
    row, y, nameless = json.loads(ours(file, "-f", "json"))["call_tree"]
    assert (row["key"], row["count"], row["self_device_ns"], row["device"]) == ("xé😀/", 3, 1500, "CUDA")
    assert {k: list(v)[0] for k, v in row["metrics"].items()} == {
        "Name": "string", "Duration (us)": "microseconds", "Count": "count", "Percent": "percent", "Device": "string",
        "IPC": "ratio"}
    assert (y["key"], y["count"], y["self_ns"]) == ("y", 1, 0)
    assert (nameless["key"], nameless["count"]) == ("", 2)
    # what TVM's table needs is there
    [want] = real(ours(file, "-f", "tvm"))
    assert "error" not in want and want["tables"]["111"].count("\n") == 9, want


def test_mixed_types(tmp_path):
    """One column, two kinds: TVM's table would crash; as text it does not."""
    file = tmp_path / "mixed.json"
    file.write_text(report([call("a", 1.0, X={"count": 1}), call("a", 1.0, X={"ratio": 0.5}), call("b", 2.0, X={"string": "s"}),
                            {"Name": {"count": 7}, "Duration (us)": {"count": 3}}]))
    for options in TABLES.values():
        assert "7" in ours(file, "-f", "tvm-table", *options)
    text = ours(file, "-f", "tvm")
    assert [r.get("X") for r in json.loads(text)["calls"]] == [{"string": "1"}, {"string": "0.5"}, {"string": "s"}, None]
    [want] = real(text)
    assert "error" not in want
    file.write_text(text)
    same(file, want)


def test_every_direction(app, tmp_path):
    """TVM's reports beside ours: shown one by one, as one, and in every format."""
    run(app("nvtx_basic"), cwd=tmp_path, options=["-q", "-o", "a"])
    reference = DATA / "tvm_report.json"
    for name in ("table", "json", "csv", "tree", "folded", "tvm", "tvm-csv", "tvm-table"):
        done = tool("report", "-f", name, "a.json", reference, cwd=tmp_path)
        assert (done.returncode, done.stderr) == (0, "") and "aten::addmm" in done.stdout and "inner" in done.stdout, name
    both = tool("report", "-f", "tvm", "a.json", reference, cwd=tmp_path).stdout
    [want] = real(both)
    assert "error" not in want
    devices = json.loads(both)["device_metrics"]
    assert list(devices) == ["cpu0"] and devices["cpu0"]["Duration (us)"]["microseconds"] > 200
    (tmp_path / "both.json").write_text(tool("report", "-f", "json", "a.json", reference, cwd=tmp_path).stdout)
    assert ours(tmp_path / "both.json", "-f", "tvm") == both
    # the same report twice counts once, another one does not
    again = tool("report", "-f", "tvm-table", reference, reference)
    assert "counted once" in again.stderr and again.stdout == ours(reference, "-f", "tvm-table")
    (tmp_path / "other.json").write_text(report([call("aten::addmm", 1.0)]))
    sums = tool("report", "-f", "csv", reference, tmp_path / "other.json")
    assert sums.stderr == "" and '"aten::addmm",4,' in sums.stdout


def test_options_are_for_the_table(tmp_path):
    for option in ("--no-sort", "--no-aggregate", "--no-col-sums"):
        done = tool("report", option, DATA / "tvm_report.json")
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr == f"gputally: {option} is for --format tvm-table\n"
    for name in ("tvm", "tvm-csv", "tvm-table", "folded"):
        done = tool("report", "-f", name, "--sort-by", "count", DATA / "tvm_report.json")
        assert (done.returncode, done.stdout) == (2, "") and "is for table and csv" in done.stderr
