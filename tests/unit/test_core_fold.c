/* core: what happens when the names do not end. Too many alike fold into a template, too many
 * shapes into "other shapes", and when the memory is used up everything goes to "(other)"; no call
 * is lost and the memory stays under GPUTALLY_MEMORY. */
#include "tests/unit/core_reader.h"
#include <pthread.h>
#include <sys/resource.h>

static void call(const char *name)
{
    gt_push(API, name);
    gt_test_ticks++;
    gt_pop(GROUP(API));
}

static void number_names(const char *format, int from, int to)
{
    char name[128];
    for (int i = from; i < to; i++) {
        snprintf(name, sizeof name, format, i);
        call(name);
    }
}

static const struct gt_node *range(const char *path)
{
    const struct gt_node *n = rd_find(rd_self(), rd_only(), GT_KIND_RANGE, path);
    ck_assert_msg(n != NULL, "no range %s", path);
    return n;
}

START_TEST(names)
{
    call("step 0"); /* seen before the flood, and kept apart in it */
    number_names("step %d", 0, 1024);
    ck_assert_uint_eq(rd_only()->node_count, 2 + 1024);
    ck_assert_uint_eq(rd_only()->folded, 0);
    number_names("step %d", 1024, 3000);
    number_names("step %d", 2000, 3000); /* the same again */
    number_names("step %d", 0, 10);      /* those that came first stay */
    ck_assert_uint_eq(rd_only()->node_count, 2 + 1025);
    ck_assert_uint_eq(rd_only()->folded, 1976 + 1000);
    ck_assert_uint_eq(range("step *")->count, 2976);
    ck_assert_uint_eq(range("step *")->flags, GT_NODE_FOLDED);
    ck_assert_uint_eq(range("step 0")->count, 3);
    ck_assert_uint_eq(range("step 0")->flags, 0);
    ck_assert_uint_eq(range("step 1023")->count, 1);
    ck_assert_uint_eq(rd_calls(rd_self(), 0), 1 + 3000 + 1000 + 10);
    ck_assert_uint_eq(range("step *")->self_ticks, 2976);
    ck_assert_uint_eq(rd_header(rd_self())->memory_full, 0);
}
END_TEST

/* A range that is really called so is not the folded one, in whatever order they come. */
START_TEST(literal_template)
{
    struct rd v;
    int plain = 0, folded = 0;
    number_names("step %d", 0, 1030);
    call("step *");
    number_names("step %d", 1030, 1031);
    call("step *");
    call("step *");
    v = rd_self();
    for (uint32_t i = 1; i < rd_only()->node_count; i++) {
        const struct gt_node *n = rd_node(v, rd_only(), i);
        if (strcmp(rd_text(v, n->key), "step *") == 0) {
            ck_assert_uint_eq(n->count, n->flags ? 7 : 3);
            n->flags ? folded++ : plain++;
        }
    }
    ck_assert_int_eq(plain, 1);
    ck_assert_int_eq(folded, 1);
    ck_assert_uint_eq(rd_only()->folded, 7);
}
END_TEST

/* What folds together, each under a parent of its own so that nothing else is counted there. */
START_TEST(templates)
{
    static const struct {
        const char *format, *template;
    } rows[] = {
        {"step%d", "step*"},
        {"%d", "*"},
        {"block 0x%x end", "block * end"},
        {"ptr:%08x", "ptr:*"},
        {"hash 3f%06xa8", "hash *"},
        {"%d of 900", "* of *"},
        {"layer.%d.weight.7", "layer.*.weight.*"},
        {"\xc3\xa4%d\xc3\xa4", "\xc3\xa4*\xc3\xa4"},
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        char parent[64], path[128];
        snprintf(parent, sizeof parent, "row %c", (char)('A' + k));
        gt_push(NVTX, parent);
        number_names(rows[k].format, 0, 1200);
        gt_pop(GROUP(NVTX));
        snprintf(path, sizeof path, "%s/%s", parent, rows[k].template);
        ck_assert_msg(range(path)->count >= 176, "%s: %lu", path, range(path)->count);
        ck_assert_uint_eq(range(path)->flags, GT_NODE_FOLDED);
    }
    ck_assert_uint_eq(rd_calls(rd_self(), 0), 8 * 1201);
}
END_TEST

