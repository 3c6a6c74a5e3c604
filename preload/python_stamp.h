/* What tells one code object from another one that has come to lie at its place. Compared by
 * python_walk.c for each frame of each capture, so: few loads, no branches to miss.
 *
 * Programs make and drop code in loops (exec, eval), and the allocator gives the same places again
 * to the code, its file, its name and its lines: the addresses alone tell nothing. From 3.12 on
 * each code object has a number of its own. Before, the contents are looked at, which leaves one
 * gap: code of the same file, name, first line and size, whose table of lines has over 64 bytes and
 * differs in the middle only, has the lines of its predecessor. */
#ifndef GT_PYTHON_STAMP_H
#define GT_PYTHON_STAMP_H

#include "preload/python.h"

/* Into each loop: offsets are constants there. */
#define GT_PYTHON_INLINE __attribute__((always_inline))

/* Of a str before 3.12: its length, its hash where it is known, and its last eight bytes; of a
 * short one these reach into its head, which is as good. */
static inline GT_PYTHON_INLINE uint64_t gt_python_str_stamp(const struct gt_python_layout *l,
                                                            const char *str)
{
    const uint32_t both = GT_PYTHON_STR_COMPACT | GT_PYTHON_STR_ASCII;
    uint32_t state = gt_python_u32(str, GT_PYTHON_STR_STATE);
    uint64_t length = gt_python_u64(str, GT_PYTHON_SIZE), end = length;

    if (likely((state & both) == both))
        end += l->ascii;
    else if (state & GT_PYTHON_STR_COMPACT)
        end = l->compact + (length << (GT_PYTHON_STR_KIND(state) >> 1));
    else /* its text lies elsewhere; made in ways that are long deprecated */
        end = GT_PYTHON_STR_STATE;
    return gt_python_u64(str, end - 8) ^ length << 24 ^ gt_python_u64(str, GT_PYTHON_STR_HASH);
}

/* Of the table of lines before 3.12, a bytes: its size and content where it has up to 64 bytes, for
 * such ones has code that is made and dropped in a loop; of a longer one both ends. */
static inline GT_PYTHON_INLINE uint64_t gt_python_lines_stamp(const struct gt_python_layout *l,
                                                              const char *table)
{
    uint64_t n = gt_python_u64(table, GT_PYTHON_SIZE), stamp = n;
    const char *p = table + l->bytes, *end = p + n;

    if (n >= 16)
        stamp += gt_python_u64(p, 0) + gt_python_u64(p, 8) * 3 +
                 (gt_python_u64(end - 16, 0) * 5 ^ gt_python_u64(end - 16, 8) * 9) * 3;
    if (n >= 32)
        stamp += (gt_python_u64(p, 16) + gt_python_u64(p, 24) * 3) * 9 +
                 (gt_python_u64(end - 32, 0) * 5 ^ gt_python_u64(end - 32, 8) * 9) * 5;
    if (n - 1 < 15) /* the first word and the last; of less than one, what lies before is cut off */
        stamp += (gt_python_u64(end - 8, 0) >> (n < 8 ? 64 - n * 8 : 0)) +
                 (n < 8 ? 0 : gt_python_u64(p, 0) * 3);
    return stamp;
}

/* The number, but for the gap equal for two code objects at one place only if they have the same
 * file, name and lines. Never 0. */
static inline GT_PYTHON_INLINE uint64_t gt_python_stamp(const struct gt_python_layout *l,
                                                        const char *code)
{
    const char *file = gt_python_pointer(code, l->file), *name = gt_python_pointer(code, l->name);
    uint64_t stamp = (uint64_t)(uintptr_t)file * 3 + (uint64_t)(uintptr_t)name * 5;

    if (l->version) { /* 3.12 and later number their code objects */
        stamp ^= (uint64_t)gt_python_u32(code, l->version) << 32;
    } else {
        stamp += gt_python_u32(code, l->first_line) +
                 gt_python_lines_stamp(l, gt_python_pointer(code, l->lines)) * 9;
        stamp ^= gt_python_str_stamp(l, file) * UINT64_C(0x9e3779b97f4a7c15);
        stamp += gt_python_str_stamp(l, name) * UINT64_C(0xff51afd7ed558ccd);
    }
    return stamp ? stamp : 1;
}

#endif
