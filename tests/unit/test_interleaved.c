/* All sources of annotations in one program, on two threads, in random order, against a model that
 * is too slow to be wrong: exact counts, self and total times, values, level by level. A source is
 * what a program calls (the exported functions, the list that ITT is given), not core/record.h.
 *
 * The clock is turned by hand, so each tick belongs to somebody: on each thread to the topmost open
 * range that is not silent. The two threads take turns, an event at a time. To add a source: its
 * calls, and a line in `voices`. A failure prints the seed of its process and where it was. */
#define GPUTALLY_IMPLEMENTATION /* the functions themselves, not the stubs that look for them */
#include "gputally.h"
#include "tests/unit/core_reader.h"
#include <inttypes.h>
#include <pthread.h>
#include <semaphore.h>
#include "preload/abi/nvtx.h"
#include "preload/dl.h"
#include "preload/hook.h"
#include "preload/snapshot.h"
#include "tests/apps/itt_client.h"

#define PROCESSES 12
#define SEQUENCES 20 /* a process */
#define EVENTS 500
#define THREADS 2
#define PLACES 32768
#define OPEN (4 * EVENTS)

int gt_torch_live(void); /* PyTorch is not here */
int gt_torch_live(void)
{
    return 0;
}

/* In place of preload/dl.c and exit.c, which stand in front of libc: nobody asks where we are,
 * ROCTX has no library behind us. */
const char *gt_dl_self(void)
{
    return NULL;
}

const char *gt_dl_environment(const char *name)
{
    (void)name;
    return NULL;
}

void *gt_dl_behind(const char *name, const char *const *libraries)
{
    (void)name;
    (void)libraries;
    return NULL;
}

/* ---- the sources ---- */

#define UNTOLD (-2) /* a push or pop that tells no level */

void __itt_api_init(struct gt_itt_global *, int);

static int api_push_domain(const char *text)
{
    struct gputally_attributes a = GPUTALLY_ATTRIBUTES_INIT;
    a.name = text;
    a.domain = "library";
    return gputally_range_push_ex(&a);
}

static int api_pop_domain(void)
{
    return gputally_range_pop_domain("library");
}

static void api_mark(const char *text)
{
    gputally_mark(text);
}

static void api_end(uint64_t id)
{
    gputally_range_end(id);
}

static void api_value(const char *text, int value)
{
    gputally_counter(text, value);
}

#define EXPORT(name)
#define HOOK(name, module, id, result, parameters, ...) result name parameters;
#include "preload/hooks/nvtx.def"
#undef HOOK
#undef EXPORT

static void *nvtx_domain;

static struct gt_nvtx_attr nvtx_text(const char *text)
{
    return (struct gt_nvtx_attr){.size_bytes = sizeof(struct gt_nvtx_attr),
                                 .text_type = GT_NVTX_TEXT_ASCII,
                                 .text.ascii = text};
}

static int nvtx_push_domain(const char *text)
{
    struct gt_nvtx_attr a = nvtx_text(text);
    return nvtxDomainRangePushEx(nvtx_domain, &a);
}

static int nvtx_pop_domain(void)
{
    return nvtxDomainRangePop(nvtx_domain);
}

static void nvtx_mark_domain(const char *text)
{
    struct gt_nvtx_attr a = nvtx_text(text);
    nvtxDomainMarkEx(nvtx_domain, &a);
}

static uint64_t nvtx_start_domain(const char *text)
{
    struct gt_nvtx_attr a = nvtx_text(text);
    return nvtxDomainRangeStartEx(nvtx_domain, &a);
}

static void nvtx_end_domain(uint64_t id)
{
    nvtxDomainRangeEnd(nvtx_domain, id);
}

/* One domain of ours, one that is older than the collector; both ids and names of the program's
 * own.
 */
static struct gt_itt_domain *itt_one, older = {.flags = 1, .name = "older"};
static struct gt_itt_domain *itt_older = &older;
static uint64_t itt_ids, older_ids; /* equal ones are open at the same time */

static int itt_push_one(const char *text)
{
    begin(itt_one, text);
    return UNTOLD;
}

static int itt_pop_one(void)
{
    end(itt_one);
    return UNTOLD;
}

static int itt_push_older(const char *text)
{
    struct gt_itt_string s = {.text = text};
    IN(task_begin, itt_older, no_id, no_id, &s);
    return UNTOLD;
}

static int itt_pop_older(void)
{
    end(itt_older);
    return UNTOLD;
}

static void itt_mark_one(const char *text)
{
    IN(marker, itt_one, no_id, GET(string_handle_create, text), 0);
}

