#!/usr/bin/env python3
"""Writes a device image that names kernels and their parameters and holds no code: all that the simulated driver looks
at, so that a machine without a CUDA compiler has something to load.

    cubin.py FILE KERNEL:SIZE,SIZE,… …      sizes of the parameters in bytes
"""
import struct
import sys


def parameters(sizes):
    """Records of .nv.info: format 4, attribute 0x17; index, ordinal, offset, size << 18."""
    out, offset = b"", 0
    for i, size in enumerate(sizes):
        offset = (offset + size - 1) // size * size
        out += struct.pack("<BBHIHHI", 4, 0x17, 12, 0, i, offset, size << 18)
        offset += size
    return out


def image(kernels):
    sections = [("", 0, b"")]
    for name, sizes in kernels:
        sections += [(f".text.{name}", 1, bytes(16)), (f".nv.info.{name}", 0x70000000, parameters(sizes))]
    names = b""
    at = []
    for name, *_ in sections + [(".shstrtab",)]:
        at.append(len(names))
        names += name.encode() + b"\0"
    sections.append((".shstrtab", 3, names))
    body, headers = b"", b""
    for (_, kind, data), name in zip(sections, at):
        body += bytes(-len(body) % 8)
        headers += struct.pack("<IIQQQQIIQQ", name, kind, 0, 0, 64 + len(body), len(data), 0, 0, 8, 0)
        body += data
    body += bytes(-len(body) % 8)
    # 190 is EM_CUDA
    head = b"\x7fELF" + bytes([2, 1, 1, 0x33, 7]) + bytes(7) + struct.pack(
        "<HHIQQQIHHHHHH", 2, 190, 1, 0, 0, 64 + len(body), 0x5a0000, 64, 0, 0, 64, len(sections), len(sections) - 1)
    return head + body + headers


def main():
    kernels = []
    for word in sys.argv[2:]:
        name, sizes = word.split(":")
        kernels.append((name, [int(s) for s in sizes.split(",")]))
    with open(sys.argv[1], "wb") as f:
        f.write(image(kernels))


if __name__ == "__main__":
    main()
