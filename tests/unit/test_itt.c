/* preload/itt_open.c and itt_names.c: ranges by their ids against a list that is too slow to be
 * wrong, handed over between threads; domains, string handles and their limits. */
#include "tests/unit/core_reader.h"
#include <errno.h>
#include <pthread.h>
#include "preload/itt.h"

/* The source that the archive would ask for otherwise. */
int gt_torch_live(void);
int gt_torch_live(void)
{
    return 0;
}

static void room(void)
{
    ck_assert_int_eq(gt_itt_names_init(), 0);
    ck_assert_int_eq(gt_itt_open_init(), 0);
}

static uint64_t state;

static uint32_t rnd(uint32_t n)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)((state * 0x2545f4914f6cdd1du) >> 33) % n;
}

static struct gt_itt_key key_of(uint64_t n)
{
    return (struct gt_itt_key){
        .words = {n / 7, n % 7, n % 2}, .domain_id = (uint32_t)n % 3, .kind = (uint32_t)n % 4};
}

/* ---- open ranges ---- */

#define OPEN 3000
#define KEYS 2000 /* so that some keys are there several times */

START_TEST(against_a_list)
{
    static struct {
        uint64_t key, id;
    } list[OPEN];
    uint64_t id, next = 1;
    int n = 0;

    state = 77 + (uint64_t)_i;
    for (int event = 0; event < 200000; event++) {
        uint64_t k = rnd(KEYS);
        struct gt_itt_key key = key_of(k);
        if (n < OPEN && rnd(100) < 52) {
            RD_MUST(gt_itt_put(&key, next) == 0, "no room for number %d", n);
            list[n].key = k;
            list[n++].id = next++;
            continue;
        }
        int take = (int)rnd(4) != 0, i = n - 1;
        while (i >= 0 && list[i].key != k)
            i--;
        int got = gt_itt_find(&key, take, &id);
        RD_MUST(got == (i < 0 ? -ENOENT : 0), "event %d: %d", event, got);
        if (i < 0)
            continue;
        RD_MUST(id == list[i].id, "event %d: not the youngest", event);
        if (take) {
            memmove(list + i, list + i + 1, (size_t)(n - 1 - i) * sizeof *list);
            n--;
        }
    }
    while (n--) {
        struct gt_itt_key key = key_of(list[n].key);
        ck_assert_int_eq(gt_itt_find(&key, 1, &id), 0);
    }
    for (uint64_t k = 0; k < KEYS; k++) {
        struct gt_itt_key key = key_of(k);
        ck_assert_int_eq(gt_itt_find(&key, 0, &id), -ENOENT);
    }
}
END_TEST

/* All places behind one hash: the next one is told that there is none. */
START_TEST(full)
{
    struct gt_itt_key key = key_of(5), other;
    uint64_t id;
    int held = 0, left = 20000;

    while (gt_itt_put(&key, (uint64_t)held + 1) == 0)
        ck_assert_int_le(++held, 8 + 64);
    ck_assert_int_eq(held, 8 + 64);
    ck_assert_int_eq(gt_itt_put(&key, 1), -ENOSPC);
    for (; held; held--) {
        ck_assert_int_eq(gt_itt_find(&key, 1, &id), 0);
        ck_assert_uint_eq(id, (uint64_t)held);
    }
    /* 20,000 open at once is no trouble */
    for (int i = 0; i < left; i++) {
        other = (struct gt_itt_key){.words = {(uint64_t)i}};
        ck_assert_int_eq(gt_itt_put(&other, (uint64_t)i + 1), 0);
    }
    for (int i = 0; i < left; i++) {
        other = (struct gt_itt_key){.words = {(uint64_t)i}};
        RD_MUST(gt_itt_find(&other, 1, &id) == 0 && id == (uint64_t)i + 1, "lost number %d", i);
    }
}
END_TEST

#define THREADS 4
#define EACH 20000
static _Atomic uint32_t seen[THREADS * EACH];

static int take_one(uint64_t whose, uint64_t taken)
{
    struct gt_itt_key key = {.words = {whose, taken % 50}};
    uint64_t id;

    if (gt_itt_find(&key, 1, &id) != 0)
        return 0;
    atomic_fetch_add(&seen[id - 1], 1);
    return 1;
}

