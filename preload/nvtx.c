/* NVTX: v3 by injection, v2 by the exported names. Called by the program's NVTX on its own threads,
 * from its constructors (before ours) until its last destructor; InitializeInjectionNvtx2 once for
 * each copy of NVTX in the process.
 *
 * Handles are addresses inside two arrays of ours, so that one comparison tells ours from anything
 * else and nothing the program passes is ever followed: a domain's is &domain_ids[id], a string's
 * is the slot that holds its kept text. They stay valid for the life of the process and over fork.
 */
#include "hook.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <string.h>
#include "abi/nvtx.h"
#include "core/hot.h"
#include "nvtx_text.h"
#include "torch.h"

#define TAG(domain_id, category) GT_TAG(GT_SOURCE_NVTX, domain_id, category)
#define GROUP(domain_id) GT_TAG_GROUP(TAG(domain_id, 0))
#define likely(x) __builtin_expect(!!(x), 1)

/* Wide text is cut here. */
#define TEXT_BYTES 4096
/* PyTorch's operator names are under 100 bytes, shapes under 500; a longer name is kept as it is,
 * longer shapes are left out. */
#define KEY_BYTES 512
#define SHAPES_BYTES 2048

/* ---- handles ---- */

/* Only the addresses are used; the pages are never touched. */
static char domain_ids[65536];

/* Domain 0 for NULL; what was never handed out has a domain of its own, so that a wild pop cannot
 * close a good range. */
static inline uint32_t domain_of(const void *handle)
{
    uintptr_t i = (uintptr_t)handle - (uintptr_t)domain_ids;

    if (likely(i < sizeof(domain_ids)))
        return (uint32_t)i;
    return handle ? gt_domain("(invalid domain)") : 0;
}

/* A hash set of kept texts, found by their address. Slot 0 stands for what no longer fits. A slot
 * is written once; pairs: release of the CAS with the acquire of the reader. 1 MiB of addresses, of
 * which a program with n strings touches about n pages. */
#define STRINGS (1u << 17)
#define STRING_PROBES 64u
static _Atomic(const char *) strings[STRINGS];

static void *string_handle(const char *text)
{
    const char *kept = gt_keep(text ? text : "(null)");
    uint64_t h = (uint64_t)(uintptr_t)kept * 0x9e3779b97f4a7c15u >> 32;

    for (uint32_t i = 0; i < STRING_PROBES; i++) {
        uint32_t n = (uint32_t)(h + i) % STRINGS;
        const char *there = NULL;

        if (n == 0)
            continue;
        if (atomic_compare_exchange_strong_explicit(&strings[n], &there, kept, memory_order_acq_rel,
                                                    memory_order_acquire) ||
            there == kept)
            return &strings[n];
    }
    return &strings[0];
}

static inline const char *string_of(const void *handle)
{
    uintptr_t i = (uintptr_t)handle - (uintptr_t)strings;
    const char *text;

    if (!likely(i < sizeof(strings) && i % sizeof(*strings) == 0))
        return handle ? "(invalid string)" : NULL;
    text = atomic_load_explicit(&strings[i / sizeof(*strings)], memory_order_acquire);
    return likely(text != NULL) ? text : i ? "(invalid string)" : "(other)";
}

/* ---- events ---- */

enum op { OP_PUSH, OP_START, OP_MARK };

static uint64_t record(enum op op, gt_tag tag, const struct gt_attr *a)
{
    switch (op) {
    case OP_PUSH:
        return (uint64_t)(int64_t)gt_push_attr(tag, a);
    case OP_START:
        return gt_start(tag, a);
    case OP_MARK:
        gt_mark(tag, a);
    }
    return 0;
}

static uint64_t record_text(enum op op, const char *text)
{
    return record(op, TAG(0, 0),
                  &(struct gt_attr){.name = text, .scope = GT_SCOPE_USER, .stack = GT_STACK_RANGE});
}

static __attribute__((noinline)) uint64_t record_wide_attr(enum op op, gt_tag tag,
                                                           struct gt_attr *a, const wchar_t *text)
{
    char utf8[TEXT_BYTES];

