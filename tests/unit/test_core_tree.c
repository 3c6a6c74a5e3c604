/* core: the calling context tree of one thread, as the calls of record.h make it. */
#include "tests/unit/core_reader.h"
#include <errno.h>
#include "core/strings.h"

static void after(uint64_t ticks)
{
    gt_test_ticks += ticks;
}

static const struct gt_node *range(const char *path)
{
    const struct gt_node *n = rd_find(rd_self(), rd_only(), GT_KIND_RANGE, path);
    ck_assert_msg(n != NULL, "no range %s", path);
    return n;
}

#define COUNTS(path, calls, self, total)                                                           \
    do {                                                                                           \
        const struct gt_node *n_ = range(path);                                                    \
        ck_assert_msg(n_->count == (calls) && n_->self_ticks == (self) &&                          \
                          n_->total_ticks == (total),                                              \
                      "%s: %lu calls, self %lu, total %lu", path, n_->count, n_->self_ticks,       \
                      n_->total_ticks);                                                            \
    } while (0)

START_TEST(nested)
{
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(gt_push(API, "a"), 0);
        after(5);
        ck_assert_int_eq(gt_push(API, "b"), 1);
        after(7 + (uint64_t)i);
        ck_assert_int_eq(gt_pop(GROUP(API)), 1);
        after(1);
        ck_assert_int_eq(gt_push(API, "c"), 1);
        after(2);
        ck_assert_int_eq(gt_pop(GROUP(API)), 1);
        ck_assert_int_eq(gt_pop(GROUP(API)), 0);
    }
    COUNTS("a", 3, 18, 18 + 24 + 6);
    COUNTS("a/b", 3, 24, 24);
    COUNTS("a/c", 3, 6, 6);
    ck_assert_uint_eq(range("a/b")->min_ticks, 7);
    ck_assert_uint_eq(range("a/b")->max_ticks, 9);
    ck_assert_double_eq(range("a/b")->sumsq_ticks, 49 + 64 + 81);
    ck_assert_uint_eq(rd_only()->depth, 0);
    ck_assert_uint_eq(rd_only()->unbalanced | rd_only()->overlapped | rd_only()->clamped, 0);
    ck_assert_uint_eq(rd_calls(rd_self(), 0), 9);
    ck_assert_uint_eq(range("a")->source, GT_SOURCE_API);
}
END_TEST

START_TEST(unbalanced)
{
    ck_assert_int_eq(gt_pop(GROUP(API)), -1); /* the very first call */
    ck_assert_int_eq(gt_push(API, "a"), 0);
    ck_assert_int_eq(gt_pop(GROUP(NVTX)), -1);
    ck_assert_int_eq(gt_pop_token(GROUP(API), 1), -1);
    ck_assert_int_eq(gt_pop(GROUP(API)), 0);
    ck_assert_int_eq(gt_pop(GROUP(API)), -1);
    ck_assert_uint_eq(rd_only()->unbalanced, 4);
    COUNTS("a", 1, 0, 0);
}
END_TEST

START_TEST(domains)
{
    uint32_t d1 = gt_domain("one"), d2 = gt_domain("two");
    gt_tag t1 = GT_TAG(GT_SOURCE_NVTX, d1, 0), t2 = GT_TAG(GT_SOURCE_NVTX, d2, 0);
    struct rd v;
    char copy[] = "one";
    ck_assert_uint_ne(d1, d2);
    ck_assert_uint_ne(d1, 0);
    ck_assert_uint_eq(gt_domain(copy), d1);
    ck_assert_uint_eq(gt_domain(""), 0);
    ck_assert_uint_eq(gt_domain(NULL), 0);
    ck_assert_str_eq(gt_domain_name(d2), "two");
    ck_assert_str_eq(gt_domain_name(0), "");
    ck_assert_str_eq(gt_domain_name(65535), "");
    ck_assert_str_eq(gt_domain_name(1u << 20), "");
    /* each domain counts its own levels, however they interleave */
    ck_assert_int_eq(gt_push(t1, "x"), 0);
    ck_assert_int_eq(gt_push(t2, "x"), 0);
    ck_assert_int_eq(gt_push(t1, "x"), 1);
    ck_assert_int_eq(gt_push(API, "x"), 0);
    ck_assert_int_eq(gt_push(t2, "x"), 1);
    ck_assert_int_eq(gt_push(t1, "y"), 2);
    for (int level = 2; level >= 0; level--)
        ck_assert_int_eq(gt_pop(GROUP(t1)), level);
    ck_assert_int_eq(gt_pop(GROUP(t1)), -1);
    for (int level = 1; level >= 0; level--)
        ck_assert_int_eq(gt_pop(GROUP(t2)), level);
    ck_assert_int_eq(gt_pop(GROUP(API)), 0);
    /* one name, three places */
    ck_assert_int_eq(gt_push(t2, "x"), 0);
    ck_assert_int_eq(gt_pop(GROUP(t2)), 0);
    v = rd_self();
    ck_assert_uint_ne(rd_child(v, rd_only(), 0, GT_KIND_RANGE, "one", "x"), 0);
    ck_assert_uint_ne(rd_child(v, rd_only(), 0, GT_KIND_RANGE, "two", "x"), 0);
    ck_assert_uint_eq(rd_child(v, rd_only(), 0, GT_KIND_RANGE, "", "x"), 0);
    ck_assert_uint_eq(rd_only()->unbalanced, 1);
}
END_TEST

