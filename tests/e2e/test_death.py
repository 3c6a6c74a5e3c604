"""How long a range counts that was open when its process was killed."""
import signal

from conftest import ROOT, clean_env, execute, load_report, preload, rows, tool

CODE = """
#include <gputally.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>
int main(void)
{
    gputally_range_push("outer");
    gputally_range_push("inner");
    usleep(30000);
    raise(SIGKILL);
    return 0;
}
"""


def build(tmp_path):
    source, program = tmp_path / "dies.c", tmp_path / "dies"
    source.write_text(CODE)
    done = execute(["gcc", "-o", program, source, f"-I{ROOT / 'include'}", "-ldl"])
    assert done.returncode == 0, done.stderr
    return program


def check_open(report, known):
    process = report["processes"][0]
    assert process["ended"] == "killed" and process["end_known"] is known
    by_id = {r["id"]: r for r in report["call_tree"]}
    assert [o["key"] for o in report["open"]] == ["outer", "inner"]
    for o in report["open"]:
        # each is rounded to a ns by itself
        assert abs(by_id[o["row"]]["total_ns"] - (process["duration_ns"] - o["since_ns"])) <= 1


def test_run_sees_the_end(tmp_path):
    """The program slept in its range: that time counts, though no event of ours came after it."""
    program = build(tmp_path)
    done = tool("run", "--", program, cwd=tmp_path)
    assert done.returncode == -signal.SIGKILL
    report = load_report(tmp_path)
    check_open(report, True)
    assert rows(report)["inner"]["cpu_time_total"] >= 30000
    assert "2 ranges were open at the end and count up to then" in done.stderr


def test_nobody_sees_the_end(tmp_path):
    """Found later, the session's latest event is all that is known, and the table says so."""
    program = build(tmp_path)
    folder = tmp_path / "sessions"
    folder.mkdir()
    env = preload(GPUTALLY_SESSION_DIR=str(folder))
    done = execute([program], cwd=tmp_path, env=env)
    assert done.returncode == -signal.SIGKILL
    recovered = tool("recover", folder, cwd=tmp_path, env=clean_env())
    assert recovered.returncode == 0
    report = load_report(tmp_path)
    check_open(report, False)
    assert rows(report)["inner"]["cpu_time_total"] < 30000
    assert "2 ranges were open at the end and count up to the last event" in recovered.stderr
