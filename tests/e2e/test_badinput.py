"""Files that are not ours, or no longer: `gputally: FILE: why`, exit 2, nothing written, never a crash.
Variables that are wrong: one warning that names the right ones, and the program runs."""
import json
import os
import random
import re
import shutil
import signal
import struct

import pytest

from conftest import APPS, GPUTALLY, SAN, SHM, clean_env, counts, execute, load_report, preload, run, tool

pytestmark = pytest.mark.usefixtures("no_leftovers")
# a sanitizer sees more in each, and takes longer
MUTATIONS = 100 if SAN else 300


@pytest.fixture(scope="module")
def killed(tmp_path_factory):
    """(session, saved JSON) of a program that was killed with ranges open."""
    folder = tmp_path_factory.mktemp("killed")
    before = set(SHM.glob("gputally-*.session"))
    done = execute(["sh", "-c", f"echo $$; exec {APPS / 'e2e_killed'}"], cwd=folder,
                   env=preload(GPUTALLY_MEMORY="512K", GPUTALLY_RING="16"))
    assert done.returncode == -signal.SIGKILL, done.stderr
    pid = done.stdout.strip()
    left = [p for p in set(SHM.glob("gputally-*.session")) - before if p.name.split("-")[4] == pid]
    if not left:
        pytest.skip("no session in /dev/shm: read-only or full here")
    session = folder / "good.session"
    shutil.copy(left[0], session)
    left[0].unlink()
    done = tool("report", "-f", "json", "-o", folder / "good.json", session)
    assert (done.returncode, done.stderr) == (0, "")
    return session, folder / "good.json"


def refused(done, path, folder, before):
    assert done.returncode == 2, (done.returncode, done.stderr)
    assert done.stdout == ""
    assert re.match(rf"gputally: {re.escape(str(path))}: .+\n\Z", done.stderr), done.stderr
    assert sorted(os.listdir(folder)) == before


def survives(done):
    """What may happen to damaged input: shown, or refused with one line."""
    assert done.returncode in (0, 2), (done.returncode, done.stderr[-2000:])
    if done.returncode == 2:
        assert re.match(r"gputally: .+\n\Z", done.stderr), done.stderr
        assert done.stdout == ""
    else:
        assert done.stderr == ""


def shown(path, format):
    """Exit status of `report` on damaged input; the input is kept where it did not survive."""
    done = tool("report", "-f", format, path, cwd=path.parent)
    try:
        survives(done)
        if format == "json" and done.returncode == 0:
            json.loads(done.stdout, parse_constant=lambda c: pytest.fail(c))
    except BaseException:
        shutil.copy(path, path.parent.parent / f"failed{path.suffix}")
        raise
    return done.returncode


@pytest.mark.san
def test_the_good_one(killed):
    """Replayed from what the killed program left."""
    session, saved = killed
    report = load_report(saved)
    assert counts(report) == {"work": 40, "worker": 1, "deep": 5, "async": 1, "never ended": 1, "queue": 4, "tick": 3,
                              "blas:gemm": 6}
    assert sorted(o["key"] for o in report["open"]) == ["gemm"] * 6 + ["never ended"]
    assert report["lost"]["unbalanced"] == 1
    assert report["processes"][0]["ended"] == "killed"


JUNK = {
    "empty": b"", "text": b"hello\n", "zeros": b"\0" * 5000, "magic": b"GPUTALLY", "binary": bytes(range(256)) * 64,
    "elf": None, "brace": b"{", "json": b'{"a": 1}', "array": b"[1, 2]", "number": b"1",
    "newer": b'{"format": "gputally-report", "version": 99}', "no version": b'{"format": "gputally-report"}',
    "only head": b'{"format": "gputally-report", "version": 1}',
    "deep": b"[" * 100000, "bad utf-8": b'{"format": "\xff\xfe"}', "nan": b'{"format": "gputally-report", "version": NaN}',
    "no nul": b'{"format": "gputally-report", "version": 1, "a": "\\u0000"}', "huge": b'{"version": 1' + b"0" * 400 + b"}",
}


@pytest.mark.san
@pytest.mark.parametrize("command", ["report", "finish"])
@pytest.mark.parametrize("kind", JUNK)
def test_not_ours(tmp_path, command, kind):
    path = tmp_path / "file"
    path.write_bytes(open("/bin/true", "rb").read() if kind == "elf" else JUNK[kind])
    before = sorted(os.listdir(tmp_path))
    bytes_before = path.read_bytes()
    refused(tool(command, path, cwd=tmp_path), path, tmp_path, before)
    if command == "report":
        refused(tool(command, "-o", "out.json", path, cwd=tmp_path), path, tmp_path, before)
    assert path.read_bytes() == bytes_before


