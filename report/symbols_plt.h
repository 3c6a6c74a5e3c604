/* What a stub of a procedure linkage table calls. Used by symbols.c; single thread. */
#ifndef GT_SYMBOLS_PLT_H
#define GT_SYMBOLS_PLT_H

#include "report/elf_file.h"

/* The linker's name of the function that the stub at `address` jumps to, and the stub's start.
 * NULL: it is no stub, or there is no telling. The caller frees. */
char *gt_symbols_plt(struct gt_elf *e, uint64_t address, uint64_t *start);

#endif
