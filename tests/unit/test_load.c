/* Session -> model: invariants, open and torn ranges, hostile files. */
#include "session_builder.h"
#include <errno.h>
#include <sys/stat.h>
#include "report/load.h"

static struct sb b;
static struct gt_model m;
static struct gt_err e;

static void setup(void)
{
    sb_folder();
    sb_init(&b, 8 << 20);
    gt_model_init(&m);
    e.message[0] = 0;
}

static void teardown(void)
{
    gt_model_fini(&m);
    sb_free(&b);
    sb_folder_remove();
}

static void load(void)
{
    sb_save(&b, "s.session");
    ck_assert_msg(gt_load_file(&m, "s.session", &e) == 0, "%s", e.message);
}

static const struct gt_row *row(const char *key)
{
    for (size_t i = 0; i < m.row_count; i++)
        if (!strcmp(gt_model_string(&m, m.rows[i].key, NULL), key))
            return &m.rows[i];
    ck_abort_msg("no row %s", key);
    return NULL;
}

static int64_t sum_self(void)
{
    int64_t sum = 0;
    for (size_t i = 0; i < m.row_count; i++)
        sum += m.rows[i].self_ns;
    return sum;
}

static int64_t sum_roots(void)
{
    int64_t sum = 0;
    for (size_t i = 0; i < m.row_count; i++)
        if (m.rows[i].parent < 0 && m.rows[i].kind == GT_KIND_RANGE)
            sum += m.rows[i].total_ns;
    return sum;
}

static void sane(void)
{
    for (size_t i = 0; i < m.row_count; i++) {
        const struct gt_row *r = &m.rows[i];
        ck_assert_int_lt(r->parent, (int64_t)i);
        ck_assert_int_ge(r->self_ns, 0);
        ck_assert_int_le(r->self_ns, r->total_ns);
        ck_assert_int_le(r->min_ns, r->max_ns);
        ck_assert_uint_lt(r->thread, m.thread_count);
    }
}

START_TEST(plain)
{
    struct gt_slot *s = sb_slot(&b, "main", 16);
    uint32_t a = sb_node(&b, s, 0, "a"), c = sb_node(&b, s, a, "b");
    sb_call(&b, s, a, 100, 60);
    sb_call(&b, s, c, 30, 30);
    sb_call(&b, s, c, 10, 10);
    load();
    ck_assert_uint_eq(m.row_count, 2);
    ck_assert_int_eq(row("a")->total_ns, 100);
    ck_assert_int_eq(row("a")->self_ns, 60);
    ck_assert_int_eq(row("b")->count, 2);
    ck_assert_int_eq(row("b")->min_ns, 10);
    ck_assert_int_eq(row("b")->max_ns, 30);
    ck_assert_int_eq(row("b")->parent, 0);
    ck_assert_int_eq(m.processes[0].ended, GT_ENDED_EXIT);
    ck_assert_int_eq(m.processes[0].duration_ns, 1000000);
    ck_assert_uint_eq(m.processes[0].argv.count, 2);
    ck_assert_int_eq(m.threads[0].inside_ns, 100);
    sane();
}
END_TEST

START_TEST(rounding_keeps_sums)
{
    /* a clock of 2.9 GHz: no tick is a whole number of ns */
    struct gt_header *h = sb_header(&b);
    h->clock = GT_CLOCK_TSC;
    h->end = (struct gt_pair){1000 + 2900000007u, 1000 + 1000000000u};
    struct gt_slot *s = sb_slot(&b, "main", 600);
    uint32_t nodes[512] = {0}, random = 12345;
    uint64_t kids[512] = {0}; /* what ran below each */
    for (int i = 1; i < 512; i++) {
        random = random * 1664525 + 1013904223;
        nodes[i] = sb_node(&b, s, nodes[(random >> 8) % (uint32_t)i], "n");
    }
    for (uint32_t i = 511; i > 0; i--) {
        struct gt_node *n = sb_get(&b, s, i);
        random = random * 1664525 + 1013904223;
        uint64_t self = random % 1001;
        if (random % 7 == 0 && kids[i]) { /* a place that was only passed */
            kids[n->parent] += kids[i];
            continue;
        }
        sb_call(&b, s, i, self + kids[i], self);
        kids[n->parent] += self + kids[i];
    }
    load();
    sane();
    ck_assert_int_gt(sum_self(), 0);
    ck_assert_int_eq(sum_self(), sum_roots());
}
END_TEST