static uint64_t itt_start_one(const char *text)
{
    IN(task_begin_overlapped, itt_one, id_of(++itt_ids), no_id, GET(string_handle_create, text));
    return itt_ids;
}

static void itt_end_one(uint64_t id)
{
    IN(task_end_overlapped, itt_one, id_of(id));
}

/* A task or, by its id, a region. */
static uint64_t itt_start_older(const char *text)
{
    struct gt_itt_string *name = GET(string_handle_create, text);
    if (++older_ids % 2)
        IN(task_begin_overlapped, itt_older, id_of(older_ids), no_id, name);
    else
        IN(region_begin, itt_older, id_of(older_ids), no_id, name);
    return older_ids;
}

static void itt_end_older(uint64_t id)
{
    if (id % 2)
        IN(task_end_overlapped, itt_older, id_of(id));
    else
        IN(region_end, itt_older, id_of(id));
}

static void itt_value(const char *text, int value)
{
    long long v = value;
    ITT(counter_set_value, GET(counter_create_typed, text, "library", GT_ITT_S64), &v);
}

/* What Kokkos would have asked our library for. */
static void *kokkos(const char *name)
{
    for (size_t i = 0; i < gt_kokkos_hooks.count; i++)
        if (strcmp(gt_kokkos_hooks.hooks[i].name, name) == 0)
            return (void *)gt_kokkos_hooks.hooks[i].fn;
    ck_abort_msg("no %s", name);
    return NULL;
}

static void (*kokkos_push_region)(const char *);
static void (*kokkos_pop_region)(void);
static void (*kokkos_event)(const char *);
static void (*kokkos_begin_for)(const char *, uint32_t, uint64_t *);
static void (*kokkos_end_for)(uint64_t);

static void kokkos_start(void)
{
    *(void **)&kokkos_push_region = kokkos("kokkosp_push_profile_region");
    *(void **)&kokkos_pop_region = kokkos("kokkosp_pop_profile_region");
    *(void **)&kokkos_event = kokkos("kokkosp_profile_event");
    *(void **)&kokkos_begin_for = kokkos("kokkosp_begin_parallel_for");
    *(void **)&kokkos_end_for = kokkos("kokkosp_end_parallel_for");
}

static int kokkos_push(const char *text)
{
    kokkos_push_region(text);
    return UNTOLD;
}

static int kokkos_pop(void)
{
    kokkos_pop_region();
    return UNTOLD;
}

static void kokkos_mark(const char *text)
{
    kokkos_event(text);
}

static uint64_t kokkos_enter(const char *text)
{
    uint64_t id = 0;
    kokkos_begin_for(text, 0, &id);
    return id;
}

static void kokkos_leave(uint64_t id)
{
    kokkos_end_for(id);
}

int roctxRangePushA(const char *);
int roctxRangePop(void);
void roctxMarkA(const char *);
uint64_t roctxRangeStartA(const char *);
void roctxRangeStop(uint64_t);

static const struct voice {
    uint32_t source;
    const char *domain;
    int (*push)(const char *text);
    int (*pop)(void);
    void (*mark)(const char *text);      /* NULL: it has none; likewise: */
    uint64_t (*start)(const char *text); /* what `end` takes */
    void (*end)(uint64_t id);
    void (*value)(const char *text, int value);
    uint64_t (*enter)(const char *text); /* a range of this thread that is ended by what it gives */
    void (*leave)(uint64_t id);
    uint32_t category; /* of such a range, which is not the user's */
} voices[] = {
    {GT_SOURCE_API, "", gputally_range_push, gputally_range_pop, api_mark, gputally_range_start,
     api_end, api_value},
    {GT_SOURCE_API, "library", api_push_domain, api_pop_domain, NULL, NULL, NULL, NULL},
    {GT_SOURCE_NVTX, "", nvtxRangePushA, nvtxRangePop, nvtxMarkA, nvtxRangeStartA, nvtxRangeEnd,
     NULL},
    {GT_SOURCE_NVTX, "library", nvtx_push_domain, nvtx_pop_domain, nvtx_mark_domain,
     nvtx_start_domain, nvtx_end_domain, NULL},
    {GT_SOURCE_ITT, "library", itt_push_one, itt_pop_one, itt_mark_one, itt_start_one, itt_end_one,
     itt_value},
    {GT_SOURCE_ITT, "older", itt_push_older, itt_pop_older, NULL, itt_start_older, itt_end_older,
     NULL},
    {GT_SOURCE_KOKKOS, "", kokkos_push, kokkos_pop, kokkos_mark, .enter = kokkos_enter,
     .leave = kokkos_leave, .category = 1},
    {GT_SOURCE_ROCTX, "", roctxRangePushA, roctxRangePop, roctxMarkA, roctxRangeStartA,
     roctxRangeStop, NULL},
};
#define VOICES (sizeof voices / sizeof *voices)

