/* Open ranges by the ids that the program gave them: overlapped tasks, regions, frames, events. Any
 * thread may begin or end one. Called by itt_ranges.c and itt_marks.c on the program's threads.
 *
 * Two hash tables of fixed size: a small one that stays in the cache, for programs that have a few
 * open at a time, and a large one for those that find no place there. A range lies in one of the
 * places behind its hash. One word says of a place whether it is free, being written or held, a
 * part of the hash, and how often it was used: a compare-and-swap of that word claims exactly what
 * was read. Nobody waits for anybody: what another thread is just writing is not there yet. */
#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include "core/sys.h"
#include "itt.h"

#define SMALL 256u
#define LARGE (1u << 15)

static struct table {
    uint32_t first, size;   /* its places */
    uint32_t window;        /* so many behind a hash may be used */
    _Atomic uint32_t reach; /* so many ever were: no need to look at more. Only grows */
} tables[] = {{0, SMALL, 8, 0}, {SMALL, LARGE, 64, 0}};
#define TABLES (sizeof(tables) / sizeof(*tables))

enum { FREE = 0, BUSY = 1, HELD = 2, STATES = 4 };
#define STATE(word) ((word) % STATES)
#define HASH_MASK 0x3ffffffcull /* where the word has 28 bits of the hash */
#define ROUND (1ull << 30)      /* one more use of the place; it takes 2^34 to come round */

static _Atomic(void *) room;
struct open {
    _Atomic uint64_t places[SMALL + LARGE];
    /* written by whoever has set the place BUSY, read by all: compared again by the word's swap */
    struct {
        _Atomic uint64_t words[3], rest, id, age;
    } held[SMALL + LARGE];
};
static _Atomic uint64_t ages;

int gt_itt_open_init(void)
{
    return gt_sys_map_once(&room, sizeof(struct open)) ? 0 : -ENOMEM;
}

static struct open *open_ranges(void)
{
    return atomic_load_explicit(&room, memory_order_relaxed);
}

static uint64_t rest_of(const struct gt_itt_key *key)
{
    return (uint64_t)key->kind << 32 | key->domain_id;
}

static uint64_t hash_of(const struct gt_itt_key *key)
{
    uint64_t h = rest_of(key);

    for (int i = 0; i < 3; i++) {
        h = (h ^ key->words[i]) * 0x9e3779b97f4a7c15u;
        h ^= h >> 29;
    }
    return h;
}

#define LOAD(field) atomic_load_explicit(&(field), memory_order_relaxed)
#define STORE(field, value) atomic_store_explicit(&(field), value, memory_order_relaxed)

static int is(uint32_t n, const struct gt_itt_key *key)
{
    return LOAD(open_ranges()->held[n].rest) == rest_of(key) &&
           LOAD(open_ranges()->held[n].words[0]) == key->words[0] &&
           LOAD(open_ranges()->held[n].words[1]) == key->words[1] &&
           LOAD(open_ranges()->held[n].words[2]) == key->words[2];
}

static uint32_t place_of(const struct table *t, uint64_t hash, uint32_t i)
{
    return t->first + (uint32_t)((hash >> 32) + i) % t->size;
}

/* Takes a free place for writing: its number, and its word as it was before. Returns 0 or -ENOSPC.
 */
static int claim(struct table *t, uint64_t hash, uint32_t *n, uint64_t *word)
{
    for (uint32_t i = 0; i < t->window; i++) {
        *n = place_of(t, hash, i);
        *word = atomic_load_explicit(&open_ranges()->places[*n], memory_order_relaxed);
        if (STATE(*word) != FREE ||
            !atomic_compare_exchange_strong_explicit(&open_ranges()->places[*n], word, *word + BUSY,
                                                     memory_order_acquire, memory_order_relaxed))
            continue;
        uint32_t far = atomic_load_explicit(&t->reach, memory_order_relaxed);
        while (i >= far && !atomic_compare_exchange_weak_explicit(
                               &t->reach, &far, i + 1, memory_order_relaxed, memory_order_relaxed))
            ;
        return 0;
    }
    return -ENOSPC;
}

int gt_itt_put(const struct gt_itt_key *key, uint64_t id)
{
    uint64_t hash = hash_of(key), word;
    uint32_t n;

    if (claim(&tables[0], hash, &n, &word) != 0 && claim(&tables[1], hash, &n, &word) != 0)
        return -ENOSPC;
    for (int k = 0; k < 3; k++)
        STORE(open_ranges()->held[n].words[k], key->words[k]);
    STORE(open_ranges()->held[n].rest, rest_of(key));
    STORE(open_ranges()->held[n].id, id);
    STORE(open_ranges()->held[n].age, atomic_fetch_add_explicit(&ages, 1, memory_order_relaxed));
    word = (word & ~(HASH_MASK | (STATES - 1))) | (hash & HASH_MASK) | HELD;
    /* pairs with the acquire in gt_itt_find */
    atomic_store_explicit(&open_ranges()->places[n], word, memory_order_release);
    return 0;
}

int gt_itt_find(const struct gt_itt_key *key, int take, uint64_t *id)
{
    uint64_t hash = hash_of(key);

    for (;;) {
        uint64_t best_word = 0, best_age = 0;
        uint32_t best = 0;

        for (const struct table *t = tables; t < tables + TABLES; t++) {
            uint32_t reach = atomic_load_explicit(&t->reach, memory_order_relaxed);

            for (uint32_t i = 0; i < reach; i++) {
                uint32_t n = place_of(t, hash, i);
                uint64_t word =
                    atomic_load_explicit(&open_ranges()->places[n], memory_order_acquire);

                if (STATE(word) == HELD && ((word ^ hash) & HASH_MASK) == 0 && is(n, key) &&
                    (!best_word || LOAD(open_ranges()->held[n].age) > best_age)) {
                    best = n;
                    best_word = word;
                    best_age = LOAD(open_ranges()->held[n].age);
                }
            }
        }
        if (!best_word)
            return -ENOENT;
        *id = LOAD(open_ranges()->held[best].id);
        /* acq_rel: what was read above is read before the place is given to others */
        if (atomic_compare_exchange_strong_explicit(
                &open_ranges()->places[best], &best_word,
                take ? (best_word & ~(uint64_t)(STATES - 1)) + ROUND : best_word,
                memory_order_acq_rel, memory_order_relaxed))
            return 0; /* nobody was there in between: what was read is right */
    }
}
