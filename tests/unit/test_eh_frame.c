/* core/eh_frame.c: rules of this program's own unwind data, of hand-made data, and of damaged data
 * between two pages that may not be touched. */
#include <check.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "core/eh_frame.h"

int main(void);

START_TEST(finds_modules)
{
    struct gt_eh_module m;
    uintptr_t pcs[] = {(uintptr_t)&main, (uintptr_t)dlsym(RTLD_DEFAULT, "qsort")};

    /* by dl_iterate_phdr, then by _dl_find_object where there is one */
    for (unsigned i = 0; i < 4; i++) {
        struct gt_cfi c;
        if (i == 2)
            gt_module_prepare();
        ck_assert_int_eq(gt_module_find(pcs[i % 2], &m), 0);
        ck_assert_uint_le(m.start, pcs[i % 2]);
        gt_cfi_find(&m, pcs[i % 2], &c);
        /* at its first instruction, where the return address still may be in a register */
#ifndef __x86_64__
        ck_assert_int_eq(c.kind, GT_CFI_SIMPLE);
        ck_assert_int_eq(c.leaf, 1);
#else
        ck_assert_int_eq(c.kind, GT_CFI_SIMPLE);
        ck_assert_int_eq(c.from_fp, 0);
        ck_assert_uint_eq(c.cfa_off, 8);
        ck_assert_uint_eq(c.ra_off, 8);
        ck_assert_uint_eq(c.fp_off, 0);
#endif
    }
    ck_assert_int_eq(gt_module_find(0, &m), -ENOENT);
    ck_assert_int_eq(gt_module_find((uintptr_t)&m, &m), -ENOENT); /* the stack */
    ck_assert_int_eq(gt_module_find(UINTPTR_MAX, &m), -ENOENT);
}
END_TEST

/* ---- hand-made ---- */

#ifdef __x86_64__
enum { FP = 6, SP = 7, RA = 16, DATA_ALIGN = 0x78 /* -8 */ };
#else
enum { FP = 29, SP = 31, RA = 30, DATA_ALIGN = 0x78 };
#endif
#define OFFSET(reg, n) (uint8_t)(0x80 | (reg)), n
#define ADVANCE(n) (uint8_t)(0x40 | (n))
#define DEF_CFA 0x0c
#define DEF_CFA_OFFSET 0x0e
#define DEF_CFA_REGISTER 0x0d
#define REMEMBER 0x0a
#define RESTORE 0x0b
#define UNDEFINED 0x07

/* One function of 64 bytes at `code`, one CIE, one FDE with `program`. */
static struct made {
    uint8_t bytes[512];
    uint8_t code[64];
} made;

static void put32(uint8_t **p, int64_t v)
{
    int32_t w = (int32_t)v;
    memcpy(*p, &w, 4);
    *p += 4;
}

static struct gt_eh_module make(const char *augmentation, const uint8_t *program, size_t bytes)
{
    uint8_t *p = made.bytes, *cie, *fde, *len;
    struct gt_eh_module m = {.start = (uintptr_t)&made, .hdr = made.bytes, .spans = 1};
    m.span[0].lo = (uint8_t *)&made;
    m.span[0].hi = (uint8_t *)(&made + 1);
    memset(made.bytes, 0, sizeof made.bytes);
    *p++ = 1;    /* version */
    *p++ = 0x1b; /* .eh_frame: pcrel, sdata4 */
    *p++ = 0x03; /* count: udata4 */
    *p++ = 0x3b; /* table: datarel, sdata4 */
    put32(&p, 20 - 4);
    put32(&p, 1);
    put32(&p, made.code - made.bytes);
    uint8_t *where_fde = p;
    put32(&p, 0);
    cie = p;
    put32(&p, 0);
    put32(&p, 0); /* a CIE */
    *p++ = 1;
    strcpy((char *)p, augmentation);
    p += strlen(augmentation) + 1;
    *p++ = 1; /* code alignment */
    *p++ = DATA_ALIGN;
    *p++ = RA;
    if (*augmentation == 'z') {
        *p++ = 1;
        *p++ = 0x1b;
    }
    const uint8_t start[] = {DEF_CFA, SP, 8, OFFSET(RA, 1)};
    memcpy(p, start, sizeof start);
    p += sizeof start;
    put32(&cie, p - cie - 4);
    cie -= 4;
    len = fde = p;
    put32(&p, 0);
    put32(&p, p - cie);
    if (*augmentation == 'z') {
        put32(&p, made.code - p);
    } else {
        uint64_t code = (uint64_t)made.code;
        memcpy(p, &code, 8);
        p += 8;
    }
    put32(&p, 64);
    if (*augmentation == 'z')
        *p++ = 0;
    else
        put32(&p, 0); /* the upper half of the range */
    memcpy(p, program, bytes);
    p += bytes;
    put32(&len, p - fde - 4);
    put32(&where_fde, fde - made.bytes);
    return m;
}