/* Words are no numbers, and hex digits alone make no number: these never fold. */
START_TEST(no_templates)
{
    char name[64];
    struct rd v;
    for (int i = 0; i < 1500; i++) {
        snprintf(name, sizeof name, "%c%c%c", 'a' + i / 625, 'a' + i / 25 % 25, 'a' + i % 25);
        call(name);
    }
    v = rd_self();
    ck_assert_uint_eq(rd_only()->folded, 0);
    ck_assert_uint_eq(rd_only()->node_count, 2 + 1500);
    ck_assert_uint_eq(rd_calls(v, 0), 1500);
}
END_TEST

/* The limit holds for each parent, kind and domain alone. */
START_TEST(places_apart)
{
    struct gt_attr a = {.name = "mark 1"};
    for (int parent = 0; parent < 3; parent++) {
        gt_push(NVTX, parent ? parent == 1 ? "a" : "b" : "c");
        number_names("step %d", 0, 1000);
        gt_pop(GROUP(NVTX));
    }
    gt_push(NVTX, "a");
    for (int i = 0; i < 1000; i++) {
        char name[32];
        snprintf(name, sizeof name, "step %d", i);
        a.name = name;
        gt_mark(API, &a);
    }
    gt_pop(GROUP(NVTX));
    ck_assert_uint_eq(rd_only()->folded, 0);
    ck_assert_uint_eq(rd_calls(rd_self(), GT_KIND_MARK), 1000);
    ck_assert_uint_eq(rd_calls(rd_self(), GT_KIND_RANGE), 3004);
}
END_TEST

/* Nesting below a folded name, marks, start/end and counters fold as well. */
START_TEST(other_kinds)
{
    struct gt_attr a = {0};
    char name[32];
    struct rd v;
    for (int i = 0; i < 1100; i++) {
        snprintf(name, sizeof name, "n%d", i);
        a = (struct gt_attr){.name = name, .value = i};
        gt_mark(API, &a);
        gt_counter(API, &a);
        a.has_value = i & 1;
        ck_assert_int_eq(gt_end(gt_start(API, &a)), 0);
        gt_push(API, name);
        call("inner");
        gt_pop(GROUP(API));
    }
    v = rd_self();
    for (int kind = GT_KIND_MARK; kind <= GT_KIND_COUNTER; kind++) {
        ck_assert_uint_eq(rd_calls(v, kind), 1100);
        ck_assert_uint_eq(rd_find(v, rd_only(), kind, "n*")->count, 76);
    }
    ck_assert_uint_eq(range("n*")->count, 76);
    ck_assert_uint_eq(range("n*/inner")->count, 76);
    ck_assert_uint_eq(rd_only()->folded, 4 * 76); /* calls, each once */
}
END_TEST

START_TEST(shapes)
{
    char text[64];
    struct gt_attr a = {.name = "mm", .shapes = text};
    struct rd v;
    uint64_t others = 0, kept = 0;
    setenv("GPUTALLY_RECORD_SHAPES", "1", 1);
    for (int i = 0; i < 1000; i++) {
        snprintf(text, sizeof text, "[[%d, 3], []]", i);
        gt_push_attr(API, &a);
        gt_pop(GROUP(API));
    }
    v = rd_self();
    ck_assert_uint_eq(rd_only()->node_count, 2 + 257);
    for (uint32_t i = 2; i < rd_only()->node_count; i++) {
        const struct gt_node *n = rd_node(v, rd_only(), i);
        ck_assert_str_eq(rd_text(v, n->key), "mm");
        if (strcmp(rd_text(v, n->shapes), "other shapes") == 0) {
            ck_assert_uint_eq(n->flags, GT_NODE_FOLDED);
            others += n->count;
        } else {
            ck_assert_uint_eq(n->flags, 0);
            kept += n->count;
        }
    }
    ck_assert_uint_eq(kept, 256);
    ck_assert_uint_eq(others, 744);
    ck_assert_uint_eq(rd_only()->folded, 744);
}
END_TEST

