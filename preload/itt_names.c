/* ITT's names: domains, string handles, functions, ids of marks and events. Called on the program's
 * threads, from its constructors on.
 *
 * A program may use a domain or a string that its ITT made before we were asked in: a struct of
 * that copy. So both are followed, as every collector has to; what is known of a domain is kept in
 * the two fields that ITT leaves to collectors. What we hand out lies in arrays of ours, for the
 * life of the process and over fork; equal names share one. */
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include "core/compat.h"
#include "core/core.h"
#include "core/strings.h"
#include "core/sys.h"
#include "core/text.h"
#include "core/thread.h"
#include "itt.h"
#include "nvtx_text.h"

#define WIDE_BYTES 4096 /* wide text is cut here */

/* ---- domains ---- */

char gt_itt_known;

#define DOMAINS 65536u /* one for each id that gt_domain may give */
#define HANDLES 65536u
#define INDEX (2 * HANDLES)

static _Atomic(void *) room;
struct names {
    struct gt_itt_domain domains[DOMAINS];
    struct gt_itt_string handles[HANDLES]; /* 0: none */
    /* a hash set of handles: hash of the text << 32 | number. Half full at most */
    _Atomic uint64_t index[INDEX];
};

int gt_itt_names_init(void)
{
    return gt_sys_map_once(&room, sizeof(struct names)) ? 0 : -ENOMEM;
}

static struct names *names(void)
{
    return atomic_load_explicit(&room, memory_order_relaxed);
}

static int info_of(const char *name)
{
    int info = (int)(gt_domain(name) & 0xffff);

    if (!name)
        name = "";
    if (strncmp(name, "dnnl::", 6) == 0)
        return gt_source_on(GT_SOURCE_ONEDNN) ? info | GT_ITT_ONEDNN | GT_ITT_LIBRARY : GT_ITT_OFF;
    if (!gt_source_on(GT_SOURCE_ITT))
        return GT_ITT_OFF;
    if (strcmp(name, "PyTorch") == 0)
        return info | GT_ITT_TORCH;
    /* Intel's and LLVM's OpenMP: a domain for each parallel region and barrier */
    return strstr(name, "$omp$") ? info | GT_ITT_LIBRARY : info;
}

int gt_itt_learn(const struct gt_itt_domain *d)
{
    struct gt_itt_domain *own = (struct gt_itt_domain *)d; /* these two fields are ours */
    int info = info_of(d->name);

    /* two threads may do this at once: they write the same */
    __atomic_store_n(&own->extra1, info, __ATOMIC_RELAXED);
    __atomic_store_n(&own->extra2, &gt_itt_known, __ATOMIC_RELEASE);
    return info;
}

struct gt_itt_domain *on_domain_create(const char *name)
{
    uint32_t id = gt_domain(name) & 0xffff;
    struct gt_itt_domain *d = &names()->domains[id];
    const char *kept;

    if (!name)
        return NULL; /* as without a collector */
    if (__atomic_load_n(&d->extra2, __ATOMIC_ACQUIRE) != &gt_itt_known) {
        kept = gt_domain_name(id);
        __atomic_store_n(&d->name, kept, __ATOMIC_RELAXED);
        /* a domain whose source is off is one that its program need not call for */
        __atomic_store_n(&d->flags, !(info_of(kept) & GT_ITT_OFF), __ATOMIC_RELAXED);
        gt_itt_learn(d);
    }
    return d;
}

struct gt_itt_domain *on_domain_createA(const char *name)
{
    return on_domain_create(name);
}

struct gt_itt_domain *on_domain_createW(const wchar_t *name)
{
    char utf8[WIDE_BYTES];

    return on_domain_create(gt_nvtx_utf8(utf8, sizeof(utf8), name));
}

/* ---- string handles ---- */

/* PyTorch makes a handle for each range and never uses it again, so there may be as many as there
 * are texts. Beyond these limits a new text with numbers gets the handle of its template ("step *",
 * which the tree makes of it anyway), and at last all new ones get that of "(other)". */
#define PLAIN_HANDLES 49152u
#define PLAIN_BYTES (4u * 1024 * 1024) /* half of what gt_keep has with the default memory */

static _Atomic uint32_t handle_count = 1, plain_bytes;

/* Number of the text's handle, 0 if there is none; *at is the free place where it should be. */
static uint32_t find(const char *text, size_t n, uint32_t hash, uint32_t *at)
{
    for (;; ++*at) {
        /* acquire: the handle is written before its number */
        uint64_t word = atomic_load_explicit(&names()->index[*at % INDEX], memory_order_acquire);
        const char *there = names()->handles[(uint32_t)word].text;

        if (!word)
            return 0;
        if (word >> 32 == hash && strncmp(there, text, n) == 0 && !there[n])
            return (uint32_t)word;
    }
}

static uint32_t new_handle(const char *text, size_t n)
{
    uint32_t number = atomic_fetch_add_explicit(&handle_count, 1, memory_order_relaxed);

    if (number >= HANDLES) {
        atomic_store_explicit(&handle_count, HANDLES, memory_order_relaxed);
        return 0;
    }
    atomic_fetch_add_explicit(&plain_bytes, (uint32_t)n + 32, memory_order_relaxed);
    names()->handles[number].text = gt_keep(text);
    return number;
}

