/* Captures of core/unwind.h beside a judge's: libunwind's unw_backtrace where it is installed, and
 * libgcc's _Unwind_Backtrace. libunwind is opened as a plugin, so that the program's own exceptions
 * go through libgcc as they do in the wild. */
#ifndef STACK_JUDGE_H
#define STACK_JUDGE_H

#include <check.h>
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unwind.h>
#include "core/rules.h"
#include "core/unwind.h"

static int (*judge_backtrace)(void **, int) __attribute__((unused));

/* Never freed, as in the library; the list keeps it reachable, so that no sanitizer calls it lost.
 * judge_left: bytes until memory is "used up". */
static _Atomic(void **) judge_list;
static _Atomic long judge_left = 1L << 40;

static inline void *judge_own(size_t bytes)
{
    if (atomic_fetch_sub(&judge_left, (long)bytes) < (long)bytes)
        return NULL;
    void **p = calloc(1, bytes + 64);
    do
        *p = judge_list;
    while (!atomic_compare_exchange_weak(&judge_list, (void ***)p, p));
    return p + 8;
}

static inline void *judge_shared(size_t bytes, uint32_t *ref)
{
    static _Atomic uint32_t refs;
    *ref = ++refs;
    return judge_own(bytes);
}

static const struct gt_trie_memory judge_memory = {judge_shared, judge_own};

static inline void judge_open(void)
{
    static int done;
    if (done++)
        return;
    ck_assert_int_eq(gt_rules_init(14, judge_own), 0);
#ifndef __SANITIZE_THREAD__ /* which does not see libunwind's atomics: races where there are none  \
                             */
    void *lib = dlopen("libunwind.so.8", RTLD_NOW | RTLD_LOCAL);
    if (lib)
        *(void **)&judge_backtrace = dlsym(lib, "unw_backtrace");
    ck_assert_int_eq(gt_unwind_open() == 0, judge_backtrace != NULL);
#endif
}

static inline struct gt_stack *judge_stack(uint32_t limit)
{
    struct gt_stack *s = judge_own(sizeof *s);
    ck_assert_int_eq(gt_stack_init(s, limit, &judge_memory), 0);
    return s;
}

/* Innermost first, what lies below the outermost frame in *bottom. */
static inline int judge_read(const struct gt_stack *s, uint32_t node, uint64_t *pcs, int max,
                             uint32_t *bottom)
{
    int n = 0;
    while (node >= GT_TRIE_FIRST && n < max) {
        pcs[n++] = gt_trie_node(&s->trie, node)->pc & ~GT_TRIE_EXACT;
        node = gt_trie_node(&s->trie, node)->parent;
    }
    *bottom = node;
    return n;
}

struct judge_gcc {
    void **pcs;
    int n, max;
};

static inline _Unwind_Reason_Code judge_each(struct _Unwind_Context *c, void *arg)
{
    struct judge_gcc *g = arg;
    uintptr_t ip = _Unwind_GetIP(c);
    if (!ip || g->n == g->max)
        return _URC_END_OF_STACK;
    g->pcs[g->n++] = (void *)ip;
    return _URC_NO_REASON;
}

static inline int judge_by_gcc(void **pcs, int max)
{
    struct judge_gcc g = {pcs, 0, max};
    _Unwind_Backtrace(judge_each, &g);
    return g.n;
}

/* Compares from the frame `pc` on: one may go on where the other has ended, unless `whole`. 0, or 1
 * after having printed both. */
static inline int judge_differs(const char *who, void **is, int n, uint64_t pc, const uint64_t *pcs,
                                int count, int whole)
{
    int skip = 0, i;
    while (skip < n && (uint64_t)is[skip] != pc)
        skip++;
    n -= skip;
    is += skip;
    for (i = 0; i < n && i < count && (uint64_t)is[i] == pcs[i]; i++)
        ;
    if (n && (i == count || i == n) && (n == count || !whole))
        return 0;
    printf("differs from %s at frame %d (%d of ours, %d of its)\n", who, i, count, n);
    for (int k = i > 2 ? i - 2 : 0; k < i + 4 && k < (n > count ? n : count); k++) {
        Dl_info a = {0}, b = {0};
        if (k < count)
            dladdr((void *)pcs[k], &a);
        if (k < n)
            dladdr(is[k], &b);
        printf("  %3d %#12lx %s %s | %#12lx %s\n", k, k < count ? (long)pcs[k] : 0, a.dli_fname,
               a.dli_sname, k < n ? (long)is[k] : 0, b.dli_sname);
    }
    fflush(stdout);
    return 1;
}

#endif