/* Categories make rows apart but close one another's ranges. */
START_TEST(categories)
{
    gt_push(API, "a");
    gt_push(API | 7, "a");
    ck_assert_int_eq(gt_pop(GROUP(API | 7)), 1);
    gt_pop(GROUP(API));
    gt_push(API | 7, "a");
    gt_pop(GROUP(API));
    ck_assert_uint_eq(rd_calls(rd_self(), GT_KIND_RANGE), 3);
    ck_assert_uint_eq(rd_only()->node_count, 2 + 3);
    COUNTS("a/a", 1, 0, 0);
    ck_assert_uint_eq(range("a/a")->category, 7);
}
END_TEST

/* The self time is always the topmost range's; what is above keeps its path. */
START_TEST(overlapped)
{
    gt_push(API, "a");
    after(10);
    gt_push(NVTX, "b");
    after(20);
    ck_assert_int_eq(gt_pop(GROUP(API)), 0); /* a leaves from below b */
    after(30);
    gt_push(NVTX, "c");
    after(1);
    gt_pop(GROUP(NVTX));
    ck_assert_int_eq(gt_pop(GROUP(NVTX)), 0);
    COUNTS("a", 1, 10, 30);
    COUNTS("a/b", 1, 50, 51);
    COUNTS("a/b/c", 1, 1, 1);
    ck_assert_uint_eq(rd_only()->overlapped, 1);
    ck_assert_uint_eq(rd_only()->depth, 0);
}
END_TEST

/* After an outer one of the same domain has left from below, the levels count what is there. */
START_TEST(overlapped_levels)
{
    struct gt_attr one = {.name = "one", .token = 1}, two = {.name = "two", .token = 2};
    ck_assert_int_eq(gt_push_attr(API, &one), 0);
    gt_pause();
    ck_assert_int_eq(gt_push_attr(API, &two), 1);
    gt_resume();
    ck_assert_int_eq(gt_push(API, "three"), 2);
    ck_assert_int_eq(gt_pop_token(GROUP(API), 2), 1); /* a silent one from the middle */
    ck_assert_int_eq(gt_push(API, "four"), 2);
    ck_assert_int_eq(gt_pop_token(GROUP(API), 1), 0);
    ck_assert_int_eq(gt_pop(GROUP(API)), 1);
    ck_assert_int_eq(gt_pop(GROUP(API)), 0);
    ck_assert_uint_eq(rd_only()->unbalanced, 0);
}
END_TEST