/* ---- the model ---- */

struct place {
    uint32_t parent, first, next; /* first child, next sibling; 0: none */
    const struct voice *voice;
    int kind, name, entered; /* entered: by `enter` */
    uint64_t count, self, total;
    int64_t values;
};
struct open {
    uint32_t place;
    const struct voice *voice;
    uint64_t t0, self, id; /* id: what `leave` takes, 0: it ends by `pop` */
    int silent;
};
/* A thread. */
static struct side {
    struct place places[PLACES]; /* 0 is the root */
    uint32_t place_count, of_node[PLACES];
    struct open stack[OPEN];
    int depth;
    uint64_t unbalanced, overlapped, silent, covered;
    uint32_t tid;
} sides[THREADS];
static struct side *side; /* whose turn it is */

static struct started {
    const struct voice *voice;
    uint64_t id, t0;
    int name, silent;
} started[OPEN];
static int started_count;
static int api_pauses, itt_paused;

static uint64_t state, seed;
static int sequence, step;

static uint32_t rnd(uint32_t n)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)((state * 0x2545f4914f6cdd1du) >> 33) % n;
}

#define SAME(a, b)                                                                                 \
    do {                                                                                           \
        uint64_t a_ = (uint64_t)(a), b_ = (uint64_t)(b);                                           \
        RD_MUST(a_ == b_,                                                                          \
                "seed %" PRIu64 " sequence %d event %d: " #a " is %" PRIu64 ", want %" PRIu64,     \
                seed, sequence, step, a_, b_);                                                     \
    } while (0)

static const char *const texts[] = {"f", "forward", "backward pass", "matmul"};
enum { NAMES = sizeof texts / sizeof *texts };

static struct place *place_of(uint32_t parent, const struct voice *v, int kind, int name,
                              int entered, int make)
{
    uint32_t i;
    for (i = side->places[parent].first; i; i = side->places[i].next) {
        struct place *p = &side->places[i];
        if (p->voice == v && p->kind == kind && p->name == name && p->entered == entered)
            return p;
    }
    if (!make)
        return NULL;
    RD_MUST(side->place_count < PLACES, "the model is full");
    i = side->place_count++;
    side->places[i] = (struct place){.parent = parent,
                                     .next = side->places[parent].first,
                                     .voice = v,
                                     .kind = kind,
                                     .name = name,
                                     .entered = entered};
    side->places[parent].first = i;
    return &side->places[i];
}

static void pass(uint64_t ticks)
{
    gt_test_ticks += ticks;
    for (int t = 0; t < THREADS; t++)
        for (int i = sides[t].depth; i-- > 0;)
            if (!sides[t].stack[i].silent) {
                sides[t].stack[i].self += ticks;
                sides[t].covered += ticks;
                break;
            }
}

static int level(int below, const struct voice *v)
{
    int n = 0;
    for (int i = 0; i < below; i++)
        n += side->stack[i].voice == v;
    return n;
}

static uint32_t here(void)
{
    return side->depth ? side->stack[side->depth - 1].place : 0;
}

static int paused(void)
{
    return api_pauses > 0 || itt_paused;
}

/* ---- what may happen, and what it does to the model ---- */

static void opened(const struct voice *v, int name, uint64_t id)
{
    RD_MUST(side->depth < OPEN, "the model is full");
    side->stack[side->depth] = (struct open){
        .place = paused() ? here()
                          : (uint32_t)(place_of(here(), v, GT_KIND_RANGE, name, id != 0, 1) -
                                       side->places),
        .voice = v,
        .t0 = gt_test_ticks,
        .id = id,
        .silent = paused()};
    side->silent += (uint64_t)paused();
    side->depth++;
}

static void push(const struct voice *v, int name)
{
    char text[64]; /* at another place, with other junk behind it, each time */
    char *s = text + rnd(8);
    memset(text, (int)rnd(256), sizeof text);
    strcpy(s, texts[name]);
    if (v->enter && rnd(2)) {
        opened(v, name, v->enter(s));
        return;
    }
    int got = v->push(s);
    if (got != UNTOLD)
        SAME(got, level(side->depth, v));
    opened(v, name, 0);
}

