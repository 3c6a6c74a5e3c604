"""PyTorch that speaks to ITT (emit_itt), and oneDNN inside it, as the program's own libraries: once where our callback
sees the same operators, in ITT's words where it does not."""
import pytest

import torch_env
from conftest import counts, load_report, tree

pytestmark = pytest.mark.usefixtures("no_leftovers")

DONE = "done (8, 3, 3, 3)\n"


def report(folder, sources, way="run"):
    done = torch_env.start("itt", way=way, folder=folder, GPUTALLY_SOURCES=sources)
    assert (done.returncode, done.stdout) == (0, DONE), done.stderr
    return load_report(folder)


def test_output_is_unchanged(tmp_path):
    done = torch_env.start("itt", folder=tmp_path)
    assert (done.returncode, done.stdout) == (0, DONE), done.stderr


@pytest.mark.parametrize("way", ["run", "plain"])
def test_itt_alone(way, tmp_path):
    """Without our callback PyTorch's own text is the source."""
    r = report(tmp_path, "itt", way)
    t = tree(r)
    assert t["user block",] == t["user block", "aten::mm"] == 4
    assert t["itt direct",] == t["itt direct", "aten::mm"] == 4
    assert t["itt mark",] == 4
    assert t["aten::conv2d",] == 1  # five more came before emit_itt
    assert counts(r)["PyTorch:ConvolutionBackward0"] == 1
    assert sum(n for at, n in t.items() if at[0].startswith("step ")) == 1100
    assert {row["domain"] for row in r["call_tree"]} == {"PyTorch"}
    scope = {row["key"]: row.get("scope", 0) for row in r["call_tree"]}
    assert scope["aten::mm"] == scope["ConvolutionBackward0"] == 0
    assert scope["user block"] == scope["itt direct"] == 7
    assert r["lost"]["unbalanced"] == r["lost"]["overlapped"] == r["lost"]["left_open"] == 0


def test_once_where_the_callback_sees_it_too(tmp_path):
    r = report(tmp_path, "itt,torch")
    t = tree(r)
    by_source = {}
    for row in r["call_tree"]:
        if row["kind"] == "range":
            by_source.setdefault(row["source"], set()).add(row["key"])
    # only what PyTorch's callbacks do not know: what the user gave to torch.profiler.itt
    assert {k for k in by_source["itt"] if not k.startswith("step ")} == {"itt direct", "itt mark"}
    assert t["user block",] == t["user block", "aten::mm"] == 4
    assert t["itt direct",] == t["itt direct", "aten::mm"] == 4
    assert t["aten::conv2d",] == 6
    assert sum(n for at, n in t.items() if at[0].startswith("step ")) == 1100
    assert r["lost"]["duplicates"] > 8
    assert r["lost"]["unbalanced"] == r["lost"]["overlapped"] == r["lost"]["left_open"] == 0


def test_onednn_is_not_there_unless_asked_for(tmp_path):
    done = torch_env.start("itt", way="run", folder=tmp_path)
    assert (done.returncode, done.stdout) == (0, DONE), done.stderr
    assert {row["source"] for row in load_report(tmp_path)["call_tree"]} == {"itt", "torch"}


def test_onednn_inside_the_operators(tmp_path):
    r = report(tmp_path, "onednn,torch")
    got = {}
    by_id = {row["id"]: row for row in r["call_tree"]}
    for row in r["call_tree"]:
        if row["source"] == "onednn":
            at = by_id[row["parent"]]["key"], row["domain"], row["key"]
            got[at] = got.get(at, 0) + row["count"]
            assert row.get("scope", 0) == 0
    execute = "dnnl::primitive::execute"
    assert got["aten::mkldnn_convolution", execute, "convolution"] == 6
    assert got["aten::convolution_backward", execute, "convolution"] >= 1