/* A pop without a token must not close an object's range, nor leave the token lying about. */
START_TEST(tokens)
{
    struct gt_attr op = {.name = "op", .token = 5}, other = {.name = "op", .token = 6};
    ck_assert_int_eq(gt_push_attr(API, &op), 0);
    ck_assert_int_eq(gt_pop(GROUP(API)), -1);
    ck_assert_int_eq(gt_push_attr(API, &other), 1);
    ck_assert_int_eq(gt_push(API, "plain"), 2);
    ck_assert_int_eq(gt_pop_token(GROUP(API), 5), 0);
    ck_assert_int_eq(gt_pop_token(GROUP(API), 5), -1);
    ck_assert_int_eq(gt_pop(GROUP(API)), 1);
    ck_assert_int_eq(gt_pop(GROUP(API)), -1);
    ck_assert_int_eq(gt_pop_token(GROUP(API), 6), 0);
    ck_assert_int_eq(gt_push(API, "plain"), 0);
    ck_assert_int_eq(gt_pop_token(GROUP(API), 0), 0);
    COUNTS("op", 1, 0, 0);
    COUNTS("op/op", 1, 0, 0);
    COUNTS("op/op/plain", 1, 0, 0);
    COUNTS("plain", 1, 0, 0);
    ck_assert_uint_eq(rd_only()->unbalanced, 3);
    ck_assert_uint_eq(rd_only()->overlapped, 1);
}
END_TEST

START_TEST(paused)
{
    struct gt_attr m = {.name = "m"};
    gt_push(API, "open over a pause");
    after(10);
    gt_pause();
    gt_pause();
    after(100);
    ck_assert_int_eq(gt_push(API, "inside"), 1);
    after(1);
    ck_assert_int_eq(gt_pop(GROUP(API)), 1);
    gt_resume(); /* still paused */
    gt_mark(API, &m);
    gt_counter(API, &m);
    ck_assert_uint_eq(gt_start(API, &m), 0);
    ck_assert_int_eq(gt_push(API, "closed after it"), 1);
    after(1000);
    gt_resume();
    after(10000);
    ck_assert_int_eq(gt_push(API, "child of a silent one"), 2);
    after(100000);
    ck_assert_int_eq(gt_pop(GROUP(API)), 2);
    ck_assert_int_eq(gt_pop(GROUP(API)), 1);
    after(1000000);
    ck_assert_int_eq(gt_pop(GROUP(API)), 0);
    gt_resume(); /* one too many: nothing */
    gt_push(API, "later");
    gt_pop(GROUP(API));
    COUNTS("open over a pause", 1, 1011111, 1111111);
    COUNTS("open over a pause/child of a silent one", 1, 100000, 100000);
    COUNTS("later", 1, 0, 0);
    ck_assert_uint_eq(rd_calls(rd_self(), 0), 3);
    ck_assert_uint_eq(rd_only()->silent, 5);
    ck_assert_uint_eq(rd_only()->unbalanced | rd_only()->overlapped, 0);
}
END_TEST

START_TEST(paused_before_all)
{
    gt_pause();
    ck_assert_int_eq(gt_push(API, "a"), 0);
    gt_resume();
    ck_assert_int_eq(gt_push(API, "b"), 1);
    after(3);
    gt_pause();
    after(4);
    ck_assert_int_eq(gt_pop(GROUP(API)), 1); /* open ranges close and count in a pause too */
    ck_assert_int_eq(gt_pop(GROUP(API)), 0);
    gt_resume();
    COUNTS("b", 1, 7, 7);
    ck_assert_uint_eq(rd_only()->silent, 1);
    ck_assert_uint_eq(rd_calls(rd_self(), 0), 1);
}
END_TEST

/* A range that leaves from below a silent one had the time until now, not until that one began. */
START_TEST(overlapped_by_silent)
{
    gt_push(API, "outer");
    gt_push(NVTX, "a");
    after(10);
    gt_pause();
    gt_push(API, "silent");
    gt_resume();
    after(20);
    gt_push(API, "kid");
    after(5);
    gt_pop(GROUP(API));
    after(1);
    gt_pop(GROUP(NVTX));
    after(100);
    gt_pop(GROUP(API));
    after(1000);
    gt_pop(GROUP(API));
    COUNTS("outer/a", 1, 31, 36);
    COUNTS("outer/a/kid", 1, 5, 5);
    COUNTS("outer", 1, 1100, 1136);
    ck_assert_uint_eq(rd_calls(rd_self(), 0), 3);
}
END_TEST

