/* ITT's values: counters and metadata. Called by the program's ITT on its own threads. */
#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include "itt.h"

#define NOT_USED(x) (void)(x)

/* ---- counters: each call is a sample of the value that they have then ---- */

/* A hash set; a place is taken by its key, which is the kept name's address << 16 | domain id (an
 * address of a program has 48 bits at most), and then stays. The first place is for all that find
 * no room. */
#define COUNTERS 4096u
static struct counter {
    _Atomic uint64_t key;
    _Atomic uint64_t value; /* bits of a double */
    _Atomic int type;       /* enum gt_itt_type */
} counters[COUNTERS];

static struct counter *counter_of(uint32_t domain_id, const char *name, int type)
{
    uint64_t key = (uint64_t)(uintptr_t)gt_keep(name) << 16 | (domain_id & 0xffff);
    uint64_t h = key * 0x9e3779b97f4a7c15u >> 40;

    for (uint32_t i = 0; i < 256; i++) {
        struct counter *c = &counters[(h + i) % COUNTERS];
        uint64_t there = 0;

        if (c == counters)
            continue;
        if (atomic_compare_exchange_strong_explicit(&c->key, &there, key, memory_order_acq_rel,
                                                    memory_order_acquire))
            atomic_store_explicit(&c->type, type, memory_order_relaxed);
        if (!there || there == key)
            return c;
    }
    return counters;
}

/* A handle of ours, or a counter that the program's ITT made before we came. */
static struct counter *counter_at(void *handle)
{
    const struct gt_itt_counter *before = handle;
    uintptr_t at = (uintptr_t)handle - (uintptr_t)counters;

    if (!handle || !gt_source_on(GT_SOURCE_ITT))
        return NULL;
    if (at < sizeof(counters))
        return &counters[at / sizeof(*counters)];
    if (!before->name)
        return NULL;
    return counter_of(gt_domain(before->domain), before->name, before->type);
}

static double as_double(uint64_t bits)
{
    double v;

    memcpy(&v, &bits, sizeof(v));
    return v;
}

static uint64_t bits_of(double v)
{
    uint64_t bits;

    memcpy(&bits, &v, sizeof(bits));
    return bits;
}

static void sample(gt_tag tag, const char *name, double value)
{
    if (value == value) /* a NaN is no value */
        gt_counter(tag, &(struct gt_attr){
                            .name = name, .scope = GT_SCOPE_USER, .has_value = 1, .value = value});
}

static void sample_of(const struct counter *c, double value)
{
    uint64_t key = atomic_load_explicit(&c->key, memory_order_relaxed);

    sample(GT_TAG(GT_SOURCE_ITT, key & 0xffff, 0),
           c == counters ? "(other)" : (const char *)(uintptr_t)(key >> 16), value);
}

static void add(struct counter *c, double delta)
{
    uint64_t old;
    double v;

    if (!c)
        return;
    old = atomic_load_explicit(&c->value, memory_order_relaxed);
    do
        v = as_double(old) + delta;
    while (!atomic_compare_exchange_weak_explicit(&c->value, &old, bits_of(v), memory_order_relaxed,
                                                  memory_order_relaxed));
    sample_of(c, v);
}

/* Reads a number of that type, which need not be aligned. Returns 0, or -EINVAL for no such type.
 */
static int read_number(const void *p, int type, double *v)
{
#define NUMBER(kind, ctype)                                                                        \
    case kind: {                                                                                   \
        ctype n;                                                                                   \
        memcpy(&n, p, sizeof(n));                                                                  \
        *v = (double)n;                                                                            \
        return 0;                                                                                  \
    }
    switch (p ? type : GT_ITT_UNKNOWN) {
        NUMBER(GT_ITT_U64, uint64_t)
        NUMBER(GT_ITT_S64, int64_t)
        NUMBER(GT_ITT_U32, uint32_t)
        NUMBER(GT_ITT_S32, int32_t)
        NUMBER(GT_ITT_U16, uint16_t)
        NUMBER(GT_ITT_S16, int16_t)
        NUMBER(GT_ITT_FLOAT, float)
        NUMBER(GT_ITT_DOUBLE, double)
    }
    return -EINVAL;
#undef NUMBER
}

