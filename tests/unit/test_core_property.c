/* core: random sequences of events against a model that is too slow to be wrong. The model keeps a
 * plain list of the open ranges and gives every tick to the topmost one that is not silent.
 *
 * Each process of the loop has a seed of its own; a failure prints it with the sequence's number.
 */
#include "tests/unit/core_reader.h"
#include <inttypes.h>

#define PROCESSES 20
#define SEQUENCES 50 /* a process; together 1,000 */
#define EVENTS 400
#define PLACES 65536

struct place {
    uint32_t parent, first, next; /* first child, next sibling; 0: none */
    gt_tag tag;
    int kind, name;
    uint64_t count, self, total, min, max;
};
struct open {
    uint32_t place;
    uint32_t group;
    uint64_t token, t0, self;
    int silent;
};
static struct place places[PLACES]; /* 0 is the root */
static uint32_t place_count = 1;
static struct open stack[4 * EVENTS];
static int depth, pauses;
static uint64_t unbalanced, overlapped, silent, covered;
static uint32_t of_node[PLACES]; /* place of the node with that index */

static uint64_t state, seed;
static int sequence, step;
static uint32_t rnd(uint32_t n)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)((state * 0x2545f4914f6cdd1du) >> 33) % n;
}

#define WHERE "seed %" PRIu64 " sequence %d event %d: "
#define SAME(a, b, ...)                                                                            \
    do {                                                                                           \
        uint64_t a_ = (uint64_t)(a), b_ = (uint64_t)(b);                                           \
        RD_MUST(a_ == b_, WHERE #a " is %" PRIu64 ", want %" PRIu64, seed, sequence, step, a_,     \
                b_);                                                                               \
    } while (0)

static const char *const texts[] = {"f", "forward", "forward_", "backward pass", "matmul", "relu"};
enum { NAMES = sizeof texts / sizeof *texts };
static gt_tag tags[5];
enum { TAGS = sizeof tags / sizeof *tags };

/* ---- the model ---- */

static uint32_t place_of(uint32_t parent, gt_tag tag, int kind, int name, int make)
{
    uint32_t i;
    for (i = places[parent].first; i; i = places[i].next)
        if (places[i].tag == tag && places[i].kind == kind && places[i].name == name)
            return i;
    if (!make)
        return 0;
    RD_MUST(place_count < PLACES, "the model is full");
    i = place_count++;
    places[i] = (struct place){.parent = parent,
                               .next = places[parent].first,
                               .tag = tag,
                               .kind = kind,
                               .name = name,
                               .min = UINT64_MAX};
    places[parent].first = i;
    return i;
}

static void pass(uint64_t ticks)
{
    gt_test_ticks += ticks;
    for (int i = depth; i-- > 0;)
        if (!stack[i].silent) {
            stack[i].self += ticks;
            covered += ticks;
            return;
        }
}

static int level(int below, uint32_t group)
{
    int n = 0;
    for (int i = 0; i < below; i++)
        n += stack[i].group == group;
    return n;
}

static uint32_t here(void)
{
    return depth ? stack[depth - 1].place : 0;
}

static void push(gt_tag tag, int name, uint64_t token)
{
    char text[64]; /* at another place, with other junk behind it, each time */
    char *s = text + rnd(8);
    struct gt_attr a = {.name = s, .token = token};
    memset(text, (int)rnd(256), sizeof text);
    strcpy(s, texts[name]);
    int got = token || rnd(4) == 0 ? gt_push_attr(tag, &a) : gt_push(tag, s);
    SAME(got, level(depth, GROUP(tag)));
    stack[depth] = (struct open){.place = pauses ? here() : place_of(here(), tag, 1, name, 1),
                                 .group = GROUP(tag),
                                 .token = token,
                                 .t0 = gt_test_ticks,
                                 .silent = pauses > 0};
    silent += pauses > 0;
    depth++;
}

static void pop(uint32_t group, uint64_t token)
{
    int got = token || rnd(4) == 0 ? gt_pop_token(group, token) : gt_pop(group), i;
    for (i = depth - 1; i >= 0; i--)
        if (stack[i].group == group && stack[i].token == token)
            break;
    if (i < 0) {
        SAME(got, -1);
        unbalanced++;
        return;
    }
    SAME(got, level(i, group));
    if (!stack[i].silent) {
        struct place *p = &places[stack[i].place];
        uint64_t total = gt_test_ticks - stack[i].t0;
        if ((int64_t)total < 0)
            total = 0;
        p->count++;
        p->self += stack[i].self;
        p->total += total;
        p->min = total < p->min ? total : p->min;
        p->max = total > p->max ? total : p->max;
        int younger = 0;
        for (int k = i + 1; k < depth; k++)
            younger |= !stack[k].silent;
        overlapped += (uint64_t)younger;
    }
    memmove(stack + i, stack + i + 1, (size_t)(depth - 1 - i) * sizeof *stack);
    depth--;
}

static void mark(gt_tag tag, int name)
{
    const struct gt_attr a = {.name = texts[name]};
    gt_mark(tag, &a);
    if (pauses) {
        silent++;
        return;
    }
    struct place *p = &places[place_of(here(), tag, GT_KIND_MARK, name, 1)];
    p->count++;
    p->min = p->max = 0;
}