START_TEST(marks_counters_values)
{
    const struct gt_extra *x;
    struct rd v;
    struct gt_attr m = {.name = "m"}, val = {.name = "m", .has_value = 1, .value = -2},
                   c = {.name = "c", .value = 3};
    gt_push(API, "r");
    gt_mark(API, &m);
    gt_mark(API, &val);
    gt_counter(API, &c);
    c.value = -7;
    gt_counter(API, &c);
    c.value = 5;
    gt_counter(API, &c);
    gt_pop(GROUP(API));
    v = rd_self();
    const struct gt_node *mark = rd_find(v, rd_only(), GT_KIND_MARK, "r/m"),
                         *counter = rd_find(v, rd_only(), GT_KIND_COUNTER, "c");
    ck_assert_ptr_nonnull(mark);
    ck_assert_uint_eq(mark->count, 2);
    ck_assert_uint_eq(mark->total_ticks, 0);
    x = rd_at(v, mark->extra, sizeof *x);
    ck_assert_uint_eq(x->count, 1);
    ck_assert_double_eq(x->min, -2);
    ck_assert_double_eq(x->max, -2);
    ck_assert_ptr_nonnull(counter); /* of the root, wherever it was sampled */
    ck_assert_uint_eq(counter->count, 3);
    x = rd_at(v, counter->extra, sizeof *x);
    ck_assert_uint_eq(x->count, 3);
    ck_assert_double_eq(x->sum, 1);
    ck_assert_double_eq(x->min, -7);
    ck_assert_double_eq(x->max, 5);
    ck_assert_double_eq(x->last, 5);
    ck_assert_uint_eq(range("r")->extra, 0);
}
END_TEST

START_TEST(payloads)
{
    const struct gt_extra *x;
    struct gt_attr a = {.name = "p",
                        .overload = "Tensor",
                        .bytes = 10,
                        .flops = 100,
                        .scope = 7,
                        .has_value = 1,
                        .value = 1.5};
    for (int i = 0; i < 4; i++) {
        a.value *= -2;
        gt_push_attr(API, &a);
        gt_pop(GROUP(API));
    }
    const struct gt_node *n = range("p");
    ck_assert_uint_eq(n->count, 4);
    ck_assert_uint_eq(n->bytes, 40);
    ck_assert_uint_eq(n->flops, 400);
    ck_assert_uint_eq(n->scope, 7);
    ck_assert_str_eq(rd_text(rd_self(), n->overload), "Tensor");
    x = rd_at(rd_self(), n->extra, sizeof *x);
    ck_assert_uint_eq(x->count, 4);
    ck_assert_double_eq(x->sum, -3 + 6 - 12 + 24);
    ck_assert_double_eq(x->min, -12);
    ck_assert_double_eq(x->max, 24);
}
END_TEST

/* The value of a start/end range lies where its call is counted. */
START_TEST(async_value)
{
    struct gt_attr a = {
        .name = "a", .shapes = "[[1]]", .overload = "out", .has_value = 1, .value = 2};
    setenv("GPUTALLY_RECORD_SHAPES", "1", 1);
    uint64_t id = gt_start(API, &a);
    ck_assert_uint_ne(id, 0);
    after(9);
    ck_assert_int_eq(gt_end(id), 0);
    const struct gt_node *n = rd_find(rd_self(), rd_only(), GT_KIND_ASYNC, "a");
    ck_assert_ptr_nonnull(n);
    ck_assert_uint_eq(n->count, 1);
    ck_assert_uint_eq(n->total_ticks, 9);
    ck_assert_uint_eq(n->self_ticks, 0);
    ck_assert_uint_ne(n->extra, 0);
    ck_assert_uint_eq(rd_only()->node_count, 3);
}
END_TEST

static void push_shapes(const char *shapes, const char *overload)
{
    struct gt_attr a = {.name = "mm", .shapes = shapes, .overload = overload};
    gt_push_attr(API, &a);
    gt_pop(GROUP(API));
}

START_TEST(shapes_on)
{
    struct rd v;
    int seen = 0;
    setenv("GPUTALLY_RECORD_SHAPES", "1", 1);
    for (int i = 0; i < 2; i++) {
        push_shapes("[[2, 3]]", NULL);
        push_shapes("[[4, 3]]", NULL);
        push_shapes("", NULL);
        push_shapes(NULL, NULL);
        push_shapes("[[2, 3]]", "out");
    }
    v = rd_self();
    ck_assert_uint_eq(rd_only()->node_count, 2 + 4);
    for (uint32_t i = 2; i < 6; i++) {
        const struct gt_node *n = rd_node(v, rd_only(), i);
        const char *s = rd_text(v, n->shapes);
        ck_assert_str_eq(rd_text(v, n->key), "mm");
        ck_assert_uint_eq(n->count, !*s ? 4 : 2);
        seen |= !*s ? 1 : strcmp(s, "[[4, 3]]") == 0 ? 2 : n->overload ? 4 : 8;
    }
    ck_assert_int_eq(seen, 15);
}
END_TEST

