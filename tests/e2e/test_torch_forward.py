"""Backward operators have the stack of the forward one, against the stand-in of tests/sim/torch: with no Python
about, these are native frames. What matters is whose stack it is, not what it says."""
import pytest

from conftest import APPS, BUILD, chain, clean_env, execute, load_report, preload, run

pytestmark = [pytest.mark.san, pytest.mark.usefixtures("no_leftovers")]
ENGINE = "autograd::engine::evaluate_function: it"


def recorded(folder, version, mode, **env):
    sim = BUILD / "sim" / f"torch{version}"
    done = run(APPS / "torch_sim", mode, sim, cwd=folder, env=clean_env(**env))
    assert done.returncode == 0 and done.stdout == "done\n", done.stdout + done.stderr
    return load_report(folder), done.stderr


def stacks(report):
    """{path of names: {stack: calls}}, a stack as its frames with their modules."""
    out = {}
    for row in report["call_tree"]:
        lists = report["stacks"][row["stack"]] if "stack" in row else {}
        frames = tuple((f.get("module"), f.get("offset")) for f in
                       (report["frames"][i] for i in lists.get("native", [])))
        at = out.setdefault(chain(report, row), {})
        at[frames] = at.get(frames, 0) + row["count"]
    return out


@pytest.mark.parametrize("mode", ["backward", "elsewhere"])
@pytest.mark.parametrize("version", ["213", "113"])
def test_whose_stack_it_is(version, mode, tmp_path):
    report, said = recorded(tmp_path, version, mode)
    at = stacks(report)
    mul, total = at["aten::empty", "aten::mul"], at["aten::sum",]
    # called from two lines of the program each
    assert sorted(mul.values()) == sorted(total.values()) == [400, 400]
    for name, forward in ("MulBackward0", mul), ("SumBackward0", total):
        for inside in (), ("aten::inner",), ("aten::inner", "aten::deeper"):
            assert at[(ENGINE, name, *inside)] == forward
    # a node that nobody made, what the engine does beside, and what is of no node: of the thread that runs it
    own = [at[ENGINE,], at[ENGINE, "UnknownBackward0"], at[ENGINE, "UnknownBackward0", "aten::inner"],
           at[ENGINE, "aten::beside"], at["AccumulateGrad",]]
    for one in own:
        assert not set(one) & {*mul, *total, ()}
    assert len({s for one in own for s in one}) == (10 if mode == "backward" else 5)
    assert "operators" not in said and not any(report["lost"].values()), report["lost"]


@pytest.mark.parametrize("version", ["hides", "twins"])
@pytest.mark.parametrize("mode", ["backward", "elsewhere"])
def test_what_can_not_be_told(version, mode, tmp_path):
    """The number that nodes have lies nowhere, or the thread's may be either of two words."""
    report, said = recorded(tmp_path, version, mode)
    at = stacks(report)
    forward = {*at["aten::empty", "aten::mul"], *at["aten::sum",]}
    for name in "MulBackward0", "SumBackward0", "UnknownBackward0":
        assert at[ENGINE, name] and not set(at[ENGINE, name]) & {*forward, ()}
    assert said.count("PyTorch's forward operators can't be told from its backward ones") == 1
    assert not any(report["lost"].values()), report["lost"]


def test_nothing_is_looked_for_without_stacks(tmp_path):
    report, said = recorded(tmp_path, "twins", "backward", GPUTALLY_WITH_STACK="0")
    assert set(stacks(report)[ENGINE, "MulBackward0"]) == {()}
    assert "operators" not in said


def test_rows_are_the_same_with_and_without(tmp_path):
    """By name and by place: stacks only tell more."""
    counts = []
    for value in "01":
        (tmp_path / value).mkdir()
        report, _ = recorded(tmp_path / value, "213", "backward", GPUTALLY_WITH_STACK=value)
        places = {at: sum(n.values()) for at, n in stacks(report).items()}
        counts.append(({r["key"]: r["count"] for r in report["key_averages"]}, places))
    assert counts[0] == counts[1]


@pytest.mark.parametrize("mode", ["backward", "elsewhere"])
def test_many_are_bounded(mode, tmp_path):
    report, _ = recorded(tmp_path, "213", mode, GPUTALLY_MEMORY="1M")
    calls = {}
    for row in report["call_tree"]:
        calls[row["key"]] = calls.get(row["key"], 0) + row["count"]
    assert calls["MulBackward0"] == calls["SumBackward0"] == calls["aten::mul"] == 800


def test_plain_preload(tmp_path):
    done = execute([APPS / "torch_sim", "backward", BUILD / "sim" / "torch213"], cwd=tmp_path, env=preload())
    at = stacks(load_report(tmp_path))
    assert done.stdout == "done\n" and at[ENGINE, "MulBackward0"] == at["aten::empty", "aten::mul"]