/* Each thread puts its own ranges and takes the next one's, whatever is there of them. */
static void *hand_over(void *arg)
{
    uint64_t me = (uint64_t)(uintptr_t)arg, next = (me + 1) % THREADS, taken = 0;

    for (uint64_t i = 0; i < EACH; i++) {
        struct gt_itt_key key = {.words = {me, i % 50}};
        /* full: the one who takes ours may be waiting for us */
        while (gt_itt_put(&key, me * EACH + i + 1) != 0) {
            taken += (uint64_t)take_one(next, taken);
            sched_yield();
        }
        taken += (uint64_t)take_one(next, taken);
    }
    while (taken < EACH) {
        if (!take_one(next, taken))
            sched_yield();
        else
            taken++;
    }
    return NULL;
}

START_TEST(threads)
{
    pthread_t t[THREADS];

    for (uintptr_t i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&t[i], NULL, hand_over, (void *)i), 0);
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_join(t[i], NULL), 0);
    for (int i = 0; i < THREADS * EACH; i++)
        RD_MUST(seen[i] == 1, "number %d was seen %u times", i, seen[i]);
}
END_TEST

/* ---- names ---- */

START_TEST(domains)
{
    struct gt_itt_domain *a = on_domain_create("a"), early = {.flags = 1, .name = "a"},
                         none = {.flags = 1}, off = {.name = "a"};

    ck_assert_ptr_eq(on_domain_create("a"), a);
    ck_assert_ptr_eq(on_domain_createW(L"a"), a);
    ck_assert_str_eq(a->name, "a");
    ck_assert_int_eq(a->flags, 1);
    ck_assert_ptr_ne(on_domain_create("b"), a);
    ck_assert_ptr_null(on_domain_create(NULL));
    ck_assert_uint_eq(gt_itt_info(a), gt_domain("a"));
    /* older than we: known by its name, and then by the mark in it */
    ck_assert_uint_eq(gt_itt_info(&early), gt_domain("a"));
    ck_assert_ptr_eq(early.extra2, &gt_itt_known);
    ck_assert_uint_eq(gt_itt_info(&early), gt_domain("a"));
    ck_assert_int_eq(gt_itt_info(&none), 0);
    ck_assert_int_eq(gt_itt_info(&off), GT_ITT_OFF);
    ck_assert_int_eq(gt_itt_info(NULL), GT_ITT_OFF);
    a->flags = 0;
    ck_assert_int_eq(gt_itt_info(a), GT_ITT_OFF);
    ck_assert_ptr_eq(on_domain_create("a"), a);
    ck_assert_int_eq(a->flags, 0); /* it stays off */
}
END_TEST

/* With the source off a domain says so itself, and nothing of it is recorded. */
START_TEST(sources)
{
    int itt = strcmp(_i ? "onednn" : "itt", "itt") == 0;

    setenv("GPUTALLY_SOURCES", itt ? "itt" : "onednn", 1);
    ck_assert_int_eq(on_domain_create("user")->flags, itt);
    ck_assert_int_eq(on_domain_create("dnnl::primitive::execute")->flags, !itt);
    struct gt_itt_domain d = {.flags = 1, .name = "dnnl::primitive::create"};
    ck_assert_int_eq(gt_itt_info(&d),
                     itt ? GT_ITT_OFF : (int)gt_domain(d.name) | GT_ITT_ONEDNN | GT_ITT_LIBRARY);
    ck_assert_int_eq(gt_itt_tag(gt_itt_info(&d)) >> 56, itt ? GT_SOURCE_ITT : GT_SOURCE_ONEDNN);
}
END_TEST