/* What ends is the topmost of that voice, or the one with that id. */
static void pop(const struct voice *v, uint64_t id)
{
    int got = UNTOLD, i;
    if (id)
        v->leave(id);
    else
        got = v->pop();
    for (i = side->depth - 1; i >= 0; i--)
        if (side->stack[i].voice == v && side->stack[i].id == id)
            break;
    if (got != UNTOLD)
        SAME(got, i < 0 ? -1 : level(i, v));
    if (i < 0) {
        side->unbalanced++;
        return;
    }
    if (!side->stack[i].silent) {
        struct place *p = &side->places[side->stack[i].place];
        p->count++;
        p->self += side->stack[i].self;
        p->total += gt_test_ticks - side->stack[i].t0;
        int younger = 0;
        for (int k = i + 1; k < side->depth; k++)
            younger |= !side->stack[k].silent;
        side->overlapped += (uint64_t)younger;
    }
    memmove(side->stack + i, side->stack + i + 1,
            (size_t)(side->depth - 1 - i) * sizeof *side->stack);
    side->depth--;
}

static void pop_one(int i)
{
    struct open o = side->stack[i];
    pop(o.voice, o.id);
}

static void mark(const struct voice *v, int name)
{
    v->mark(texts[name]);
    if (paused())
        side->silent++;
    else
        place_of(here(), v, GT_KIND_MARK, name, 0, 1)->count++;
}

static void value(const struct voice *v, int name)
{
    int n = (int)rnd(1000) - 500;
    struct place *p;
    v->value(texts[name], n);
    if (paused()) {
        side->silent++;
        return;
    }
    /* ITT's counters have their own domain: that of the voice */
    p = place_of(0, v, GT_KIND_COUNTER, name, 0, 1);
    p->count++;
    p->values += n;
}

static void start(const struct voice *v, int name)
{
    RD_MUST(started_count < OPEN, "the model is full");
    started[started_count++] = (struct started){.voice = v,
                                                .id = v->start(texts[name]),
                                                .t0 = gt_test_ticks,
                                                .name = name,
                                                .silent = paused()};
    side->silent += (uint64_t)paused();
}

/* Whoever has its turn may have been the other thread when it began. */
static void finish(int i)
{
    struct started s = started[i];
    s.voice->end(s.id);
    started[i] = started[--started_count];
    if (s.silent)
        return;
    struct place *p = place_of(0, s.voice, GT_KIND_ASYNC, s.name, 0, 1);
    p->count++;
    p->total += gt_test_ticks - s.t0;
}

static void pause_or_resume(void)
{
    if (rnd(2)) { /* the API's nests */
        if (api_pauses == 2 || rnd(3)) {
            /* one too many would take back ITT's */
            if (api_pauses) {
                gputally_resume();
                api_pauses--;
            }
        } else {
            gputally_pause();
            api_pauses++;
        }
    } else if (rnd(3)) { /* ITT's does not, and its resume ends only its own */
        ITT(resume);
        itt_paused = 0;
    } else {
        ITT(pause);
        itt_paused = 1;
    }
}

static uint64_t tick_size(void)
{
    uint32_t n = rnd(16);
    return n < 3 ? 0 : n == 3 ? ((uint64_t)1 << 32) + rnd(1000) : rnd(1000);
}

static int voices_used, depth_wanted, may_pause;

static void one_event(void)
{
    const struct voice *v = &voices[(sequence + (int)rnd((uint32_t)voices_used)) % (int)VOICES];
    int name = (int)rnd(NAMES);
    uint32_t what = rnd(100);
    pass(tick_size());
    if (what < 3 && may_pause) {
        pause_or_resume();
    } else if (what < 8 && v->mark) {
        mark(v, name);
    } else if (what < 12 && v->value) {
        value(v, name);
    } else if (what < 20 && v->start) {
        start(v, name);
    } else if (what < 27 && started_count) {
        finish((int)rnd((uint32_t)started_count));
    } else if (what < 28 && v->end) {
        v->end(0x7777777777777777); /* nobody's */
        side->unbalanced++;
    } else if (what < (side->depth < depth_wanted ? 70u : 45u)) {
        push(v, name);
    } else if (side->depth && rnd(4)) {
        pop_one(side->depth - 1); /* as a program in order does */
    } else {
        pop(v, v->leave && rnd(2) ? (uint64_t)1 << 40 | rnd(9) : 0); /* perhaps nobody's */
    }
}

static void end_all(void)
{
    while (api_pauses)
        gputally_resume(), api_pauses--;
    ITT(resume);
    itt_paused = 0;
    while (side->depth) {
        pop_one((int)rnd((uint32_t)side->depth));
        pass(rnd(10));
    }
    while (started_count)
        finish(0);
}

