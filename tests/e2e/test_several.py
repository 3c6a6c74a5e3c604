"""`gputally report` on several files: a table each, or one of all with --sum."""
import re

import pytest
from conftest import ROOT, reports, run, tool

TVM = ROOT / "tests" / "data" / "tvm_report.json"


@pytest.fixture
def two(app, tmp_path):
    for name, threads in (("a", "2"), ("b", "3")):
        run(app("nvtx_threads"), threads, "10", cwd=tmp_path, options=["-q", "-o", name])
    return tmp_path, [r["processes"][0]["pid"] for r in (reports(tmp_path))]


def counts(table):
    """{key: calls} of a table."""
    found = {}
    for line in table.splitlines():
        cells = re.split(r"  +", line.strip())
        if len(cells) == 7 and cells[0] != "Name" and not cells[0].startswith("---"):
            found[cells[0]] = int(cells[6])
    return found


def parts(text):
    """[(heading, table)] of a report of several."""
    found = re.split(r"(?:^|\n\n)(?=\S+: (?:process \d+ \(.*\)|a report of TVM))", text)
    assert found[0] == ""
    return [tuple(p.split("\n", 1)) for p in found[1:]]


@pytest.mark.san
def test_a_table_each(two):
    folder, _ = two
    pids = {n: tool("report", "-f", "json", f"{n}.json", cwd=folder).stdout.split('"pid":')[1].split(",")[0] for n in "ab"}
    done = tool("report", "b.json", "a.json", cwd=folder)
    assert (done.returncode, done.stderr) == (0, "")
    (b, tb), (a, ta) = parts(done.stdout)
    assert b == f"b.json: process {pids['b']} (nvtx_threads)" and a == f"a.json: process {pids['a']} (nvtx_threads)"
    # each is what the file alone shows
    assert ta == tool("report", "a.json", cwd=folder).stdout
    assert tb.rstrip("\n") == tool("report", "b.json", cwd=folder).stdout.rstrip("\n")
    assert counts(ta) == {"worker": 2, "pair": 10, "odd:pair": 10}
    assert counts(tb) == {"worker": 3, "pair": 20, "odd:pair": 10}


def test_summed(two):
    folder, _ = two
    done = tool("report", "--sum", "a.json", "b.json", cwd=folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert not re.search(r": process \d", done.stdout)
    alone = [counts(tool("report", f"{n}.json", cwd=folder).stdout) for n in "ab"]
    assert counts(done.stdout) == {k: alone[0][k] + alone[1][k] for k in alone[0]}
    assert alone[0]["worker"] == 2 and alone[1]["worker"] == 3
    # one file: nothing to add up, and no heading without it
    assert tool("report", "--sum", "a.json", cwd=folder).stdout == tool("report", "a.json", cwd=folder).stdout


def test_one_file_of_several_processes(two):
    """Summed up once and saved, it still shows them one by one; a process in two files counts once."""
    folder, _ = two
    assert tool("report", "-o", "ab.json", "a.json", "b.json", cwd=folder).returncode == 0
    done = tool("report", "ab.json", "a.json", cwd=folder)
    assert done.stderr == "gputally: a.json: counted once: its process is in a file before it\n"
    assert [h.split(":")[0] for h, _ in parts(done.stdout)] == ["ab.json", "ab.json"]
    each = tool("report", "a.json", "b.json", cwd=folder).stdout
    assert [t for _, t in parts(done.stdout)] == [t for _, t in parts(each)]
    text = (folder / "ab.json").read_text()
    assert [h.split(":")[0] + ":" for h, _ in
            [p.split("\n", 1) for p in tool("report", "-", cwd=folder, input=text).stdout.split("\n\n")]] == ["standard input:"] * 2


def test_other_tables_and_formats(two):
    folder, _ = two
    done = tool("report", "-f", "tvm-table", "a.json", TVM, cwd=folder)
    assert [re.sub(r"\d+", "N", h) for h in re.findall(r"^\S+: (?:process|a report).*$", done.stdout, re.M)] == \
        ["a.json: process N (nvtx_threads)", f"{TVM}: a report of TVM"]
    assert done.stdout.endswith((ROOT / "tests" / "data" / "tvm_table.txt").read_text())
    one = tool("report", "--sum", "-f", "tvm-table", "a.json", TVM, cwd=folder).stdout
    assert "aten::addmm" in one and "worker" in one and one.count("Configuration") == 1
    # what other programs read is one document, with or without --sum
    for name in ("json", "csv", "tree", "folded", "tvm", "tvm-csv"):
        plain = tool("report", "-f", name, "a.json", TVM, cwd=folder)
        assert plain.stdout == tool("report", "--sum", "-f", name, "a.json", TVM, cwd=folder).stdout
        assert plain.returncode == 0 and ": process" not in plain.stdout


def test_how_it_ended_and_odd_names(app, tmp_path):
    run(app("api_basic"), cwd=tmp_path, options=["-q", "-o", "a"])
    run(app("e2e_killed"), cwd=tmp_path, options=["-q", "-o", "odd\x1bname"])
    killed = next(p.name for p in tmp_path.glob("odd*.json"))
    done = tool("report", "a.json", killed, cwd=tmp_path)
    assert done.returncode == 0 and "\x1b" not in done.stdout
    assert re.search(r"^odd\\x1bname\.json: process \d+ \(e2e_killed\), killed$", done.stdout, re.M), done.stdout


def test_groups_and_limits_hold_for_each(two):
    folder, _ = two
    done = tool("report", "-n", "1", "-s", "count", "-g", "thread", "a.json", "b.json", cwd=folder)
    assert done.returncode == 0
    for _, table in parts(done.stdout):
        lines = table.splitlines()
        rules = [i for i, line in enumerate(lines) if line.startswith("---")]
        assert "Thread" in lines[rules[0] + 1] and rules[2] - rules[1] == 2
    assert re.fullmatch(r"(gputally: 1 of \d+ rows; --row-limit -1 shows all\n){2}", done.stderr), done.stderr
