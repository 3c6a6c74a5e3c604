/* Reads the sizes of an operator's inputs. PyTorch's own function for that, inputSizes, costs an
 * allocation for each tensor, and for tensors that tell their sizes by a function (subclasses in
 * Python, symbolic shapes while torch.compile traces) it runs that function or throws. So the
 * tensors are read where they lie, as soon as that has proved right:
 *
 * - A tensor's fields: PyTorch has one tensor that is always there and always the same, the
 *   undefined one, with sizes [0], strides [1] and policy 1. Where these are found, they lie in
 * all.
 * - The inputs of an operator: the first operators are read with a system call that fails instead
 *   of crashing, and compared with what inputSizes says.
 *
 * Where it proves wrong, inputSizes is used for good. */
#include "torch_inputs.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include "core/sys.h"
#include "dl.h"
#include "elf_symbol.h"
#include "torch.h"

#define C10 "libc10.so"

/* How far into a RecordFunction its list of inputs is looked for: 208 in 1.13 and 2.13. */
#define LIST_FIRST 64u
#define LIST_LIMIT 512u
/* Operators that must agree, each with a size that is not 0 or 1. */
#define PROOFS 8u
/* Operators that may pass before: each costs some hundred system calls. */
#define TRIES 1000u
/* What is compared; longer ones prove nothing. */
#define TRIED_INPUTS 16u

/* Written before the first callback, constant since. NULL: not in this version. */
static const char *undefined; /* the undefined tensor */
static const void *plain_vtable;

enum { TRYING, PROVED, REFUSED };
static _Atomic int state;
static _Atomic unsigned sizes_at, list_at; /* 0: not known yet */
static _Atomic unsigned proofs, tries;

/* How C++ gives memory back. Where nobody has replaced it that is free, and libstdc++'s own need
 * not be in the global scope. */
static void (*release)(void *) = free;

void gt_torch_inputs_init(void)
{
    struct gt_elf c10;
    const char *vtable = NULL;
    void *replaced = gt_dl_global("_ZdlPv");

    if (replaced)
        memcpy(&release, &replaced, sizeof(release));

    undefined = NULL;
    if (gt_elf_find(C10, &c10, NULL, NULL) == 0) {
        undefined = gt_elf_symbol(&c10, "_ZN3c1019UndefinedTensorImpl10_singletonE");
        vtable = gt_elf_symbol(&c10, "_ZTVN3c1010TensorImplE");
    }
    plain_vtable = vtable ? vtable + 2 * sizeof(void *) : NULL; /* behind offset and type */
    atomic_store(&sizes_at, 0);
    atomic_store(&list_at, 0);
    atomic_store(&proofs, 0);
    atomic_store(&tries, 0);
    atomic_store(&state, undefined && vtable ? TRYING : REFUSED);
}

/* ---- where sizes lie in a tensor ---- */

static const struct gt_torch_impl *impl_of(const char *tensor)
{
    return (const struct gt_torch_impl *)(tensor +
                                          atomic_load_explicit(&sizes_at, memory_order_relaxed));
}

/* Not before the first operator runs: we may have come before libc10.so's constructors. */
static int find_sizes(void)
{
    for (unsigned at = 0x30; at <= 0x60; at += 8) {
        const struct gt_torch_impl *t = (const struct gt_torch_impl *)(undefined + at);

        if (t->dims == 1 && t->sizes.near[0] == 0 && t->strides[0] == 1 &&
            GT_TORCH_POLICY(t) == 1 && !GT_TORCH_IS_SYMBOLIC(t)) {
            atomic_store_explicit(&sizes_at, at, memory_order_relaxed);
            return 0;
        }
    }
    return -ENOENT;
}

/* ---- reading in place ---- */

/* Sizes of one tensor. */
static inline struct gt_torch_view view_of(const char *tensor, int *plain)
{
    const struct gt_torch_impl *t = impl_of(tensor);

    if (tensor == undefined)
        return (struct gt_torch_view){NULL, 0};
    if (__builtin_expect(GT_TORCH_POLICY(t) > 1, 0)) {
        *plain = 0;
        /* A subclass in Python has its sizes here too; another kind of tensor (nested) may not. */
        if (GT_TORCH_IS_SYMBOLIC(t) || *(const void *const *)(const void *)tensor != plain_vtable)
            return (struct gt_torch_view){NULL, 0};
    }
    return (struct gt_torch_view){t->dims > GT_TORCH_INLINE_DIMS ? t->sizes.far : t->sizes.near,
                                  t->dims};
}

struct list {
    const struct gt_torch_value *values;
    size_t count;
};

static int read_in_place(const struct gt_torch_rf *rf, size_t at, struct gt_torch_inputs *in)
{
    const struct list *list = (const void *)((const char *)rf + at);

    if (list->count > GT_TORCH_INPUTS)
        return -1;
    in->count = list->count;
    for (size_t i = 0; i < list->count; i++) {
        const struct gt_torch_value *v = &list->values[i];

        in->views[i] = v->tag == GT_TORCH_TAG_TENSOR ? view_of(v->payload, &in->plain)
                                                     : (struct gt_torch_view){NULL, 0};
    }
    return 0;
}

/* ---- by PyTorch's own function ---- */

/* The sizes of a tensor without any; inputSizes says the same of what is no tensor. */
static const int64_t no_dims[1];

