"""Where reports go, what they look like, and how the command line answers."""
import csv
import io
import json
import os
import re
import signal
import subprocess
import sys
import time

import pytest

from conftest import GPUTALLY, LIBRARY, clean_env, counts, execute, load_report, masked, preload, reports, run, tool

pytestmark = pytest.mark.usefixtures("no_leftovers")
EXTENSIONS = {"json": ".json", "csv": ".csv", "tree": ".tree.txt"}


def go(way, command, folder, *options, **env):
    """Under run or with LD_PRELOAD alone, the settings as variables."""
    if way == "run":
        return run(*command, options=options, cwd=folder, env=clean_env(**env))
    assert not options
    return execute(command, cwd=folder, env=preload(**env))


def names(folder):
    return sorted(os.listdir(folder))


@pytest.mark.parametrize("way", ["run", "plain"])
@pytest.mark.parametrize("format", ["table", "json", "csv", "tree", "none", "table,json,csv,tree", "json,csv"])
def test_formats(app, tmp_path, way, format):
    done = go(way, [app("api_basic")], tmp_path, GPUTALLY_FORMAT=format)
    assert (done.returncode, done.stdout) == (0, "done\n")
    wanted = format.split(",")
    pid = {n.split(".")[2] for n in names(tmp_path)}
    assert len(pid) <= 1
    assert {n.split(".", 3)[3] for n in names(tmp_path)} == {EXTENSIONS[f][1:] for f in wanted if f in EXTENSIONS}
    assert ("# of Calls" in done.stderr) == ("table" in wanted)
    if format == "none":
        assert done.stderr == ""
        return
    if "json" in wanted:
        load_report(tmp_path)
    if "csv" in wanted:
        with open(next(tmp_path.glob("*.csv")), newline="") as f:
            got = {r["key"]: int(r["count"]) for r in csv.DictReader(f)}
        assert got == {"probe": 1, "outer": 4, "inner": 100, "blas:gemm": 6, "old header": 1, "(null)": 5,
                       "transfer": 3, "around": 1, "after": 1}
    if "tree" in wanted:
        text = next(tmp_path.glob("*.tree.txt")).read_text()
        assert re.search(r" 4  outer\n.* 100    inner\n", text)
        assert " 3  transfer (async)" in text
    if "json" in wanted:
        last = done.stderr.splitlines()[-1]
        file = next(tmp_path.glob("*.json")).name
        assert last.startswith("gputally: ") and file in last and f"gputally report" in last


@pytest.mark.parametrize("way", ["run", "plain"])
@pytest.mark.parametrize("quiet", ["1", "0"])
def test_quiet(app, tmp_path, way, quiet):
    done = go(way, [app("api_basic")], tmp_path, GPUTALLY_QUIET=quiet)
    assert (done.stderr == "") == (quiet == "1")
    load_report(tmp_path)


def test_quiet_option(app, tmp_path):
    assert run(app("api_basic"), options=["-q"], cwd=tmp_path).stderr == ""
    load_report(tmp_path)


def test_last_line_names_the_next_command(app, tmp_path):
    """It can be pasted into a shell, whatever the file is called."""
    for n, way in enumerate(("run", "plain")):
        folder = tmp_path / way
        folder.mkdir()
        done = go(way, [app("api_basic")], folder, GPUTALLY_OUTPUT="it's a \"name\" $HOME %p")
        last = done.stderr.splitlines()[-1]
        command = last[last.index("gputally report"):].rstrip(")")
        env = clean_env(PATH=f"{GPUTALLY.parent}:{os.environ['PATH']}")
        again = execute(["sh", "-c", command], cwd=folder, env=env)
        assert again.returncode == 0, last + again.stderr
        assert "outer" in again.stdout


@pytest.mark.parametrize("way", ["run", "plain"])
def test_a_name_with_its_ending(app, tmp_path, way):
    go(way, [app("api_basic")], tmp_path, GPUTALLY_OUTPUT="end.json", GPUTALLY_FORMAT="json,csv")
    assert names(tmp_path) == ["end.json", "end.json.csv"]
    again = go(way, [app("api_basic")], tmp_path, GPUTALLY_OUTPUT="end.json", GPUTALLY_FORMAT="json")
    assert names(tmp_path) == ["end-1.json", "end.json", "end.json.csv"]
    assert "end.json is there already: writing end-1.json" in again.stderr


