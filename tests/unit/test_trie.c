/* core/trie.c: against a plain list of stacks; what a reader sees while it grows; no memory. */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include "core/trie.h"

static long left = 1L << 40;
static struct gt_trie_chunk *chunk_at[64];
static uint32_t chunks;

/* Never freed, as in the library; kept reachable. */
static void *own(size_t bytes)
{
    static void **list;
    if ((left -= (long)bytes) < 0)
        return NULL;
    void **p = calloc(1, bytes + 64);
    *p = list;
    list = p;
    return p + 8;
}

static void *shared(size_t bytes, uint32_t *ref)
{
    void *p = own(bytes);
    if (p) {
        chunk_at[chunks] = p;
        *ref = ++chunks;
    }
    return p;
}

static const struct gt_trie_memory memory = {shared, own};

/* As a reader does it: by the chunks. */
static const struct gt_trie_node *read_node(const struct gt_trie *t, uint32_t id)
{
    uint32_t ref = t->first_chunk;
    while (ref && id >= chunk_at[ref - 1]->first + chunk_at[ref - 1]->capacity)
        ref = chunk_at[ref - 1]->next;
    ck_assert_uint_ne(ref, 0);
    return &chunk_at[ref - 1]->nodes[id - chunk_at[ref - 1]->first];
}

START_TEST(same_stack_same_id)
{
    enum { STACKS = 3000, MAX = 12 };
    static uint64_t pcs[STACKS][MAX];
    static uint32_t ids[STACKS], length[STACKS];
    struct gt_trie t;

    ck_assert_int_eq(gt_trie_init(&t, &memory), 0);
    srand(1);
    for (int i = 0; i < STACKS; i++) {
        uint32_t id = GT_TRIE_ROOT;
        length[i] = 1 + (uint32_t)rand() % MAX;
        for (uint32_t k = 0; k < length[i]; k++) {
            pcs[i][k] = 0x1000 + (uint64_t)rand() % 3;
            id = gt_trie_child(&t, id, pcs[i][k]);
        }
        ids[i] = id;
    }
    for (int i = 0; i < STACKS; i++) {
        uint32_t id = ids[i], n = length[i];
        for (; id >= GT_TRIE_FIRST; id = read_node(&t, id)->parent)
            ck_assert_uint_eq(read_node(&t, id)->pc, pcs[i][--n]);
        ck_assert_uint_eq(id, GT_TRIE_ROOT);
        ck_assert_uint_eq(n, 0);
        for (n = 0; n < length[i]; n++)
            id = gt_trie_child(&t, id, pcs[i][n]);
        ck_assert_uint_eq(id, ids[i]);
    }
    /* no node twice */
    ck_assert_uint_le(t.count, STACKS * MAX);
    for (uint32_t a = GT_TRIE_FIRST; a < t.count; a += 101)
        for (uint32_t b = a + 1; b < t.count; b++)
            if (t.nodes[a].pc == t.nodes[b].pc && t.nodes[a].parent == t.nodes[b].parent)
                ck_abort_msg("%u and %u are the same", a, b);
}
END_TEST

/* Below each of the roots the same address is another node. */
START_TEST(bottoms)
{
    struct gt_trie t;
    ck_assert_int_eq(gt_trie_init(&t, &memory), 0);
    uint32_t a = gt_trie_child(&t, GT_TRIE_ROOT, 5), b = gt_trie_child(&t, GT_TRIE_CUT, 5);
    ck_assert_uint_ne(a, b);
    ck_assert_uint_eq(gt_trie_child(&t, GT_TRIE_CUT, 5), b);
    ck_assert_uint_eq(gt_trie_child(&t, GT_TRIE_OTHER, 5), GT_TRIE_OTHER);
}
END_TEST

/* ---- modules that go ---- */

static uint8_t is_gone[1 << 16];
static long asked;

static uint32_t module_of(uint64_t pc)
{
    return (uint32_t)(pc >> 8);
}

static int gone(uint32_t module)
{
    asked++;
    return is_gone[module];
}

static int any_gone(uint64_t *pcs, int n)
{
    while (n--)
        if (is_gone[module_of(pcs[n])])
            return 1;
    return 0;
}

/* Random stacks through 40 modules that go one by one: those that go through none of them keep
 * their ids, the others never get theirs again. */