static int ask(const struct gt_torch_rf *rf, struct gt_torch_inputs *in)
{
    in->owner = gt_torch_calls.input_sizes(rf, 0);
    in->count = (size_t)(in->owner.end - in->owner.begin);
    if (in->count > GT_TORCH_INPUTS)
        return -1;
    for (size_t i = 0; i < in->count; i++) {
        const struct gt_torch_dims *d = &in->owner.begin[i];

        in->views[i] =
            (struct gt_torch_view){d->begin ? d->begin : no_dims, (size_t)(d->end - d->begin)};
    }
    return 0;
}

/* ---- proof ---- */

struct tried {
    struct list list;
    struct gt_torch_value values[TRIED_INPUTS];
    struct gt_torch_impl impls[TRIED_INPUTS];
    int custom; /* one of them must not be asked */
};

/* The list that would lie `at` bytes into the operator: 0 if all of it can be read and looks like
 * one. */
static int try_list(const struct gt_torch_rf *rf, size_t at, struct tried *t)
{
    t->custom = 0;
    if (gt_sys_copy(&t->list, (const char *)rf + at, sizeof(t->list)) < 0 || !t->list.count ||
        t->list.count > TRIED_INPUTS ||
        gt_sys_copy(t->values, t->list.values, t->list.count * sizeof(*t->values)) < 0)
        return -EFAULT;
    for (size_t i = 0; i < t->list.count; i++) {
        if (t->values[i].tag > 255)
            return -EFAULT;
        if (t->values[i].tag != GT_TORCH_TAG_TENSOR)
            continue;
        if (gt_sys_copy(&t->impls[i], impl_of(t->values[i].payload), sizeof(*t->impls)) < 0)
            return -EFAULT;
        t->custom |= GT_TORCH_POLICY(&t->impls[i]) > 1;
    }
    return 0;
}

/* How many sizes are equal that say something; -1 if one differs. */
static int compare(const struct tried *t, const struct gt_torch_inputs *in)
{
    int equal = 0;

    if (t->list.count != in->count)
        return -1;
    for (size_t i = 0; i < in->count; i++) {
        const struct gt_torch_impl *impl = &t->impls[i];
        size_t dims = t->values[i].tag == GT_TORCH_TAG_TENSOR && t->values[i].payload != undefined
                          ? impl->dims
                          : 0;

        if (dims != in->views[i].count)
            return -1;
        for (size_t d = 0; d < dims && dims <= GT_TORCH_INLINE_DIMS; d++) {
            if (impl->sizes.near[d] != in->views[i].dims[d])
                return -1;
            equal += impl->sizes.near[d] > 1;
        }
    }
    return equal;
}

/* Where a list lies that has a tensor that must not be asked; 0: there is none. */
static size_t must_not_ask(const struct gt_torch_rf *rf, size_t from, size_t limit)
{
    struct tried t;

    for (size_t at = from; at < limit; at += 8)
        if (try_list(rf, at, &t) == 0 && t.custom)
            return at;
    return 0;
}

/* One of the first operators. With a tensor that must not be asked it proves nothing, but has been
 * found to be readable. */
static __attribute__((noinline, cold)) int prove(const struct gt_torch_rf *rf,
                                                 struct gt_torch_inputs *in)
{
    size_t known = atomic_load_explicit(&list_at, memory_order_relaxed);
    size_t from = known ? known : LIST_FIRST, limit = known ? known + 1 : LIST_LIMIT, custom;
    struct tried t;

    if ((!atomic_load_explicit(&sizes_at, memory_order_relaxed) && find_sizes() < 0) ||
        gt_sys_copy(&t.list, rf, sizeof(t.list)) < 0 || /* the system call may be forbidden */
        atomic_fetch_add(&tries, 1) >= TRIES) {
        atomic_store_explicit(&state, REFUSED, memory_order_relaxed);
        return ask(rf, in);
    }
    custom = must_not_ask(rf, from, limit);
    if (custom)
        return read_in_place(rf, custom, in);
    if (ask(rf, in) < 0)
        return -1;
    for (size_t at = from; at < limit; at += 8) {
        int equal = try_list(rf, at, &t) < 0 ? 0 : compare(&t, in);
        unsigned none = 0;

        if (equal < 0 && known)
            atomic_store_explicit(&state, REFUSED, memory_order_relaxed);
        if (equal <= 0)
            continue;
        for (size_t i = 0; i < in->count; i++)
            if (t.values[i].tag != GT_TORCH_TAG_TENSOR || t.values[i].payload == undefined)
                in->views[i].dims = NULL;
        atomic_compare_exchange_strong(&list_at, &none, (unsigned)at);
        if (atomic_fetch_add(&proofs, 1) + 1 == PROOFS)
            atomic_store_explicit(&state, PROVED, memory_order_release);
        break;
    }
    return 0;
}

/* ---- the way in ---- */

int gt_torch_inputs_read(const struct gt_torch_rf *rf, struct gt_torch_inputs *in)
{
    in->owner = (struct gt_torch_sizes){NULL, NULL, NULL};
    in->plain = 1;
    in->count = 0;
    switch (atomic_load_explicit(&state, memory_order_acquire)) {
    case PROVED:
        return read_in_place(rf, atomic_load_explicit(&list_at, memory_order_relaxed), in);
    case TRYING:
        return prove(rf, in);
    }
    return ask(rf, in);
}

void gt_torch_inputs_free(struct gt_torch_inputs *in)
{
    for (struct gt_torch_dims *d = in->owner.begin; d < in->owner.end; d++)
        release(d->begin);
    release(in->owner.begin);
}
