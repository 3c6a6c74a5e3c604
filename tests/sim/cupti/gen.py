"""Writes what build/sim/libcupti.so.13 takes from the toolkit's headers at build time.

gen.py INCLUDE OUT: OUT/cupti_stubs.c, a weak function for every name that the headers declare, which
returns CUPTI_ERROR_NOT_SUPPORTED and stands where no file here has a real one, and the names of
calls by number; OUT/cupti_results.inc, the names of errors.
"""
import re
import sys
from pathlib import Path

HEADERS = ("cupti_activity.h", "cupti_activity_deprecated.h", "cupti_callbacks.h", "cupti_events.h",
           "cupti_metrics.h", "cupti_profiler_target.h", "cupti_profiler_host.h",
           "cupti_range_profiler.h", "cupti_target.h", "cupti_pcsampling.h",
           "cupti_pcsampling_util.h", "cupti_pmsampling.h", "cupti_sass_metrics.h",
           "cupti_checkpoint.h", "cupti_result.h", "cupti_version.h")


def functions(include):
    text = "".join((include / h).read_text(errors="replace") for h in HEADERS
                   if (include / h).exists())
    text = re.sub(r"/\*.*?\*/|//[^\n]*", "", text, flags=re.S)
    return sorted(set(re.findall(r"\b(cupti[A-Z]\w*)\s*\(", text)))


def calls(include, header, prefix):
    text = (include / header).read_text(errors="replace")
    found = {int(n): name for name, n in re.findall(prefix + r"(\w+)\s*=\s*(\d+)", text)}
    found.pop(0, None)  # INVALID
    return found


def main():
    include, out = Path(sys.argv[1]), Path(sys.argv[2])
    out.mkdir(parents=True, exist_ok=True)
    with open(out / "cupti_stubs.c", "w") as f:
        f.write("/* Made by tests/sim/cupti/gen.py. 27: CUPTI_ERROR_NOT_SUPPORTED */\n"
                "#include <stddef.h>\n")
        for name in functions(include):
            f.write(f'__attribute__((weak, visibility("default"))) int {name}(void);\n'
                    f"int {name}(void)\n{{\n    return 27;\n}}\n")
        for kind in ("runtime", "driver"):
            prefix = f"CUPTI_{kind.upper()}_TRACE_CBID_"
            named = calls(include, f"cupti_{kind}_cbid.h", prefix)
            named = {n: name for n, name in named.items() if n < 4096}  # without FORCE_INT
            count = max(named) + 1
            f.write(f"extern const char *const cupti_{kind}_names[];\n"
                    f"extern const size_t cupti_{kind}_count;\n"
                    f"const size_t cupti_{kind}_count = {count};\n"
                    f"const char *const cupti_{kind}_names[{count}] = {{\n")
            for n, name in sorted(named.items()):
                f.write(f'    [{n}] = "{name}",\n')
            f.write("};\n")
    with open(out / "cupti_results.inc", "w") as f:
        text = (include / "cupti_result.h").read_text(errors="replace")
        for name, n in re.findall(r"(CUPTI_(?:SUCCESS|ERROR\w+))\s*=\s*(\d+)", text):
            if "FORCE_INT" not in name:
                f.write(f'{{{n}, "{name}"}},\n')


main()