/* ---- the comparison ---- */

static int name_of(const char *s)
{
    for (int i = 0; i < NAMES; i++)
        if (strcmp(texts[i], s) == 0)
            return i;
    ck_abort_msg(WHERE "a stranger's name %s", seed, sequence, step, s);
    return -1;
}

static gt_tag tag_of(struct rd v, const struct gt_node *n)
{
    return GT_TAG(n->source, gt_domain(rd_text(v, n->domain)), n->category);
}

static void compare(int with_self)
{
    struct rd v = rd_self();
    const struct gt_slot *s = rd_only();
    uint64_t self = 0;
    SAME(s->node_count, place_count + 1); /* and "(other)" */
    SAME(rd_header(v)->memory_full, 0);
    for (uint32_t i = 2; i < s->node_count; i++) {
        const struct gt_node *n = rd_node(v, s, i);
        uint32_t place =
            place_of(of_node[n->parent], tag_of(v, n), n->kind, name_of(rd_text(v, n->key)), 0);
        const struct place *p = &places[place];
        SAME(place != 0, 1);
        of_node[i] = place;
        SAME(n->count, p->count);
        SAME(n->total_ticks, p->total);
        SAME(n->min_ticks, p->min);
        SAME(n->max_ticks, p->max);
        RD_MUST(n->self_ticks <= n->total_ticks, WHERE "self > total", seed, sequence, step);
        if (with_self)
            SAME(n->self_ticks, p->self);
        self += n->self_ticks;
    }
    SAME(s->unbalanced, unbalanced);
    SAME(s->overlapped, overlapped);
    SAME(s->silent, silent);
    SAME(s->depth, depth);
    if (with_self) {
        SAME(self, covered);
        SAME(s->clamped, 0);
    }
}

/* ---- the events ---- */

static uint64_t tick_size(void)
{
    switch (rnd(16)) {
    case 0:
    case 1:
    case 2:
        return 0;
    case 3:
        return ((uint64_t)1 << 32) + rnd(1000); /* too long for one record */
    case 4:
        return 0xfffffffeu + rnd(4);
    case 5:
        return 0x7ffffffeu + rnd(4);
    default:
        return rnd(1000);
    }
}

static void one_sequence(int backwards)
{
    int depth_wanted = rnd(4) == 0 ? 300 : 2 + (int)rnd(12);
    int tags_used = 1 + (int)rnd(TAGS), tokens = (int)rnd(3), may_pause = rnd(2) != 0;
    for (step = 0; step < EVENTS; step++) {
        gt_tag tag = tags[rnd((uint32_t)tags_used)];
        uint64_t token = tokens && rnd(3) == 0 ? 1 + rnd((uint32_t)tokens) : 0;
        uint32_t what = rnd(100);
        if (backwards && rnd(10) == 0)
            gt_test_ticks -= rnd(2000);
        else
            pass(tick_size());
        if (what < 4 && may_pause) {
            if (pauses == 3 || rnd(3)) {
                gt_resume(); /* also one too many */
                pauses -= pauses > 0;
            } else {
                gt_pause();
                pauses++;
            }
        } else if (what < 8) {
            mark(tag, (int)rnd(NAMES));
        } else if (what < (depth < depth_wanted ? 65 : 40)) {
            push(tag, (int)rnd(depth_wanted > 100 ? 1 : NAMES), token);
        } else if (depth && rnd(4)) {
            struct open o = stack[depth - 1]; /* as a program in order does */
            pop(o.group, o.token);
        } else {
            pop(GROUP(tag), token);
        }
    }
    while (pauses)
        gt_resume(), pauses--;
    while (depth) {
        struct open o = stack[rnd((uint32_t)depth)];
        pop(o.group, o.token);
        pass(rnd(10));
    }
    compare(!backwards);
}

static void sequences(uint64_t first_seed, int backwards)
{
    uint32_t d = gt_domain("library");
    seed = first_seed;
    state = seed * 0x9e3779b97f4a7c15u + 1;
    tags[0] = API;
    tags[1] = NVTX;
    tags[2] = GT_TAG(GT_SOURCE_NVTX, d, 0);
    tags[3] = GT_TAG(GT_SOURCE_NVTX, d, 9);
    tags[4] = GT_TAG(GT_SOURCE_API, d, 0);
    gt_test_ticks = (uint64_t)1 << 40;
    for (sequence = 0; sequence < SEQUENCES; sequence++)
        one_sequence(backwards);
    rd_calls(rd_self(), 0);
}

START_TEST(random_events)
{
    sequences(1000 + (uint64_t)_i, 0);
}
END_TEST

/* With a clock that sometimes goes back only self times may differ, and only within the total. */
START_TEST(random_events_backwards)
{
    sequences(5000 + (uint64_t)_i, 1);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("core_property");
    TCase *t = rd_case(s, "all");
    tcase_add_loop_test(t, random_events, 0, PROCESSES);
    tcase_add_loop_test(t, random_events_backwards, 0, PROCESSES / 4);
    return rd_run(s);
}