    a->name = gt_nvtx_utf8(utf8, sizeof(utf8), text);
    return record(op, tag, a);
}

static uint64_t record_wide(enum op op, const wchar_t *text)
{
    return record_wide_attr(
        op, TAG(0, 0), &(struct gt_attr){.scope = GT_SCOPE_USER, .stack = GT_STACK_RANGE}, text);
}

static void payload(struct gt_attr *out, const struct gt_nvtx_attr *a)
{
    out->has_value = 1;
    switch (a->payload_type) {
    case GT_NVTX_PAYLOAD_U64:
        out->value = (double)a->payload.u64;
        break;
    case GT_NVTX_PAYLOAD_I64:
        out->value = (double)a->payload.i64;
        break;
    case GT_NVTX_PAYLOAD_DOUBLE:
        out->value = a->payload.f64;
        break;
    case GT_NVTX_PAYLOAD_U32:
        out->value = a->payload.u32;
        break;
    case GT_NVTX_PAYLOAD_I32:
        out->value = a->payload.i32;
        break;
    case GT_NVTX_PAYLOAD_FLOAT:
        out->value = a->payload.f32;
        break;
    default:
        out->has_value = 0;
    }
}

/* Any attributes, field by field as far as the struct goes. */
static __attribute__((noinline)) uint64_t record_attr(enum op op, uint32_t domain_id,
                                                      const struct gt_nvtx_attr *a)
{
    struct gt_attr out = {.scope = GT_SCOPE_USER, .stack = GT_STACK_RANGE};
    uint32_t category = 0;

    if (a) {
        if (GT_NVTX_HAS(a, category))
            category = a->category;
        if (GT_NVTX_HAS(a, payload))
            payload(&out, a);
        if (GT_NVTX_HAS(a, text)) {
            if (a->text_type == GT_NVTX_TEXT_ASCII)
                out.name = a->text.ascii;
            else if (a->text_type == GT_NVTX_TEXT_WIDE)
                return record_wide_attr(op, TAG(domain_id, category), &out, a->text.wide);
            else if (a->text_type == GT_NVTX_TEXT_REGISTERED)
                out.name = string_of(a->text.registered);
        }
    }
    return record(op, TAG(domain_id, category), &out);
}

/* Apart from its caller, whose stack may be a fibre's of a few kilobytes. */
static __attribute__((noinline)) int push_operator(gt_tag tag, const char *text,
                                                   const struct gt_nvtx_op *op)
{
    char key[KEY_BYTES], shapes[SHAPES_BYTES];
    struct gt_attr a = {
        .name = key, .scope = GT_SCOPE_FUNCTION, .stack = GT_STACK_RANGE}; /* not the user's mark */

    memcpy(key, text, op->key_len);
    key[op->key_len] = 0;
    if (op->shapes && op->shapes_len < sizeof(shapes)) {
        memcpy(shapes, op->shapes, op->shapes_len);
        shapes[op->shapes_len] = 0;
        a.shapes = shapes;
    }
    return gt_push_attr(tag, &a);
}

/* A name that was not the last one here: PyTorch's text differs in every call and must not become a
 * key as it is. */
__attribute__((noinline)) int gt_nvtx_push_new(gt_tag tag, const char *text)
{
    struct gt_nvtx_op op;

    if (!text || gt_nvtx_parse(text, &op) < 0 || op.key_len >= KEY_BYTES)
        return gt_push_name(tag, text);
    /* of an operator that torch_op.c sees too, and opened a moment ago */
    if (gt_torch_live() && gt_op_open())
        return gt_push_duplicate(tag);
    return push_operator(tag, text, &op);
}

static inline int push_attr(uint32_t domain_id, const struct gt_nvtx_attr *a)
{
    if (likely(a && GT_NVTX_HAS(a, text) && a->payload_type == GT_NVTX_PAYLOAD_NONE)) {
        if (a->text_type == GT_NVTX_TEXT_ASCII)
            return gt_hot_push(TAG(domain_id, a->category), a->text.ascii, gt_nvtx_push_new);
        if (a->text_type == GT_NVTX_TEXT_REGISTERED && a->text.registered)
            return gt_push(TAG(domain_id, a->category), string_of(a->text.registered));
    }
    return (int)record_attr(OP_PUSH, domain_id, a);
}