START_TEST(open_ranges_count)
{
    struct gt_slot *s = sb_slot(&b, "main", 16);
    uint32_t a = sb_node(&b, s, 0, "a"), c = sb_node(&b, s, a, "b"), q = sb_node(&b, s, c, "quiet");
    sb_call(&b, s, a, 500, 500);
    sb_push(&b, s, a, 1000)->kid_ticks = 200; /* an earlier call of b */
    sb_call(&b, s, c, 200, 200);
    sb_push(&b, s, c, 901000);
    sb_push(&b, s, q, 951000)->flags = GT_FRAME_SILENT;
    gt_ref key = sb_start(&b, s, "async", 501000)->key;
    struct gt_async *second = sb_start(&b, s, "async", 601000);
    second->key = key; /* texts are interned */
    second->state = GT_ASYNC_ENDING;
    load();
    sane();
    ck_assert_int_eq(row("a")->count, 2);
    ck_assert_int_eq(row("a")->total_ns, 1000500);
    ck_assert_int_eq(row("a")->self_ns, 500 + 1000000 - 200 - 100000);
    ck_assert_int_eq(row("b")->count, 2);
    ck_assert_int_eq(row("b")->total_ns, 100200);
    ck_assert_int_eq(row("async")->count, 2);
    ck_assert_int_eq(row("async")->total_ns, 900000);
    ck_assert_int_eq(row("async")->self_ns, 0);
    ck_assert_uint_eq(m.open_count, 4);
    ck_assert_int_eq(m.open[1].since_ns, 900000);
    ck_assert_int_eq(sum_self(), sum_roots());
}
END_TEST

START_TEST(killed_counts_to_the_last_event)
{
    struct gt_slot *s = sb_slot(&b, "main", 16);
    uint32_t a = sb_node(&b, s, 0, "a");
    sb_header(&b)->state = GT_STATE_RUNNING;
    sb_push(&b, s, a, 2000);
    s->ring = sb_alloc(&b, 4 * sizeof(struct gt_record));
    s->ring_records = 4;
    struct gt_record *r = sb_at(&b, s->ring);
    r[3] = (struct gt_record){4000, GT_RING_ESCAPE, (uint32_t)GT_RING_RANGE << 28 | a};
    r[0] = (struct gt_record){5000000000u, 0, (uint32_t)GT_RING_EXTENSION << 28 | a};
    /* a torn record: over ten years later */
    r[1] = (struct gt_record){UINT64_MAX - 5, 3, (uint32_t)GT_RING_RANGE << 28 | a};
    load();
    ck_assert_int_eq(m.processes[0].ended, GT_ENDED_KILLED);
    ck_assert_int_eq(row("a")->count, 1);
    ck_assert_int_eq(row("a")->total_ns, 5000002000);
}
END_TEST

/* a is open, b inside it; b has 2 calls. `closing`: what b's frame says it will have counted. */
static void torn_session(uint64_t closing, uint64_t commit_count)
{
    struct gt_slot *s = sb_slot(&b, "main", 16);
    uint32_t a = sb_node(&b, s, 0, "a"), c = sb_node(&b, s, a, "b");
    sb_header(&b)->state = GT_STATE_RUNNING;
    sb_call(&b, s, c, 10, 10);
    sb_call(&b, s, c, 10, 10);
    sb_push(&b, s, a, 1000);
    sb_push(&b, s, c, 2000)->kid_ticks = -closing;
    s->last = (struct gt_pair){3000, 3000};
    s->seq = 7;
    s->commit_count = commit_count;
    s->commit_node = c;
}

START_TEST(torn)
{
    static const struct {
        uint64_t closing, commit;
        int64_t count;
        int open;
    } cases[] = {
        {3, 0, 3, 2}, /* not counted yet: the open range is */
        {2, 0, 2, 1}, /* counted, its frame still there */
        {0, 0, 3, 2}, /* no call at all, or the frame is not marked yet */
        {0, 3, 4, 2}, /* a call without a frame is missing */
        {0, 2, 3, 2}, /* it is there */
    };
    torn_session(cases[_i].closing, cases[_i].commit);
    load();
    sane();
    ck_assert_int_eq(row("b")->count, cases[_i].count);
    ck_assert_int_eq(row("a")->count, 1);
    ck_assert_int_eq((int)m.open_count, cases[_i].open);
    ck_assert_int_eq(m.processes[0].lost[GT_LOST_INDEX_torn], 1);
}
END_TEST

START_TEST(torn_while_frames_move)
{
    /* a (bottom) ended below b and c; b was copied down already, c not yet */
    struct gt_slot *s = sb_slot(&b, "main", 16);
    uint32_t a = sb_node(&b, s, 0, "a"), x = sb_node(&b, s, a, "b"), c = sb_node(&b, s, x, "c");
    sb_header(&b)->state = GT_STATE_RUNNING;
    sb_call(&b, s, a, 10, 10);
    sb_push(&b, s, x, 1500);
    sb_push(&b, s, x, 1500);
    sb_push(&b, s, c, 2000);
    s->seq = 1;
    load();
    ck_assert_int_eq(row("a")->count, 1);
    ck_assert_int_eq(row("b")->count, 1);
    ck_assert_int_eq(row("c")->count, 1);
}
END_TEST

