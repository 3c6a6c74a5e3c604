/* What symbols.c and lines.c share. */
#ifndef GT_SYMBOLS_INNER_H
#define GT_SYMBOLS_INNER_H

#include "report/symbols.h"
#include "report/symbols_cold.h"
#include "report/symbols_files.h"
#include "report/symbols_table.h"

/* What has no symbol of its own. */
struct gt_symbols_extra {
    uint64_t start;
    const char *name; /* NULL: none */
};

struct gt_lines; /* lines.c */

struct gt_symbols {
    struct gt_symbols_files files;
    struct gt_elf mini; /* .gnu_debugdata */
    uint8_t *mini_bytes;
    struct gt_symbol_table table;
    struct gt_symbols_cold cold;
    struct gt_symbols_extra *extras; /* stubs and cold parts that were asked for */
    size_t extra_count, extra_room;
    unsigned passes;        /* over all symbols, for the owners of cold parts */
    struct gt_lines *lines; /* NULL: gt_lines_at was not called */
};

void gt_lines_free(struct gt_lines *l);

#endif