START_TEST(strings)
{
    char text[300];
    struct gt_itt_string *first = on_string_handle_create("step 7"), *s;
    int templates = 0;

    ck_assert_ptr_null(on_string_handle_create(NULL));
    ck_assert_str_eq(on_string_handle_create("")->text, "");
    for (int i = 0; i < 100000; i++) {
        snprintf(text, sizeof text, "step %d", i);
        s = on_string_handle_create(text);
        RD_MUST(s->extra1 == 0 && !s->extra2, "what must be 0 is not");
        RD_MUST(on_string_handle_create(text) == s, "another handle for %s", text);
        if (strcmp(s->text, text) != 0) {
            RD_MUST(strcmp(s->text, "step *") == 0, "%s became %s", text, s->text);
            templates++;
        }
    }
    ck_assert_int_gt(templates, 0);
    ck_assert_int_lt(templates, 60000);
    /* those that were there are still what they were; there is room for other templates, and none
     * for names that are not alike */
    ck_assert_ptr_eq(on_string_handle_create("step 7"), first);
    ck_assert_str_eq(first->text, "step 7");
    ck_assert_str_eq(on_string_handle_create("epoch 3 of 0xff")->text, "epoch * of *");
    ck_assert_str_eq(on_string_handle_create("no number")->text, "(other)");
}
END_TEST

/* Long texts are few: memory is what limits them. */
START_TEST(long_strings)
{
    char text[20001];
    int other = 0;

    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = 0;
    for (int i = 0; i < 2000; i++) {
        text[i] = 'y';
        other += strcmp(on_string_handle_create(text)->text, text) != 0;
    }
    ck_assert_int_ge(other, 2000 - 1 - 4 * 1024 * 1024 / 20000);
    ck_assert_int_lt(other, 1900);
    ck_assert_str_eq(on_string_handle_create("step 12")->text, "step *");
}
END_TEST

static void *make_strings(void *arg)
{
    const char **out = arg;
    char text[32];

    for (int i = 0; i < 2000; i++) {
        snprintf(text, sizeof text, "name %d", i);
        out[i] = (const char *)on_string_handle_create(text);
    }
    return NULL;
}

START_TEST(strings_of_threads)
{
    static const char *made[THREADS][2000];
    pthread_t t[THREADS];

    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&t[i], NULL, make_strings, made[i]), 0);
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_join(t[i], NULL), 0);
    for (int i = 1; i < THREADS; i++)
        ck_assert_mem_eq(made[i], made[0], sizeof made[0]);
}
END_TEST

START_TEST(ids)
{
    char text[32];
    int last = 0;

    ck_assert_int_eq(gt_itt_id_of("a"), 1);
    ck_assert_int_eq(gt_itt_id_of("b"), 2);
    ck_assert_int_eq(gt_itt_id_of("a"), 1);
    ck_assert_str_eq(gt_itt_name_of(2), "b");
    ck_assert_ptr_null(gt_itt_name_of(3));
    ck_assert_ptr_null(gt_itt_name_of(0));
    ck_assert_ptr_null(gt_itt_name_of(-1));
    ck_assert_ptr_null(gt_itt_name_of(1 << 30));
    for (int i = 0; i < 5000; i++) {
        snprintf(text, sizeof text, "mark %d", i);
        last = gt_itt_id_of(text);
    }
    ck_assert_str_eq(gt_itt_name_of(last), "(other)");
    ck_assert_str_eq(gt_itt_name_of(1), "a");
}
END_TEST

START_TEST(functions)
{
    const char *name = gt_itt_function((void *)atoi);

    ck_assert_ptr_null(gt_itt_function(NULL));
    ck_assert_ptr_eq(gt_itt_function((void *)atoi), name);
    ck_assert_ptr_nonnull(strstr(name, "atoi"));
    ck_assert_ptr_nonnull(strstr(gt_itt_function((void *)make_strings), "test_itt+0x"));
    ck_assert_str_eq(gt_itt_function((void *)16), "0x10");
    for (uintptr_t i = 2; i < 3000; i++) /* more than are remembered */
        ck_assert_ptr_nonnull(gt_itt_function((void *)(i * 16)));
    ck_assert_str_eq(gt_itt_function((void *)16), "0x10");
}
END_TEST

int main(void)
{
    Suite *s = suite_create("itt");
    TCase *t = rd_case(s, "all");
    tcase_add_checked_fixture(t, room, NULL);
    tcase_add_loop_test(t, against_a_list, 0, 3);
    tcase_add_test(t, full);
    tcase_add_test(t, threads);
    tcase_add_test(t, domains);
    tcase_add_loop_test(t, sources, 0, 2);
    tcase_add_test(t, strings);
    tcase_add_test(t, long_strings);
    tcase_add_test(t, strings_of_threads);
    tcase_add_test(t, ids);
    tcase_add_test(t, functions);
    return rd_run(s);
}
