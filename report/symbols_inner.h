/* What symbols.c and lines.c share. */
#ifndef GT_SYMBOLS_INNER_H
#define GT_SYMBOLS_INNER_H

#include "report/symbols.h"
#include "report/symbols_cold.h"
#include "report/symbols_files.h"
#include "report/symbols_table.h"

/* What has no symbol of its own: stubs, and pieces of code. */
struct gt_symbols_extra {
    uint64_t start;
    uint64_t owner;   /* the function that a piece is a part of; 0: none */
    const char *name; /* NULL: none, or not asked for yet */
};

struct gt_lines; /* lines.c */

struct gt_symbols {
    struct gt_symbols_files files;
    struct gt_elf mini; /* .gnu_debugdata */
    uint8_t *mini_bytes;
    struct gt_symbol_table table;
    struct gt_symbols_cold cold;
    struct gt_symbols_extra *extras; /* by start */
    size_t extra_count, extra_room;
    struct gt_lines *lines; /* NULL: gt_lines_at was not called */
};

void gt_lines_free(struct gt_lines *l);

#endif
