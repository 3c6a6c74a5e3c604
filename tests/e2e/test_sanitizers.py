"""Programs built with sanitizers under the ordinary library (case 4), and the library built with
sanitizers under heavier loads than the exact programs give it."""
import subprocess

import pytest

from conftest import (APPS, GPUTALLY, ROOT, SAN, clean_env, counts, execute, load_report, preload, reports, run,
                      sanitizer_runtime)

pytestmark = pytest.mark.usefixtures("no_leftovers")
WANT = {"work": 400, "leaf": 1200, "async": 400, "mark": 400}
MISTAKES = {"address": ("overflow", "heap-buffer-overflow"), "undefined": ("undefined", "runtime error"),
            "thread": ("race", "data race")}
plain_build = pytest.mark.skipif(bool(SAN), reason="for the ordinary library")


@pytest.fixture(scope="module")
def build(tmp_path_factory):
    def go(kind):
        out = tmp_path_factory.mktemp("sane") / f"sane_{kind}"
        flags = ["-fno-sanitize-recover=undefined"] if kind == "undefined" else []
        done = subprocess.run(["gcc", "-g", "-O1", f"-fsanitize={kind}", *flags, "-I", ROOT / "include",
                               ROOT / "tests" / "apps" / "e2e_sane.c", "-o", out, "-pthread", "-ldl"],
                              capture_output=True, text=True)
        if done.returncode:
            pytest.skip(f"gcc -fsanitize={kind} does not work here: {done.stderr.splitlines()[0]}")
        prefix = ["setarch", "-R"] if kind == "thread" else []
        probe = execute([*prefix, out])
        if probe.returncode:
            pytest.skip(f"a program with -fsanitize={kind} does not run here: {probe.stderr.splitlines()[:1]}")
        return out, prefix
    return go


@pytest.fixture
def suppressions(tmp_path_factory):
    """ThreadSanitizer sees the memcpy and memcmp that a library calls which it has not built, but not the
    atomics that order them, and reports races that are none; this is its own way out."""
    file = tmp_path_factory.mktemp("tsan") / "suppressions"
    file.write_text("called_from_lib:libgputally.so\n")
    return {"TSAN_OPTIONS": f"suppressions={file}"}


@plain_build
@pytest.mark.parametrize("kind", MISTAKES)
def test_sanitized_program(build, suppressions, tmp_path, kind):
    program, prefix = build(kind)
    done = execute([*prefix, GPUTALLY, "run", "-q", "--", program], cwd=tmp_path, env=clean_env(**suppressions))
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")
    assert counts(load_report(tmp_path)) == WANT


@plain_build
@pytest.mark.parametrize("kind", MISTAKES)
def test_sanitizers_findings_stay(build, tmp_path, kind):
    """The mistake is found, told and ends the program as without us."""
    program, prefix = build(kind)
    mistake, words = MISTAKES[kind]
    bare = execute([*prefix, program, mistake])
    assert bare.returncode != 0 and words in bare.stderr
    done = execute([*prefix, GPUTALLY, "run", "-q", "--", program, mistake], cwd=tmp_path)
    assert (done.returncode, done.stdout) == (bare.returncode, bare.stdout)
    assert words in done.stderr
    assert counts(load_report(tmp_path)) == WANT


@plain_build
@pytest.mark.parametrize("kind, runtime", [("address", "asan"), ("thread", "tsan")])
def test_plain_preload_with_the_runtime_first(build, suppressions, tmp_path, kind, runtime):
    program, prefix = build(kind)
    path = sanitizer_runtime(runtime)
    if not path:
        pytest.skip(f"no shared lib{runtime}")
    done = execute([*prefix, program], cwd=tmp_path, env=preload(path, GPUTALLY_QUIET="1", **suppressions))
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")
    assert counts(load_report(tmp_path)) == WANT


@plain_build
def test_plain_preload_without_the_runtime(build, tmp_path):
    """The sanitizer says itself that it must come first; nothing of ours makes that worse."""
    program, prefix = build("address")
    done = execute([*prefix, program], cwd=tmp_path, env=preload())
    if done.returncode == 0:  # linked statically, or a compiler that does not mind
        assert counts(load_report(tmp_path)) == WANT
    else:
        assert "should either link runtime to your application or manually preload it" in done.stderr or \
            "come first" in done.stderr


@plain_build
def test_children_of_a_sanitized_program(build, tmp_path):
    """sh -> sanitized program: the shell's LD_PRELOAD has no runtime in it unless its own program needs one."""
    program, prefix = build("undefined")
    done = execute([*prefix, GPUTALLY, "run", "-q", "--", "sh", "-c", f"{program}; {APPS / 'api_basic'}"], cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "done\ndone\n")
    assert sorted(counts(r).get("work", 0) for r in reports(tmp_path)) == [0, 400]


@pytest.mark.san
@pytest.mark.parametrize("way", ["run", "plain"])
def test_many_threads(app, tmp_path, way):
    command = [app("nvtx_threads"), "16", "2000"]
    done = run(*command, cwd=tmp_path) if way == "run" else execute(command, cwd=tmp_path, env=preload())
    assert done.returncode == 0, done.stderr
    assert counts(load_report(tmp_path)) == {"worker": 16, "pair": 16000, "odd:pair": 16000}


@pytest.mark.san
def test_names_without_end(tmp_path):
    """Folding, full memory and the end, seen by the sanitizers: every call is in some row."""
    source = APPS / "e2e_names"
    done = run(source, "fold", "20000", options=["--memory", "1M"], cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "20000\n")
    report = load_report(tmp_path)
    assert sum(counts(report).values()) + report["lost"]["memory"] == 20000


@pytest.mark.san
def test_python_in_threads(python_nvtx, tmp_path):
    code = """
import nvtx, threading
def work():
    for i in range(200):
        with nvtx.annotate('a'):
            with nvtx.annotate('b', domain='d', payload=i):
                nvtx.mark('m')
threads = [threading.Thread(target=work) for _ in range(4)]
for t in threads: t.start()
for t in threads: t.join()
"""
    done = run(python_nvtx, "-c", code, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert counts(load_report(tmp_path)) == {"a": 800, "d:b": 800, "m": 800}


@pytest.mark.san
def test_doctor_and_lists():
    for args in (["list", "formats"], ["list", "sources"], ["list", "variables"], ["--help"], ["run", "--help"]):
        done = execute([GPUTALLY, *args])
        assert (done.returncode, done.stderr) == (0, ""), args


@pytest.mark.san
def test_the_command_line_leaks_nothing(tmp_path):
    if "address" not in SAN:
        pytest.skip("needs AddressSanitizer's leak check")
    leaks = clean_env(ASAN_OPTIONS="detect_leaks=1")
    for name in "xy":
        run(APPS / "api_basic", options=["-q", "-o", name], cwd=tmp_path)
    for format in ("table", "json", "csv", "tree"):
        views = [] if format == "tree" else ["--group-by", "thread,rank"]
        done = execute([GPUTALLY, "report", "-f", format, *views, "x.json", "y.json"], cwd=tmp_path, env=leaks)
        assert (done.returncode, done.stderr) == (0, "")
    # refused input is freed as well
    (tmp_path / "bad.json").write_bytes((tmp_path / "x.json").read_bytes()[:3000])
    done = execute([GPUTALLY, "report", "x.json", "bad.json"], cwd=tmp_path, env=leaks)
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    done = execute([GPUTALLY, "run", "-q", "-o", "y", "--", "sh", "-c", "exit 3"], cwd=tmp_path, env=leaks)
    assert (done.returncode, done.stderr) == (3, "")