/* Killed between the end of a child and its ring record: what it took must fit into its parent. */
START_TEST(killed_before_the_ring_record)
{
    struct gt_slot *s = sb_slot(&b, "main", 16);
    uint32_t a = sb_node(&b, s, 0, "a"), c = sb_node(&b, s, a, "b");
    sb_header(&b)->state = GT_STATE_RUNNING;
    sb_call(&b, s, c, 500, 500);
    sb_push(&b, s, a, 2000)->kid_ticks = 500;
    load();
    ck_assert_int_eq(row("a")->total_ns, 500);
    ck_assert_int_eq(sum_self(), sum_roots());
}
END_TEST

START_TEST(names)
{
    struct gt_slot *s = sb_slot(&b, "main", 16);
    uint32_t a = sb_node(&b, s, 0, "a");
    sb_get(&b, s, a)->domain = sb_text(&b, "dom");
    sb_get(&b, s, a)->category = 5;
    sb_call(&b, s, a, 1, 1);
    static const char *const texts[] = {"old", "new", "worker", "elsewhere"};
    for (int i = 0; i < 4; i++) {
        gt_ref ref = sb_alloc(&b, sizeof(struct gt_name));
        struct gt_name *n = sb_at(&b, ref);
        n->next = sb_header(&b)->names;
        n->text = sb_text(&b, texts[i]);
        n->kind = i == 2 ? GT_NAME_THREAD : GT_NAME_CATEGORY;
        n->source = GT_SOURCE_NVTX;
        n->domain = i < 2 ? sb_text(&b, "dom") : 0; /* another copy of the text */
        n->id = i == 2 ? s->tid : 5;
        sb_header(&b)->names = ref;
    }
    load();
    ck_assert_str_eq(gt_model_string(&m, row("a")->category_name, NULL), "new");
    ck_assert_str_eq(gt_model_string(&m, row("a")->label, NULL), "dom:a");
    ck_assert_str_eq(gt_model_string(&m, m.threads[0].name, NULL), "worker");
}
END_TEST

START_TEST(deep)
{
    struct gt_slot *s = sb_slot(&b, "main", 10001);
    uint32_t n = 0;
    for (int i = 0; i < 10000; i++) {
        n = sb_node(&b, s, n, "deep");
        sb_push(&b, s, n, 1000 + (uint64_t)i);
    }
    load();
    sane();
    ck_assert_uint_eq(m.row_count, 10000);
    ck_assert_uint_eq(m.open_count, 10000);
    ck_assert_int_eq(sum_self(), sum_roots());
    ck_assert_int_eq(sum_roots(), 1000000);
}
END_TEST

static void refused(const char *why)
{
    ck_assert_int_lt(gt_load_file(&m, "s.session", &e), 0);
    ck_assert_msg(!strncmp(e.message, "s.session: ", 11) && strstr(e.message, why), "%s",
                  e.message);
    e.message[0] = 0;
}

START_TEST(refused_files)
{
    struct gt_slot *s = sb_slot(&b, "main", 16);
    struct gt_header *h = sb_header(&b);
    uint32_t a = sb_node(&b, s, 0, "a");
    sb_call(&b, s, a, 1, 1);
    ck_assert_int_eq(gt_load_file(&m, "none", &e), -ENOENT);
    ck_assert_str_eq(e.message, "none: No such file or directory");
    e.message[0] = 0;
    sb_write("s.session", "", 0);
    refused("empty");
    sb_write("s.session", b.data, 100);
    refused("truncated");
    sb_write("s.session", b.data, b.used - 8);
    refused("truncated");
    h->version = GT_LAYOUT_VERSION + 1;
    sb_save(&b, "s.session");
    refused("newer");
    h->version = GT_LAYOUT_VERSION;
    s->node_count = 1u << 27;
    sb_save(&b, "s.session");
    refused("damaged");
    s->node_count = 2;
    sb_get(&b, s, a)->parent = 1;
    sb_save(&b, "s.session");
    refused("damaged");
    sb_get(&b, s, a)->parent = 0;
    gt_ref slot = h->slots;
    s->next = slot; /* a cycle */
    sb_save(&b, "s.session");
    refused("damaged");
    s->next = 0;
    s->depth = 60000;
    sb_save(&b, "s.session");
    refused("damaged");
}
END_TEST