START_TEST(forgets)
{
    enum { STACKS = 2000, MAX = 8, MODULES = 40 };
    static uint64_t pcs[STACKS][MAX];
    static uint32_t ids[STACKS], length[STACKS];
    struct gt_trie_memory with = memory;
    struct gt_trie t;

    with.module = module_of;
    memset(is_gone, 0, sizeof is_gone);
    srand(2);
    ck_assert_int_eq(gt_trie_init(&t, &with), 0);
    for (int i = 0; i < STACKS; i++) {
        length[i] = 1 + (uint32_t)rand() % MAX;
        for (uint32_t k = 0; k < length[i]; k++)
            pcs[i][k] = (uint64_t)(1 + rand() % MODULES) << 8 | (rand() % 2);
    }
    for (int go = 0; go <= MODULES; go++) {
        uint32_t before = t.count;
        is_gone[go] = 1; /* 0: none */
        gt_trie_forget(&t, gone);
        for (int i = 0; i < STACKS; i++) {
            uint32_t id = GT_TRIE_ROOT;
            if (go && any_gone(pcs[i], (int)length[i]))
                continue;
            for (uint32_t k = 0; k < length[i]; k++)
                id = gt_trie_child(&t, id, pcs[i][k]);
            if (go)
                ck_assert_uint_eq(id, ids[i]);
            ids[i] = id;
        }
        if (go)
            ck_assert_uint_eq(t.count, before);
        /* what goes through the one that went is new */
        uint64_t pc = (uint64_t)go << 8;
        if (go)
            ck_assert_uint_ge(gt_trie_child(&t, GT_TRIE_ROOT, pc), before);
        for (uint32_t id = GT_TRIE_FIRST; id < t.count; id++)
            ck_assert_uint_ne(read_node(&t, id)->pc, 0); /* readers have all of them */
    }
}
END_TEST

/* A module that comes and goes without end costs as much the last time as the first. */
START_TEST(forgets_without_end)
{
    enum { ROUNDS = 20000, STAY = 50 };
    struct gt_trie_memory with = memory;
    struct gt_trie t;
    uint32_t id = GT_TRIE_ROOT, last = 0;

    with.module = module_of;
    memset(is_gone, 0, sizeof is_gone);
    ck_assert_int_eq(gt_trie_init(&t, &with), 0);
    for (int i = 0; i < STAY; i++)
        id = gt_trie_child(&t, id, 1 << 8 | (uint64_t)i);
    asked = 0;
    for (int i = 0; i < ROUNDS; i++) {
        /* code of the one that goes, and below it of one that stays */
        uint32_t in = gt_trie_child(&t, id, 2 << 8), below = gt_trie_child(&t, in, 1 << 8);
        ck_assert_uint_gt(in, last);
        ck_assert_uint_eq(gt_trie_child(&t, in, 1 << 8), below);
        last = in;
        is_gone[2] = 1;
        gt_trie_forget(&t, gone);
        is_gone[2] = 0; /* again, in the same place */
    }
    ck_assert_int_le(asked, (long)ROUNDS * (STAY + 1));
}
END_TEST

/* Memory ends at every possible place; what was there keeps its id. */
START_TEST(no_memory)
{
    for (long have = 0; have < 200000; have += 1500) {
        struct gt_trie t;
        uint32_t id[2000], others = 0;
        left = have;
        chunks = 0;
        int r = gt_trie_init(&t, &memory);
        if (r == 0) {
            for (uint32_t i = 0; i < 2000; i++)
                others +=
                    (id[i] = gt_trie_child(&t, i % 9 ? id[i - 1] : 0, i % 3)) == GT_TRIE_OTHER;
            for (uint32_t i = 0; i < 2000; i++)
                ck_assert_uint_eq(gt_trie_child(&t, i % 9 ? id[i - 1] : 0, i % 3), id[i]);
            ck_assert_int_eq(t.full, others > 0);
        }
        left = 1L << 40;
        ck_assert(have > 0 || r < 0);
        ck_assert(have < 190000 || (r == 0 && !others));
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("trie");
    TCase *c = tcase_create("trie");
    tcase_add_test(c, same_stack_same_id);
    tcase_add_test(c, bottoms);
    tcase_add_test(c, forgets);
    tcase_add_test(c, forgets_without_end);
    tcase_add_test(c, no_memory);
    suite_add_tcase(s, c);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
