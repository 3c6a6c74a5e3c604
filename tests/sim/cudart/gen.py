"""Writes what build/sim/libcudart.so.13 takes from the toolkit's headers at build time.

gen.py INCLUDE OUT: OUT/cudart_stubs.c, a weak function for every name that the headers declare: it
returns cudaErrorNotSupported and stands where no file here has a real one; OUT/cudart_errors.inc,
the names of the errors.
"""
import re
import sys
from pathlib import Path

HEADERS = ("cuda_runtime_api.h", "cuda_profiler_api.h", "cuda_gl_interop.h", "cuda_egl_interop.h",
           "cuda_vdpau_interop.h")
# what no public header declares and the real library exports
HIDDEN = ("__cudaGetProcAddress", "cudaGetExportTable", "cudaEGLStreamConsumerAcquireFrame")


def functions(include):
    """Names as exported, the variants of the per-thread default stream among them."""
    text = "".join((include / h).read_text(errors="replace") for h in HEADERS)
    names = set(re.findall(r"cudaError_t\s+(?:CUDARTAPI\w*\s+)?(cuda[A-Za-z0-9]+)\s*\(", text))
    for name, kind in re.findall(r"define\s+(cuda\w+)\s+__CUDART_API_(PTDS|PTSZ)\(", text):
        names.add(f"{name}_{kind.lower()}")
    return sorted(names | set(HIDDEN))


def words(name):
    """cudaErrorInvalidValue: invalid value"""
    plain = name.removeprefix("cudaError") or name
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", plain).lower()


def errors(include):
    text = (include / "driver_types.h").read_text(errors="replace")
    body = re.search(r"enum[^{;]*\bcudaError\s*\{(.*?)\};", text, re.S).group(1)
    body = re.sub(r"/\*.*?\*/", "", body, flags=re.S)
    found = [(int(n), name) for name, n in re.findall(r"(cuda\w+)\s*=\s*(\d+)", body)]
    return sorted(found)


def main():
    include, out = Path(sys.argv[1]), Path(sys.argv[2])
    out.mkdir(parents=True, exist_ok=True)
    with open(out / "cudart_stubs.c", "w") as f:
        f.write("/* Made by tests/sim/cudart/gen.py. 801: cudaErrorNotSupported */\n")
        for name in functions(include):
            f.write(f'__attribute__((weak, visibility("default"))) int {name}(void);\n'
                    f"int {name}(void)\n{{\n    return 801;\n}}\n")
    with open(out / "cudart_errors.inc", "w") as f:
        f.write("/* Made by tests/sim/cudart/gen.py. */\n")
        for number, name in errors(include):
            text = words(name) if number else "no error"
            f.write(f'{{{number}, "{name}", "{text}"}},\n')


main()
