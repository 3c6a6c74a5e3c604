/* Code objects as records of the session (struct gt_code), shared by all threads. Called by
 * python_walk.c for frames that its slot has not met, on the program's threads: no lock, no malloc.
 *
 * Equal texts share one record: the place of a code object says little, since programs make and
 * drop them (exec, lambda expressions in eval). Nothing is ever freed, so they only take memory of
 * the half that is for what is nice to have: a program that makes code without end must not lose
 * its names by it. */
#include "preload/python.h"

#include "core/session.h"
#include "core/strings.h"
#include "core/sys.h"

/* A record, with what only we need before it. */
struct entry {
    gt_ref next;
    uint32_t unused;
    struct gt_code code;
};
#define CODE_REF(ref) ((ref) + (gt_ref)(offsetof(struct entry, code) / GT_ALIGN))
_Static_assert(offsetof(struct entry, code) % GT_ALIGN == 0, "a ref can say where it is");

/* Chains of entries by hash: generation of the session << 32 | ref of the first. What the parent of
 * a fork has left in here is of another generation, and so is nothing. */
enum { BUCKETS = 8192 };
static _Atomic(void *) buckets; /* of _Atomic uint64_t */

static struct entry *at(gt_ref ref)
{
    return gt_session_at(ref);
}

static int same(const struct gt_code *a, const struct gt_code *b)
{
    return a->file == b->file && a->name == b->name && a->first_line == b->first_line;
}

static gt_ref find(gt_ref from, gt_ref until, const struct gt_code *code)
{
    for (; from != until; from = at(from)->next)
        if (same(&at(from)->code, code))
            return from;
    return 0;
}

/* Ref of the record that is like *code; 0: no memory. */
static gt_ref record(const struct gt_code *code)
{
    _Atomic uint64_t *table = gt_sys_map_once(&buckets, BUCKETS * sizeof *table), *bucket;
    uint64_t generation = (uint64_t)gt_session.generation << 32, head;
    struct entry *mine = NULL;
    gt_ref seen = 0, ref = 0;

    if (!table)
        return 0;
    bucket = &table[gt_hash(code, sizeof *code, 0) % BUCKETS];
    /* acquire pairs with the release below: an entry we can see is complete */
    head = atomic_load_explicit(bucket, memory_order_acquire);
    for (;;) {
        gt_ref first = head >> 32 == generation >> 32 ? (gt_ref)head : 0;
        gt_ref old = find(first, seen, code);

        if (old) /* one that lost the race stays unused */
            return CODE_REF(old);
        if (!mine && !(mine = gt_session_alloc_roomy(sizeof *mine, &ref)))
            return 0;
        mine->code = *code;
        mine->next = seen = first;
        if (atomic_compare_exchange_strong_explicit(bucket, &head, generation | ref,
                                                    memory_order_release, memory_order_acquire))
            return CODE_REF(ref);
    }
}

/* ---- texts ---- */

/* UTF-8 of one character; lone surrogates of U+DC80 to U+DCFF stand for bytes that were no UTF-8,
 * and become these again. */
static size_t utf8(char *out, uint32_t c)
{
    size_t n = 0;

    if (c < 0x80)
        out[n++] = (char)c;
    else if (c < 0x800)
        out[n++] = (char)(0xc0 | c >> 6);
    else if (c >= 0xdc80 && c <= 0xdcff)
        out[n++] = (char)(c & 0xff);
    else if (c < 0x10000)
        out[n++] = (char)(0xe0 | c >> 12);
    else
        out[n++] = (char)(0xf0 | c >> 18);
    if (c >= 0x10000)
        out[n++] = (char)(0x80 | (c >> 12 & 63));
    if (c >= 0x800 && !(c >= 0xdc80 && c <= 0xdcff))
        out[n++] = (char)(0x80 | (c >> 6 & 63));
    if (c >= 0x80 && !(c >= 0xdc80 && c <= 0xdcff))
        out[n++] = (char)(0x80 | (c & 63));
    return n;
}

static size_t convert(char *out, const char *data, size_t length, unsigned kind)
{
    size_t n = 0;

    for (size_t i = 0; i < length && n + 4 <= GT_PYTHON_TEXT; i++) {
        uint32_t c = 0;

        memcpy(&c, data + i * kind, kind); /* little-endian, as all of our machines */
        n += utf8(out + n, c);
    }
    return n;
}

/* Ref of the text in the session, cut at a NUL; 0: no memory. */
static gt_ref text_of(const struct gt_python_layout *l, const char *str, char *room)
{
    uint32_t state = gt_python_u32(str, GT_PYTHON_STR_STATE);
    size_t n = gt_python_u64(str, GT_PYTHON_SIZE);
    const char *text = str + l->ascii;
    gt_ref ref = 0;

    if (!(state & GT_PYTHON_STR_COMPACT)) { /* no code object has such a one */
        text = "?";
        n = 1;
    } else if (!(state & GT_PYTHON_STR_ASCII)) {
        n = convert(room, str + l->compact, n, GT_PYTHON_STR_KIND(state));
        text = room;
    }
    if (n > GT_NAME_MAX)
        n = GT_NAME_MAX;
    gt_strings_roomy(text, strnlen(text, n), &ref);
    return ref;
}

static uint32_t line_of(const struct gt_python_layout *l, const char *code, uint64_t key)
{
    const char *table = gt_python_pointer(code, l->lines);
    int64_t first = (int32_t)gt_python_u32(code, l->first_line), instr;

    if (l->bytecode)
        instr = (int64_t)((key & ~GT_PYTHON_KEY_ENTRY) - (uint64_t)(uintptr_t)(code + l->bytecode));
    else
        instr = (int64_t)(int32_t)key * l->instr_step;
    return gt_python_line(l->minor, (const unsigned char *)table + l->bytes,
                          gt_python_u64(table, GT_PYTHON_SIZE), first, instr);
}

uint64_t gt_python_pc(const struct gt_python *p, const char *code, uint64_t key, char *text)
{
    const struct gt_python_layout *l = &p->layout;
    struct gt_code c = {.first_line = gt_python_u32(code, l->first_line)};
    gt_ref ref;

    c.file = text_of(l, gt_python_pointer(code, l->file), text);
    c.name = text_of(l, gt_python_pointer(code, l->name), text);
    if (!c.file || !c.name || !(ref = record(&c)))
        return 0;
    return GT_TRIE_PYTHON_PC(ref, line_of(l, code, key));
}