START_TEST(shapes_off)
{
    push_shapes("[[2, 3]]", NULL);
    push_shapes("[[4, 3]]", NULL);
    ck_assert_uint_eq(rd_only()->node_count, 3);
    COUNTS("mm", 2, 0, 0);
    ck_assert_uint_eq(range("mm")->shapes, 0);
}
END_TEST

/* The short way in compares only the name: a row with shapes or an overload is not the plain one.
 */
START_TEST(plain_after_shapes)
{
    setenv("GPUTALLY_RECORD_SHAPES", "1", 1);
    push_shapes("[[2, 3]]", NULL);
    gt_push(API, "mm");
    gt_pop(GROUP(API));
    push_shapes(NULL, "out");
    gt_push(API, "mm");
    gt_pop(GROUP(API));
    ck_assert_uint_eq(rd_only()->node_count, 2 + 3);
    for (uint32_t i = 2; i < 5; i++) {
        const struct gt_node *n = rd_node(rd_self(), rd_only(), i);
        ck_assert_uint_eq(n->count, n->shapes || n->overload ? 1 : 2);
    }
}
END_TEST

START_TEST(kinds_apart)
{
    struct gt_attr a = {.name = "same"};
    for (int i = 0; i < 3; i++) {
        gt_push(API, "same");
        gt_pop(GROUP(API));
        gt_mark(API, &a);
        gt_counter(API, &a);
        ck_assert_int_eq(gt_end(gt_start(API, &a)), 0);
    }
    ck_assert_uint_eq(rd_only()->node_count, 2 + 4);
    for (int kind = GT_KIND_RANGE; kind <= GT_KIND_COUNTER; kind++)
        ck_assert_uint_eq(rd_find(rd_self(), rd_only(), kind, "same")->count, 3);
}
END_TEST

START_TEST(odd_names)
{
    static char big[65537 + 10], big2[sizeof big];
    struct gt_attr null = {.name = NULL};
    memset(big, 'x', sizeof big - 1);
    memcpy(big2, big, sizeof big);
    big2[65535] = 'y'; /* beyond what is kept */
    for (int i = 0; i < 2; i++) {
        gt_push(API, "");
        gt_pop(GROUP(API));
        gt_push(API, NULL);
        gt_pop(GROUP(API));
        gt_push_attr(API, &null);
        gt_pop(GROUP(API));
        gt_push(API, i ? big2 : big);
        gt_pop(GROUP(API));
        gt_push(API, "\x01\xff\n");
        gt_pop(GROUP(API));
    }
    ck_assert_uint_eq(rd_child(rd_self(), rd_only(), 0, GT_KIND_RANGE, "", ""), 2);
    COUNTS("(null)", 4, 0, 0);
    COUNTS("\x01\xff\n", 2, 0, 0);
    big[65535] = 0;
    uint32_t i = rd_child(rd_self(), rd_only(), 0, GT_KIND_RANGE, "", big);
    ck_assert_uint_ne(i, 0);
    ck_assert_uint_eq(rd_node(rd_self(), rd_only(), i)->count, 2);
    ck_assert_uint_eq(rd_only()->node_count, 2 + 4);
    /* a character that lies over the cut leaves whole */
    memcpy(big + 65534, "\xc3\xa4", 3);
    ck_assert_uint_eq(gt_name_length(big), 65534);
}
END_TEST

/* Names of every length that end at the last byte before a page that can't be read, twice: the
 * second time the short way looks at them. */
