/* Layouts by version: python_layout.h. Called by python.c when an interpreter is found.
 *
 * From 3.13 on the interpreter describes itself for debuggers, which settles builds with options of
 * their own. */
#include "preload/python_rows.h"

#include <errno.h>
#include <string.h>

/* What an interpreter says of itself: numbers of 8 bytes, in places that each minor version has of
 * its own. In words. */
struct described {
    size_t field;
    uint8_t at[2]; /* in 3.13, in 3.14 */
};
static const struct described fields[] = {
    {offsetof(struct gt_python_layout, frame), {184 / 8, 208 / 8}},
    {offsetof(struct gt_python_layout, previous), {232 / 8, 256 / 8}},
    {offsetof(struct gt_python_layout, code), {240 / 8, 264 / 8}},
    {offsetof(struct gt_python_layout, instr), {248 / 8, 272 / 8}},
    {offsetof(struct gt_python_layout, owner), {264 / 8, 288 / 8}},
    {offsetof(struct gt_python_layout, file), {280 / 8, 320 / 8}},
    {offsetof(struct gt_python_layout, name), {296 / 8, 336 / 8}},
    {offsetof(struct gt_python_layout, lines), {304 / 8, 344 / 8}},
    {offsetof(struct gt_python_layout, first_line), {312 / 8, 352 / 8}},
    {offsetof(struct gt_python_layout, bytecode), {344 / 8, 384 / 8}},
    {offsetof(struct gt_python_layout, ascii), {560 / 8, 640 / 8}},
    {offsetof(struct gt_python_layout, bytes), {528 / 8, 608 / 8}},
};
enum { VERSION = 1, FREE_THREADED = 2, OFFSET_MAX = 4096 };

/* Where the description differs from the row it is right: a build with options of its own. What it
 * does not tell lies where it always does, if the code object is as long as it always is. */
static int follow(struct gt_python_layout *l, uint32_t version, const uint64_t *told)
{
    uint16_t bytecode = l->bytecode;

    if (memcmp(told, "xdebugpy", 8) != 0 || told[VERSION] != version)
        return -EINVAL;
    if (told[FREE_THREADED])
        return -ENOSYS;
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        uint64_t offset = told[fields[i].at[l->minor - 13]];

        if (offset > OFFSET_MAX)
            return -EINVAL;
        memcpy((char *)l + fields[i].field, &(uint16_t){(uint16_t)offset}, sizeof(uint16_t));
    }
    return l->bytecode == bytecode ? 0 : -EINVAL;
}

int gt_python_layout_find(struct gt_python_layout *l, uint32_t version, const void *runtime)
{
    unsigned minor = version >> 16 & 255;
    int r = 0;

    if (version >> 24 != 3 || minor < GT_PYTHON_FIRST || minor > GT_PYTHON_LAST)
        return -ENOTSUP;
    *l = gt_python_rows[minor - GT_PYTHON_FIRST];
    if (minor >= 13)
        r = runtime ? follow(l, version, runtime) : -EINVAL;
    l->row = memcmp(l, &gt_python_rows[minor - GT_PYTHON_FIRST], sizeof *l) ? 0 : (uint8_t)minor;
    return r;
}