static int on_nvtxRangePushA(const char *text)
{
    return gt_hot_push(TAG(0, 0), text, gt_nvtx_push_new);
}
static int on_nvtxRangePushW(const wchar_t *text)
{
    return (int)record_wide(OP_PUSH, text);
}
static int on_nvtxRangePushEx(const struct gt_nvtx_attr *a)
{
    return push_attr(0, a);
}
static int on_nvtxDomainRangePushEx(void *domain, const struct gt_nvtx_attr *a)
{
    return push_attr(domain_of(domain), a);
}
static int on_nvtxRangePop(void)
{
    return gt_hot_pop(GROUP(0));
}
static int on_nvtxDomainRangePop(void *domain)
{
    return gt_hot_pop(GROUP(domain_of(domain)));
}

static uint64_t on_nvtxRangeStartA(const char *text)
{
    return record_text(OP_START, text);
}
static uint64_t on_nvtxRangeStartW(const wchar_t *text)
{
    return record_wide(OP_START, text);
}
static uint64_t on_nvtxRangeStartEx(const struct gt_nvtx_attr *a)
{
    return record_attr(OP_START, 0, a);
}
static uint64_t on_nvtxDomainRangeStartEx(void *domain, const struct gt_nvtx_attr *a)
{
    return record_attr(OP_START, domain_of(domain), a);
}
/* 0 is what a start that could not be kept has got: counted there, not again as unbalanced. */
static void on_nvtxRangeEnd(uint64_t id)
{
    if (id)
        gt_end(id);
}
/* The id alone finds the range: programs do end them by the other function or a wrong domain. */
static void on_nvtxDomainRangeEnd(void *domain, uint64_t id)
{
    (void)domain;
    on_nvtxRangeEnd(id);
}

static void on_nvtxMarkA(const char *text)
{
    record_text(OP_MARK, text);
}
static void on_nvtxMarkW(const wchar_t *text)
{
    record_wide(OP_MARK, text);
}
static void on_nvtxMarkEx(const struct gt_nvtx_attr *a)
{
    record_attr(OP_MARK, 0, a);
}
static void on_nvtxDomainMarkEx(void *domain, const struct gt_nvtx_attr *a)
{
    record_attr(OP_MARK, domain_of(domain), a);
}

/* ---- names ---- */

static void on_nvtxDomainNameCategoryA(void *domain, uint32_t category, const char *name)
{
    if (name)
        gt_name_category(GT_SOURCE_NVTX, domain_of(domain), category, name);
}
static void on_nvtxDomainNameCategoryW(void *domain, uint32_t category, const wchar_t *name)
{
    char utf8[TEXT_BYTES];

    on_nvtxDomainNameCategoryA(domain, category, gt_nvtx_utf8(utf8, sizeof(utf8), name));
}
static void on_nvtxNameCategoryA(uint32_t category, const char *name)
{
    on_nvtxDomainNameCategoryA(NULL, category, name);
}
static void on_nvtxNameCategoryW(uint32_t category, const wchar_t *name)
{
    on_nvtxDomainNameCategoryW(NULL, category, name);
}
static void on_nvtxNameOsThreadA(uint32_t tid, const char *name)
{
    if (name)
        gt_name_thread(GT_SOURCE_NVTX, tid, name);
}
static void on_nvtxNameOsThreadW(uint32_t tid, const wchar_t *name)
{
    char utf8[TEXT_BYTES];

    on_nvtxNameOsThreadA(tid, gt_nvtx_utf8(utf8, sizeof(utf8), name));
}

/* ---- domains, strings, resources ---- */

static void *on_nvtxDomainCreateA(const char *name)
{
    return &domain_ids[gt_domain(name) % sizeof(domain_ids)];
}
static void *on_nvtxDomainCreateW(const wchar_t *name)
{
    char utf8[TEXT_BYTES];

    return on_nvtxDomainCreateA(gt_nvtx_utf8(utf8, sizeof(utf8), name));
}
static void on_nvtxDomainDestroy(void *domain)
{
    (void)domain; /* its ranges stay in the report, and other threads may still be popping them */
}
/* A string belongs to its text, not to its domain: one that is used in another domain still reads
 * right. */
