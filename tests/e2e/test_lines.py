"""`report --lines`: files, lines and inlined functions of native stacks, from a saved report, while the
program is as it was, is stripped, gone, another build, and back in a folder of debug files."""
import json
import re
import shutil

import pytest

from conftest import ROOT, execute, load_report, run, tool

CODE = """
#include <gputally.h>
static inline __attribute__((always_inline)) void inner(void)
{
    gputally_range_push("work");                                  /* line 5 */
    gputally_range_pop();
}
__attribute__((noinline)) void outer(int n)
{
    inner();                                                      /* line 10 */
    __asm__ volatile("" : : "r"(n));
}
int main(void)
{
    for (int i = 0; i < 3; i++)
        outer(i);                                                 /* line 16 */
    return 0;
}
"""


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A folder with the program, a copy in `kept`, and the report."""
    folder = tmp_path_factory.mktemp("lines")
    source, program = folder / "lines.c", folder / "program"
    source.write_text(CODE)
    built = execute(["gcc", "-O2", "-g", "-Wl,--build-id", f"-I{ROOT / 'include'}", "-o", program, source, "-ldl"])
    assert built.returncode == 0, built.stderr
    done = run(program, options=["-o", folder / "r", "--format", "json", "--with-stack", "1,ranges"], cwd=folder)
    assert done.returncode == 0, done.stderr
    (folder / "kept").mkdir()
    shutil.copy(program, folder / "kept")
    return folder


def stack(saved, *options):
    """The texts of the stack of `work`, innermost first, and what was said."""
    done = tool("report", "-f", "json", "-g", "stack", *options, saved / "r.json")
    assert done.returncode == 0, done.stderr
    rows = [r for r in json.loads(done.stdout)["key_averages"] if r["key"] == "work"]
    return rows[0]["stack"], done.stderr


def has_libdw():
    return execute(["python3", "-c", "import ctypes; ctypes.CDLL('libdw.so.1')"]).returncode == 0


def check_lines(frames):
    # the stub of the C API is inlined too
    at = next(i for i, f in enumerate(frames) if f.endswith("lines.c(5): inner (inlined)"))
    assert frames[at + 1].endswith("lines.c(10): outer")
    assert frames[at + 2].endswith("lines.c(16): main")


def test_without_lines_there_are_names(saved):
    frames, said = stack(saved)
    assert frames[:2] == ["outer (program)", "main (program)"]
    assert said == ""
    report = load_report(saved)
    module = next(m for m in report["modules"] if m["path"] == str(saved / "program"))
    assert len(module["build_id"]) == 40


def test_lines(saved):
    if not has_libdw():
        pytest.skip("no libdw here")
    check_lines(stack(saved, "--lines")[0])


@pytest.mark.parametrize("form", ["table", "csv", "tree", "folded"])
def test_lines_alone_shows_the_stacks(saved, form):
    if not has_libdw():
        pytest.skip("no libdw here")
    alone = tool("report", "--lines", "-f", form, saved / "r.json")
    asked = tool("report", "--lines", "--stack", "both", "-f", form, saved / "r.json")
    assert "lines.c(10):" in alone.stdout
    assert (alone.returncode, alone.stdout, alone.stderr) == (0, asked.stdout, asked.stderr)


def test_debug_dir_that_is_none(saved):
    for folder in (saved / "nowhere", saved / "lines.c"):
        done = tool("report", "--lines", "--debug-dir", folder, saved / "r.json")
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr == f"gputally: --debug-dir {folder}: not a folder\n"


def test_lines_can_be_saved(saved, tmp_path):
    if not has_libdw():
        pytest.skip("no libdw here")
    again = tmp_path / "again.json"
    assert tool("report", "--lines", "-o", again, saved / "r.json").returncode == 0
    done = tool("report", "-f", "json", "-g", "stack", again)
    rows = [r for r in json.loads(done.stdout)["key_averages"] if r["key"] == "work"]
    check_lines(rows[0]["stack"])


def test_program_stripped_gone_replaced(saved):
    if not has_libdw():
        pytest.skip("no libdw here")
    program = saved / "program"
    names = ["outer (program)", "main (program)"]
    try:
        assert execute(["strip", program]).returncode == 0
        frames, said = stack(saved, "--lines")
        assert frames[:2] == names
        assert "--lines: no debug information of" in said and "program" in said
        check_lines(stack(saved, "--lines", "--debug-dir", saved / "kept")[0])

        program.unlink()
        frames, said = stack(saved, "--lines")
        assert frames[:2] == names
        assert f"gputally: {program}: not here" in said and "--debug-dir" in said
        check_lines(stack(saved, "--lines", "--debug-dir", saved / "kept")[0])

        other = "int main(void) { return 0; }"
        assert execute(["gcc", "-x", "c", "-", "-Wl,--build-id", "-o", program], input=other).returncode == 0
        frames, said = stack(saved, "--lines")
        assert frames[:2] == names
        assert f"gputally: {program}: another build of the module" in said
        frames, said = stack(saved, "--lines", "--debug-dir", saved / "kept")
        check_lines(frames)
        assert "another build" not in said
    finally:
        shutil.copy(saved / "kept" / "program", program)


def test_debug_dir_without_lines_gives_names(saved, tmp_path):
    """A report without names: made where the program's file could not be read."""
    report = load_report(saved)
    for frame in report["frames"]:
        frame["function"] = ""
    bare = tmp_path / "r.json"
    bare.write_text(json.dumps(report))
    program = saved / "program"
    program.rename(saved / "moved")
    try:
        assert stack(tmp_path)[0][0].startswith("program+0x")
        assert stack(tmp_path, "--debug-dir", saved / "kept")[0][:2] == ["outer (program)", "main (program)"]
    finally:
        (saved / "moved").rename(program)


