/* What the files of the ITT source share. Inner header of preload/itt*.c; everything here runs on
 * the program's threads, takes no lock and calls no malloc. */
#ifndef GT_ITT_H
#define GT_ITT_H

#include "abi/itt.h"
#include "core/record.h"

/* The bodies of all calls. */
#define EXPORT(name)
#define CALL(name, result, parameters) result on_##name parameters;
#include "hooks/itt.def"
#undef CALL
#undef EXPORT

/* ---- itt_names.c ---- */

/* Room for names; called before anything else of the source. Returns 0 or -ENOMEM. */
int gt_itt_names_init(void);

/* What is known of a domain: its id in the low 16 bits, and: */
#define GT_ITT_OFF 0x10000     /* record nothing: NULL, switched off, or its source is */
#define GT_ITT_ONEDNN 0x20000  /* oneDNN's own tasks: a source of its own */
#define GT_ITT_TORCH 0x40000   /* PyTorch's text for what it runs */
#define GT_ITT_LIBRARY 0x80000 /* a library's own marks, not the user's annotation */

extern char gt_itt_known; /* gt_itt_domain.extra2 of a domain that was looked at before */
int gt_itt_learn(const struct gt_itt_domain *d);

static inline int gt_itt_info(const struct gt_itt_domain *d)
{
    if (!d || !d->flags)
        return GT_ITT_OFF;
    /* acquire: pairs with gt_itt_learn's release, extra1 is written before */
    if (__builtin_expect(__atomic_load_n(&d->extra2, __ATOMIC_ACQUIRE) == &gt_itt_known, 1))
        return d->extra1;
    return gt_itt_learn(d);
}

static inline gt_tag gt_itt_tag(int info)
{
    return GT_TAG(info & GT_ITT_ONEDNN ? GT_SOURCE_ONEDNN : GT_SOURCE_ITT, info & 0xffff, 0);
}

static inline uint8_t gt_itt_scope(int info)
{
    return info & GT_ITT_LIBRARY ? GT_SCOPE_FUNCTION : GT_SCOPE_USER;
}

static inline const char *gt_itt_text(const struct gt_itt_string *s)
{
    return s ? s->text : NULL;
}

/* Name of the function at that address: its symbol, else "LIBRARY+0x1f". Lives as long as the
 * process. Asks the loader, once for each function. */
const char *gt_itt_function(void *fn);

/* Ids of names: marks and events. The same name has the same id, 1 or more. */
int gt_itt_id_of(const char *name);
/* NULL for an id that was never given. */
const char *gt_itt_name_of(int id);

/* ---- itt_open.c: ranges that are ended by what the program called them ---- */

enum gt_itt_kind { GT_ITT_TASK, GT_ITT_REGION, GT_ITT_FRAME, GT_ITT_EVENT };
struct gt_itt_key {
    uint64_t words[3];
    uint32_t domain_id;
    uint32_t kind; /* enum gt_itt_kind */
};
/* Room for them, likewise. */
int gt_itt_open_init(void);
/* Remembers `id` (of gt_start) under the key. Two under one key are taken newest first. Returns 0,
 * or -ENOSPC: thousands are open, this one can't be found again. */
int gt_itt_put(const struct gt_itt_key *key, uint64_t id);
/* Finds one, takes it out if asked to. Returns 0, or -ENOENT. */
int gt_itt_find(const struct gt_itt_key *key, int take, uint64_t *id);

#endif