@pytest.mark.parametrize("command, status", [("train.py", 127), ("./train.py", 126)])
def test_python_left_out(command, status, tmp_path):
    (tmp_path / "train.py").write_text("print(1)\n")
    done = run(command, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (status, f"gputally: {command} can't be executed by itself; to profile it: "
                                                      f"gputally run -- python {command}\n")
    (tmp_path / "train.py").unlink()
    assert run("./train.py", cwd=tmp_path).stderr == "gputally: ./train.py: No such file or directory\n"


def test_a_pattern_with_a_number_is_not_told(app, tmp_path):
    """Numbers are what was asked for."""
    for n in range(2):
        done = run(app("api_basic"), cwd=tmp_path, options=["-o", "%n.x"])
        assert done.stderr.splitlines()[-1].startswith(f"gputally: wrote {n}.x.json;")
        assert "already" not in done.stderr


@pytest.mark.parametrize("children", [1, 3, 9])
def test_whose_table_and_what_next(app, tmp_path, children):
    """With several processes a line before the table names its own; what to do next names the reports
    while they are few, and works."""
    one, many = app("api_basic"), ["sh", "-c", f'for i in $(seq {children}); do "$0"; done', app("api_basic")]
    done = run(*(many if children > 1 else [one]), cwd=tmp_path, options=["-o", "x%p"])
    lines = done.stderr.splitlines()
    heading = re.fullmatch(r"gputally: process (\d+) \(api_basic\)", lines[0])
    last = lines[-1]
    shown = re.match(r"gputally: wrote (\S+\.json); next: gputally report ", last)[1]
    if children == 1:
        assert lines[0].startswith("---") and ".json --group-by thread" in last
        return
    assert load_report(tmp_path / shown)["processes"][0]["pid"] == int(heading[1])
    command = last.split("next: gputally ")[1].split(";")[0].split()
    got = json.loads(tool(*command, "-f", "json", cwd=tmp_path).stdout)
    assert len(got["processes"]) == (children if children < 5 else 1)
    assert ("takes several files" in last) == (children > 4)


@pytest.mark.parametrize("way", ["run", "plain"])
def test_how_it_ended_is_told(app, tmp_path, way):
    """A table of a process that did not end by exit says so."""
    done = go(way, [app("life_exec"), "COUNT=1000", app("life_exec")], tmp_path)
    assert re.search(r"^gputally: process \d+ \(life_exec\), went on as another program\n---", done.stderr, re.M), done.stderr


def test_killed_is_told(app, tmp_path):
    done = run(app("e2e_killed"), cwd=tmp_path)
    first = done.stderr.splitlines()[0]
    assert re.fullmatch(r"gputally: process \d+ \(e2e_killed\), killed", first), done.stderr


def test_nothing_recorded(app, tmp_path):
    """Silent, but for who wants notes."""
    none = "gputally: nothing recorded: the program and its children made no call of "
    for options, said in (([], ""), (["--log", "2", "-q"], ""),
                          (["--log", "2"], none + "api cublas cuda itt kokkos nvtx roctx torch (gputally list sources)\n"),
                          (["--log", "2", "--sources", "nvtx,itt", "--memory", "1M", "--exclude", "a*"],
                           none + "itt nvtx (gputally list sources) that counts with GPUTALLY_SOURCES=nvtx,itt "
                           "GPUTALLY_EXCLUDE=a*\n")):
        done = run("true", cwd=tmp_path, options=options)
        assert (done.returncode, done.stderr) == (0, said)
    assert "nothing recorded" not in run(app("api_basic"), cwd=tmp_path, options=["--log", "2"]).stderr
    done = run("true", cwd=tmp_path, options=["--log", "2"], env=clean_env(GPUTALLY_DISABLE="1"))
    assert done.stderr == "gputally: nothing recorded: GPUTALLY_DISABLE is set\n"


@pytest.mark.parametrize("way", ["run", "plain"])
def test_patterns(app, tmp_path, way):
    command = [app("api_basic")]
    host = os.uname().nodename
    done = go(way, command, tmp_path, GPUTALLY_FORMAT="json",
              GPUTALLY_OUTPUT="a/b c/%p-%h-%e-%r-%t-%n-%q{GT_USERS}-%%-%%p-x", GT_USERS="100%p", GPUTALLY_RANK="12")
    assert done.returncode == 0
    folder = tmp_path / "a" / "b c"
    assert len(names(folder)) == 1, done.stderr
    report = load_report(folder)
    pid = report["processes"][0]["pid"]
    start = time.strftime("%Y%m%d-%H%M%S", time.localtime(report["processes"][0]["start_unix_ns"] // 10**9))
    name = names(folder)[0]
    assert re.fullmatch(rf"{pid}-{re.escape(host)}-api_basic-12-{start}-0-100%p-%-%p-x\.json", name), name


def test_a_variable_may_be_a_folder(app, tmp_path):
    run(app("api_basic"), options=["-q", "-o", "%q{GT_USERS}/x"], cwd=tmp_path, env=clean_env(GT_USERS="some/where"))
    load_report(tmp_path / "some" / "where" / "x.json")


@pytest.mark.parametrize("way", ["run", "plain"])
def test_rank(app, tmp_path, way):
    for env, want in (({}, -1), ({"OMPI_COMM_WORLD_RANK": "3"}, 3), ({"PMI_RANK": "4"}, 4),
                      ({"GPUTALLY_RANK": "7", "PMI_RANK": "4"}, 7)):
        go(way, [app("api_basic")], tmp_path, GPUTALLY_FORMAT="json", GPUTALLY_OUTPUT=f"{len(env)}{want}-%r", **env)
        file = tmp_path / f"{len(env)}{want}-{want if want >= 0 else 'norank'}.json"
        report = load_report(file)
        assert report["processes"][0]["rank"] == want
        assert {r["node_id"] for r in report["key_averages"]} == {want}


@pytest.mark.parametrize("way", ["run", "plain"])
def test_absolute_and_folder_as_output(app, tmp_path, way):
    out = tmp_path / "elsewhere"
    go(way, [app("api_basic")], tmp_path, GPUTALLY_FORMAT="json", GPUTALLY_OUTPUT=f"{out}/deep/x")
    assert names(out / "deep") == ["x.json"]
    go(way, [app("api_basic")], tmp_path, GPUTALLY_FORMAT="json", GPUTALLY_OUTPUT=f"{out}/deep/")
    assert len(names(out / "deep")) == 2
    go(way, [app("api_basic")], tmp_path, GPUTALLY_FORMAT="json", GPUTALLY_OUTPUT=f"{out}/deep")
    assert len(names(out / "deep")) == 3


@pytest.mark.parametrize("way", ["run", "plain"])
def test_eight_children_one_name(app, tmp_path, way):
    """case 18"""
    program = app("nvtx_threads")
    script = "; ".join(f"{program} 1 {i} >/dev/null & :" for i in range(1, 9)) + "; wait"
    done = go(way, ["bash", "-c", script], tmp_path, GPUTALLY_OUTPUT="same", GPUTALLY_FORMAT="json,csv,tree")
    assert done.returncode == 0
    found = reports(tmp_path)
    assert sorted(counts(r)["pair"] for r in found) == list(range(1, 9))
    assert len(names(tmp_path)) == 24, names(tmp_path)
    assert "same.json" in names(tmp_path)
    # the outputs of one process carry one number
    for file in tmp_path.glob("*.json"):
        pairs = counts(json.loads(file.read_text()))["pair"]
        with open(file.with_suffix(".csv"), newline="") as f:
            assert {r["key"]: int(r["count"]) for r in csv.DictReader(f)}["pair"] == pairs
        assert re.search(rf" {pairs} .*pair", file.with_suffix(".tree.txt").read_text())


def test_a_strangers_file_stays(app, tmp_path):
    """case 30"""
    for way in ("run", "plain"):
        folder = tmp_path / way
        folder.mkdir()
        (folder / "mine.json").write_text("not yours")
        done = go(way, [app("api_basic")], folder, GPUTALLY_OUTPUT="mine")
        assert done.returncode == 0
        assert (folder / "mine.json").read_text() == "not yours"
        assert names(folder) == ["mine-1.json", "mine.json"]
        counts(load_report(folder / "mine-1.json"))


def test_saved_report_equals_the_first(app, tmp_path):
    done = run(app("nvtx_basic"), cwd=tmp_path, options=["-f", "table,json,csv,tree", "-o", "one"])
    assert done.returncode == 0
    one = tmp_path / "one.json"
    again = tool("report", "-f", "json", "-o", "two.json", one, cwd=tmp_path)
    assert (again.returncode, again.stdout, again.stderr) == (0, "", "")
    assert (tmp_path / "two.json").read_bytes() == one.read_bytes()
    for format, extension in (("csv", ".csv"), ("tree", ".tree.txt")):
        shown = tool("report", "-f", format, one)
        with open(tmp_path / f"one{extension}", newline="") as f:
            assert shown.stdout.replace("\r\n", "\n") == f.read().replace("\r\n", "\n")
    table = tool("report", one).stdout
    assert table in done.stderr


def test_report_writes_by_extension_and_never_over_a_file(app, tmp_path):
    run(app("api_basic"), cwd=tmp_path, options=["-q", "-o", "one"])
    for name in ("x.csv", "x.tree.txt", "x.json"):
        assert tool("report", "-o", name, "one.json", cwd=tmp_path).returncode == 0
    assert (tmp_path / "x.csv").read_text().startswith("key,count,")
    assert json.loads((tmp_path / "x.json").read_text())["format"] == "gputally-report"
    (tmp_path / "x.csv").write_text("mine")
    done = tool("report", "-o", "x.csv", "one.json", cwd=tmp_path)
    assert done.returncode == 2 and "--force" in done.stderr and done.stderr.count("\n") == 1
    assert (tmp_path / "x.csv").read_text() == "mine"
    assert tool("report", "--force", "-o", "x.csv", "one.json", cwd=tmp_path).returncode == 0
    assert (tmp_path / "x.csv").read_text().startswith("key,count,")


def test_report_sorts_limits_and_groups(app, tmp_path):
    run(app("nvtx_basic"), cwd=tmp_path, options=["-q", "-o", "one"])
    done = tool("report", "--sort-by", "count", "--row-limit", "3", "--group-by", "thread", "one.json", cwd=tmp_path)
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    body = [i for i, line in enumerate(lines) if line.startswith("---")]
    shown = [line.split()[0] for line in lines[body[1] + 1:body[2]]]
    assert shown == ["leaf", "inner", "alpha:work"]
    assert "Thread" in lines[body[0] + 1]
    # the table is PyTorch's; that there is more is about the command
    assert "3 of " not in done.stdout and re.fullmatch(r"gputally: 3 of \d+ rows; --row-limit -1 shows all\n", done.stderr)
    got = json.loads(tool("report", "-f", "json", "--group-by", "rank,shape", "one.json", cwd=tmp_path).stdout)
    one = load_report(tmp_path / "one.json")
    assert counts(got) == counts(one)


def test_several_files_are_one_report(app, tmp_path):
    for n in ("a", "b"):
        run(app("nvtx_threads"), "2", "10", cwd=tmp_path, options=["-q", "-o", n])
    done = tool("report", "-f", "json", "a.json", "b.json", cwd=tmp_path)
    assert done.returncode == 0
    both = json.loads(done.stdout)
    assert counts(both) == {"worker": 4, "pair": 20, "odd:pair": 20}
    assert len(both["processes"]) == 2
    assert tool("report", "-f", "json", "-", cwd=tmp_path, input=done.stdout).stdout == done.stdout


def test_a_process_counts_once(app, tmp_path):
    """However many of the files have it: the same report twice, or one of several that has it too."""
    for n in ("a", "b"):
        run(app("nvtx_threads"), "2", "10", cwd=tmp_path, options=["-q", "-o", n])
    (tmp_path / "ab.json").write_text(tool("report", "-f", "json", "a.json", "b.json", cwd=tmp_path).stdout)
    once = tool("report", "-f", "csv", "a.json", cwd=tmp_path)
    twice = tool("report", "-f", "csv", "a.json", "./a.json", cwd=tmp_path)
    assert twice.returncode == 0 and twice.stdout == once.stdout
    assert twice.stderr == "gputally: ./a.json: counted once: its process is in a file before it\n"
    both = tool("report", "-f", "csv", "a.json", "b.json", cwd=tmp_path)
    assert both.stderr == ""
    for files in (["a.json", "ab.json"], ["ab.json", "a.json"], ["b.json", "ab.json", "a.json"]):
        done = tool("report", "-f", "json", *files, cwd=tmp_path)
        assert counts(json.loads(done.stdout)) == {"worker": 4, "pair": 20, "odd:pair": 20}, files
        assert "counted once" in done.stderr
    done = tool("report", "-f", "json", "ab.json", "ab.json", cwd=tmp_path)
    assert done.stderr == "gputally: ab.json: counted once: 2 of its processes are in files before it\n"


def test_threads_of_a_slot(python_nvtx, tmp_path):
    """The label tells how many threads used it, in the table and in CSV."""
    code = """
import nvtx, threading
for i in range(3):
    t = threading.Thread(target=nvtx.annotate("work")(lambda: None))
    t.start()
    t.join()
"""
    run(python_nvtx, "-c", code, cwd=tmp_path, options=["-q", "-o", "one"])
    label = r"\S+/\d+ \(3 threads\)"
    done = tool("report", "-g", "thread", "one.json", cwd=tmp_path)
    assert re.search(label, done.stdout), done.stdout
    done = tool("report", "-g", "thread", "-g", "rank", "-f", "csv", "one.json", cwd=tmp_path)
    assert [r["key"] for r in csv.DictReader(io.StringIO(done.stdout)) if re.fullmatch(label, r["thread"])], done.stdout


def test_a_tree_takes_no_table_options(app, tmp_path):
    run(app("api_basic"), cwd=tmp_path, options=["-q", "-o", "one"])
    for option in (["-n", "3"], ["-s", "count"], ["-g", "thread"]):
        done = tool("report", "-f", "tree", *option, "one.json", cwd=tmp_path)
        assert (done.returncode, done.stdout) == (2, "") and done.stderr.count("\n") == 1
        assert "is for tables" in done.stderr


def test_no_arguments_and_help():
    bare = tool()
    assert (bare.returncode, bare.stdout) == (1, "") and "Usage: gputally" in bare.stderr
    for option in ("--help", "-h"):
        done = tool(option)
        assert (done.returncode, done.stderr) == (0, "") and done.stdout.startswith("Usage: gputally")
    for command in ("run", "report", "finish", "recover", "list", "doctor"):
        done = tool(command, "--help")
        assert (done.returncode, done.stderr) == (0, ""), command
        assert done.stdout.startswith(f"Usage: gputally {command}")
    done = tool("--version")
    assert done.returncode == 0 and re.fullmatch(r"gputally \d+\.\d+\.\d+\n", done.stdout)
    for command in ("run", "report", "finish"):
        done = tool(command)
        assert (done.returncode, done.stdout) == (1, "") and "Usage" in done.stderr


def test_unknown_command_and_option():
    done = tool("reprot", "x")
    assert (done.returncode, done.stdout) == (2, "") and "did you mean 'report'" in done.stderr
    for command in ("run", "report", "finish", "recover"):
        for option in ("--nope", "-Z", "--sort-byy=x"):
            done = tool(command, option, "x")
            assert (done.returncode, done.stdout) == (2, ""), command
            lines = done.stderr.splitlines()
            assert len(lines) == 1 and lines[0].startswith("gputally: "), done.stderr
            assert f"gputally {command} --help" in lines[0] and option.split("=")[0] in lines[0]
    for options, word in ((["--sort-by", "speed"], "self_cpu_time_total"), (["--group-by", "colour"], "thread"),
                          (["--row-limit", "x"], "--row-limit"), (["--format", "xml"], "csv")):
        done = tool("report", *options, "x")
        assert (done.returncode, done.stdout) == (2, "") and word in done.stderr, done.stderr
        assert done.stderr.startswith("gputally: ") and done.stderr.count("\n") == 1


def test_option_without_its_value():
    for command, option in (("run", "--output"), ("report", "--format"), ("report", "-g")):
        done = tool(command, option)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr == f"gputally: {option}: needs a value; see gputally {command} --help\n"


def test_status_of_what_cannot_run(tmp_path):
    plain = tmp_path / "plain"
    plain.write_text("text")
    for command, status in (([tmp_path / "none"], 127), ([plain], 126), ([tmp_path], 126), (["false"], 1),
                            (["true"], 0)):
        done = run(*command, cwd=tmp_path)
        assert done.returncode == status
        assert (done.stderr == "") == (status < 100)


@pytest.mark.parametrize("sig", ["SEGV", "TERM", "KILL", "ABRT", "INT"])
def test_a_fatal_signal_comes_after_the_report(python_nvtx, tmp_path, sig):
    code = f"""
import nvtx, os, signal
signal.signal(signal.SIGINT, signal.SIG_DFL)
for _ in range(6):
    with nvtx.annotate('work'):
        pass
nvtx.push_range('open')
os.kill(os.getpid(), signal.SIG{sig})
"""
    done = run(python_nvtx, "-c", code, cwd=tmp_path)
    assert done.returncode == -getattr(signal, f"SIG{sig}")
    report = load_report(tmp_path)
    assert counts(report) == {"work": 6, "open": 1}
    assert [o["key"] for o in report["open"]] == ["open"]
    assert report["processes"][0]["ended"] == "killed"
    assert "# of Calls" in done.stderr and not list(tmp_path.glob("core*"))


def test_forwarded_signal_ends_in_a_report(app, tmp_path, python_nvtx):
    """A program that handles SIGTERM and leaves in order."""
    code = """
import nvtx, signal, sys
def leave(*_):
    sys.exit(4)
signal.signal(signal.SIGTERM, leave)
with nvtx.annotate('waiting'):
    print('ready', flush=True)
    while True:
        signal.pause()
"""
    p = subprocess.Popen([GPUTALLY, "run", "-q", "--", python_nvtx, "-c", code], cwd=tmp_path, env=clean_env(),
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert p.stdout.readline() == "ready\n"
    p.send_signal(signal.SIGTERM)
    out, err = p.communicate(timeout=60)
    assert (p.returncode, out, err) == (4, "", "")
    assert counts(load_report(tmp_path)) == {"waiting": 1}


def test_table_of_the_process_with_the_most_self_time(app, tmp_path):
    script = f"{app('nvtx_threads')} 1 1 >/dev/null; {app('nvtx_cpp')} >/dev/null; {app('nvtx_threads')} 1 1 >/dev/null"
    done = run("sh", "-c", script, cwd=tmp_path)
    assert done.returncode == 0
    assert done.stderr.count("# of Calls") == 1 and "cpp:innermost" in done.stderr
    assert done.stderr.count("gputally: wrote gputally.nvtx_threads.") == 2
    last = done.stderr.splitlines()[-1]
    assert "gputally.nvtx_cpp." in last


def test_an_output_that_cannot_be_written_is_told_before_the_start(app, tmp_path):
    (tmp_path / "file").write_text("")
    (tmp_path / "folder").mkdir()
    for output, why in (("file/x", "file is no folder"), ("file/a/b/%p", "is no folder")):
        done = run(app("api_basic"), cwd=tmp_path, options=["-o", output])
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith(f"gputally: --output {output}: ./file") and why in done.stderr
    for output in ("folder", "folder/", "new/a/b", "%p", "folder/%p"):
        assert run(app("api_basic"), cwd=tmp_path, options=["-o", output]).returncode == 0
    # only the files of it are out of reach
    assert run(app("api_basic"), cwd=tmp_path, options=["-o", "file/x", "-f", "table"]).returncode == 0


def test_what_has_no_place_has_a_table(app, tmp_path):
    """The folder turns into a file while the program runs: no JSON, but the table, and the session is kept."""
    (tmp_path / "folder").mkdir()
    done = run("sh", "-c", 'rmdir folder; echo > folder; exec "$0"', app("api_basic"), cwd=tmp_path,
               options=["-o", "folder/x", "--session-dir", tmp_path])
    assert done.returncode == 0 and "outer" in done.stderr and "session kept" in done.stderr
    assert len(list(tmp_path.glob("gputally-run-*/*.session"))) == 1


def test_the_program_itself_has_the_name_without_a_number(tmp_path):
    """Even where a child of it ends first, as a DataLoader's worker does."""
    script = tmp_path / "parent.py"
    script.write_text(
        "import ctypes, os, sys\n"
        "api = ctypes.CDLL(None)\n"
        "def one(name):\n"
        "    api.gputally_range_push(name)\n"
        "    api.gputally_range_pop()\n"
        "one(b'parent')\n"
        "for n in range(3):\n"
        "    if os.fork() == 0:\n"
        "        one(b'child')\n"
        "        os._exit(0)\n"
        "    os.wait()\n"
        "import time\n"
        "time.sleep(1.2)\n")  # run looks for ended children twice a second
    assert run(sys.executable, script, cwd=tmp_path, options=["-o", "x"]).returncode == 0
    assert names(tmp_path) == ["parent.py", "x-1.json", "x-2.json", "x-3.json", "x.json"]
    assert {r["key"] for r in load_report(tmp_path / "x.json")["key_averages"]} >= {"parent"}
    assert [r["key"] for r in load_report(tmp_path / "x-3.json")["key_averages"]] == ["child"]
