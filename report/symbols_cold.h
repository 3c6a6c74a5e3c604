/* The part of a function that the compiler moved away since it is rarely run: "NAME.cold". Its
 * symbol is local, so a stripped file has none; and what is rare in general may be most of an
 * interpreter's loop (Debian's Python 3.14: 84 of 86 KiB). Used by symbols.c; single thread.
 *
 * Its unwind data tells where it begins and ends. No other code jumps into the middle of a
 * function: so the function that it jumps back to is its own. x86-64 only. */
#ifndef GT_SYMBOLS_COLD_H
#define GT_SYMBOLS_COLD_H

#include "report/elf_file.h"

struct gt_symbols_cold {
    struct gt_elf *elf;
    uint8_t *table;           /* .eh_frame_hdr; NULL: not read yet, or unusable */
    uint64_t at;              /* its address */
    uint32_t count;           /* entries */
    const Elf64_Shdr *frames; /* .eh_frame */
    int read;
    uint64_t looked; /* bytes of code so far */
};

/* The piece of code with unwind data of its own around `address`: 1, or 0: there is none. */
int gt_symbols_piece(struct gt_symbols_cold *c, uint64_t address, uint64_t *start, uint64_t *end);
/* Where the function starts that such a piece is a part of; 0: it is not known to be one's. */
uint64_t gt_symbols_owner(struct gt_symbols_cold *c, uint64_t start, uint64_t end);
void gt_symbols_cold_free(struct gt_symbols_cold *c);

#endif