static void set(struct counter *c, const void *value)
{
    double v;

    if (!c || read_number(value, atomic_load_explicit(&c->type, memory_order_relaxed), &v) != 0)
        return;
    atomic_store_explicit(&c->value, bits_of(v), memory_order_relaxed);
    sample_of(c, v);
}

void *on_counter_create(const char *name, const char *domain)
{
    return on_counter_create_typed(name, domain, GT_ITT_U64);
}

void *on_counter_create_typed(const char *name, const char *domain, int type)
{
    return name ? counter_of(gt_domain(domain), name, type) : NULL;
}

void *on_counter_create_v3(const struct gt_itt_domain *d, const char *name, int type)
{
    int info = gt_itt_info(d);

    return name && !(info & GT_ITT_OFF) ? counter_of((uint32_t)info, name, type) : NULL;
}

void on_counter_inc(void *counter)
{
    add(counter_at(counter), 1);
}

void on_counter_inc_delta(void *counter, unsigned long long delta)
{
    add(counter_at(counter), (double)delta);
}

void on_counter_dec(void *counter)
{
    add(counter_at(counter), -1);
}

void on_counter_dec_delta(void *counter, unsigned long long delta)
{
    add(counter_at(counter), -(double)delta);
}

static struct counter *by_name(const struct gt_itt_domain *d, const struct gt_itt_string *name)
{
    int info = gt_itt_info(d);

    return gt_itt_text(name) && !(info & GT_ITT_OFF)
               ? counter_of((uint32_t)info, gt_itt_text(name), GT_ITT_U64)
               : NULL;
}

void on_counter_inc_v3(const struct gt_itt_domain *d, const struct gt_itt_string *name)
{
    add(by_name(d, name), 1);
}

void on_counter_inc_delta_v3(const struct gt_itt_domain *d, const struct gt_itt_string *name,
                             unsigned long long delta)
{
    add(by_name(d, name), (double)delta);
}

void on_counter_dec_v3(const struct gt_itt_domain *d, const struct gt_itt_string *name)
{
    add(by_name(d, name), -1);
}

void on_counter_dec_delta_v3(const struct gt_itt_domain *d, const struct gt_itt_string *name,
                             unsigned long long delta)
{
    add(by_name(d, name), -(double)delta);
}

void on_counter_set_value(void *counter, void *value)
{
    set(counter_at(counter), value);
}

void on_counter_set_value_ex(void *counter, void *clock, unsigned long long timestamp, void *value)
{
    NOT_USED(clock), NOT_USED(timestamp);
    set(counter_at(counter), value);
}

void on_counter_set_value_v3(void *counter, void *value)
{
    set(counter_at(counter), value);
}

/* ---- metadata ---- */

/* A single number is a sample of a counter with the key's name: a row holds no more than sums.
 * Texts and arrays have none, so they are left out; so is which task it was said of. */
void on_metadata_add(const struct gt_itt_domain *d, struct gt_itt_id id,
                     const struct gt_itt_string *key, int type, size_t count, const void *data)
{
    int info = gt_itt_info(d);
    double v;

    NOT_USED(id);
    if (count == 1 && read_number(data, type, &v) == 0 && !(info & GT_ITT_OFF))
        sample(gt_itt_tag(info), gt_itt_text(key), v);
}

void on_metadata_add_with_scope(const struct gt_itt_domain *d, int scope,
                                const struct gt_itt_string *key, int type, size_t count,
                                const void *data)
{
    NOT_USED(scope);
    on_metadata_add(d, (struct gt_itt_id){0}, key, type, count, data);
}