START_TEST(page_edge)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), most = 300;
    char *p = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(p, MAP_FAILED);
    ck_assert_int_eq(mprotect(p + page, page, PROT_NONE), 0);
    memset(p, 'n', page);
    p[page - 1] = 0;
    for (int again = 0; again < 3; again++)
        for (size_t n = 0; n < most; n++)
            for (int k = 0; k < 2; k++) {
                gt_push(API, p + page - 1 - n);
                gt_pop(GROUP(API));
            }
    /* the longest that the words cover, and longer, at every place in a page */
    gt_push(API, p);
    gt_pop(GROUP(API));
    gt_push(API, p);
    gt_pop(GROUP(API));
    ck_assert_uint_eq(rd_only()->node_count, 2 + most + 1);
    for (uint32_t i = 2; i < 2 + most; i++)
        ck_assert_uint_eq(rd_node(rd_self(), rd_only(), i)->count, 6);
    ck_assert_uint_eq(rd_node(rd_self(), rd_only(), 2 + (uint32_t)most)->count, 2);
}
END_TEST

/* Callers reuse their buffers, and names begin alike. */
START_TEST(changed_and_alike)
{
    static const char *const names[] = {"forward",
                                        "forwar",
                                        "forward_",
                                        "forward_x",
                                        "forward_y",
                                        "forward_pass_one",
                                        "forward_pass_two",
                                        "forward_pass_one1",
                                        "forward_pass_one2",
                                        "forward_pass_one_and_then",
                                        "forward_pass_one_and_them",
                                        "gorward_pass_one_and_then"};
    enum { N = sizeof names / sizeof *names };
    char buffer[64];
    for (int round = 0; round < 8; round++)
        for (int i = 0; i < N; i++) {
            /* junk behind the NUL must not matter */
            memset(buffer, round & 1 ? 0xaa : 0, sizeof buffer);
            strcpy(buffer, names[round & 2 ? N - 1 - i : i]);
            gt_push(API, buffer);
            gt_pop(GROUP(API));
            gt_push(API, buffer);
            gt_pop(GROUP(API));
        }
    ck_assert_uint_eq(rd_only()->node_count, 2 + N);
    for (int i = 0; i < N; i++)
        COUNTS(names[i], 16, 0, 0);
}
END_TEST

/* Up and down over the edges of frame blocks. */
START_TEST(block_edges)
{
    uint64_t pushes = 0;
    for (int depth = 124; depth <= 380; depth += depth < 130 || depth > 250 ? 1 : 60) {
        for (int i = 0; i < depth; i++) {
            ck_assert_int_eq(gt_push(API, "n"), i);
            after(1);
        }
        for (int k = 0; k < 3; k++) { /* to and fro at the edge */
            ck_assert_int_eq(gt_push(API, "n"), depth);
            ck_assert_int_eq(gt_pop(GROUP(API)), depth);
        }
        for (int i = depth; i-- > 0;)
            ck_assert_int_eq(gt_pop(GROUP(API)), i);
        ck_assert_int_eq(gt_pop(GROUP(API)), -1);
        pushes += (uint64_t)depth + 3;
    }
    ck_assert_uint_eq(rd_calls(rd_self(), 0), pushes);
    for (uint32_t i = 2; i < rd_only()->node_count; i++)
        ck_assert_uint_eq(rd_node(rd_self(), rd_only(), i)->parent, i == 2 ? 0 : i - 1);
}
END_TEST

/* One frame leaves from the bottom of three blocks. */
START_TEST(overlapped_over_blocks)
{
    gt_push(NVTX, "bottom");
    after(3);
    for (int i = 0; i < 300; i++)
        gt_push(API, "n");
    after(2);
    ck_assert_int_eq(gt_pop(GROUP(NVTX)), 0);
    for (int i = 300; i-- > 0;)
        ck_assert_int_eq(gt_pop(GROUP(API)), i);
    COUNTS("bottom", 1, 3, 5);
    ck_assert_uint_eq(rd_calls(rd_self(), 0), 301);
    ck_assert_uint_eq(rd_only()->overlapped, 1);
}
END_TEST

