/* Layouts and line tables of preload/python*.c, and the careful look at frames that are none. What
 * the walk finds in real interpreters is compared by tests/python/walk.py. */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "preload/python.h"
#include "preload/python_rows.h"

/* ---- layouts ---- */

static uint64_t told[100];

/* What 3.13.0 and 3.14 say of themselves, where we look. */
static void describe(unsigned minor)
{
    static const uint16_t at[][2] = {
        {184, 208}, {232, 256}, {240, 264}, {248, 272}, {264, 288}, {280, 320},
        {296, 336}, {304, 344}, {312, 352}, {344, 384}, {560, 640}, {528, 608},
    };
    static const uint16_t is[][2] = {
        {72, 72},   {8, 8},     {0, 0},   {56, 56},   {70, 74}, {112, 112},
        {128, 128}, {136, 136}, {68, 68}, {200, 208}, {40, 40}, {32, 32},
    };

    memset(told, 0, sizeof told);
    memcpy(told, "xdebugpy", 8);
    told[1] = 0x030000f0 | minor << 16;
    for (unsigned i = 0; i < sizeof at / sizeof *at; i++)
        told[at[i][minor - 13] / 8] = is[i][minor - 13];
}

START_TEST(every_version)
{
    struct gt_python_layout l;

    for (unsigned minor = 0; minor < 256; minor++) {
        int known = minor >= 9 && minor <= 14;

        if (minor == 13 || minor == 14)
            describe(minor);
        ck_assert_int_eq(gt_python_layout_find(&l, 0x030000f0 | minor << 16, told),
                         known ? 0 : -ENOTSUP);
        if (known)
            ck_assert_uint_eq(l.row, minor); /* as its headers say */
    }
    ck_assert_int_eq(gt_python_layout_find(&l, 0x02070000, told), -ENOTSUP);
    ck_assert_int_eq(gt_python_layout_find(&l, 0x040b0000, told), -ENOTSUP);
    ck_assert_int_eq(gt_python_layout_find(&l, 0, told), -ENOTSUP);
}
END_TEST

START_TEST(without_a_lock)
{
    struct gt_python_layout l;
    unsigned minor = 13 + (unsigned)_i;

    describe(minor);
    told[2] = 1;
    ck_assert_int_eq(gt_python_layout_find(&l, 0x030000f0 | minor << 16, told), -ENOSYS);
}
END_TEST

START_TEST(contradictions)
{
    struct gt_python_layout l;
    unsigned minor = 13 + (unsigned)_i;
    uint32_t version = 0x030000f0 | minor << 16;

    ck_assert_int_eq(gt_python_layout_find(&l, version, NULL), -EINVAL);
    describe(minor);
    told[0]++;
    ck_assert_int_eq(gt_python_layout_find(&l, version, told), -EINVAL);
    describe(minor);
    ck_assert_int_eq(gt_python_layout_find(&l, version + 0x100, told), -EINVAL);
    told[184 / 8 + (minor - 13) * 3] = 1 << 16; /* the frame of the thread's state */
    ck_assert_int_eq(gt_python_layout_find(&l, version, told), -EINVAL);
    describe(minor);
    told[(minor == 13 ? 344 : 384) / 8] += 8; /* a longer code object: who knows what it has */
    ck_assert_int_eq(gt_python_layout_find(&l, version, told), -EINVAL);
}
END_TEST

/* A build with options of its own: as it says. */
START_TEST(follows_the_description)
{
    struct gt_python_layout l;

    describe(13);
    told[184 / 8] = 80;
    told[264 / 8] = 78;
    ck_assert_int_eq(gt_python_layout_find(&l, 0x030d00f0, told), 0);
    ck_assert_uint_eq(l.frame, 80);
    ck_assert_uint_eq(l.owner, 78);
    ck_assert_uint_eq(l.row, 0);
    ck_assert_uint_eq(l.version, 92);
}
END_TEST

/* ---- lines ---- */

