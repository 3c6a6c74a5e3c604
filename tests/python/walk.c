/* The walk over Python frames as the library has it, for tests/python/walk.py, which loads this by
 * ctypes into whatever interpreter runs it. Core's memory is a stand-in; the trie, the strings and
 * everything of preload/python*.c are the real ones. No Python header is needed. */
#include <dlfcn.h>
#include <execinfo.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "core/compat.h"
#include "core/say.h"
#include "core/session.h"
#include "core/strings.h"
#include "preload/dl.h"
#include "preload/python.h"

#define API(result, name, parameters)                                                              \
    __attribute__((visibility("default"))) result name parameters;                                 \
    result name parameters

/* this runs on old systems as well */
GT_BIND_FIRST(dlsym);
GT_BIND_FIRST(pthread_create);
GT_BIND_FIRST(pthread_join);

/* ---- what stands in for core and the rest of preload ---- */

struct gt_session gt_session = {.generation = 1};
struct gt_config gt_config = {.stacks = GT_STACKS_PYTHON, .memory_bytes = 64 << 20};
_Atomic(gt_python_fn *) gt_python_walk;
static uint64_t used = 4096, limit = UINT64_C(256) << 20;
static char said[512];

void gt_core_init(void) {}

void gt_say_list(enum gt_say_level level, const char *const *texts)
{
    (void)level;
    for (; *texts; texts++)
        strncat(said, *texts, sizeof said - strlen(said) - 1);
    strncat(said, "\n", sizeof said - strlen(said) - 1);
}

void *gt_dl_global(const char *name)
{
    return dlsym(RTLD_DEFAULT, name);
}

void *gt_session_alloc(size_t bytes, gt_ref *ref)
{
    uint64_t at = __atomic_fetch_add(&used, (bytes + 63) & ~(size_t)63, __ATOMIC_RELAXED);

    if (at + bytes > limit)
        return NULL;
    *ref = (gt_ref)(at / GT_ALIGN);
    return gt_session.base + at;
}

void *gt_session_alloc_roomy(size_t bytes, gt_ref *ref)
{
    return gt_session_alloc(bytes, ref);
}

void *gt_private_alloc(size_t bytes)
{
    return calloc(1, bytes);
}

/* ---- one thread's part ---- */

struct mine {
    struct gt_trie trie;
    void *state, *fresh;
    int truncated;
    void *pcs[16384];
};
static __thread struct mine *mine;

static struct mine *get(void)
{
    static const struct gt_trie_memory memory = {gt_session_alloc, gt_private_alloc};

    if (!mine) {
        mine = calloc(1, sizeof *mine);
        mine->state = calloc(1, GT_PYTHON_STATE_BYTES);
        mine->fresh = calloc(1, GT_PYTHON_STATE_BYTES);
        if (gt_trie_init(&mine->trie, &memory))
            abort();
    }
    return mine;
}

static uint32_t capture(struct mine *m, void *state)
{
    gt_python_fn *fn = atomic_load_explicit(&gt_python_walk, memory_order_acquire);

    return fn ? fn(state, &m->trie, &m->truncated) : GT_TRIE_ROOT;
}

/* ---- what walk.py calls ---- */

/* 1: an interpreter was found. */
API(int, walk_start, (void))
{
    gt_session.base = calloc(1, limit);
    if (gt_strings_reset())
        return -1;
    gt_python_init();
    return gt_python_walk != NULL;
}

API(const char *, walk_said, (void))
{
    return said;
}

/* The calling thread's stack. */
API(unsigned, walk_id, (void))
{
    struct mine *m = get();

    return capture(m, m->state);
}

/* The same, with nothing kept. */
API(unsigned, walk_fresh, (void))
{
    struct mine *m = get();

    memset(m->fresh, 0, GT_PYTHON_STATE_BYTES);
    return capture(m, m->fresh);
}

/* Writes the stack as lines "file(line): name", innermost first, to out[n]. *entries: how many
 * frames are the outermost of their loop. Returns what lies below the outermost one. */
API(unsigned, walk_text, (unsigned id, char *out, size_t n, unsigned *entries))
{
    struct mine *m = get();
    size_t at = 0;

    *entries = 0;
    for (; id >= GT_TRIE_FIRST; id = gt_trie_node(&m->trie, id)->parent) {
        uint64_t pc = gt_trie_node(&m->trie, id)->pc;
        const struct gt_code *c = gt_session_at(GT_TRIE_CODE(pc));

        *entries += (pc & GT_TRIE_ENTRY) != 0;
        if (!(pc & GT_TRIE_PYTHON) || n - at < 8192)
            return UINT32_MAX;
        at += (size_t)snprintf(out + at, n - at, "%s(%u): %s\n", gt_session_text(c->file),
                               GT_TRIE_LINE(pc), gt_session_text(c->name));
    }
    out[at] = 0;
    return id;
}

