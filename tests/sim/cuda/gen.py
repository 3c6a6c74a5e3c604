"""Makes what the simulated driver has of each of cuda.h's functions, from the header itself. `make sim` runs it.

Usage: gen.py PREPROCESSED INCLUDE OUT SOURCE...
  OUT/api.h      prototype of sim_NAME for every function NAME of the driver
  OUT/entries.c  the exports: each announces the call, then calls sim_NAME where a SOURCE defines it, else
                 that of a newer version with the same arguments, else answers CUDA_ERROR_NOT_SUPPORTED.
                 And the table of them that cuGetProcAddress searches, and one of errors
  OUT/all.map, OUT/11040.map, OUT/10020.map   version scripts: all, and what drivers of CUDA 11.4 and 10.2 have
"""
import re
import sys
from collections import defaultdict
from pathlib import Path

PREPROCESSED, INCLUDE, OUT, *SOURCES = map(Path, sys.argv[1:])
# may be called before cuInit
EARLY = re.compile(r"cuInit$|cuDriverGetVersion|cuGetError|cuGetProcAddress|cuGetExportTable|cuProfiler")


def functions():
    """[(name, [(type, parameter)])] of every function that the headers declare"""
    text = PREPROCESSED.read_text()
    found = re.findall(r"[;}\n]\s*CUresult\s+(cu[A-Z]\w*)\s*\(([^;{}]*)\)\s*;", text)
    out = {}
    for name, inside in found:
        parameters = []
        for part in inside.split(","):
            part = " ".join(part.split())
            if part == "void":
                continue
            m = re.fullmatch(r"(.*?)\s*(\w+)((?:\[\w*\])?)", part)
            kind, word, array = m.groups()
            parameters.append((kind + (" *" if array else ""), word))
        out[name] = parameters
    return sorted(out.items())


def errors():
    """[(name, number)] of CUresult"""
    inside = re.search(r"enum cudaError_enum\s*\{(.*?)\}", PREPROCESSED.read_text(), re.S).group(1)
    return [(n, int(v, 0)) for n, v in re.findall(r"(CUDA_\w+)\s*=\s*(\w+)", inside)]


def stem(name):
    """(base name, version suffix as a number, per-thread suffix)"""
    base, number, thread = re.fullmatch(r"(\w+?)(?:_v(\d+))?(_pts[zd]|_ptds)?", name).groups()
    return base, int(number or 1), thread or ""


def versions(names):
    """{exported name: CUDA version that brought it}; cudaTypedefs.h names base, version and variant, and its
    n-th newest is the n-th newest that is exported."""
    text = "".join((INCLUDE / f).read_text() for f in ("cudaTypedefs.h", "cudaProfilerTypedefs.h"))
    of = defaultdict(set)
    for base, version, thread in re.findall(r"PFN_(cu\w+?)_v(\d+)(_ptsz|_ptds)?\)", text):
        of[base, thread].add(int(version))
    exported = defaultdict(list)
    for name in names:
        base, number, thread = stem(name)
        exported[base, thread].append((number, name))
    out = {}
    for key, there in exported.items():
        for (_, name), version in zip(sorted(there, reverse=True), sorted(of.get(key, ()), reverse=True)):
            out[name] = version
    missing = set(names) - set(out)
    if missing:
        sys.exit(f"gen.py: no version in cudaTypedefs.h for {sorted(missing)}")
    return out


def main():
    api = dict(functions())
    since = versions(api)
    here = set()
    for source in SOURCES:
        here |= set(re.findall(r"^CUresult\s+sim_(cu[A-Z]\w+)\(", source.read_text(), re.M))
    if here - set(api):
        sys.exit(f"gen.py: not in cuda.h: {sorted(here - set(api))}")
    numbers = dict(re.findall(r"CUPTI_DRIVER_TRACE_CBID_(cu\w+)\s*=\s*(\d+)",
                              (INCLUDE / "cupti_driver_cbid.h").read_text()))

    def body(name):
        base, number, _ = stem(name)
        for n in [number] + list(range(number + 1, 6)) + list(range(number - 1, 0, -1)):
            other = base + (f"_v{n}" if n > 1 else "")
            if other in here and [t for t, _ in api[other]] == [t for t, _ in api[name]]:
                return other
        return None

    head = "/* Made by tests/sim/cuda/gen.py. */\n"
    with open(OUT / "api.h", "w") as f:
        f.write(head + "#include <cuda.h>\n#include <cudaProfiler.h>\n")
        for name, parameters in api.items():
            f.write(f"CUresult sim_{name}({', '.join(f'{t} {p}' for t, p in parameters) or 'void'});\n")
    with open(OUT / "entries.c", "w") as f:
        f.write(head + '#include "sim.h"\n')
        order = sorted(api, key=lambda n: (stem(n)[0], stem(n)[2], -since[n]))
        for i, name in enumerate(order):
            parameters = api[name]
            declared = ", ".join(f"{t} {p}" for t, p in parameters) or "void"
            given = ", ".join(p for _, p in parameters)
            f.write(f"SIM_API CUresult {name}({declared})\n{{\n    struct gtsim_call sim_c;\n")
            if parameters:
                f.write("    struct { " + " ".join(f"{t} {p};" for t, p in parameters) + f" }} sim_p = {{{given}}};\n")
            symbol = "NULL"
            if re.match(r"cuLaunch(Cooperative)?Kernel(Ex)?(_ptsz)?$|cuLaunch(Grid(Async)?)?$", name):
                symbol = "(const void *)" + next(p for t, p in parameters if t == "CUfunction")
            f.write(f"    CUresult sim_r = sim_enter(&sim_c, &sim_entries[{i}], {'&sim_p' if parameters else 'NULL'}, {symbol});\n")
            impl = body(name)
            if impl:
                f.write(f"    if (sim_r == SIM_GO)\n        sim_r = sim_{impl}({given});\n")
            else:
                f.write("    if (sim_r == SIM_GO)\n        sim_r = CUDA_ERROR_NOT_SUPPORTED;\n")
            f.write("    return sim_leave(&sim_c, sim_r);\n}\n")
        f.write("const struct sim_entry sim_entries[] = {\n")
        for name in order:
            base, _, thread = stem(name)
            f.write(f'    {{"{name}", "{base}", {since[name]}, {int(bool(thread))}, {numbers.get(name, 0)}, '
                    f"{int(bool(EARLY.match(name)))}, (void *){name}}},\n")
        f.write("    {0}};\n")
        f.write("const struct sim_error sim_errors[] = {\n")
        for name, number in errors():
            text = name.removeprefix("CUDA_ERROR_").removeprefix("CUDA_").replace("_", " ").lower()
            f.write(f'    {{{number}, "{name}", "{text if number else "no error"}"}},\n')
        f.write("    {0}};\n")
    for version in (99999, 11040, 10020):
        names = [n for n in api if since[n] <= version]
        (OUT / f"{'all' if version == 99999 else version}.map").write_text(
            "{ global: gtsim_*; " + " ".join(n + ";" for n in names) + " local: *; };\n")
    done = {n for n in api if body(n)}
    print(f"{len(api)} functions, {len(done)} simulated, {len(api) - len(done)} not supported")


main()
