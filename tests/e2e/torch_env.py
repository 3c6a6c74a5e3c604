"""What the PyTorch tests share: where build/torch is, running one of the scripts tests/apps/torch_*.py, and
torch.profiler's rows for it beside ours. scripts/torch-env makes build/torch.
"""
import functools
import json
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from conftest import GPUTALLY, ROOT, clean_env, execute, load_report, preload, tool

SCRIPTS = ROOT / "tests" / "apps"
# torch's own start takes seconds, twice that on a busy machine
TIMEOUT = 240
RECORD = {"GPUTALLY_RECORD_SHAPES": "1", "GPUTALLY_WITH_FLOPS": "1"}
# what must be equal, for each row of both views
FIELDS = ("count", "cpu_memory_usage", "self_cpu_memory_usage", "flops", "scope")


@functools.cache
def settings(version):
    """{name: value} to run that torch, PYTHON among them; None where it is not there."""
    done = subprocess.run([ROOT / "scripts" / "torch-env", "print", version], capture_output=True, text=True)
    return None if done.returncode else dict(line.split("=", 1) for line in done.stdout.splitlines())


def need(version):
    if settings(version) is None:
        pytest.skip(f"no build/torch/{version}: run scripts/torch-env")


def python(version="2.13"):
    need(version)
    return settings(version)["PYTHON"]


def env(version="2.13", **more):
    need(version)
    known = {k: v for k, v in settings(version).items() if k != "PYTHON"}
    return {**known, "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1", **more}


def said(stderr):
    """What a program said on stderr, without torch's remarks about this machine."""
    ours_not = ("USDT:", "gpuGetDeviceCount failed", "triton not found")
    return "".join(s for s in stderr.splitlines(True) if not any(w in s for w in ours_not))


def start(script, *args, way="bare", version="2.13", folder, **more):
    """Runs torch_SCRIPT.py in `folder`: bare, by `gputally run`, or with plain LD_PRELOAD."""
    command = [python(version), SCRIPTS / f"torch_{script}.py", *args]
    if way == "run":
        command = [GPUTALLY, "run", "--", *command]
    variables = env(version, **more)
    return execute(command, cwd=folder, env=preload(**variables) if way == "plain" else clean_env(**variables),
                   timeout=TIMEOUT)


@functools.cache
def profiled(*script, version="2.13"):
    """(stdout, what torch_profile.py wrote) of a script under torch.profiler, once a session."""
    before = [a for a in script if a.startswith("--")]
    script = [a for a in script if a not in before]
    folder = tempfile.mkdtemp(prefix="gputally-test-")
    try:
        done = execute([python(version), SCRIPTS / "torch_profile.py", *before, Path(folder, "golden.json"), *script],
                       cwd=folder, env=clean_env(**env(version)), timeout=TIMEOUT)
        assert done.returncode == 0, done.stderr
        return done.stdout, json.loads(Path(folder, "golden.json").read_text())
    finally:
        shutil.rmtree(folder)


def views(path):
    """The same two views of our report, as the reader makes them from the saved file."""
    grouped = tool("report", "--group-by", "shape", "-f", "json", path)
    assert grouped.returncode == 0, grouped.stderr
    both = {"by_key": load_report(path), "by_shape": json.loads(grouped.stdout)}
    # oneDNN's tasks, for one, are ours alone
    return {view: [r for r in report["key_averages"] if r["source"] == "torch"] for view, report in both.items()}


def table(rows, fields=FIELDS):
    """{identity of a row in PyTorch's view: fields to compare}; a row that is there twice fails."""
    out = {}
    for r in rows:
        at = (r["key"], r["is_user_annotation"], json.dumps(r["input_shapes"]))
        assert at not in out, at
        out[at] = {f: r[f] for f in fields}
    return out


def differences(golden, ours, fields=FIELDS):
    """One line for each row that is not the same, [] if all are."""
    golden, ours = table(golden, fields), table(ours, fields)
    return [f"{at}: torch.profiler {golden.get(at)}, gputally {ours.get(at)}"
            for at in sorted({*golden, *ours}) if golden.get(at) != ours.get(at)]


def self_and_roots(report):
    """(sum of the self times of all rows, total of the outermost ones), ns, async rows exempt."""
    rows = [r for r in report["call_tree"] if r["kind"] == "range"]
    return sum(r["self_ns"] for r in rows), sum(r["total_ns"] for r in rows if r["parent"] is None)
