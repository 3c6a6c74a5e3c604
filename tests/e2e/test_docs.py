"""The man page and the completion know every command, option, variable and format."""
import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("GT_TEST_BUILD", ROOT / "build")).resolve()
GPUTALLY = BUILD / "gputally"
MAN = (ROOT / "docs" / "gputally.1").read_text()


def said(*args):
    return subprocess.run([GPUTALLY, *args], capture_output=True, text=True, timeout=60).stdout


COMMANDS = re.findall(r"^  (\w+) +\S", said("--help").split("Commands:")[1], re.M) if GPUTALLY.exists() else []
COMMANDS = [c for c in COMMANDS if c != "gputally"]


def test_commands_are_found():
    assert {"run", "report", "finish", "recover", "list", "doctor"} <= set(COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_man_page_has_command_and_options(command):
    assert f".Ss gputally {command}\n" in MAN
    section = MAN.split(f".Ss gputally {command}\n")[1]
    section = re.split(r"^\.S[sh] ", section, flags=re.M)[0]
    for line in said(command, "--help").splitlines():
        found = re.match(r"^ +(?:(-\w), )?--(\[no-\])?([a-z][a-z-]*)", line)
        if found and found[3] != "help":
            assert re.search(rf"Fl -{found[3]}\b", section), f"--{found[3]} of {command} is not in the man page"
            if found[1]:
                assert re.search(rf"Fl {found[1][1]}\b", section), f"{found[1]} of {command} is not in the man page"
            if found[2]:
                assert f"Fl -no-{found[3]}" in section


def test_man_page_has_variables_and_names():
    variables = [line.split()[0] for line in said("list", "variables").splitlines()]
    assert len(variables) > 5
    for v in variables:
        assert f".It Ev {v}\n" in MAN
    for what in ("formats", "sources"):
        for line in said("list", what).splitlines():
            assert re.search(rf"\b{line.split()[0]}\b", MAN.split(".Sh ENVIRONMENT")[1])


def test_man_page_renders():
    try:
        done = subprocess.run(["groff", "-ww", "-mandoc", "-Tutf8", ROOT / "docs" / "gputally.1"],
                              capture_output=True, text=True)
    except FileNotFoundError:
        pytest.skip("groff is not installed")
    assert done.returncode == 0 and done.stderr == ""


def test_completion():
    def complete(*words):
        script = (f"source '{ROOT}/scripts/completions/gputally'; COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); "
                  f"_gputally '{GPUTALLY}' \"${{@: -1}}\" \"${{@: -2:1}}\"; printf '%s\\n' \"${{COMPREPLY[@]}}\"")
        done = subprocess.run(["bash", "-c", script, "bash", *words], capture_output=True, text=True, timeout=60)
        assert done.stderr == ""
        return done.stdout.split()

    assert complete("gputally", "re") == ["report", "recover"]
    assert complete("gputally", "run", "-f", "t") == ["table", "tree", "tvm", "tvm-csv", "tvm-table"]
    assert "--no-children" in complete("gputally", "run", "--no")
    assert complete("gputally", "list", "v") == ["variables"]
    assert complete("gputally", "report", "-f", "t") == ["table", "tree", "tvm", "tvm-csv", "tvm-table"]
    assert complete("gputally", "report", "a.json", "--sort-by", "cpu_t") == ["cpu_time_total", "cpu_time"]
    assert set(complete("gputally", "report", "-s", "")) >= {"count", "name", "self_cpu_time_total"}
    assert complete("gputally", "report", "-g", "") == ["shape", "thread", "device", "rank", "overload", "stack"]
    assert complete("gputally", "report", "--group-by", "shape,t") == ["shape,thread"]
    assert complete("gputally", "report", "--row-limit", "x") == []
    assert complete("gputally", "report", "--g") == ["--group-by"]
    assert complete("gputally", "finish", "--k") == ["--keep"]
    assert complete("gputally", "recover", "--") == ["--clean", "--list", "--quiet", "--help"]
    assert complete("gputally", "list", "--") == ["--help"]
    # behind the program's name everything is the program's
    assert complete("gputally", "run", "-q", "ls", "--sour") == []