static void *on_nvtxDomainRegisterStringA(void *domain, const char *text)
{
    (void)domain;
    return string_handle(text);
}
static void *on_nvtxDomainRegisterStringW(void *domain, const wchar_t *text)
{
    char utf8[TEXT_BYTES];

    return on_nvtxDomainRegisterStringA(domain, gt_nvtx_utf8(utf8, sizeof(utf8), text));
}
/* Resources are not reported; some programs take NULL for a failure. */
static void *on_nvtxDomainResourceCreate(void *domain, void *attributes)
{
    static char resource;

    (void)domain;
    (void)attributes;
    return &resource;
}
static void on_nvtxDomainResourceDestroy(void *resource)
{
    (void)resource;
}
static void on_nvtxInitialize(const void *reserved)
{
    (void)reserved;
}

/* ---- the ways in ---- */

/* v2: while the source is off, whatever NVTX the program was linked with must work as without us
 * (another tool may listen there). */
#define EXPORT(name)
#define HOOK(name, module, id, result, parameters, arguments, nobody)                              \
    GT_EXPORT result name parameters;                                                              \
    GT_EXPORT result name parameters                                                               \
    {                                                                                              \
        result(*next) parameters;                                                                  \
        if (likely(gt_source_on(GT_SOURCE_NVTX)))                                                  \
            return on_##name arguments;                                                            \
        next = (result(*) parameters)dlsym(RTLD_NEXT, #name);                                      \
        if (next)                                                                                  \
            return next arguments;                                                                 \
        return nobody;                                                                             \
    }
#include "hooks/nvtx.def"
#undef HOOK

#define HOOK(name, ...) {#name, (void (*)(void))on_##name, NULL},
static const struct gt_hook by_name[] = {
#include "hooks/nvtx.def"
};
#undef HOOK

#define HOOK(name, module, id, ...) {GT_NVTX_##module, id},
static const struct {
    uint8_t module, id;
} callbacks[] = {
#include "hooks/nvtx.def"
};
#undef HOOK
#undef EXPORT

#define CALLBACKS (sizeof(by_name) / sizeof(*by_name))

const struct gt_hooks gt_nvtx_hooks = {
    .prefix = "nvtx",
    .prefix_len = 4,
    .hooks = by_name,
    .count = CALLBACKS,
    .source = GT_SOURCE_NVTX,
    .variable = "NVTX_INJECTION64_PATH",
};

/* v3. Returns 1 if we listen, 0 if this copy of NVTX shall do nothing. */
GT_EXPORT int InitializeInjectionNvtx2(gt_nvtx_get_table *get_table);
GT_EXPORT int InitializeInjectionNvtx2(gt_nvtx_get_table *get_table)
{
    const struct gt_nvtx_callbacks *tables;
    const struct gt_nvtx_version *version;
    static const uint8_t modules[] = {GT_NVTX_CORE, GT_NVTX_CORE2};

    if (!get_table || !gt_source_on(GT_SOURCE_NVTX))
        return 0;
    version = get_table(GT_NVTX_TABLE_VERSION);
    if (version && version->size_bytes >= sizeof(*version) && version->set_tool_version)
        version->set_tool_version(GT_NVTX_TOOL_VERSION);
    tables = get_table(GT_NVTX_TABLE_CALLBACKS);
    if (!tables || tables->size_bytes < sizeof(*tables) || !tables->get_module)
        return 0;
    for (size_t m = 0; m < sizeof(modules); m++) {
        gt_nvtx_fn ***entries = NULL;
        unsigned slots = 0;

        if (!tables->get_module(modules[m], &entries, &slots) || !entries)
            continue;
        for (size_t i = 0; i < CALLBACKS; i++)
            if (callbacks[i].module == modules[m] && callbacks[i].id < slots &&
                entries[callbacks[i].id])
                *entries[callbacks[i].id] = by_name[i].fn;
    }
    return 1;
}