def test_why_there_are_no_names(tmp_path):
    """A program that deletes itself: said with the table and in JSON, until a folder has it."""
    source, program = tmp_path / "lines.c", tmp_path / "program"
    source.write_text("#include <unistd.h>\n" +
                      CODE.replace("main(void)\n{", "main(int n, char **v)\n{\n    unlink(v[n - 1]);"))
    command = ["gcc", "-O2", "-Wl,--build-id", f"-I{ROOT / 'include'}", "-o", program, source, "-ldl"]
    built = execute(command)
    assert built.returncode == 0, built.stderr
    (tmp_path / "kept").mkdir()
    shutil.copy(program, tmp_path / "kept")
    done = run(program, options=["-o", tmp_path / "r", "--format", "json", "--with-stack", "1,ranges"], cwd=tmp_path)
    assert done.returncode == 0 and not program.exists(), done.stderr
    report = tmp_path / "r.json"
    # the kernel's name of a program that was deleted
    deleted, = [m for m in json.loads(report.read_text())["modules"] if "program" in m["path"]]
    assert deleted["path"] in (f"{program} (deleted)", str(program)) and deleted["no_names"] == "gone"
    note = re.compile(r"^no names of functions in program( \(deleted\))?: (.*)$", re.M)
    table = tool("report", "-g", "stack", report).stdout
    assert [n[2] for n in note.finditer(table)] == ["its file is not there; report --debug-dir looks elsewhere"]
    # found by its name, and by its build-id known to be the one
    table = tool("report", "-g", "stack", "--debug-dir", tmp_path / "kept", report).stdout
    assert re.search(r"\bmain \(program", table) and not note.search(table)
    built = execute([*command, "-O0"])
    assert built.returncode == 0, built.stderr
    (tmp_path / "empty").mkdir()
    table = tool("report", "-g", "stack", "--debug-dir", tmp_path / "empty", report).stdout
    assert [n[2].split(";")[0] for n in note.finditer(table)] == ["another build of it is there now"]