/* ---- no memory left ---- */

static uint64_t random_state = 88172645463325252u;
static const char *word(char *out)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    uint64_t r = random_state;
    int n = 6 + (int)(r & 15);
    for (int i = 0; i < n; i++, r = r >> 4 | r << 60)
        out[i] = (char)('g' + (r & 15));
    out[n] = 0;
    return out;
}

static uint64_t private_bytes(void)
{
    char line[256];
    uint64_t kb = 0;
    FILE *f = fopen("/proc/self/status", "r");
    ck_assert_ptr_nonnull(f);
    while (fgets(line, sizeof line, f))
        if (sscanf(line, "VmRSS: %lu", &kb) == 1)
            break;
    fclose(f);
    return kb * 1024;
}

static void flood(const char *memory, uint64_t cap)
{
    enum { WORDS = 1000000 };
    char name[32];
    struct stat file;
    uint64_t before = private_bytes(), used;
    setenv("GPUTALLY_MEMORY", memory, 1);
    for (int i = 0; i < WORDS; i++) {
        gt_push(API, word(name));
        gt_push(API, "inner");
        gt_test_ticks++;
        gt_pop(GROUP(API));
        gt_pop(GROUP(API));
    }
    struct rd v = rd_self();
    const struct gt_slot *s = rd_only();
    uint64_t named = 0, other = 0;
    ck_assert_str_eq(rd_text(v, rd_node(v, s, 1)->key), "(other)");
    ck_assert_uint_eq(rd_node(v, s, 1)->flags, GT_NODE_FOLDED);
    for (uint32_t i = 1; i < s->node_count; i++)
        *(rd_node(v, s, i)->flags ? &other : &named) += rd_node(v, s, i)->count;
    ck_assert_uint_eq(rd_calls(v, 0), 2 * WORDS);
    ck_assert_uint_gt(named, 100);
    ck_assert_uint_gt(other, WORDS / 2);
    ck_assert_uint_eq(s->folded, other);
    ck_assert_uint_eq(s->depth, 0);
    ck_assert_uint_eq(s->unbalanced, 0);
    ck_assert_uint_eq(rd_header(v)->memory_full, 1);
    for (int i = 0; i < GT_LOST_KINDS; i++)
        ck_assert_uint_eq(rd_header(v)->lost[i], 0);
    /* by its own books, by the file system's, by the kernel's */
    used = cap - (uint64_t)atomic_load(&gt_session.budget_bytes);
    ck_assert_uint_le(used, cap);
    ck_assert_uint_le(rd_header(v)->used_bytes, v.size);
    ck_assert_int_eq(stat(gt_session.path, &file), 0);
    ck_assert_uint_le((uint64_t)file.st_blocks * 512, cap);
    if (!RD_SANITIZED)
        ck_assert_uint_le(private_bytes() - before, cap + (512u << 10)); /* and what tests touch */
}

START_TEST(memory_256k)
{
    flood("256K", 256u << 10);
}
END_TEST

START_TEST(memory_1m)
{
    flood("1M", 1u << 20);
}
END_TEST

START_TEST(memory_8m)
{
    flood("8M", 8u << 20);
}
END_TEST