START_TEST(huge_sparse_file)
{
    /* 1 TiB of nothing behind a session must neither be read nor get memory */
    struct gt_slot *s = sb_slot(&b, "main", 16);
    sb_call(&b, s, sb_node(&b, s, 0, "a"), 1, 1);
    sb_save(&b, "s.session");
    if (truncate("s.session", (off_t)1 << 40)) {
        fprintf(stderr, "huge_sparse_file: this file system has no files of 1 TiB: skipped\n");
        return;
    }
    ck_assert_msg(gt_load_file(&m, "s.session", &e) == 0, "%s", e.message);
    ck_assert_int_eq(row("a")->count, 1);
}
END_TEST

/* 2,000 files, each with a few bytes changed: all must load or be refused, and end. */
START_TEST(mutations)
{
    struct gt_slot *s = sb_slot(&b, "main", 16);
    uint32_t a = sb_node(&b, s, 0, "a"), c = sb_node(&b, s, a, "b"), random = 99;
    sb_call(&b, s, a, 100, 60);
    sb_call(&b, s, c, 40, 40);
    sb_push(&b, s, a, 2000);
    sb_push(&b, s, c, 3000);
    sb_start(&b, s, "async", 501000);
    s->ring = sb_alloc(&b, 4 * sizeof(struct gt_record));
    s->ring_records = 4;
    sb_get(&b, s, c)->extra = sb_alloc(&b, sizeof(struct gt_extra));
    unsigned char *good = malloc(b.used);
    memcpy(good, b.data, b.used);
    int refusals = 0;
    for (int i = 0; i < 2000; i++) {
        memcpy(b.data, good, b.used);
        for (int k = 0; k <= i % 4; k++) {
            random = random * 1664525 + 1013904223;
            /* the header's words and what lies behind page 0, not the empty rest of the page */
            uint32_t at = random >> 4, body = (uint32_t)b.used - GT_HEADER_BYTES;
            at = i % 2 ? GT_HEADER_BYTES + at % body : at % (uint32_t)sizeof(struct gt_header);
            random = random * 1664525 + 1013904223;
            b.data[at] = (unsigned char)(random >> 16);
        }
        sb_save(&b, "s.session");
        e.message[0] = 0;
        struct gt_model other;
        gt_model_init(&other);
        int rc = gt_load_file(&other, "s.session", &e);
        ck_assert_int_eq(rc == 0, e.message[0] == 0);
        refusals += rc != 0;
        gt_model_fini(&other);
    }
    ck_assert_int_gt(refusals, 50);
    ck_assert_int_lt(refusals, 1950);
    free(good);
}
END_TEST

START_TEST(living_process)
{
    /* this very process, on a file that says so */
    struct gt_header *h = sb_header(&b);
    struct gt_slot *s = sb_slot(&b, "main", 16);
    struct stat ns;
    FILE *f = fopen("/proc/sys/kernel/random/boot_id", "r");
    unsigned long long start = 0;
    ck_assert_ptr_nonnull(f);
    ck_assert_int_eq(fscanf(f, "%36s", h->boot_id), 1);
    fclose(f);
    f = fopen("/proc/self/stat", "r");
    ck_assert_int_eq(fscanf(f, "%*d (%*[^)]) %*c"), 0);
    for (int i = 4; i < 22; i++)
        ck_assert_int_eq(fscanf(f, "%*s"), 0);
    ck_assert_int_eq(fscanf(f, "%llu", &start), 1);
    fclose(f);
    ck_assert_int_eq(stat("/proc/self/ns/pid", &ns), 0);
    h->pid = (uint32_t)getpid();
    h->start_time = start;
    h->pid_ns = ns.st_ino;
    h->state = GT_STATE_RUNNING;
    struct gt_pair now;
    ck_assert_int_eq(gt_clock_point(GT_CLOCK_MONOTONIC, &now), 0);
    h->start = now;
    sb_push(&b, s, sb_node(&b, s, 0, "a"), now.ticks);
    load();
    ck_assert_int_eq(m.processes[0].ended, GT_ENDED_RUNNING);
    ck_assert_int_eq(row("a")->count, 1);
    ck_assert_int_eq(gt_session_life(h), GT_LIFE_ALIVE);
    h->start_time++;
    ck_assert_int_eq(gt_session_life(h), GT_LIFE_DEAD);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("load");
    TCase *t = tcase_create("load");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 60);
    tcase_add_test(t, plain);
    tcase_add_test(t, rounding_keeps_sums);
    tcase_add_test(t, open_ranges_count);
    tcase_add_test(t, killed_counts_to_the_last_event);
    tcase_add_loop_test(t, torn, 0, 5);
    tcase_add_test(t, torn_while_frames_move);
    tcase_add_test(t, killed_before_the_ring_record);
    tcase_add_test(t, names);
    tcase_add_test(t, deep);
    tcase_add_test(t, refused_files);
    tcase_add_test(t, huge_sparse_file);
    tcase_add_test(t, mutations);
    tcase_add_test(t, living_process);
    suite_add_tcase(s, t);
    return sb_run(s);
}
