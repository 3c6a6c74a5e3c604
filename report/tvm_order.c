/* See tvm_order.h. The facts: libstdc++ hashes strings with a variant of Murmur 2 (seed
 * 0xc70f6907), keeps its elements in one list in which those of a bucket follow each other, puts a
 * new one behind the head of its bucket's part or, where the bucket is empty, at the head of the
 * list, and grows to the next of its primes above twice the size; std::sort is an introsort that
 * leaves runs of 16 to an insertion sort. tests/e2e/test_tvm.py compares with the real thing. */
#include "report/tvm_order.h"
#include "report/mem.h"
#include <stdlib.h>
#include <string.h>

/* entry `number` comes before; HEAD stands for the head of the list */
#define AFTER(number) ((uint32_t)(number) + 2)
#define HEAD 1u

static uint64_t mix(uint64_t v)
{
    return v ^ v >> 47;
}

static uint64_t hash_of(const char *p, size_t len)
{
    const uint64_t mul = 0xc6a4a7935bd1e995u;
    uint64_t h = 0xc70f6907u ^ len * mul, w;
    size_t rest = len & 7;
    for (size_t i = 0; i + 8 <= len; i += 8) {
        memcpy(&w, p + i, 8);
        h = (h ^ mix(w * mul) * mul) * mul;
    }
    if (rest) {
        w = 0;
        for (size_t i = 0; i < rest; i++)
            w |= (uint64_t)(unsigned char)p[len - rest + i] << 8 * i;
        h = (h ^ w) * mul;
    }
    return mix(mix(h) * mul);
}

/* Sizes that a growing map goes through. */
static const uint32_t sizes[] = {1,         13,        29,        59,        127,      257,
                                 541,       1109,      2357,      5087,      10273,    20753,
                                 42043,     85229,     172933,    351061,    712697,   1447153,
                                 2938679,   5967347,   12117689,  24607243,  49969847, 101473717,
                                 206062531, 418447693, 849745879, 1725582143};

void gt_tvm_map_init(struct gt_tvm_map *m)
{
    memset(m, 0, sizeof *m);
    m->bucket_count = sizes[0];
    m->buckets = gt_mem_new(m->bucket_count, sizeof *m->buckets);
}

void gt_tvm_map_fini(struct gt_tvm_map *m)
{
    free(m->entries);
    free(m->buckets);
    free(m->index);
}

static uint32_t *behind(struct gt_tvm_map *m, uint32_t before)
{
    return before == HEAD ? &m->first : &m->entries[before - AFTER(0)].next;
}

static void rehash(struct gt_tvm_map *m)
{
    uint32_t at = m->first, last_bucket = 0;
    size_t i = 0;
    while (sizes[i] <= m->bucket_count && i + 1 < sizeof sizes / sizeof *sizes)
        i++;
    free(m->buckets);
    m->bucket_count = sizes[i];
    m->buckets = gt_mem_new(m->bucket_count, sizeof *m->buckets);
    m->first = 0;
    while (at) {
        struct gt_tvm_entry *e = &m->entries[at - 1];
        uint32_t next = e->next, b = (uint32_t)(e->hash % m->bucket_count);
        if (!m->buckets[b]) {
            e->next = m->first;
            m->first = at;
            m->buckets[b] = HEAD;
            if (e->next)
                m->buckets[last_bucket] = AFTER(at - 1);
            last_bucket = b;
        } else {
            uint32_t *link = behind(m, m->buckets[b]);
            e->next = *link;
            *link = at;
        }
        at = next;
    }
}

static void insert(struct gt_tvm_map *m, uint32_t number)
{
    struct gt_tvm_entry *e = &m->entries[number];
    size_t b = e->hash % m->bucket_count;
    if (m->buckets[b]) {
        uint32_t *link = behind(m, m->buckets[b]);
        e->next = *link;
        *link = number + 1;
        return;
    }
    e->next = m->first;
    m->first = number + 1;
    if (e->next)
        m->buckets[m->entries[e->next - 1].hash % m->bucket_count] = AFTER(number);
    m->buckets[b] = HEAD;
}

/* Our own way to find a key: the real one would walk through its list. */
static uint32_t *place(struct gt_tvm_map *m, const char *key, size_t length, uint64_t hash)
{
    size_t at = hash & (m->index_size - 1);
    for (; m->index[at]; at = (at + 1) & (m->index_size - 1)) {
        const struct gt_tvm_entry *e = &m->entries[m->index[at] - 1];
        if (e->hash == hash && e->length == length && !memcmp(e->key, key, length))
            break;
    }
    return &m->index[at];
}