/* Every kind of call goes on when nothing is left, and what is in the tree stays exact. */
START_TEST(all_kinds_when_full)
{
    char name[32];
    uint64_t ids[300], kept = 0, lost;
    struct rd v;
    setenv("GPUTALLY_MEMORY", "256K", 1);
    call("early");
    for (int i = 0; i < 20000; i++)
        call(word(name));
    v = rd_self();
    ck_assert_uint_eq(rd_header(v)->memory_full, 1);
    uint64_t calls = rd_calls(v, 0);
    call("early");
    for (int i = 0; i < 300; i++) {
        struct gt_attr a = {.name = word(name), .has_value = 1, .value = i};
        gt_mark(API, &a);
        gt_counter(API, &a);
        ids[i] = gt_start(API, &a);
        kept += ids[i] != 0;
    }
    lost = rd_header(v)->lost[GT_LOST_MEMORY];
    ck_assert_uint_eq(kept + lost, 300);
    for (int i = 0; i < 300; i++)
        ck_assert_int_eq(gt_end(ids[i]), ids[i] ? 0 : -1);
    ck_assert_uint_eq(rd_calls(v, 0), calls + 1 + 600 + kept);
    ck_assert_uint_eq(range("early")->count, 2);
    ck_assert_uint_eq(rd_only()->unbalanced, lost);
    /* deeper than the frames there are: counted, balanced */
    for (int i = 0; i < 5000; i++)
        gt_push(API, "deep");
    ck_assert_uint_eq(rd_only()->depth + rd_header(v)->lost[GT_LOST_DEEP], 5000);
    for (int i = 0; i < 5000; i++)
        gt_pop(GROUP(API));
    ck_assert_uint_eq(rd_only()->depth, 0);
    ck_assert_uint_eq(rd_only()->unbalanced, lost);
}
END_TEST

static pthread_barrier_t barrier;
static _Atomic uint64_t taken, refused;
static void *comes_late(void *arg)
{
    (void)arg;
    for (int i = 0; i < 100; i++) {
        if (gt_push(API, "late") >= 0)
            taken++;
        else
            refused++;
        if (gt_pop(GROUP(API)) < 0)
            refused++;
    }
    pthread_barrier_wait(&barrier); /* no slot comes free meanwhile */
    return NULL;
}

/* Threads for which there is no slot any more: each call is counted, none costs memory. */
START_TEST(threads_when_full)
{
    enum { N = 60 };
    pthread_t t[N];
    char name[32];
    setenv("GPUTALLY_MEMORY", "1M", 1);
    for (int i = 0; i < 20000; i++)
        call(word(name));
    uint64_t calls = rd_calls(rd_self(), 0), before = private_bytes();
    pthread_barrier_init(&barrier, NULL, N);
    for (int i = 0; i < N; i++)
        ck_assert_int_eq(pthread_create(&t[i], NULL, comes_late, NULL), 0);
    for (int i = 0; i < N; i++)
        pthread_join(t[i], NULL);
    ck_assert_uint_gt(refused, 0);
    ck_assert_uint_eq(rd_calls(rd_self(), 0), calls + taken);
    ck_assert_uint_eq(rd_header(rd_self())->lost[GT_LOST_MEMORY], refused);
    ck_assert_int_ge(atomic_load(&gt_session.budget_bytes), 0);
    if (!RD_SANITIZED) /* stacks, mostly */
        ck_assert_uint_le(private_bytes() - before, 4u << 20);
}
END_TEST

/* Names leave room for the threads that come after them: these have their rows, or at least
 * "(other)". */