@pytest.mark.parametrize("command", ["report", "finish"])
def test_not_files(tmp_path, command):
    for path in (tmp_path / "missing", tmp_path, "/dev/null", "/proc/self/mem"):
        refused(tool(command, path, cwd=tmp_path), path, tmp_path, [])
    refused(tool(command, "-", cwd=tmp_path, input="nonsense"), "-", tmp_path, [])


def test_a_pipe_is_read(killed, tmp_path):
    """Process substitution: the file is a pipe."""
    done = execute(["bash", "-c", f"{GPUTALLY} report -f json <(cat {killed[1]})"], cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == killed[1].read_text()


def test_recover_leaves_strangers_alone(tmp_path):
    (tmp_path / "gputally-0-abc-1-1-1-0.session").write_bytes(b"nonsense")
    (tmp_path / "other").write_bytes(b"nonsense")
    done = tool("recover", tmp_path, cwd=tmp_path)
    assert done.returncode in (0, 2)
    assert (tmp_path / "other").exists()
    assert all(line.startswith("gputally: ") for line in done.stderr.splitlines())


def test_newer_layout(killed, tmp_path):
    data = bytearray(killed[0].read_bytes())
    data[8:12] = struct.pack("<I", struct.unpack("<I", data[8:12])[0] + 1)
    path = tmp_path / "x.session"
    path.write_bytes(data)
    done = tool("report", path, cwd=tmp_path)
    refused(done, path, tmp_path, ["x.session"])
    assert "newer" in done.stderr


@pytest.mark.san
def test_truncated_sessions(killed, tmp_path):
    data = killed[0].read_bytes()
    path = tmp_path / "x.session"
    lengths = [0, 1, 7, 8, 9, 100, 4095, 4096, 4097] + list(range(5000, len(data), len(data) // 60)) + [len(data) - 1]
    for n in lengths:
        path.write_bytes(data[:n])
        done = tool("report", path, cwd=tmp_path)
        survives(done)
        if n <= 4096:
            refused(done, path, tmp_path, ["x.session"])
    assert os.listdir(tmp_path) == ["x.session"]


@pytest.mark.san
def test_truncated_json(killed, tmp_path):
    data = killed[1].read_bytes()
    path = tmp_path / "x.json"
    for n in [*range(0, 60), *range(60, len(data) - 2, len(data) // 60), len(data) - 2]:
        path.write_bytes(data[:n])
        refused(tool("report", path, cwd=tmp_path), path, tmp_path, ["x.json"])


def mutate(data, rng, limit):
    data = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 8))):
        at = rng.randrange(limit)
        kind = rng.randrange(5)
        if kind == 0:
            data[at] = rng.randrange(256)
        elif kind == 1:
            data[at] ^= 1 << rng.randrange(8)
        elif kind == 2:
            at &= ~3
            data[at:at + 4] = struct.pack("<I", rng.choice((0, 1, 0x7fffffff, 0xffffffff, rng.randrange(limit // 8))))
        elif kind == 3:
            at &= ~7
            data[at:at + 8] = struct.pack("<Q", rng.choice((0, 2**63 - 1, 2**63, 2**64 - 1, 2**52)))
        else:
            other = rng.randrange(limit)
            data[at:at + 64] = data[other:other + 64]
    return bytes(data)


def used(data):
    """Mutations go where something is: the tail of a session is a hole."""
    return len(data.rstrip(b"\0"))


@pytest.mark.san
def test_mutated_sessions(killed, tmp_path):
    """Every output of `report`, which writes nothing but where it is told."""
    data = killed[0].read_bytes()
    path = tmp_path / "x.session"
    rng = random.Random(20)
    outcomes = {0: 0, 2: 0}
    for i in range(MUTATIONS):
        # half of them in the header and the first structures, where a byte does the most
        path.write_bytes(mutate(data, rng, used(data) if i % 2 else 8192))
        format = ("json", "table", "csv", "tree")[i // 2 % 4]
        outcomes[shown(path, format)] += 1
    assert os.listdir(tmp_path) == ["x.session"]
    assert all(outcomes.values()), outcomes


@pytest.mark.san
def test_mutated_json(killed, tmp_path):
    data = killed[1].read_bytes()
    path = tmp_path / "x.json"
    rng = random.Random(21)
    outcomes = {0: 0, 2: 0}
    for i in range(MUTATIONS):
        changed = bytearray(data)
        if i % 3 == 0:
            changed[rng.randrange(len(data))] = rng.randrange(256)
        elif i % 3 == 1:  # another number, valid JSON
            numbers = list(re.finditer(rb"(?<=:)-?\d+(\.\d+)?(?=[,}])", data))
            n = rng.choice(numbers)
            changed[n.start():n.end()] = rng.choice((b"-1", b"0", b"9223372036854775807", b"-9223372036854775808",
                                                     b"1e308", b"99999", b"null", b'"x"', b"[]", b"{}", b"true"))
        else:  # a piece taken out
            at = rng.randrange(len(data))
            del changed[at:at + rng.randrange(1, 200)]
        path.write_bytes(changed)
        format = ("json", "table", "csv", "tree")[i % 4]
        outcomes[shown(path, format)] += 1
    assert os.listdir(tmp_path) == ["x.json"]
    assert all(outcomes.values()), outcomes


@pytest.mark.san
def test_finish_of_mutated_sessions(killed, tmp_path):
    """`finish` writes where the session says, so what tells the place is left as it is."""
    data = killed[0].read_bytes()
    rng = random.Random(22)
    folder = tmp_path / "out"
    folder.mkdir()
    path = folder / "x.session"
    # the place: what the texts before the first slot say. Later bytes hold the data
    start = data.index(b"libgputally.so") + 64
    for i in range(60):
        changed = bytearray(data)
        for _ in range(3):
            at = rng.randrange(start, used(data))
            changed[at] = rng.randrange(256)
        # and it must write here
        cwd = data.index(str(killed[0].parent).encode())
        target = str(folder).encode()[:len(str(killed[0].parent))]
        assert len(target) == len(str(killed[0].parent))
        changed[cwd:cwd + len(target)] = target
        path.write_bytes(changed)
        done = tool("finish", "-q", path, cwd=folder)
        assert done.returncode in (0, 2), (done.returncode, done.stderr)
        if done.returncode == 2:
            assert re.match(r"gputally: .+\n\Z", done.stderr), done.stderr
            assert path.exists()
    for file in tmp_path.rglob("*.json"):
        load_report(file)
    assert not list(tmp_path.rglob("*.tmp"))


WRONG = [
    ({"GPUTALLY_FROMAT": "json"}, ["GPUTALLY_FROMAT", "GPUTALLY_FORMAT"]),
    ({"GPUTALLY_XYZZY": "1"}, ["GPUTALLY_XYZZY", "GPUTALLY_"]),
    ({"GPUTALLY_FORMAT": "jsn"}, ["jsn", "json"]),
    ({"GPUTALLY_FORMAT": "yaml"}, ["yaml", "table", "csv"]),
    ({"GPUTALLY_MEMORY": "lots"}, ["GPUTALLY_MEMORY", "lots"]),
    ({"GPUTALLY_MEMORY": "1"}, ["GPUTALLY_MEMORY", "256K"]),
    ({"GPUTALLY_QUIET": "maybe"}, ["GPUTALLY_QUIET", "maybe", "1"]),
    ({"GPUTALLY_SOURCES": "nvtx,cud"}, ["cud", "nvtx"]),
    ({"GPUTALLY_RING": "5"}, ["GPUTALLY_RING", "power of two"]),
    ({"GPUTALLY_RANK": "x"}, ["GPUTALLY_RANK", "x"]),
    ({"GPUTALLY_LOG": "9"}, ["GPUTALLY_LOG", "9"]),
    ({"GPUTALLY_OUTPUT": "x%y"}, ["%y", "%p"]),
    ({"GPUTALLY_OUTPUT": "x%q{NOT_SET_HERE}"}, ["NOT_SET_HERE"]),
]


@pytest.mark.parametrize("way", ["run", "plain"])
@pytest.mark.parametrize("env, words", WRONG, ids=lambda v: "-".join(v) if isinstance(v, dict) else "")
def test_wrong_variables(tmp_path, way, env, words):
    command = [APPS / "api_basic"]
    done = run(*command, cwd=tmp_path, env=clean_env(**env)) if way == "run" else \
        execute(command, cwd=tmp_path, env=preload(**env))
    assert (done.returncode, done.stdout) == (0, "done\n")
    own = [line for line in done.stderr.splitlines()
           if line.startswith("gputally: ") and not line.startswith("gputally: wrote")]
    if "GPUTALLY_QUIET" in env:
        own = own or done.stderr.splitlines()
    assert len(own) == 1, done.stderr
    for word in words:
        assert word in own[0], own[0]
    # the default is used instead, so a report there is
    assert len(list(tmp_path.rglob("*.json"))) == 1


def test_two_wrong_variables_are_one_warning_each_process_tree(tmp_path):
    """`run` tells it, its programs do not again."""
    program = APPS / "api_basic"
    done = run("sh", "-c", f"{program}; {program}", cwd=tmp_path, env=clean_env(GPUTALLY_FROMAT="x", GPUTALLY_LOGG="1"))
    assert done.returncode == 0
    assert sum("GPUTALLY_FROMAT" in line or "GPUTALLY_LOGG" in line for line in done.stderr.splitlines()) == 1


def test_wrong_variable_is_silent_where_nothing_is_recorded(tmp_path):
    done = execute(["sh", "-c", "true"], cwd=tmp_path, env=preload(GPUTALLY_FROMAT="x"))
    assert (done.returncode, done.stderr) == (0, "")
