/* Where things lie in an interpreter. Offsets in bytes, the same on all 64-bit Linux. */
#ifndef GT_PYTHON_LAYOUT_H
#define GT_PYTHON_LAYOUT_H

#include <stddef.h>
#include <stdint.h>

struct gt_python_layout {
    uint8_t minor; /* 9: Python 3.9 */
    uint8_t row;   /* the same if it is as in gt_python_rows, else 0 */
    /* the thread's state */
    uint16_t frame;     /* its innermost frame, or, in 3.11 and 3.12, what leads there */
    uint16_t via_frame; /* innermost frame in that */
    uint16_t via;       /* 1: there is such a thing */
    /* a frame */
    uint16_t previous; /* its caller */
    uint16_t code;     /* what it executes; pointers have tags from 3.14 on */
    uint16_t code_tag;
    uint16_t instr;      /* instruction: an address, or the number of one */
    uint64_t instr_mask; /* of the 8 bytes there */
    uint16_t instr_step; /* bytes that the number counts */
    uint16_t entry;      /* 3.11: is it the outermost one of its interpreter's loop? A byte */
    uint16_t entry_mask; /* 0: has no such thing */
    uint16_t owner;      /* enum gt_python_owner, a byte; 0: has none */
    /* a code object */
    uint16_t file, name; /* str; the qualified name where there is one */
    uint16_t lines;      /* bytes: co_linetable, co_lnotab in 3.9 */
    uint16_t first_line; /* int */
    uint16_t version;    /* int, another one for each code object; 0: has none */
    uint16_t bytecode;   /* where it begins, in the object; 0: elsewhere */
    uint16_t traceable;  /* int, first instruction of a frame that is complete; with bytecode */
    /* texts */
    uint16_t ascii, compact; /* data of a str that is ASCII, that is not */
    uint16_t bytes;          /* data of a bytes */
};

enum gt_python_owner {
    GT_PYTHON_OWNER_GENERATOR = 1,
    GT_PYTHON_OWNER_C = 3, /* and above: no frame of Python's, but a call from C */
};

/* The same in all versions. */
enum {
    GT_PYTHON_TYPE = 8,  /* of every object */
    GT_PYTHON_SIZE = 16, /* of every object that has one: bytes, a str's length */
    GT_PYTHON_STR_HASH = 24,
    GT_PYTHON_STR_STATE = 32,
};
#define GT_PYTHON_STR_KIND(state) ((state) >> 2 & 7u) /* bytes of a character: 1, 2, 4 */
#define GT_PYTHON_STR_COMPACT 0x20u                   /* the text lies in the object itself */
#define GT_PYTHON_STR_ASCII 0x40u

/* Fills *l for the version (PY_VERSION_HEX). `runtime` is _PyRuntime, from 3.13 on: it begins with
 * a description of the interpreter. Returns 0, -ENOTSUP: a version we do not know; -ENOSYS: it runs
 * without a GIL; -EINVAL: it contradicts its version. */
int gt_python_layout_find(struct gt_python_layout *l, uint32_t version, const void *runtime);

/* "3.9 to 3.14", for messages. */
#define GT_PYTHON_VERSIONS "3.9 to 3.14"

#endif