START_TEST(names_leave_room_for_threads)
{
    enum { N = 10 };
    pthread_t t[N];
    char name[32];
    setenv("GPUTALLY_MEMORY", "8M", 1);
    for (int i = 0; i < 200000; i++)
        call(word(name));
    ck_assert_uint_eq(rd_header(rd_self())->memory_full, 1);
    uint64_t calls = rd_calls(rd_self(), 0);
    pthread_barrier_init(&barrier, NULL, N);
    for (int i = 0; i < N; i++)
        ck_assert_int_eq(pthread_create(&t[i], NULL, comes_late, NULL), 0);
    for (int i = 0; i < N; i++)
        pthread_join(t[i], NULL);
    ck_assert_uint_eq(refused, 0);
    ck_assert_uint_eq(rd_header(rd_self())->lost[GT_LOST_MEMORY], 0);
    ck_assert_uint_eq(rd_calls(rd_self(), 0), calls + 100 * N);
    ck_assert_uint_eq(rd_header(rd_self())->slot_count, N + 1);
    ck_assert_int_ge(atomic_load(&gt_session.budget_bytes), 0);
}
END_TEST

static int mappings(void)
{
    int c, n = 0;
    FILE *f = fopen("/proc/self/maps", "r");
    while ((c = getc(f)) != EOF)
        n += c == '\n';
    fclose(f);
    return n;
}

/* On a thread without a slot: the others leave it something. */
static void *eats_the_file(void *arg)
{
    while (gt_session_alloc(8, &(gt_ref){0}))
        ;
    return arg;
}

static void *only_tries(void *arg)
{
    (void)arg;
    for (int i = 0; i < 2000; i++)
        RD_MUST(gt_push(API, "late") == -1, "there was a slot");
    return NULL;
}

/* The file is full, but not the private part: a thread that gets no slot must not take of that at
 * every call it makes. */
START_TEST(file_full)
{
    struct rlimit r = {512u << 10, 512u << 10};
    pthread_t t;
    char name[32];
    if (setrlimit(RLIMIT_FSIZE, &r) < 0)
        RD_SKIP("no limit to be set");
    for (int i = 0; i < 20000; i++)
        call(word(name));
    ck_assert_uint_eq(rd_header(rd_self())->memory_full, 1);
    ck_assert_int_eq(pthread_create(&t, NULL, eats_the_file, NULL), 0);
    pthread_join(t, NULL);
    int64_t left = atomic_load(&gt_session.budget_bytes);
    int maps = mappings();
    ck_assert_int_eq(pthread_create(&t, NULL, only_tries, NULL), 0);
    pthread_join(t, NULL);
    ck_assert_uint_eq(rd_header(rd_self())->lost[GT_LOST_MEMORY], 2000);
    ck_assert_int_ge(atomic_load(&gt_session.budget_bytes), left - 4 * GT_PAGE);
    if (!RD_SANITIZED)
        ck_assert_int_le(mappings(), maps + 8);
}
END_TEST

/* Names as long as may be, each another. */
START_TEST(long_names)
{
    static char name[65000];
    struct rd v;
    setenv("GPUTALLY_MEMORY", "8M", 1);
    memset(name, 'n', sizeof name - 1);
    for (int i = 0; i < 1000; i++) {
        name[30000 + i] = 'm';
        call(name);
        call("short");
    }
    v = rd_self();
    ck_assert_uint_eq(rd_calls(v, 0), 2000);
    ck_assert_uint_eq(range("short")->count, 1000);
    ck_assert_uint_le(rd_header(v)->used_bytes, 8u << 20);
    ck_assert_uint_eq(rd_header(v)->memory_full, 1);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("core_fold");
    TCase *t = rd_case(s, "all");
    tcase_add_test(t, names);
    tcase_add_test(t, literal_template);
    tcase_add_test(t, templates);
    tcase_add_test(t, no_templates);
    tcase_add_test(t, places_apart);
    tcase_add_test(t, other_kinds);
    tcase_add_test(t, shapes);
    tcase_add_test(t, memory_256k);
    tcase_add_test(t, memory_1m);
    tcase_add_test(t, memory_8m);
    tcase_add_test(t, all_kinds_when_full);
    tcase_add_test(t, threads_when_full);
    tcase_add_test(t, names_leave_room_for_threads);
    tcase_add_test(t, file_full);
    tcase_add_test(t, long_names);
    return rd_run(s);
}