/* ---- the comparison ---- */

static int name_of(const char *s)
{
    for (int i = 0; i < NAMES; i++)
        if (strcmp(texts[i], s) == 0)
            return i;
    ck_abort_msg("a stranger's name %s", s);
    return -1;
}

static const struct voice *voice_of(struct rd v, const struct gt_node *n)
{
    for (size_t i = 0; i < VOICES; i++)
        if (voices[i].source == n->source && strcmp(voices[i].domain, rd_text(v, n->domain)) == 0)
            return &voices[i];
    ck_abort_msg("a stranger's domain %s", rd_text(v, n->domain));
    return NULL;
}

static void compare(struct rd v, const struct gt_slot *s)
{
    uint64_t self = 0;
    SAME(s->node_count, side->place_count + 1); /* and "(other)" */
    for (uint32_t i = 2; i < s->node_count; i++) {
        const struct gt_node *n = rd_node(v, s, i);
        const struct place *p = place_of(side->of_node[n->parent], voice_of(v, n), n->kind,
                                         name_of(rd_text(v, n->key)), n->category != 0, 0);
        SAME(p != NULL, 1);
        side->of_node[i] = (uint32_t)(p - side->places);
        SAME(n->count, p->count);
        SAME(n->total_ticks, p->total);
        SAME(n->self_ticks, p->self);
        SAME(n->category, p->entered ? p->voice->category : 0);
        SAME(n->scope, p->entered ? GT_SCOPE_FUNCTION : GT_SCOPE_USER);
        if (n->extra) {
            const struct gt_extra *x = rd_at(v, n->extra, sizeof *x);
            SAME(x->count, p->count);
            SAME((int64_t)x->sum, p->values);
        } else {
            SAME(p->values, 0);
        }
        self += n->self_ticks;
    }
    SAME(self, side->covered);
    SAME(s->unbalanced, side->unbalanced);
    SAME(s->overlapped, side->overlapped);
    SAME(s->silent, side->silent);
    SAME(s->depth, 0);
    SAME(s->clamped, 0);
    SAME(s->folded, 0);
}

static void compare_all(void)
{
    struct rd v = rd_self();
    const struct gt_slot *s;
    SAME(rd_header(v)->slot_count, THREADS);
    SAME(rd_header(v)->memory_full, 0);
    for (int t = 0; t < THREADS; t++)
        for (uint32_t i = 0; i < THREADS; i++)
            if ((s = rd_slot(v, i))->tid == sides[t].tid) {
                side = &sides[t];
                compare(v, s);
            }
    rd_calls(v, 0);
}

/* ---- two threads that take turns ---- */

static sem_t turn[THREADS], over;
static void (*task)(void);

static void *live(void *arg)
{
    long me = (long)arg;
    sides[me].tid = (uint32_t)gettid();
    for (;;) {
        sem_wait(&turn[me]);
        side = &sides[me];
        if (!task)
            return NULL;
        task();
        sem_post(&over);
    }
}

static void let(int who, void (*what)(void))
{
    task = what;
    sem_post(&turn[who]);
    if (what)
        sem_wait(&over);
}

START_TEST(interleaved)
{
    pthread_t t[THREADS];

    seed = 100 + (uint64_t)_i;
    state = seed * 0x9e3779b97f4a7c15u + 1;
    gt_test_ticks = (uint64_t)1 << 40;
    __itt_api_init(&itt_global, -1);
    kokkos_start();
    itt_one = GET(domain_create, "library");
    nvtx_domain = nvtxDomainCreateA("library");
    sem_init(&over, 0, 0);
    for (long i = 0; i < THREADS; i++) {
        sides[i].place_count = 1;
        sem_init(&turn[i], 0, 0);
        ck_assert_int_eq(pthread_create(&t[i], NULL, live, (void *)i), 0);
    }
    for (sequence = 0; sequence < SEQUENCES; sequence++) {
        voices_used = 1 + (int)rnd(VOICES);
        depth_wanted = rnd(5) == 0 ? 200 : 2 + (int)rnd(10);
        may_pause = (int)rnd(2);
        for (step = 0; step < EVENTS; step++)
            let((int)rnd(THREADS), one_event);
        for (int i = 0; i < THREADS; i++)
            let(i, end_all);
        compare_all();
    }
    for (int i = 0; i < THREADS; i++) {
        let(i, NULL);
        ck_assert_int_eq(pthread_join(t[i], NULL), 0);
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("interleaved");
    TCase *t = rd_case(s, "all");
    tcase_add_loop_test(t, interleaved, 0, PROCESSES);
    return rd_run(s);
}
