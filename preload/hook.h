/* Hook tables: which names dlsym answers with functions of ours. One table a source, made from its
 * hooks/NAME.def, walked by dl.c on the thread that called dlsym.
 *
 * A .def file holds one line for each function that leaves the library:
 *   HOOK(name, …)  exported, and what a program's dlsym(handle, "name") gets
 *   EXPORT(name)   exported only
 *   WIDE(name, …)  a HOOK whose parameters are not known exactly (cudart.def)
 *   OWN(name, …)   not exported: what dlsym gets who asks our own library for it, as one that was
 *                  told to load us as its tool. Exported it would come before the same name of
 *                  another tool in the process.
 * and may hold lines of another kind for functions that a program reaches by a table of the API.
 * The linker's version script is made from HOOK, WIDE and EXPORT; what stands behind the name
 * belongs to the source that includes the file. All lines but EXPORT are sorted by name (C locale):
 * dlsym searches by halves. */
#ifndef GT_HOOK_H
#define GT_HOOK_H

#include <stddef.h>
#include <stdint.h>

#define GT_EXPORT __attribute__((visibility("default")))

struct gt_hook {
    const char *name;
    void (*fn)(void);
    /* NULL, or where the function that `fn` stands in front of goes when it becomes known */
    _Atomic(void *) *behind;
};

struct gt_hooks {
    const char *prefix; /* every name begins with it: one look turns all other names away */
    size_t prefix_len;
    const struct gt_hook *hooks;
    size_t count;
    int own;         /* 1: OWN lines, 0: HOOK lines */
    uint32_t source; /* answered only while gt_source_on(source) */
    /* where its user looks for the path of a tool, or NULL: getenv gives ours if it is not set, and
     * if `asked`, where there is one, says 1; `name` is what getenv was called with */
    const char *variable;
    int (*asked)(const char *name);
    /* For a library that may be closed and come again at another address; hooks' `behind` is NULL
     * then. dlsym was about to answer with `theirs` for hook number i: it goes to the wrapper. */
    void (*learn)(size_t i, void *theirs);
    /* with `learn`: 1 if this caller of dlsym gets what the library has */
    int (*inside)(const void *caller);
    /* with `learn`: what the functions are looked for in; no name of it is found while none of them
     * is loaded, though we export it */
    const char *const *libraries;
};

extern const struct gt_hooks gt_cupti_hooks;
extern const struct gt_hooks gt_cublas_hooks, gt_cublaslt_hooks;
extern const struct gt_hooks gt_cuda_hooks, gt_cudart_hooks, gt_cudart_compiled_hooks;
extern const struct gt_hooks gt_itt_hooks;
extern const struct gt_hooks gt_kokkos_hooks, gt_kokkos_old_hooks;
extern const struct gt_hooks gt_nvtx_hooks;
extern const struct gt_hooks gt_onednn_hooks;
extern const struct gt_hooks gt_roctx_hooks;

#endif