static void nest(uint64_t n, uint64_t kept)
{
    struct rd v;
    const struct gt_slot *s;
    gt_push(NVTX, "warm");
    gt_pop(GROUP(NVTX));
    v = rd_self();
    s = rd_only();
    uint64_t before = rd_calls(v, 0);
    for (uint64_t i = 0; i < n; i++) {
        int level = gt_push(API, "n");
        RD_MUST(level == (i < kept ? (int)i : -1), "push %lu has level %d", i, level);
        after(1);
    }
    ck_assert_uint_eq(s->depth, kept);
    ck_assert_uint_eq(rd_header(v)->lost[GT_LOST_DEEP], n - kept);
    for (uint64_t i = n; i-- > 0;) {
        int level = gt_pop(GROUP(API));
        RD_MUST(level == (i < kept ? (int)i : -1), "pop %lu has level %d", i, level);
    }
    ck_assert_uint_eq(s->depth, 0);
    ck_assert_uint_eq(s->unbalanced, 0);
    ck_assert_uint_eq(rd_calls(v, 0), kept + before);
    ck_assert_int_eq(gt_pop(GROUP(API)), -1);
    ck_assert_uint_eq(s->unbalanced, 1);
    /* and everything works as before */
    ck_assert_int_eq(gt_push(API, "n"), 0);
    after(4);
    ck_assert_int_eq(gt_push(API, "n"), 1);
    ck_assert_int_eq(gt_pop(GROUP(API)), 1);
    ck_assert_int_eq(gt_pop(GROUP(API)), 0);
    COUNTS("n", 2, 5, n + 4);
}

START_TEST(deep_10000)
{
    nest(10000, 10000);
}
END_TEST

START_TEST(deep_70000)
{
    gt_push(NVTX, "warm");
    gt_pop(GROUP(NVTX));
    if (gt_session.size_bytes < 24u << 20)
        RD_SKIP("too little room in the folder of sessions");
    nest(70000, GT_MAX_DEPTH);
}
END_TEST

START_TEST(clock_backwards)
{
    gt_push(API, "a");
    gt_test_ticks -= 100;
    gt_push(API, "b");
    gt_test_ticks -= 100;
    gt_pop(GROUP(API));
    gt_pop(GROUP(API));
    gt_push(API, "a");
    after(50);
    gt_push(API, "b");
    gt_test_ticks -= 45; /* b began after the end of a */
    gt_pop(GROUP(API));
    gt_pop(GROUP(API));
    COUNTS("a", 2, 5, 5);
    COUNTS("a/b", 2, 0, 0);
    ck_assert_uint_eq(rd_only()->clamped, 3);
    rd_calls(rd_self(), 0);
}
END_TEST

/* The topmost range began late by a clock that then went back: more self than duration. */
START_TEST(clock_backwards_overlapped)
{
    gt_push(API, "a");
    after(100);
    gt_push(NVTX, "b");
    gt_test_ticks -= 90;
    gt_pop(GROUP(API));
    gt_pop(GROUP(NVTX));
    ck_assert_uint_eq(range("a")->total_ticks, 10);
    rd_calls(rd_self(), 0); /* self <= total */
    ck_assert_uint_ge(rd_only()->clamped, 1);
}
END_TEST

START_TEST(errno_kept)
{
    struct gt_attr a = {.name = "a"};
    errno = 77;
    gt_push(API, "first");
    ck_assert_int_eq(errno, 77);
    gt_push_attr(API, &a);
    gt_pop(GROUP(API));
    gt_mark(API, &a);
    gt_counter(API, &a);
    gt_end(gt_start(API, &a));
    gt_end(1);
    gt_pop(GROUP(API));
    gt_pop(GROUP(API));
    gt_domain("d");
    gt_name_category(GT_SOURCE_API, 0, 1, "c");
    gt_core_end();
    gt_push(API, "late");
    ck_assert_int_eq(errno, 77);
}
END_TEST

START_TEST(late)
{
    gt_push(API, "a");
    ck_assert_int_eq(gt_core_end(), 1);
    ck_assert_int_eq(gt_core_end(), 0);
    ck_assert_int_eq(gt_push(API, "b"), -1);
    ck_assert_int_eq(gt_pop(GROUP(API)), -1);
    ck_assert_uint_eq(rd_header(rd_self())->lost[GT_LOST_LATE], 2);
    ck_assert_uint_eq(rd_header(rd_self())->state, GT_STATE_ENDED);
    ck_assert_uint_eq(rd_only()->depth, 1);
}
END_TEST

