/* Names that outlive sessions: domains, categories, threads. Part of record.h.
 *
 * The tables are private memory, so a fork child inherits them and a handle the program got before
 * the fork stays good; each new session gets the category and thread names written into it again.
 */
#include <string.h>
#include "core/record.h"
#include "core/registry.h"
#include "core/session.h"
#include "core/strings.h"
#include "core/sys.h"

#define DOMAINS 65536u

/* A hash set of kept names, found by their address; a domain's id is its place. Filled by
 * compare-and-swap, nothing ever leaves. */
#define PROBES 256u
static _Atomic(const char *) domains[DOMAINS];

uint32_t gt_domain(const char *name)
{
    if (!name || !*name)
        return 0;
    name = gt_keep(name); /* equal texts share one pointer: compare pointers from here on */
    uint32_t at = (uint32_t)((uint64_t)(uintptr_t)name * 0x9e3779b97f4a7c15u >> 40);
    for (uint32_t i = 0; i < PROBES; i++) {
        uint32_t id = (at + i) % DOMAINS;
        if (!id)
            continue;
        const char *there = atomic_load_explicit(&domains[id], memory_order_acquire);
        if (!there && atomic_compare_exchange_strong_explicit(
                          &domains[id], &there, name, memory_order_acq_rel, memory_order_acquire))
            return id;
        if (there == name)
            return id;
    }
    return 0;
}

const char *gt_domain_name(uint32_t id)
{
    const char *name =
        id && id < DOMAINS ? atomic_load_explicit(&domains[id], memory_order_acquire) : NULL;
    return name ? name : "";
}

struct given {
    struct given *next;
    const char *text;
    uint32_t kind, source, domain_id, id;
    uint32_t pid; /* a fork child's threads are not the parent's */
};
#define GIVEN 4096u /* names kept for later sessions; more are recorded in this one only */
static struct given givens[GIVEN];
static _Atomic uint32_t given_count;
static _Atomic(struct given *) given_head;

/* Appends to the list in the session. */
static void write_name(const struct given *g)
{
    struct gt_header *h = gt_session.header;
    const char *domain = gt_domain_name(g->domain_id);
    gt_ref ref, text, domain_text = 0;
    struct gt_name *n = gt_session_alloc(sizeof *n, &ref);
    if (!n || !gt_strings_session(g->text, strlen(g->text), &text))
        return;
    if (*domain)
        gt_strings_session(domain, strlen(domain), &domain_text);
    n->text = text;
    n->domain = domain_text;
    n->kind = g->kind;
    n->source = g->source;
    n->id = g->id;
    n->next = atomic_load_explicit(&h->names, memory_order_relaxed);
    /* release: a reader that finds the entry finds it complete */
    while (!atomic_compare_exchange_weak_explicit(&h->names, &n->next, ref, memory_order_release,
                                                  memory_order_relaxed))
        ;
}

static int session_open(void)
{
    return atomic_load_explicit(&gt_fork.phase, memory_order_acquire) == GT_PHASE_OPEN;
}

static void give(struct given g)
{
    g.text = gt_keep(g.text);
    g.pid = (uint32_t)gt_sys(SYS_getpid, 0, 0, 0, 0, 0, 0);
    for (struct given *old = atomic_load_explicit(&given_head, memory_order_acquire); old;
         old = old->next)
        if (old->text == g.text && old->kind == g.kind && old->source == g.source &&
            old->domain_id == g.domain_id && old->id == g.id)
            return;
    uint32_t i = atomic_fetch_add_explicit(&given_count, 1, memory_order_relaxed);
    if (i < GIVEN) {
        givens[i] = g;
        givens[i].next = atomic_load_explicit(&given_head, memory_order_relaxed);
        while (!atomic_compare_exchange_weak_explicit(&given_head, &givens[i].next, &givens[i],
                                                      memory_order_release, memory_order_relaxed))
            ;
    } else {
        atomic_store_explicit(&given_count, GIVEN, memory_order_relaxed);
    }
    if (session_open())
        write_name(&g);
}

void gt_registry_replay(void)
{
    for (struct given *g = atomic_load_explicit(&given_head, memory_order_acquire); g; g = g->next)
        if (g->kind != GT_NAME_THREAD || g->pid == gt_session.pid)
            write_name(g);
}

void gt_name_category(uint32_t source, uint32_t domain_id, uint32_t category, const char *name)
{
    if (name && gt_source_on(source))
        give((struct given){.text = name,
                            .kind = GT_NAME_CATEGORY,
                            .source = source,
                            .domain_id = domain_id,
                            .id = category});
}

void gt_name_thread(uint32_t source, uint32_t tid, const char *name)
{
    if (!name || !gt_source_on(source))
        return;
    if (!tid)
        tid = (uint32_t)gt_sys(SYS_gettid, 0, 0, 0, 0, 0, 0);
    give((struct given){.text = name, .kind = GT_NAME_THREAD, .source = source, .id = tid});
}
