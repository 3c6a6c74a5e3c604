"""The tables and types of CUDA's functions against the real headers: nothing forgotten, nothing out of place."""
import re
import shutil
import subprocess

import pytest

from conftest import ROOT, execute

FLAGS = ["gcc", "-std=gnu11", "-D__CUDA_API_VERSION_INTERNAL", f"-I{ROOT}"]
DRIFT = ROOT / "scripts/api-drift"
# the fields that preload/ reads
FIELDS = {
    "CUDA_ARRAY_DESCRIPTOR": "Width Height Format NumChannels", "CUDA_ARRAY_DESCRIPTOR_v1": "Width Height Format NumChannels",
    "CUDA_ARRAY3D_DESCRIPTOR": "Width Height Depth Format NumChannels Flags",
    "CUDA_ARRAY3D_DESCRIPTOR_v1": "Width Height Depth Format NumChannels Flags",
    "CUDA_MEMCPY2D": "WidthInBytes Height", "CUDA_MEMCPY2D_v1": "WidthInBytes Height",
    "CUDA_MEMCPY3D": "WidthInBytes Height Depth", "CUDA_MEMCPY3D_v1": "WidthInBytes Height Depth",
    "CUDA_MEMCPY3D_PEER": "WidthInBytes Height Depth",
    "CUDA_MEMCPY3D_BATCH_OP": "src.type dst.type extent.width extent.height extent.depth",
    "cudaMemcpy3DBatchOp": "src.type dst.type extent.width extent.height extent.depth",
    "cudaMemcpy3DParms": "srcArray dstArray extent", "cudaMemcpy3DPeerParms": "srcArray dstArray extent",
    "cudaExtent": "width height depth", "cudaPitchedPtr": "pitch", "cudaChannelFormatDesc": "x y z w",
}


@pytest.fixture(scope="module")
def headers():
    done = execute([ROOT / "scripts/cuda-include", "--no-download"])
    if done.returncode:
        pytest.skip("no CUDA 13 headers here (scripts/cuda-include)")
    return done.stdout.split()[0]


def test_nothing_forgotten(headers):
    done = execute([DRIFT])
    assert (done.returncode, done.stdout) == (0, ""), done.stdout
    assert "cuda: 637 declared" in done.stderr


def test_what_is_forgotten_is_seen(headers, tmp_path):
    """A line too few, one too many, a pattern that fits nothing."""
    for part in ("scripts", "preload/hooks", "preload/abi"):
        shutil.copytree(ROOT / part, tmp_path / part)
    table, left_out = tmp_path / "preload/hooks/cuda.def", tmp_path / "preload/hooks/cuda-left-out.txt"
    table.write_text(re.sub(r"(?m)^HOOK\(cuMemAlloc_v2,.*\n", "", table.read_text()) +
                     "HOOK(cuNothing, cuNothing, 2000, SYNC, 0, (void), ())\n")
    left_out.write_text(left_out.read_text() + "cuInit why not\ncuNobody* nobody\n")
    done = execute([tmp_path / "scripts/api-drift"])
    assert done.returncode == 1
    assert done.stdout.splitlines() == [
        "cuInit: has a line, and is left out on purpose by cuInit", "cuMemAlloc_v2: no line in cuda.def",
        "cuNothing: has a line in cuda.def, and is in no header", "cuNobody*: left out on purpose, and in no header"]


def compiles(path, headers):
    return execute([*FLAGS, f"-I{headers}", "-fsyntax-only", path])


def test_prototypes(headers, tmp_path):
    assert execute([DRIFT, "--check", tmp_path / "check.c"]).returncode == 0
    done = compiles(tmp_path / "check.c", headers)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("api, good, bad", [
    ("cuda", "(CUdeviceptr dptr)", "(CUdeviceptr_v1 dptr)"),
    ("cudart", "(void **devPtr, size_t size)", "(void **devPtr, unsigned int size)"),
    ("cudart", "dim3 gridDim, dim3 blockDim", "cudaExtent gridDim, dim3 blockDim"),
])
def test_a_wrong_prototype_is_seen(headers, tmp_path, api, good, bad):
    execute([DRIFT, "--check", tmp_path / "check.c"])
    text = (tmp_path / "check.c").read_text()
    table = (ROOT / f"preload/hooks/{api}.def").read_text()
    wrong = table.replace(good, bad, 1)
    assert wrong != table
    if api == "cuda":
        (tmp_path / "wrong.def").write_text(wrong)
        text = text.replace("preload/hooks/cuda.def", str(tmp_path / "wrong.def"))
    else:
        text = text.replace(good, bad, 1)
    (tmp_path / "check.c").write_text(text)
    assert "conflicting types" in compiles(tmp_path / "check.c", headers).stderr


def numbers(include, text, tmp_path, name):
    (tmp_path / f"{name}.c").write_text(include + "\n#include <stdio.h>\n#include <stddef.h>\nint main(void) {\n" + text + "}\n")
    return lambda more: subprocess.run([*FLAGS, *more, "-o", tmp_path / name, tmp_path / f"{name}.c"], check=True) and \
        execute([tmp_path / name]).stdout


def test_types(headers, tmp_path):
    types = re.findall(r"^(\w+)\((\w+)", (ROOT / "preload/abi/cuda_types.def").read_text(), re.M)
    text = "".join(f'printf("{t} %zu\\n", sizeof({t}));\n' for kind, t in types if kind not in ("OPAQUE", "RTSTRUCT"))
    assert set(FIELDS) <= {t for _, t in types}
    for t, fields in FIELDS.items():
        for f in fields.split():
            text += f'printf("{t}.{f} %zu %zu\\n", offsetof({t}, {f}), sizeof((({t} *)0)->{f}));\n'
    ours = numbers('#include "preload/abi/cuda.h"', text, tmp_path, "ours")([])
    check = execute([DRIFT, "--check", tmp_path / "check.c"])
    assert check.returncode == 0
    words = "\n".join(line for line in (tmp_path / "check.c").read_text().splitlines() if line.startswith(("#include <", "typedef")))
    theirs = numbers(words, text, tmp_path, "theirs")([f"-I{headers}"])
    assert ours == theirs and "CUDA_MEMCPY2D_v1.Height 88 4" in ours


def test_left_out_with_a_reason():
    lines = [line for line in (ROOT / "preload/hooks/cuda-left-out.txt").read_text().splitlines() if not line.startswith("#")]
    names = [line.split()[0] for line in lines]
    assert len(names) == len(set(names)) > 100
    assert all(len(line.split(None, 1)) == 2 for line in lines)
