"""ROCTX: every call is recorded and still reaches the library, whose results the program gets."""
import pytest

from conftest import Expected, counts, load_report, reports, run, tool, tree

pytestmark = pytest.mark.usefixtures("no_leftovers")


@pytest.mark.san
def test_exact_and_the_same_both_ways(app, both):
    """`both` compares what the program printed: levels, ids and how many calls the library saw."""
    bare, under_run, plain = both(app("roctx_basic"), "--expect")
    expected = Expected(bare.stdout)
    assert bare.returncode == 0 and expected.counts
    for done in (under_run, plain):
        report = load_report(done.folder)
        expected.check(report)
        assert {r["source"] for r in report["call_tree"]} == {"roctx"}
        assert report["open"] == []
        assert report["processes"][0]["threads"][0]["name"] == "the main one"


def test_nesting_and_kinds(app, tmp_path):
    assert run(app("roctx_basic"), cwd=tmp_path).returncode == 0
    report = load_report(tmp_path)
    assert tree(report) == {
        ("looked up",): 1, ("outer",): 3, ("outer", "inner"): 12, ("mark", "<mark>"): 1, ("async", "<async>"): 2,
        ("once", "<async>"): 1, ("(null)",): 1, ("(null)", "<mark>"): 1, ("(null)", "<async>"): 1,
        ("many", "<async>"): 2000, ("aten::mm",): 1, ("thread",): 2000, ("thread async", "<async>"): 2000,
        ("handed over", "<async>"): 4,
    }
    averages = {r["key"]: r for r in report["key_averages"]}
    assert averages["outer"]["is_user_annotation"] and averages["outer"]["scope"] == 7
    # PyTorch's own text is an operator
    assert not averages["aten::mm"]["is_user_annotation"] and averages["aten::mm"]["scope"] == 0


def test_shapes_of_pytorchs_text(app, tmp_path):
    assert run(app("roctx_basic"), cwd=tmp_path, options=["--record-shapes"]).returncode == 0
    shapes = [r["shapes"] for r in load_report(tmp_path)["call_tree"] if r["key"] == "aten::mm"]
    assert shapes == ["[[2, 3], [3, 4]]"]


def test_pause_and_resume(app, both):
    bare, under_run, plain = both(app("roctx_basic"), "pause")
    for done in (under_run, plain):
        report = load_report(done.folder)
        Expected(bare.stdout).check(report)
        assert report["lost"]["silent"] == 3


def test_more_open_than_are_followed(app, both):
    _, under_run, _ = both(app("roctx_basic"), "flood")
    report = load_report(under_run.folder)
    assert counts(report) == {"flood": 6000, "after": 1}
    assert 6000 - 4096 <= report["lost"]["unbalanced"] < 6000
    assert report["open"] == []


@pytest.mark.parametrize("args", [[], ["plugin-first"]])
def test_opened_by_the_program_and_by_a_plugin(args, app, both):
    _, under_run, plain = both(app("roctx_open"), *args)
    want = {"opened": 6, "opened async": 1}
    if args:
        want |= {"plugin": 1, "closed": 1}
    for done in (under_run, plain):
        assert counts(load_report(done.folder)) == want


@pytest.mark.parametrize("command", [["roctx_basic"], ["roctx_basic", "pause"], ["roctx_open"],
                                     ["roctx_open", "plugin-first"]])
def test_switched_off(command, app, both):
    _, under_run, plain = both(app(command[0]), *command[1:], env={"GPUTALLY_SOURCES": "-roctx"})
    assert reports(under_run.folder) == reports(plain.folder) == []


def test_no_library_at_all(app, both):
    bare, under_run, plain = both(app("roctx_weak"))
    assert bare.stdout == "done\n"
    for done in (under_run, plain):
        report = load_report(done.folder)
        assert counts(report) == {"weak": 2, "weak async": 1, "weak mark": 1}
        assert report["lost"]["unbalanced"] == 1


def test_killed(app, tmp_path):
    done = run(app("roctx_basic"), "kill", cwd=tmp_path)
    assert done.returncode == -9
    report = load_report(tmp_path)
    keys = {r["id"]: r["key"] for r in report["call_tree"]}
    assert sorted(keys[o["row"]] for o in report["open"]) == ["open", "open async"]
    assert tree(report)[("open", "outer", "inner")] == 12


def test_fork(app, both):
    _, under_run, plain = both(app("roctx_basic"), "fork")
    for done in (under_run, plain):
        parent, child = sorted(reports(done.folder), key=lambda r: "child's" in counts(r))
        assert counts(parent) == {"parent's": 1, "around": 1} and parent["lost"]["unbalanced"] == 0
        assert counts(child) == {"child's": 1}
        # the parent's range is not the child's to end
        assert child["lost"]["unbalanced"] == 1 and child["lost"]["inherited"] == 1


def test_listed(tmp_path):
    assert "roctx " in tool("list", "sources", cwd=tmp_path).stdout