/* Tables by hand; real ones are compared with Python's own answers by walk.py. */
static const struct lines {
    unsigned minor;
    const char *table;
    unsigned bytes;
    int lines[6]; /* of the bytes 0, 2, 4, …; -1 ends it */
} tables[] = {
    {9, "", 0, {10, 10, -1}},
    {9, "\2\1\2\377\4\5", 6, {10, 11, 10, 10, 15, -1}},
    {9, "\2", 1, {10, 10, -1}}, /* cut off */
    {10, "\2\1\2\200\2\1", 6, {11, 0, 12, 0, -1}},
    {10, "", 0, {0, -1}},
    {10, "\4\3\4", 3, {13, 13, 0, -1}},
    {11, "", 0, {0, -1}},
    /* two words 0 further, one without a line, one 2 further, one 1 back */
    {11, "\xd1\1\1\xf8\xe0\1\1\xe8\3", 9, {10, 10, 0, 12, 11, -1}},
    /* a short form with columns; a long one, 40 further: six bits a byte, the lowest first */
    {12, "\x80\1\xf0\x50\1\0\0\0", 8, {10, 50, 0, -1}},
    {12, "\xf0\x7f\x7f\x7f\x7f\x7f\x7f\x7f\x7f\x7f\x7f", 11, {0, -1}}, /* no number at all */
    {12, "\xe8", 1, {10, 0, -1}},                                      /* cut off */
};

START_TEST(lines)
{
    const struct lines *t = &tables[_i];
    unsigned char *copy = malloc(t->bytes + 1); /* for who reads behind its end */

    memcpy(copy, t->table, t->bytes);
    for (int i = 0; t->lines[i] >= 0; i++)
        ck_assert_msg(gt_python_line(t->minor, copy, t->bytes, 10, i * 2) == (uint32_t)t->lines[i],
                      "3.%u, byte %d: %u", t->minor, i * 2,
                      gt_python_line(t->minor, copy, t->bytes, 10, i * 2));
    ck_assert_uint_eq(gt_python_line(t->minor, copy, t->bytes, 10, -2), 10);
    free(copy);
}
END_TEST

/* Whatever the bytes are it ends, and tells a line that fits. */
START_TEST(lines_of_anything)
{
    unsigned char *bytes = malloc(200);

    srand(1);
    for (int i = 0; i < 20000; i++) {
        size_t n = (size_t)rand() % 40;
        unsigned char *end = bytes + 200 - n; /* up to the end of the block */

        for (size_t k = 0; k < n; k++)
            end[k] = (unsigned char)rand();
        for (unsigned minor = 9; minor <= 14; minor++)
            ck_assert_uint_le(gt_python_line(minor, end, n, rand() % 3000, rand() % 300), 0xffffff);
    }
    free(bytes);
}
END_TEST

/* ---- frames that are none ---- */

/* An interpreter's memory as a version's row says, two frames deep. */
struct fake {
    struct gt_python python;
    char types[3][64];
    char frames[2][256], codes[2][512], file[128], name[128], table[64], bytecode[64];
};
static struct fake f;
static char *unmapped; /* a page that can't be read */

static void put(char *object, size_t offset, const void *p)
{
    memcpy(object + offset, &p, sizeof p);
}

static void make_text(char *object, const struct gt_python_layout *l, const char *s)
{
    uint64_t n = strlen(s);
    uint32_t state = 1u << 2 | GT_PYTHON_STR_COMPACT | GT_PYTHON_STR_ASCII;

    put(object, GT_PYTHON_TYPE, f.types[1]);
    memcpy(object + GT_PYTHON_SIZE, &n, 8);
    memcpy(object + GT_PYTHON_STR_STATE, &state, 4);
    memcpy(object + l->ascii, s, n + 1);
}

