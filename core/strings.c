/* See strings.h. The two tables share one insertion: a bucket is a chain, new entries go to its
 * head by compare-and-swap, nothing is ever removed. */
#include "core/strings.h"
#include <string.h>
#include "core/record.h"
#include "core/session.h"
#include "core/sys.h"

#define BUCKETS 65536u                /* 256 KiB of private pages, touched as used */
#define BUCKETS_MIN 1024u             /* a page: with the least GPUTALLY_MEMORY */
#define KEPT_BYTES (8u * 1024 * 1024) /* most that gt_keep holds: domains, registered strings */

struct table {
    _Atomic gt_ref *buckets;
    void *(*alloc)(size_t bytes, gt_ref *ref);
    char **base;
    uint32_t mask; /* buckets - 1 */
};

uint32_t gt_hash(const void *p, size_t n, uint32_t seed)
{
    const unsigned char *s = p;
    uint64_t h = seed ^ 0xcbf29ce484222325u, w;
    for (; n >= 8; n -= 8, s += 8) {
        memcpy(&w, s, 8);
        h = (h ^ w) * 0x9e3779b97f4a7c15u;
        h ^= h >> 29;
    }
    for (w = 0; n; n--)
        w = w << 8 | *s++;
    h = (h ^ w) * 0x9e3779b97f4a7c15u;
    return (uint32_t)(h >> 32);
}

size_t gt_name_length(const char *s)
{
    size_t n = strnlen(s, GT_NAME_MAX + 1);
    if (n > GT_NAME_MAX) {
        n = GT_NAME_MAX;
        while (n && ((unsigned char)s[n] & 0xc0) == 0x80)
            n--;
    }
    return n;
}

static struct gt_str *at(const struct table *t, gt_ref ref)
{
    return (struct gt_str *)(*t->base + (uint64_t)ref * GT_ALIGN);
}

static gt_ref find(const struct table *t, gt_ref from, gt_ref until, const char *text, size_t n,
                   uint32_t hash)
{
    for (gt_ref r = from; r != until; r = at(t, r)->next) {
        const struct gt_str *s = at(t, r);
        if (s->hash == hash && s->len == n && memcmp(s->text, text, n) == 0)
            return r;
    }
    return 0;
}

static const struct gt_str *intern(const struct table *t, const char *text, size_t n, gt_ref *ref)
{
    uint32_t hash = gt_hash(text, n, 1);
    _Atomic gt_ref *bucket = &t->buckets[hash & t->mask];
    /* acquire pairs with the release below: an entry we can see is complete */
    gt_ref head = atomic_load_explicit(bucket, memory_order_acquire), seen = 0, mine = 0;
    struct gt_str *s = NULL;
    for (;;) {
        gt_ref old = find(t, head, seen, text, n, hash);
        if (old) { /* an entry that lost the race stays unused: nothing is freed */
            *ref = old;
            return at(t, old);
        }
        /* room for the comparison's last eight bytes: the text stays zero-padded past its end */
        if (!s && !(s = t->alloc(sizeof *s + n + 8, &mine)))
            return NULL;
        s->len = (uint32_t)n;
        s->hash = hash;
        memcpy(s->text, text, n);
        s->next = seen = head;
        if (atomic_compare_exchange_strong_explicit(bucket, &head, mine, memory_order_release,
                                                    memory_order_acquire)) {
            *ref = mine;
            return s;
        }
    }
}

/* ---- the session's table ---- */

static struct table session_table = {.alloc = gt_session_alloc, .base = &gt_session.base};

int gt_strings_reset(void)
{
    uint32_t n = BUCKETS;
    while (n > BUCKETS_MIN && n * sizeof(gt_ref) > gt_config.memory_bytes / 256)
        n /= 2; /* they count as memory used, touched or not */
    session_table.mask = n - 1;
    session_table.buckets = gt_private_alloc(n * sizeof(gt_ref));
    return session_table.buckets ? 0 : -ENOMEM;
}

const struct gt_str *gt_strings_session(const char *text, size_t n, gt_ref *ref)
{
    return intern(&session_table, text, n, ref);
}

const struct gt_str *gt_strings_roomy(const char *text, size_t n, gt_ref *ref)
{
    struct table roomy = session_table;
    roomy.alloc = gt_session_alloc_roomy;
    return intern(&roomy, text, n, ref);
}

/* ---- the process's table ---- */

/* One mapping: the buckets, then the texts. Whoever needs it first maps it; when two do at once the
 * compare-and-swap decides and the other unmaps, so nobody ever waits (a signal handler, or the
 * child of a fork in between, could wait for ever). */
#define KEPT_TEXTS (BUCKETS * sizeof(gt_ref))
static _Atomic(char *) kept_published;
static _Atomic uint64_t kept_used = KEPT_TEXTS;

/* Not on a session's budget, for it outlives sessions: an eighth of what one may use. */
static uint64_t kept_limit(void)
{
    uint64_t texts = gt_config.memory_bytes / 8;
    return texts < KEPT_BYTES - KEPT_TEXTS ? KEPT_TEXTS + texts : KEPT_BYTES;
}

static void *kept_alloc(size_t bytes, gt_ref *ref)
{
    bytes = (bytes + GT_ALIGN - 1) / GT_ALIGN * GT_ALIGN;
    uint64_t place = atomic_fetch_add_explicit(&kept_used, bytes, memory_order_relaxed);
    if (place + bytes > kept_limit()) {
        atomic_fetch_sub_explicit(&kept_used, bytes, memory_order_relaxed);
        return NULL;
    }
    *ref = (gt_ref)(place / GT_ALIGN);
    return atomic_load_explicit(&kept_published, memory_order_acquire) + place;
}

static int kept_ready(void)
{
    char *none = NULL, *p = atomic_load_explicit(&kept_published, memory_order_acquire);
    if (p)
        return 1;
    gt_core_init(); /* for the limit; a name may be kept before anything is recorded */
    p = gt_sys_mmap(KEPT_BYTES, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
    if (!p)
        return 0;
    if (!atomic_compare_exchange_strong(&kept_published, &none, p))
        gt_sys_munmap(p, KEPT_BYTES);
    return 1;
}

const char *gt_keep(const char *text)
{
    gt_ref ref;
    if (!text)
        return NULL;
    const struct gt_str *s = NULL;
    if (kept_ready()) {
        char *base = atomic_load_explicit(&kept_published, memory_order_acquire);
        const struct table kept = {.buckets = (_Atomic gt_ref *)(void *)base,
                                   .alloc = kept_alloc,
                                   .base = &base,
                                   .mask = BUCKETS - 1};
        s = intern(&kept, text, gt_name_length(text), &ref);
    }
    return s ? s->text : "(other)";
}