/* How many calls of the interpreter's loop are on the native stack; -1: can't be told. */
API(int, walk_loops, (void))
{
    void **pcs = get()->pcs;
    Dl_info info;
    const ElfW(Sym) *symbol = NULL;
    void *loop = dlsym(RTLD_DEFAULT, "_PyEval_EvalFrameDefault");
    int n = 0;

    if (!loop || !dladdr1(loop, &info, (void **)&symbol, RTLD_DL_SYMENT) || !symbol)
        return -1;
    for (int i = backtrace(pcs, 16384) - 1; i >= 0; i--)
        n += (uintptr_t)pcs[i] - (uintptr_t)loop - 1 < symbol->st_size;
    return n;
}

static void *in_thread(void *id)
{
    *(unsigned *)id = walk_id();
    return NULL;
}

/* The stack of a thread that Python does not know. */
API(unsigned, walk_foreign, (void))
{
    pthread_t thread;
    unsigned id = UINT32_MAX;

    if (pthread_create(&thread, NULL, in_thread, &id) == 0)
        pthread_join(thread, NULL);
    return id;
}

/* Captures for `ms` while other threads run, and counts those that differ from the first. */
API(long, walk_race, (int ms, long *captures))
{
    struct timespec t, now;
    unsigned first = walk_id();
    long bad = 0;

    clock_gettime(CLOCK_MONOTONIC, &t);
    do {
        for (int i = 0; i < 200; i++)
            bad += (i % 2 ? walk_fresh() : walk_id()) != first;
        *captures += 200;
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while ((now.tv_sec - t.tv_sec) * 1000 + (now.tv_nsec - t.tv_nsec) / 1000000 < ms);
    return bad;
}

/* With the GIL: compares the line of every instruction of a code object with the interpreter's own
 * answer. `bytes` of code. Returns how many differ; bad[] tells the first one. */
API(int, walk_lines, (const char *code, int bytes, int *bad))
{
    int (*theirs)(const void *, int) =
        (int (*)(const void *, int))dlsym(RTLD_DEFAULT, "PyCode_Addr2Line");
    const struct gt_python_layout *l = &gt_python.layout;
    const char *table = gt_python_pointer(code, l->lines);
    int different = 0;

    if (!theirs)
        return -1;
    for (int at = 0; at < bytes; at += 2) {
        int ours = (int)gt_python_line(l->minor, (const unsigned char *)table + l->bytes,
                                       gt_python_u64(table, GT_PYTHON_SIZE),
                                       (int)gt_python_u32(code, l->first_line), at);
        int told = theirs(code, at);

        if (ours == (told > 0 ? told : 0))
            continue;
        if (!different++)
            bad[0] = at, bad[1] = ours, bad[2] = told;
    }
    return different;
}

/* The raw walk, the least that any capture has to do: thread state, frames, code, instruction. */
static __attribute__((noipa)) unsigned raw(void)
{
    const struct gt_python_layout *l = &gt_python.layout;
    const char *frame;
    uint64_t sum = 0;

    if (!gt_python.initialized() || gt_python.finalizing())
        return 0;
    frame = gt_python_pointer(gt_python.thread_state(), l->frame);
    if (l->via)
        frame = gt_python_pointer(frame, l->via_frame);
    for (; frame; frame = gt_python_pointer(frame, l->previous)) {
        const char *code = gt_python_frame_code(l, frame);
        if (!(l->owner && frame[l->owner] >= GT_PYTHON_OWNER_C) &&
            gt_python_pointer(code, GT_PYTHON_TYPE) == gt_python.code_type)
            sum += (uintptr_t)code ^ gt_python_frame_key(l, frame);
    }
    return (unsigned)sum;
}

/* The kept stack is none of this thread's now: all frames are new, but have been met before. */
static unsigned forget(void)
{
    struct mine *m = get();

    memset(m->state, 0, 16);
    return capture(m, m->state);
}

/* n captures of one kind: 0 raw, 1 unchanged, 2 all frames changed. Returns ns for each. */
API(double, walk_bench, (int kind, int n))
{
    struct timespec a, b;

    clock_gettime(CLOCK_MONOTONIC, &a);
    for (int i = 0; i < n; i++)
        (void)(kind == 0 ? raw() : kind == 1 ? walk_id() : forget());
    clock_gettime(CLOCK_MONOTONIC, &b);
    return ((double)(b.tv_sec - a.tv_sec) * 1e9 + (double)(b.tv_nsec - a.tv_nsec)) / n;
}