/* Finds or makes the handle. 0 when there is no room. */
static uint32_t handle_of(const char *text, size_t n, int make)
{
    uint32_t hash = gt_hash(text, n, 2), at = hash, number, mine = 0;

    for (;;) {
        number = find(text, n, hash, &at);
        if (number || (!mine && (!make || !(mine = new_handle(text, n)))))
            return number;
        uint64_t none = 0;
        /* if another thread was faster it may have been with the same text: look again */
        if (atomic_compare_exchange_strong_explicit(&names()->index[at % INDEX], &none,
                                                    (uint64_t)hash << 32 | mine,
                                                    memory_order_release, memory_order_relaxed))
            return mine;
    }
}

static int plain_room(void)
{
    uint64_t half;

    gt_core_init();                     /* a handle may be made before anything is recorded */
    half = gt_config.memory_bytes / 16; /* where there is little, gt_keep has an eighth */
    return atomic_load_explicit(&handle_count, memory_order_relaxed) < PLAIN_HANDLES &&
           atomic_load_explicit(&plain_bytes, memory_order_relaxed) <
               (half < PLAIN_BYTES ? half : PLAIN_BYTES);
}

static __attribute__((noinline)) uint32_t crowded(const char *text, size_t n)
{
    char template[GT_TEMPLATE_MAX + 1];
    uint32_t number = handle_of(text, n, 0);
    size_t len;

    if (!number && (len = gt_tree_template(text, n, template))) {
        template[len] = 0;
        number = handle_of(template, len, 1);
    }
    return number;
}

struct gt_itt_string *on_string_handle_create(const char *text)
{
    static struct gt_itt_string other = {.text = "(other)"};
    uint32_t number;
    size_t n;

    if (!text)
        return NULL;
    n = gt_name_length(text);
    number = plain_room() ? handle_of(text, n, 1) : crowded(text, n);
    return number ? &names()->handles[number] : &other;
}

struct gt_itt_string *on_string_handle_createA(const char *text)
{
    return on_string_handle_create(text);
}

struct gt_itt_string *on_string_handle_createW(const wchar_t *text)
{
    char utf8[WIDE_BYTES];

    return on_string_handle_create(gt_nvtx_utf8(utf8, sizeof(utf8), text));
}

/* ---- functions ---- */

#define FUNCTIONS 512u
static struct {
    _Atomic(void *) fn;
    _Atomic(const char *) name;
} functions[FUNCTIONS];

static void add_hex(struct gt_text *t, uintptr_t v)
{
    char digits[2 * sizeof(v)];
    size_t n = sizeof(digits);

    do
        digits[--n] = "0123456789abcdef"[v % 16];
    while (v /= 16);
    gt_text_add(t, "0x");
    gt_text_add_n(t, digits + n, sizeof(digits) - n);
}

static const char *ask_loader(void *fn)
{
    char buf[512];
    struct gt_text t;
    Dl_info in = {0};
    const char *slash;

    gt_text_init(&t, buf, sizeof(buf));
    if (!dladdr(fn, &in) || !in.dli_fname)
        add_hex(&t, (uintptr_t)fn);
    else if (in.dli_sname && in.dli_saddr == fn)
        gt_text_add(&t, in.dli_sname);
    else {
        slash = strrchr(in.dli_fname, '/');
        gt_text_add(&t, slash ? slash + 1 : in.dli_fname);
        gt_text_add(&t, "+");
        add_hex(&t, (uintptr_t)fn - (uintptr_t)in.dli_fbase);
    }
    return gt_keep(buf);
}

const char *gt_itt_function(void *fn)
{
    uint64_t h = (uint64_t)(uintptr_t)fn * 0x9e3779b97f4a7c15u >> 40;

    if (!fn)
        return NULL;
    for (uint32_t i = 0; i < 16; i++) {
        uint32_t n = (uint32_t)(h + i) % FUNCTIONS;
        void *there = NULL;
        const char *name;

        atomic_compare_exchange_strong_explicit(&functions[n].fn, &there, fn, memory_order_relaxed,
                                                memory_order_relaxed);
        if (there && there != fn)
            continue;
        name = atomic_load_explicit(&functions[n].name, memory_order_acquire);
        if (!name) {
            name = ask_loader(fn);
            atomic_store_explicit(&functions[n].name, name, memory_order_release);
        }
        return name;
    }
    return ask_loader(fn);
}

/* ---- ids ---- */

#define IDS 4096
static _Atomic(const char *)
    ids[IDS]; /* id 1 is the first; the last is for all that find no room */

int gt_itt_id_of(const char *name)
{
    const char *kept = gt_keep(name);

    for (int i = 1; i < IDS - 1; i++) {
        const char *there = NULL;

        if (atomic_compare_exchange_strong_explicit(&ids[i], &there, kept, memory_order_acq_rel,
                                                    memory_order_acquire) ||
            there == kept)
            return i;
    }
    atomic_store_explicit(&ids[IDS - 1], "(other)", memory_order_release);
    return IDS - 1;
}

const char *gt_itt_name_of(int id)
{
    return id > 0 && id < IDS ? atomic_load_explicit(&ids[id], memory_order_acquire) : NULL;
}
