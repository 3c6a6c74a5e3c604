/* Function names of one file that was mapped in the program: from the file itself, and from its
 * debug file. Asked by whoever turns addresses of frames into text, in the report's process only;
 * single thread.
 *
 * The files may have been replaced since, or be those of another machine. So a file whose build-id
 * is not the one that was recorded is never read for names: gt_symbols_why tells it. */
#ifndef GT_SYMBOLS_H
#define GT_SYMBOLS_H

#include <stddef.h>
#include <stdint.h>

struct gt_symbols; /* of one module */

/* What is known of the module. Borrowed until gt_symbols_open returns. */
struct gt_symbols_of {
    const char *path;
    const uint8_t *build_id; /* NULL: it has none */
    size_t build_id_bytes;
    uint32_t pid;        /* of its process if that still runs: its files may be deleted, or be in
                          * another mount namespace. 0: do not look there */
    uint64_t start, end; /* of its mappings in that process */
};

/* Folders with debug files: below each, .build-id/xx/yyyy.debug,
 * and modules and debug files by their own name. They come before /usr/lib/debug. Borrowed. */
struct gt_symbols_folders {
    const char *const *at;
    size_t count;
};

/* Why no function of a module has a name, as far as it has none. */
enum gt_no_names {
    GT_NAMES_KNOWN,    /* or the module was not asked for names */
    GT_NAMES_NO_FILE,  /* of its own: in memory, in an archive, the vDSO */
    GT_NAMES_GONE,     /* deleted, or on another machine */
    GT_NAMES_REPLACED, /* another build is there */
    GT_NAMES_UNREADABLE,
    GT_NAMES_NOT_ELF,
    GT_NAMES_STRIPPED, /* the file is here, and has no symbols of functions */
    GT_NO_NAMES
};

struct gt_symbol {
    const char *name; /* demangled, cut at 4096 bytes; valid until gt_symbols_free */
    uint64_t start;   /* address of its first instruction */
};

/* Never NULL; a module without a readable file is a table without names. `folders` may be NULL. The
 * caller frees with gt_symbols_free. */
struct gt_symbols *gt_symbols_open(const struct gt_symbols_of *of,
                                   const struct gt_symbols_folders *folders);
void gt_symbols_free(struct gt_symbols *s); /* NULL is fine */

/* Why names are missing or may be: one warning for the module, "FILE: why", without newline. NULL:
 * nothing is wrong. */
const char *gt_symbols_why(const struct gt_symbols *s);

enum gt_no_names gt_symbols_no_names(const struct gt_symbols *s);

/* gt_symbols_at or gt_lines_at will be asked for this address, which has the same meaning there.
 * All that are wanted are looked for together, at the first question; one that was not costs a pass
 * over all symbols of the module. */
void gt_symbols_want(struct gt_symbols *s, uint64_t address, int exact);

/* The function that `address` (an ELF virtual address: pc - gt_module.bias) belongs to. `exact`: it
 * is the address of an instruction that was interrupted; else it is a return address, and the call
 * before it is meant. Returns 0, or -ENOENT where there is none: between two functions, or in a
 * module without names. */
int gt_symbols_at(struct gt_symbols *s, uint64_t address, int exact, struct gt_symbol *out);

/* ---- report --lines (report/lines.c) ---- */

struct gt_line {
    const char *function; /* demangled; NULL: not known */
    const char *file;     /* NULL: not known */
    uint32_t line;        /* 0: not known */
};

/* Where the instruction at `address` comes from: the innermost inlined function first, the function
 * that gt_symbols_at names last. Each line is where that function called the one before. Returns
 * how many there are, 0 where the debug information has nothing; *out is valid until
 * gt_symbols_free. Opens libdw, and the debug information of the module, the first time. */
size_t gt_lines_at(struct gt_symbols *s, uint64_t address, int exact, const struct gt_line **out);

/* Why there are no lines: one warning for the module, or for all (no libdw here): the same text
 * then. NULL: nothing is wrong, or gt_lines_at was not called. */
const char *gt_lines_why(const struct gt_symbols *s);

#endif