START_TEST(sources_off)
{
    setenv("GPUTALLY_SOURCES", "-nvtx", 1);
    ck_assert_int_eq(gt_source_on(GT_SOURCE_API), 1);
    ck_assert_int_eq(gt_source_on(GT_SOURCE_NVTX), 0);
    ck_assert_ptr_null(gt_session.base); /* asking opens nothing */
}
END_TEST

START_TEST(disabled)
{
    setenv("GPUTALLY_DISABLE", "1", 1);
    ck_assert_int_eq(gt_source_on(GT_SOURCE_API), 0);
    ck_assert_int_eq(gt_push(API, "a"), -1);
    ck_assert_int_eq(gt_pop(GROUP(API)), -1);
    ck_assert_ptr_null(gt_session.base);
    ck_assert_int_eq(rd_files(), 0);
}
END_TEST

START_TEST(names_of_things)
{
    uint32_t d = gt_domain("lib"), named = 0, threads = 0;
    gt_name_category(GT_SOURCE_NVTX, d, 3, "before"); /* before there is a session */
    gt_name_category(GT_SOURCE_NVTX, d, 3, "before");
    gt_name_thread(GT_SOURCE_NVTX, 0, "me");
    gt_push(API, "a");
    gt_name_category(GT_SOURCE_NVTX, 0, 4, "after");
    struct rd v = rd_self();
    for (gt_ref r = rd_header(v)->names; r;) {
        const struct gt_name *n = rd_at(v, r, sizeof *n);
        const char *text = rd_text(v, n->text), *domain = rd_text(v, n->domain);
        ck_assert_uint_eq(n->source, GT_SOURCE_NVTX);
        if (n->kind == GT_NAME_THREAD) {
            threads++;
            ck_assert_str_eq(text, "me");
            ck_assert_uint_eq(n->id, (uint32_t)gettid());
        } else {
            named++;
            ck_assert_str_eq(text, n->id == 3 ? "before" : "after");
            ck_assert_str_eq(domain, n->id == 3 ? "lib" : "");
        }
        r = n->next;
    }
    ck_assert_uint_eq(named, 2);
    ck_assert_uint_eq(threads, 1);
    const char *kept = gt_keep("text");
    char copy[] = "text";
    ck_assert_ptr_eq(gt_keep(copy), kept);
    ck_assert_ptr_null(gt_keep(NULL));
}
END_TEST

/* What gt_keep holds is bounded. */
START_TEST(keep_full)
{
    char name[1100];
    int others = 0;
    memset(name, 'k', sizeof name);
    name[sizeof name - 1] = 0;
    for (int i = 0; i < 12000; i++) {
        name[snprintf(name, 16, "%d", i)] = 'k';
        others += strcmp(gt_keep(name), "(other)") == 0;
    }
    ck_assert_int_gt(others, 1000);
    ck_assert_int_lt(others, 11000);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("core_tree");
    TCase *t = rd_case(s, "all");
    tcase_add_test(t, nested);
    tcase_add_test(t, unbalanced);
    tcase_add_test(t, domains);
    tcase_add_test(t, categories);
    tcase_add_test(t, overlapped);
    tcase_add_test(t, overlapped_levels);
    tcase_add_test(t, tokens);
    tcase_add_test(t, paused);
    tcase_add_test(t, paused_before_all);
    tcase_add_test(t, overlapped_by_silent);
    tcase_add_test(t, marks_counters_values);
    tcase_add_test(t, payloads);
    tcase_add_test(t, async_value);
    tcase_add_test(t, shapes_on);
    tcase_add_test(t, shapes_off);
    tcase_add_test(t, plain_after_shapes);
    tcase_add_test(t, kinds_apart);
    tcase_add_test(t, odd_names);
    tcase_add_test(t, page_edge);
    tcase_add_test(t, changed_and_alike);
    tcase_add_test(t, block_edges);
    tcase_add_test(t, overlapped_over_blocks);
    tcase_add_test(t, deep_10000);
    tcase_add_test(t, deep_70000);
    tcase_add_test(t, clock_backwards);
    tcase_add_test(t, clock_backwards_overlapped);
    tcase_add_test(t, errno_kept);
    tcase_add_test(t, late);
    tcase_add_test(t, sources_off);
    tcase_add_test(t, disabled);
    tcase_add_test(t, names_of_things);
    tcase_add_test(t, keep_full);
    return rd_run(s);
}
