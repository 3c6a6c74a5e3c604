"""Folded stacks: CPU self time by call path, as PyTorch's export_stacks writes it."""
import re

import pytest
from conftest import load_report, run, tool

CUT = re.compile(r"[\x00-\x20\x7f;]")


def expected(report, deepest=1000):
    """{path: whole µs} from the exact part of the native report."""
    by_id = {r["id"]: r for r in report["call_tree"]}
    paths, sums = {}, {}
    for row in report["call_tree"]:
        if row["kind"] != "range":
            continue
        above = paths[row["parent"]] if row["parent"] is not None else ()
        label = f"{row['domain']}:{row['key']}" if row["domain"] else re.sub(r"^ProfilerStep#\d+$", "ProfilerStep*", row["key"])
        path = above + (CUT.sub("_", label) or "_",) if len(above) < deepest else above[:deepest] + ("(deep)",)
        paths[row["id"]] = path
        sums[path] = sums.get(path, 0) + row["self_ns"]
    assert by_id
    return {";".join(p): ns // 1000 for p, ns in sums.items() if ns >= 1000}


def parse(text):
    found = {}
    for line in text.splitlines():
        path, n = re.fullmatch(r"([^ ]+) ([1-9]\d*)", line).groups()
        assert path not in found
        found[path] = int(n)
    return found


@pytest.mark.san
@pytest.mark.parametrize("program", [["nvtx_basic"], ["nvtx_threads", "3", "200"], ["api_basic"], ["nvtx_torchtext"]],
                         ids=lambda p: p[0])
def test_equals_the_call_tree(app, tmp_path, program):
    done = run(app(program[0]), *program[1:], cwd=tmp_path, options=["-o", "x", "-f", "json,folded"])
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "x.folded").read_text()
    assert parse(text) == expected(load_report(tmp_path / "x.json"))
    again = tool("report", "-f", "folded", "x.json", cwd=tmp_path)
    assert (again.returncode, again.stdout, again.stderr) == (0, text, "")


def test_names_cannot_break_a_line(python_nvtx, tmp_path):
    """Blanks, semicolons, tabs, line breaks and what a terminal would obey."""
    python = """
import nvtx, time
for name in ("a b", "a;b", "a\\tb", "a\\nb", "a\\rb", "a\\x1bb", "", "é;", "plain"):
    with nvtx.annotate("outer one"), nvtx.annotate(name):
        time.sleep(0.0005)
"""
    run(python_nvtx, "-c", python, cwd=tmp_path, options=["-o", "x", "-q", "-f", "json,folded"])
    text = (tmp_path / "x.folded").read_bytes().decode()
    found = {}
    for line in text.split("\n")[:-1]:
        path, n = line.rsplit(" ", 1)
        found[path] = found.get(path, 0) + int(n)
    assert {p for p in found if p.startswith("outer_one;")} == {"outer_one;" + n for n in ("a_b", "_", "é_", "plain")}
    assert found["outer_one;a_b"] >= 6 * 500 and found["outer_one;plain"] >= 500


def test_processes_add_up(app, tmp_path):
    for name in ("a", "b"):
        run(app("nvtx_threads"), "2", "500", cwd=tmp_path, options=["-o", name, "-q"])
    both = tool("report", "-f", "json", "a.json", "b.json", cwd=tmp_path).stdout
    (tmp_path / "ab.json").write_text(both)
    done = tool("report", "-o", "both.folded", "a.json", "b.json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert parse((tmp_path / "both.folded").read_text()) == expected(load_report(tmp_path / "ab.json"))


def test_deep(app, tmp_path):
    """10,000 levels would be 500 MB of paths."""
    run(app("e2e_names"), "nest", "10000", cwd=tmp_path, options=["-o", "x", "-q", "-f", "json,folded"])
    text = (tmp_path / "x.folded").read_text()
    assert len(text) < 50 << 20
    assert parse(text) == expected(load_report(tmp_path / "x.json"))
    assert sum(line.count(";") == 1000 for line in text.splitlines()) == 1
