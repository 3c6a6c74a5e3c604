/* libdw of elfutils, opened when lines are asked for: the rest of the program runs without it. Our
 * own declarations of the little that lines.c needs; it has kept them for twenty years
 * (libdw.so.1).
 */
#ifndef GT_LIBDW_H
#define GT_LIBDW_H

#include <stddef.h>
#include <stdint.h>

struct gt_dw; /* Dwarf */
struct gt_dw_unit;
struct gt_dw_line;
struct gt_dw_files;

struct gt_dw_die {
    void *at; /* in the section */
    struct gt_dw_unit *unit;
    void *own[2];
};

struct gt_dw_attribute {
    unsigned own[2];
    void *more[2];
};

enum gt_dw_tag {
    GT_DW_CLASS = 0x02,
    GT_DW_ENUMERATION = 0x04,
    GT_DW_BLOCK = 0x0b,
    GT_DW_COMPILE_UNIT = 0x11,
    GT_DW_STRUCTURE = 0x13,
    GT_DW_UNION = 0x17,
    GT_DW_INLINED = 0x1d,
    GT_DW_MODULE = 0x1e,
    GT_DW_WITH = 0x22,
    GT_DW_CATCH = 0x25,
    GT_DW_FUNCTION = 0x2e,
    GT_DW_TRY = 0x32,
    GT_DW_NAMESPACE = 0x39,
    GT_DW_SKELETON_UNIT = 0x4a,
};

enum gt_dw_name {
    GT_DW_ABSTRACT_ORIGIN = 0x31,
    GT_DW_SPECIFICATION = 0x47,
    GT_DW_CALL_FILE = 0x58,
    GT_DW_CALL_LINE = 0x59,
    GT_DW_LINKAGE_NAME = 0x6e,
};
#define GT_DW_MIPS_LINKAGE_NAME 0x2007

/* dwarf_ of each, as elfutils/libdw.h has it. */
struct gt_libdw {
    struct gt_dw *(*begin)(int fd, int command);
    int (*end)(struct gt_dw *d);
    int (*get_units)(struct gt_dw *d, struct gt_dw_unit *unit, struct gt_dw_unit **next,
                     uint16_t *version, uint8_t *type, struct gt_dw_die *die,
                     struct gt_dw_die *sub);
    ptrdiff_t (*ranges)(struct gt_dw_die *die, ptrdiff_t offset, uint64_t *base, uint64_t *start,
                        uint64_t *end);
    int (*child)(struct gt_dw_die *die, struct gt_dw_die *result);
    int (*siblingof)(struct gt_dw_die *die, struct gt_dw_die *result);
    int (*haspc)(struct gt_dw_die *die, uint64_t pc);
    int (*tag)(struct gt_dw_die *die);
    const char *(*diename)(struct gt_dw_die *die);
    struct gt_dw_attribute *(*attr)(struct gt_dw_die *die, unsigned name,
                                    struct gt_dw_attribute *result);
    struct gt_dw_attribute *(*attr_integrate)(struct gt_dw_die *die, unsigned name,
                                              struct gt_dw_attribute *result);
    const char *(*formstring)(struct gt_dw_attribute *a);
    struct gt_dw_die *(*formref_die)(struct gt_dw_attribute *a, struct gt_dw_die *result);
    int (*formudata)(struct gt_dw_attribute *a, uint64_t *result);
    struct gt_dw_line *(*getsrc_die)(struct gt_dw_die *unit, uint64_t pc);
    const char *(*linesrc)(struct gt_dw_line *l, uint64_t *mtime, uint64_t *length);
    int (*lineno)(struct gt_dw_line *l, int *result);
    int (*getsrcfiles)(struct gt_dw_die *unit, struct gt_dw_files **files, size_t *count);
    const char *(*filesrc)(struct gt_dw_files *files, size_t i, uint64_t *mtime, uint64_t *length);
};

/* NULL: it is not here. Stays open. */
const struct gt_libdw *gt_libdw(void);

#endif