static struct gt_cfi at(const struct gt_eh_module *m, unsigned offset)
{
    struct gt_cfi c;
    gt_cfi_find(m, (uintptr_t)made.code + offset, &c);
    return c;
}

START_TEST(usual_program)
{
    const uint8_t program[] = {ADVANCE(1),
                               DEF_CFA_OFFSET,
                               16,
                               OFFSET(FP, 2),
                               ADVANCE(3),
                               DEF_CFA_REGISTER,
                               FP,
                               ADVANCE(10),
                               REMEMBER,
                               DEF_CFA,
                               SP,
                               8,
                               0xc0 | FP,
                               ADVANCE(1),
                               RESTORE,
                               ADVANCE(20),
                               DEF_CFA_OFFSET,
                               0x80,
                               0x20 /* 4096 */,
                               ADVANCE(1),
                               UNDEFINED,
                               RA};
    static const char *const augmentations[] = {"zR", ""};
    for (int i = 0; i < 2; i++) {
        struct gt_eh_module m = make(augmentations[i], program, sizeof program);
        struct gt_cfi c = at(&m, 0);
        ck_assert_int_eq(c.kind, GT_CFI_SIMPLE);
        ck_assert_uint_eq(c.cfa_off, 8);
        c = at(&m, 3);
        ck_assert_int_eq(c.kind, GT_CFI_SIMPLE);
        ck_assert_int_eq(c.from_fp, 0);
        ck_assert_uint_eq(c.cfa_off, 16);
        ck_assert_uint_eq(c.fp_off, 16);
        ck_assert_uint_eq(c.ra_off, 8);
        c = at(&m, 13);
        ck_assert_int_eq(c.from_fp, 1);
        c = at(&m, 14);
        ck_assert_int_eq(c.from_fp, 0);
        ck_assert_uint_eq(c.cfa_off, 8);
        ck_assert_uint_eq(c.fp_off, 0);
        c = at(&m, 15);
        ck_assert_int_eq(c.from_fp, 1);
        ck_assert_uint_eq(c.fp_off, 16);
        c = at(&m, 35);
        ck_assert_uint_eq(c.cfa_off, 4096);
        ck_assert_int_eq(at(&m, 36).kind, GT_CFI_END);
        ck_assert_int_eq(at(&m, 63).kind, GT_CFI_END);
        ck_assert_int_eq(at(&m, 64).kind, GT_CFI_NONE);
        ck_assert_int_eq(at(&m, (unsigned)-1).kind, GT_CFI_NONE);
    }
}
END_TEST

/* An epilogue behind its pops, which gcc describes as if what was popped were still there. */
START_TEST(popped)
{
    const uint8_t program[] = {ADVANCE(1), DEF_CFA_OFFSET, 16, OFFSET(FP, 2),
                               ADVANCE(1), DEF_CFA_OFFSET, 8};
    struct gt_eh_module m = make("zR", program, sizeof program);
    ck_assert_uint_eq(at(&m, 1).fp_off, 16);
    ck_assert_int_eq(at(&m, 2).kind, GT_CFI_SIMPLE);
    ck_assert_uint_eq(at(&m, 2).fp_off, 0);
}
END_TEST

/* Not simple, and said so. */
static const struct odd {
    const char *augmentation;
    uint8_t program[12];
    unsigned bytes;
    enum gt_cfi_kind kind;
} odd[] = {
    {"zR", {0x0f, 2, 0x77, 8}, 4, GT_CFI_OTHER},                    /* CFA by an expression */
    {"zR", {DEF_CFA, 3, 16}, 3, GT_CFI_OTHER},                      /* from another register */
    {"zR", {DEF_CFA_OFFSET, 17}, 2, GT_CFI_OTHER},                  /* not a multiple of 8 */
    {"zR", {DEF_CFA_OFFSET, 0}, 2, GT_CFI_OTHER},                   /* nowhere */
    {"zR", {DEF_CFA_OFFSET, 0x80, 0x80, 0x80, 2}, 5, GT_CFI_OTHER}, /* 4 MiB */
    {"zR", {OFFSET(SP, 3)}, 2, GT_CFI_OTHER}, /* the stack pointer is elsewhere */
    {"zR", {DEF_CFA_REGISTER, FP, DEF_CFA_OFFSET, 16, OFFSET(FP, 5)}, 6, GT_CFI_OTHER},
    {"zR", {OFFSET(RA, 3)}, 2, GT_CFI_OTHER}, /* these two: below the frame */
    {"zR", {RESTORE}, 1, GT_CFI_BAD},         /* of nothing */
    {"zR", {REMEMBER, REMEMBER, REMEMBER, REMEMBER, REMEMBER}, 5, GT_CFI_BAD},
    {"zR", {0x3f}, 1, GT_CFI_BAD},                 /* unknown */
    {"zR", {0x01, 0, 0, 0, 0}, 5, GT_CFI_BAD},     /* set_loc */
    {"zR", {DEF_CFA_OFFSET, 0x80}, 2, GT_CFI_BAD}, /* ends in a number */
    {"zR", {0x0f, 0x7f}, 2, GT_CFI_BAD},           /* longer than there is */
    {"zX", {0}, 1, GT_CFI_BAD},
    {"eh", {0}, 1, GT_CFI_BAD},
    {"zRRRRRRRRR", {0}, 1, GT_CFI_BAD},
};