uint32_t gt_tvm_map_put(struct gt_tvm_map *m, const char *key, size_t length)
{
    uint64_t hash = hash_of(key, length);
    if (m->count * 2 >= m->index_size) {
        free(m->index);
        m->index_size = m->index_size ? m->index_size * 2 : 64;
        m->index = gt_mem_new(m->index_size, sizeof *m->index);
        for (size_t i = 0; i < m->count; i++) {
            const struct gt_tvm_entry *e = &m->entries[i];
            *place(m, e->key, e->length, e->hash) = (uint32_t)i + 1;
        }
    }
    uint32_t *slot = place(m, key, length, hash);
    if (*slot)
        return *slot - 1;
    gt_mem_grow(&m->entries, &m->room, m->count, sizeof *m->entries);
    m->entries[m->count] = (struct gt_tvm_entry){key, length, hash, 0};
    *slot = (uint32_t)m->count + 1;
    if (m->count + 1 > m->bucket_count || m->bucket_count == 1)
        rehash(m);
    insert(m, (uint32_t)m->count);
    return (uint32_t)m->count++;
}

void gt_tvm_map_order(const struct gt_tvm_map *m, uint32_t *order)
{
    for (uint32_t at = m->first; at; at = m->entries[at - 1].next)
        *order++ = at - 1;
}

static int before(const double *by, uint32_t a, uint32_t b)
{
    return by[a] > by[b];
}

static void swap(uint32_t *a, uint32_t *b)
{
    uint32_t t = *a;
    *a = *b;
    *b = t;
}

static void sift(uint32_t *v, size_t hole, size_t count, uint32_t item, const double *by)
{
    size_t top = hole, kid = hole;
    while (kid < (count - 1) / 2) {
        kid = 2 * (kid + 1);
        if (before(by, v[kid], v[kid - 1]))
            kid--;
        v[hole] = v[kid];
        hole = kid;
    }
    if (count % 2 == 0 && kid == (count - 2) / 2) {
        kid = 2 * (kid + 1);
        v[hole] = v[kid - 1];
        hole = kid - 1;
    }
    while (hole > top && before(by, v[(hole - 1) / 2], item)) {
        v[hole] = v[(hole - 1) / 2];
        hole = (hole - 1) / 2;
    }
    v[hole] = item;
}

static void heap_sort(uint32_t *v, size_t count, const double *by)
{
    for (size_t i = count / 2; i-- > 0;)
        sift(v, i, count, v[i], by);
    while (count > 1) {
        uint32_t item = v[--count];
        v[count] = v[0];
        sift(v, 0, count, item, by);
    }
}

/* Puts the median of the second, the middle and the last at the front, parts the rest by it. */
static size_t part(uint32_t *v, size_t count, const double *by)
{
    uint32_t *a = v + 1, *b = v + count / 2, *c = v + count - 1;
    size_t low = 1, high = count;
    if (before(by, *a, *b))
        swap(v, before(by, *b, *c) ? b : before(by, *a, *c) ? c : a);
    else
        swap(v, before(by, *a, *c) ? a : before(by, *b, *c) ? c : b);
    for (;;) {
        while (before(by, v[low], v[0]))
            low++;
        high--;
        while (before(by, v[0], v[high]))
            high--;
        if (low >= high)
            return low;
        swap(v + low++, v + high);
    }
}

#define RUN 16

static void parts(uint32_t *v, size_t count, unsigned depth, const double *by)
{
    while (count > RUN) {
        if (!depth--) {
            heap_sort(v, count, by);
            return;
        }
        size_t cut = part(v, count, by);
        parts(v + cut, count - cut, depth, by);
        count = cut;
    }
}

void gt_tvm_sort(uint32_t *v, size_t count, const double *by)
{
    unsigned depth = 0;
    for (size_t n = count; n > 1; n /= 2)
        depth += 2;
    parts(v, count, depth, by);
    for (size_t i = 1; i < count; i++) {
        uint32_t item = v[i];
        size_t at = i;
        /* stable: what the first 16 do and what comes behind them differ in speed only */
        while (at > 0 && before(by, item, v[at - 1])) {
            v[at] = v[at - 1];
            at--;
        }
        v[at] = item;
    }
}