static void make(unsigned minor)
{
    const struct gt_python_layout *l = &f.python.layout;
    uint64_t words = 16;

    memset(&f, 0, sizeof f);
    f.python = (struct gt_python){.layout = gt_python_rows[minor - 9],
                                  .code_type = f.types[0],
                                  .str_type = f.types[1],
                                  .bytes_type = f.types[2]};
    make_text(f.file, l, "/some/file.py");
    make_text(f.name, l, "function");
    put(f.table, GT_PYTHON_TYPE, f.types[2]);
    for (int i = 0; i < 2; i++) {
        char *code = f.codes[i], *frame = f.frames[i];

        put(code, GT_PYTHON_TYPE, f.types[0]);
        memcpy(code + GT_PYTHON_SIZE, &words, l->bytecode ? 8 : 0);
        put(code, l->file, f.file);
        put(code, l->name, f.name);
        put(code, l->lines, f.table);
        put(frame, l->code, code);
        put(frame, l->previous, i ? NULL : f.frames[1]);
        if (l->bytecode)
            put(frame, l->instr, code + l->bytecode + 8);
    }
}

START_TEST(proves)
{
    make((unsigned)_i);
    ck_assert_int_eq(gt_python_prove(&f.python, f.frames[0]), 1);
    ck_assert_int_eq(gt_python_prove(&f.python, f.frames[1]), 0); /* who called it? */
    ck_assert_int_eq(gt_python_prove(&f.python, unmapped), -EFAULT);
}
END_TEST

static void spoil(unsigned minor, char *object, size_t offset, const void *p)
{
    char saved[8];

    memcpy(saved, object + offset, 8);
    put(object, offset, p);
    ck_assert_msg(gt_python_prove(&f.python, f.frames[0]) == -EFAULT, "3.%u: +%zu", minor, offset);
    memcpy(object + offset, saved, 8);
    ck_assert_int_eq(gt_python_prove(&f.python, f.frames[0]), 1);
}

/* Each pointer in turn leads to where nothing is, or to something else. */
START_TEST(disproves)
{
    unsigned minor = (unsigned)_i;
    struct gt_python_layout *l = &f.python.layout;

    make(minor);
    const void *wrong[] = {unmapped, (void *)16, f.types[1], (void *)UINTPTR_MAX};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        spoil(minor, f.frames[1], l->code, wrong[i]);
        spoil(minor, f.frames[0], l->previous, wrong[i]);
        spoil(minor, f.codes[1], GT_PYTHON_TYPE, wrong[i]);
        spoil(minor, f.codes[1], l->file, wrong[i]);
        spoil(minor, f.codes[1], l->name, wrong[i]);
        spoil(minor, f.codes[1], l->lines, wrong[i]);
    }
    spoil(minor, f.name, GT_PYTHON_SIZE, unmapped); /* a length */
    spoil(minor, f.name, GT_PYTHON_SIZE, (void *)7);
    spoil(minor, f.frames[1], l->code, NULL);
    spoil(minor, f.codes[1], l->file, f.table);
    spoil(minor, f.codes[1], l->lines, f.name);
    if (l->bytecode) {
        spoil(minor, f.frames[0], l->instr, f.codes[0] + l->bytecode + 34);
        spoil(minor, f.frames[0], l->instr, f.codes[0] + l->bytecode - 4);
        spoil(minor, f.frames[0], l->instr, NULL);
    }
    if (l->owner) {
        f.frames[0][l->owner] = 5;
        ck_assert_int_eq(gt_python_prove(&f.python, f.frames[0]), -EFAULT);
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("python");
    TCase *t = tcase_create("python");
    SRunner *r = srunner_create(s);

    unmapped = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    suite_add_tcase(s, t);
    tcase_add_test(t, every_version);
    tcase_add_loop_test(t, without_a_lock, 0, 2);
    tcase_add_loop_test(t, contradictions, 0, 2);
    tcase_add_test(t, follows_the_description);
    tcase_add_loop_test(t, lines, 0, sizeof tables / sizeof *tables);
    tcase_add_test(t, lines_of_anything);
    tcase_add_loop_test(t, proves, 9, 15);
    tcase_add_loop_test(t, disproves, 9, 15);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