START_TEST(odd_program)
{
    const struct odd *o = &odd[_i];
    struct gt_eh_module m = make(o->augmentation, o->program, o->bytes);
    ck_assert_int_eq(at(&m, 5).kind, o->kind);
}
END_TEST

#ifdef __x86_64__
START_TEST(realigned)
{
    uint8_t program[] = {0x10, FP, 2, 0x76, 0, 0x0f, 3, 0x76, 0x68 /* -24 */, 0x06};
    struct gt_eh_module m = make("zR", program, sizeof program);
    struct gt_cfi c = at(&m, 5);
    ck_assert_int_eq(c.kind, GT_CFI_SIMPLE);
    ck_assert_int_eq(c.realigned, 1);
    ck_assert_uint_eq(c.cfa_off, 24);
    program[4] = 8; /* the caller's frame pointer is elsewhere */
    m = make("zR", program, sizeof program);
    ck_assert_int_eq(at(&m, 5).kind, GT_CFI_OTHER);
}
END_TEST
#endif

/* ---- damaged ---- */

static uint64_t state = 3;
static unsigned rnd(unsigned below)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(state >> 33) % below;
}

/* Not by memcpy: between what is copied lie a sanitizer's red zones. */
static __attribute__((no_sanitize("address"))) void copy_all(volatile uint8_t *to,
                                                             const volatile uint8_t *from, size_t n)
{
    while (n--)
        *to++ = *from++;
}

/* A copy of real unwind data that ends at a page which may not be read, damaged in every way. */
START_TEST(damaged)
{
    struct gt_eh_module real, m;
    ck_assert_int_eq(gt_module_find((uintptr_t)&main, &real), 0);
    const uint8_t *lo = NULL, *hi = NULL;
    for (int i = 0; i < real.spans; i++)
        if (real.hdr >= real.span[i].lo && real.hdr < real.span[i].hi)
            lo = real.span[i].lo, hi = real.span[i].hi;
    size_t bytes = (size_t)(hi - lo), pages = (bytes + 4095) / 4096 * 4096;
    uint8_t *area = mmap(NULL, pages + 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uint8_t *copy = area + 4096 + pages - bytes;
    mprotect(area + 4096, pages, PROT_READ | PROT_WRITE);
    size_t hdr = (size_t)(real.hdr - lo);
    unsigned kinds[GT_CFI_BAD + 1] = {0};
    /* addresses that the copy's table covers: the code moves with the data */
    uintptr_t moved = (uintptr_t)&main - (uintptr_t)lo + (uintptr_t)copy;
    for (int i = 0; i < 30000; i++) {
        struct gt_cfi c;
        if (i % 40 == 0)
            copy_all(copy, lo, bytes);
        m = (struct gt_eh_module){.start = (uintptr_t)copy, .hdr = copy + hdr, .spans = 1};
        m.span[0].lo = copy;
        m.span[0].hi = copy + bytes;
        if (i % 40)
            for (unsigned n = rnd(8) + 1; n--;) {
                size_t where = rnd(3) ? hdr + rnd((unsigned)(bytes - hdr)) : hdr + rnd(64);
                copy[where < bytes ? where : hdr] = (uint8_t)(rnd(3) ? rnd(256) : rnd(2) * 255);
            }
        if (rnd(30) == 0)
            m.span[0].hi = copy + hdr + rnd((unsigned)(bytes - hdr));
        gt_cfi_find(&m, moved + rnd(4000) - 2000, &c);
        ck_assert_int_le(c.kind, GT_CFI_BAD);
        kinds[c.kind]++;
        if (c.kind == GT_CFI_SIMPLE) {
            ck_assert_uint_le(c.cfa_off, 2 << 20);
            ck_assert(c.realigned || (c.ra_off <= c.cfa_off && c.fp_off <= c.cfa_off));
        }
    }
    /* most damage is elsewhere: both ways were gone */
    ck_assert_uint_gt(kinds[GT_CFI_SIMPLE], 1000);
    ck_assert_uint_gt(kinds[GT_CFI_NONE] + kinds[GT_CFI_OTHER] + kinds[GT_CFI_BAD], 1000);
    ck_assert_uint_gt(kinds[GT_CFI_BAD], 300);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("eh_frame");
    TCase *c = tcase_create("eh_frame");
    tcase_add_test(c, finds_modules);
    tcase_add_test(c, usual_program);
    tcase_add_test(c, popped);
    tcase_add_loop_test(c, odd_program, 0, sizeof odd / sizeof *odd);
#ifdef __x86_64__
    tcase_add_test(c, realigned);
#endif
    tcase_add_test(c, damaged);
    tcase_set_timeout(c, 120);
    suite_add_tcase(s, c);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
