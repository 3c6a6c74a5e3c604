/* Which files on this machine belong to a module: itself and its debug file. Used by symbols.c;
 * single thread. A file whose build-id is not the recorded one is refused; why is kept as one text.
 */
#ifndef GT_SYMBOLS_FILES_H
#define GT_SYMBOLS_FILES_H

#include "report/elf_file.h"
#include "report/symbols.h"

struct gt_symbols_files {
    struct gt_elf module, debug;
    int has_module, has_debug;
    enum gt_no_names missing; /* why neither is here, or GT_NAMES_KNOWN */
    char *why;                /* NULL: nothing is wrong. The caller frees */
};

/* Opens what there is. The caller closes with gt_symbols_files_close. */
void gt_symbols_files_open(struct gt_symbols_files *f, const struct gt_symbols_of *of,
                           const struct gt_symbols_folders *folders);
void gt_symbols_files_close(struct gt_symbols_files *f);

/* "0123abcd…"; the caller frees. */
char *gt_symbols_hex(const uint8_t *bytes, size_t n);

#endif
