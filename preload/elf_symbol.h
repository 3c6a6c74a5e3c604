/* Looking a symbol up in a loaded library without the loader: where dlsym may not be called (an
 * allocator's hook), or would fail and allocate. */
#ifndef GT_ELF_SYMBOL_H
#define GT_ELF_SYMBOL_H

#include <stddef.h>
#include <stdint.h>

/* A loaded library. Valid as long as it stays loaded. */
struct gt_elf {
    uintptr_t base;
    const void *dynamic; /* its PT_DYNAMIC */
};

/* Finds the first loaded library whose file name begins with `prefix` ("libc10.so" finds
 * libc10.so.1.13 too) and fills *elf. Returns 0 or -ENOENT. `adds` and `subs`, where given, are how
 * often the loader has added and removed a library so far. Takes the loader's list lock for a
 * moment, as a C++ exception does; no malloc. */
int gt_elf_find(const char *prefix, struct gt_elf *elf, uint64_t *adds, uint64_t *subs);

/* 1 if the loader has added or removed nothing since it counted so many. */
int gt_elf_unchanged(uint64_t adds, uint64_t subs);

/* Address of the function or variable that the library defines under `name`; NULL if it has none.
 */
void *gt_elf_symbol(const struct gt_elf *elf, const char *name);

#endif
