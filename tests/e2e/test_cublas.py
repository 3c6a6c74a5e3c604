"""cuBLAS' products as ranges with shapes and FLOPs, on stand-ins that compute nothing."""
import re
import subprocess

import pytest

from conftest import APPS, ROOT, both, load_report, rows  # noqa: F401 (a fixture)

LINES = [re.match(r"HOOK\((\w+), (\w+), (.*?), (\w+), \((.*?)\), \((.*?)\)\)$", line).groups()
         for line in (ROOT / "preload/hooks/cublas.def").read_text().splitlines() if line.startswith("HOOK")]
M, N, K, BATCHES = 2, 3, 5, 7


def expected():
    """{key: (calls, failed, FLOPs)} of what the client calls."""
    out = {}
    for _, key, operations, batches, *_ in LINES:
        one = int(operations) if operations.isdigit() else 8  # typeA is 6: complex
        count, failed, flops = out.get(key, (0, 0, 0))
        out[key] = (count + 1, failed, flops + one * M * N * K * (BATCHES if batches == "batches" else 1))
    count, _, flops = out["cublasSgemm"]
    out["cublasSgemm"] = (count + 1, 1, flops)
    # two of the client's, and one inside of each cublasGemmEx, whose FLOPs are that one's
    out["cublasLtMatmul"] = (2 + out["cublasGemmEx"][0], 0, 2 * 2 * 2 * 3 * 11 * 4)
    return out


@pytest.mark.parametrize("way", ["linked", "open"])
def test_every_product(both, way):
    for done in both(APPS / "cublas_client", *(["open"] if way == "open" else []),
                     env={"LD_LIBRARY_PATH": str(APPS / "cublas"), "GPUTALLY_RECORD_SHAPES": "1"})[1:]:
        report = load_report(done.folder)
        got = {k: (r["count"], r["failed"], r["flops"]) for k, r in rows(report).items() if r["source"] == "cublas"}
        assert got == expected()
        shapes = {(r["key"], r.get("shapes")) for r in report["call_tree"]}
        assert ("cublasSgemm", f"[[{M}, {K}], [{K}, {N}]]") in shapes
        assert ("cublasSgemmBatched", f"[[{BATCHES}, {M}, {K}], [{BATCHES}, {K}, {N}]]") in shapes
        assert ("cublasLtMatmul", "[[4, 2, 11], [4, 11, 3]]") in shapes


def test_as_the_header_has_them():
    """Each line's parameters are as many and as wide as the real header's."""
    done = subprocess.run([ROOT / "scripts/cuda-include", "--no-download"], text=True, capture_output=True)
    header = next((p for p in map(lambda d: ROOT / d / "cublas_api.h", done.stdout.split()) if p.exists()), None)
    if not header:
        pytest.skip("cuBLAS' header is not here: it comes with the toolkit")
    text = re.sub(r"/\*.*?\*/|//[^\n]*", "", header.read_text(), flags=re.S)

    def width(parameter):
        if "*" in parameter:
            return "pointer"
        kind = parameter.rsplit(None, 1)[0]
        return {"cublasHandle_t": "pointer", "void *": "pointer", "int64_t": 8, "long long": 8,
                "long long int": 8}.get(kind, 4)

    found = {}
    for name, parameters in re.findall(r"cublasStatus_t\s+(?:CUBLASWINAPI\s+)?(cublas\w+)\s*\(([^)]*)\)", text):
        found.setdefault(name, [width(p.strip()) for p in parameters.split(",")])
    for name, _, _, _, parameters, arguments in LINES:
        assert [width(p.strip()) for p in parameters.split(",")] == found[name], name
        assert [p.split()[-1].lstrip("*") for p in parameters.split(",")] == arguments.split(", "), name
