/* .gnu_debugdata: a small ELF file in a section, compressed by xz, with the symbols that .dynsym
 * lacks. */
#ifndef GT_SYMBOLS_XZ_H
#define GT_SYMBOLS_XZ_H

#include <stddef.h>
#include <stdint.h>

/* What `bytes` hold, NULL if they are damaged or hold more than a section of symbols can. The
 * caller frees. */
uint8_t *gt_symbols_unxz(const uint8_t *bytes, size_t n, size_t *size);

#endif
