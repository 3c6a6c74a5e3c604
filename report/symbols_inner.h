/* What symbols.c and lines.c share. */
#ifndef GT_SYMBOLS_INNER_H
#define GT_SYMBOLS_INNER_H

#include "report/symbols.h"
#include "report/symbols_files.h"
#include "report/symbols_table.h"

struct gt_symbols_plt {
    uint64_t start;
    const char *name;
};

struct gt_lines; /* lines.c */

struct gt_symbols {
    struct gt_symbols_files files;
    struct gt_elf mini; /* .gnu_debugdata */
    uint8_t *mini_bytes;
    struct gt_symbol_table table;
    struct gt_symbols_plt *plts; /* stubs that were asked for */
    size_t plt_count, plt_room;
    struct gt_lines *lines; /* NULL: gt_lines_at was not called */
};

void gt_lines_free(struct gt_lines *l);

#endif
