/* Wrappers of getenv, secure_getenv, dlsym, dlopen and dlclose. Called by everybody, on any thread,
 * from the first instructions of the process (the allocator's own start, other libraries'
 * constructors) on: nothing here may call malloc, take a lock, or wait.
 *
 * getenv names us to those who look for their tool in a variable (NVTX, ITT, Kokkos): so nothing
 * need be in the environment, and children see none. dlsym gives programs that open a vendor's
 * library themselves our functions. dlopen takes RTLD_DEEPBIND away, which would bind a plugin past
 * us. dlclose calls the real one, for something is to be done after it.
 *
 * dlsym and dlopen must leave by a jump, not a call: the real ones look at their return address for
 * RTLD_NEXT, RTLD_DEFAULT and the caller's RUNPATH. The Makefile builds this file with -O2 always.
 */
#include "dl.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>
#include "core/compat.h"
#include "core/record.h"
#include "core/stacks.h"
#include "hook.h"
#include "python.h"
#include "torch.h"

typedef void *dlsym_fn(void *, const char *);
typedef void *dlopen_fn(const char *, int);
typedef int dlclose_fn(void *);
typedef char *getenv_fn(const char *);

/* Each is written with the one value it can have; relaxed is enough, the code behind it is mapped
 * before the address can be known. */
static _Atomic(dlsym_fn *) real_dlsym;
static _Atomic(dlopen_fn *) real_dlopen;
static _Atomic(dlclose_fn *) real_dlclose;
static _Atomic(getenv_fn *) real_getenv, real_secure_getenv;

/* ---- the real functions ---- */

/* dlsym can't look for itself. The first version that exists since the beginning of the platform is
 * in libdl before glibc 2.34 and in libc since; asked first, so that no look-up fails: a failing
 * one allocates its message, and a preloaded allocator may be waiting for this very look-up. */
static __attribute__((noinline, cold)) void *find(const char *name)
{
#if defined(__x86_64__)
    static const char *const versions[] = {"GLIBC_2.2.5", "GLIBC_2.34"};
#else
    static const char *const versions[] = {"GLIBC_2.17", "GLIBC_2.34"};
#endif
    void *f = NULL;

    for (size_t i = 0; !f && i < sizeof(versions) / sizeof(*versions); i++)
        f = dlvsym(RTLD_NEXT, name, versions[i]);
    return f;
}

static __attribute__((noinline, cold)) dlsym_fn *find_dlsym(void)
{
    dlsym_fn *f = (dlsym_fn *)find("dlsym");

    atomic_store_explicit(&real_dlsym, f, memory_order_relaxed);
    return f;
}

static __attribute__((noinline, cold)) dlopen_fn *find_dlopen(void)
{
    dlopen_fn *f = (dlopen_fn *)find("dlopen");

    atomic_store_explicit(&real_dlopen, f, memory_order_relaxed);
    return f;
}

static __attribute__((noinline, cold)) dlclose_fn *find_dlclose(void)
{
    dlclose_fn *f = (dlclose_fn *)find("dlclose");

    atomic_store_explicit(&real_dlclose, f, memory_order_relaxed);
    return f;
}

/* ---- our own path ---- */

/* Two threads may look at once before the constructor: each fills a buffer of its own, and the
 * first to publish wins. Nobody waits, so a signal handler may come between. */
#define TRIES 4u
static char paths[TRIES][PATH_MAX];
static atomic_uint tries;
static _Atomic(const char *)
    self; /* release after the text is written, acquire before it is read */
/* what dlopen(self) returns; written before `self`, with the one value it can have */
static _Atomic(void *) self_handle;

static int absolute(char *out, const char *name)
{
    size_t dir = 0, len = strlen(name);

    if (*name != '/') {
        if (!getcwd(out, PATH_MAX - 1) || *out != '/')
            return -errno;
        dir = strlen(out);
        if (out[dir - 1] != '/')
            out[dir++] = '/';
    }
    if (dir + len >= PATH_MAX)
        return -ENAMETOOLONG;
    memcpy(out + dir, name, len + 1);
    return 0;
}

static __attribute__((noinline, cold)) const char *find_self(void)
{
    unsigned try = atomic_fetch_add_explicit(&tries, 1, memory_order_relaxed);
    const char *none = NULL;
    int saved = errno;
    void *handle = NULL;
    Dl_info me;

    if (try >= TRIES) {
        atomic_store_explicit(&tries, TRIES, memory_order_relaxed);
    } else if (dladdr1(paths, &me, &handle, RTLD_DL_LINKMAP) && me.dli_fname && *me.dli_fname &&
               absolute(paths[try], me.dli_fname) == 0) {
        atomic_store_explicit(&self_handle, handle, memory_order_relaxed);
        atomic_compare_exchange_strong_explicit(&self, &none, paths[try], memory_order_release,
                                                memory_order_relaxed);
    }
    errno = saved;
    return atomic_load_explicit(&self, memory_order_acquire);
}

const char *gt_dl_self(void)
{
    const char *s = atomic_load_explicit(&self, memory_order_acquire);

    return s ? s : find_self();
}

void gt_dl_init(void)
{
    dlsym_fn *sym = atomic_load_explicit(&real_dlsym, memory_order_relaxed);

    gt_dl_self();
    if (!sym)
        sym = find_dlsym();
    if (!atomic_load_explicit(&real_dlopen, memory_order_relaxed))
        find_dlopen();
    if (!atomic_load_explicit(&real_dlclose, memory_order_relaxed))
        find_dlclose();
    if (!sym || atomic_load_explicit(&real_getenv, memory_order_relaxed))
        return;
    atomic_store_explicit(&real_secure_getenv, (getenv_fn *)sym(RTLD_NEXT, "secure_getenv"),
                          memory_order_relaxed);
    atomic_store_explicit(&real_getenv, (getenv_fn *)sym(RTLD_NEXT, "getenv"),
                          memory_order_relaxed);
}

/* dlsym takes the loader's lock. */
void *gt_dl_global(const char *name)
{
    dlsym_fn *real = atomic_load_explicit(&real_dlsym, memory_order_relaxed);

    return real ? real(RTLD_DEFAULT, name) : NULL;
}

/* ---- the sources ---- */

static const struct gt_hooks *const tables[] = {
    &gt_cublas_hooks,     &gt_cublaslt_hooks, &gt_cuda_hooks,   &gt_cudart_compiled_hooks,
    &gt_cudart_hooks,     &gt_cupti_hooks,    &gt_itt_hooks,    &gt_kokkos_hooks,
    &gt_kokkos_old_hooks, &gt_nvtx_hooks,     &gt_onednn_hooks, &gt_roctx_hooks};
#define TABLES (sizeof(tables) / sizeof(*tables))

/* ---- getenv ---- */

/* What libc does, for the time before gt_dl_init: looking up the real one here would call into the
 * loader from inside an allocator's start. */
static char *walk(const char *name)
{
    size_t n = strlen(name);

    for (char **e = environ; e && *e; e++)
        if (strncmp(*e, name, n) == 0 && (*e)[n] == '=')
            return *e + n + 1;
    return NULL;
}

const char *gt_dl_environment(const char *name)
{
    getenv_fn *real = atomic_load_explicit(&real_getenv, memory_order_relaxed);

    return real ? real(name) : walk(name);
}

/* What we say to a name that is not in the environment. Privileged programs get no answer. */
static char *answer(const char *name)
{
    for (size_t t = 0; t < TABLES; t++) {
        const struct gt_hooks *table = tables[t];

        if (!table->variable || *table->variable != *name || strcmp(name, table->variable) != 0)
            continue;
        if (!gt_source_on(table->source))
            continue; /* two sources may come by one variable */
        if (getauxval(AT_SECURE) || (table->asked && !table->asked(name)))
            return NULL;
        return (char *)gt_dl_self(); /* like getenv's: the caller must not write to it */
    }
    return NULL;
}

GT_EXPORT char *getenv(const char *name)
{
    const char *value = gt_dl_environment(name);

    return value ? (char *)value : answer(name);
}

GT_EXPORT char *secure_getenv(const char *name)
{
    getenv_fn *real = atomic_load_explicit(&real_secure_getenv, memory_order_relaxed);
    char *value = real ? real(name) : getauxval(AT_SECURE) ? NULL : walk(name);

    return value ? value : answer(name);
}

/* ---- dlsym, dlopen, dlclose ---- */

/* The first letters of all prefixes: one look turns most names away. */
#define LETTER(c) (1ull << ((c)&63))
#define HOOKED(name)                                                                               \
    (LETTER((name)[0]) & (LETTER('c') | LETTER('k') | LETTER('n') | LETTER('r') | LETTER('_')))

/* *in is the table, if the hook is found; whether its source is on is not looked at. */
static const struct gt_hook *find_hook(const char *name, int own, const struct gt_hooks **in)
{
    for (size_t t = 0; t < TABLES; t++) {
        const struct gt_hooks *table = tables[t];
        size_t low = 0, high = table->count;

        if (!table->count || table->own != own ||
            strncmp(name, table->prefix, table->prefix_len) != 0)
            continue;
        while (low < high) {
            size_t mid = (low + high) / 2;
            int order = strcmp(name, table->hooks[mid].name);

            if (order == 0) {
                *in = table;
                return &table->hooks[mid];
            }
            if (order < 0)
                high = mid;
            else
                low = mid + 1;
        }
    }
    return NULL;
}

/* The image that an address lies in. */
static void *image_of(const void *address)
{
    void *handle = NULL;
    Dl_info info;

    return dladdr1(address, &info, &handle, RTLD_DL_LINKMAP) ? handle : NULL;
}

int gt_dl_ours(const void *address)
{
    return image_of(address) == image_of(paths);
}

/* Opened once more, and never closed. */
static void keep_loaded(void *f)
{
    dlopen_fn *open = atomic_load_explicit(&real_dlopen, memory_order_relaxed);
    Dl_info info;

    if (open && dladdr(f, &info) && info.dli_fname && *info.dli_fname)
        open(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
}

/* A handle may lead to our own function, which is not behind itself. */
static void remember(const struct gt_hook *hook, void *theirs)
{
    void *none = NULL;

    if (atomic_load_explicit(hook->behind, memory_order_relaxed) ||
        image_of(theirs) == image_of(paths))
        return;
    keep_loaded(theirs);
    atomic_compare_exchange_strong_explicit(hook->behind, &none, theirs, memory_order_release,
                                            memory_order_relaxed);
}

void *gt_dl_open(const char *name, int mode)
{
    dlopen_fn *open = atomic_load_explicit(&real_dlopen, memory_order_relaxed);

    return open || (open = find_dlopen()) ? open(name, mode) : NULL;
}

void *gt_dl_in(void *handle, const char *name)
{
    dlsym_fn *sym = atomic_load_explicit(&real_dlsym, memory_order_relaxed);

    return sym || (sym = find_dlsym()) ? sym(handle, name) : NULL;
}

void *gt_dl_handle_of(const void *address)
{
    return image_of(address);
}

void *gt_dl_find(const char *name, const char *const *libraries)
{
    dlsym_fn *sym = atomic_load_explicit(&real_dlsym, memory_order_relaxed);
    dlopen_fn *open = atomic_load_explicit(&real_dlopen, memory_order_relaxed);
    dlclose_fn *close = atomic_load_explicit(&real_dlclose, memory_order_relaxed);
    int saved = errno;
    void *f;

    if ((!sym && !(sym = find_dlsym())) || (!open && !(open = find_dlopen())) ||
        (!close && !(close = find_dlclose())))
        return NULL;
    f = sym(RTLD_NEXT, name);
    for (; !f && *libraries; libraries++) {
        void *library = open(*libraries, RTLD_LAZY | RTLD_NOLOAD);

        if (!library)
            continue;
        f = sym(library, name);
        close(library); /* the program has it open too, or had when we opened it */
    }
    errno = saved;
    return f;
}

void *gt_dl_behind(const char *name, const char *const *libraries)
{
    int saved = errno;
    void *f = gt_dl_find(name, libraries);

    if (f)
        keep_loaded(f);
    errno = saved;
    return f;
}

/* The program asks for a function that we export: is there none but ours? Then it must not find it
 * either, as it would not without us. */
static int nothing_behind(void *found, const char *name, const struct gt_hooks *table)
{
    return table->libraries && gt_dl_ours(found) && !gt_dl_find(name, table->libraries);
}

/* What dlsym answers then: NULL, and an error for dlerror. A call, not a jump: the search begins
 * behind us. */
static __attribute__((noinline)) void *no_such(dlsym_fn *real, const char *name)
{
    void *none = real(RTLD_NEXT, name);

    __asm__ volatile("" : "+r"(none));
    return none;
}

/* Ours only where the library really has the function: a program that tests for it must read the
 * same as without us. With a real handle the return address does not matter. Our own handle has who
 * loads us as its tool: what is meant for it is not exported, and no error may be left behind. */
static __attribute__((noinline)) void *replace(dlsym_fn *real, void *handle, const char *name,
                                               const void *caller)
{
    const struct gt_hooks *table;
    const struct gt_hook *hook = find_hook(name, 1, &table);
    void *theirs;

    if (hook && gt_source_on(table->source) && gt_dl_self() &&
        handle == atomic_load_explicit(&self_handle, memory_order_relaxed))
        return (void *)hook->fn;
    theirs = real(handle, name);
    hook = theirs ? find_hook(name, 0, &table) : NULL;
    if (!hook)
        return theirs;
    if (nothing_behind(theirs, name, table))
        return no_such(real, name);
    if (!gt_source_on(table->source) || (table->inside && table->inside(caller)))
        return theirs;
    if (table->learn)
        table->learn((size_t)(hook - table->hooks), theirs);
    else if (hook->behind)
        remember(hook, theirs);
    return (void *)hook->fn;
}

/* 1 if a search through the global scope would find a function of ours that stands for nothing. */
static __attribute__((noinline)) int hollow(dlsym_fn *real, const char *name)
{
    const struct gt_hooks *table;
    const struct gt_hook *hook = find_hook(name, 0, &table);

    return hook && table->libraries && nothing_behind(real(RTLD_DEFAULT, name), name, table);
}

/* RTLD_NEXT and RTLD_DEFAULT are searches through the global scope, where we stand as a preloaded
 * library anyway, behind a definition of the program's own: the real dlsym answers those right. */
GT_EXPORT void *dlsym(void *restrict handle, const char *restrict name)
{
    dlsym_fn *real = atomic_load_explicit(&real_dlsym, memory_order_relaxed);

    if (unlikely(!real) && !(real = find_dlsym()))
        return NULL;
    if (atomic_load_explicit(&gt_torch_opened, memory_order_relaxed)) {
        gt_torch_look();
        gt_python_look();
    }
    if (unlikely(atomic_load_explicit(&gt_unwind_wanted, memory_order_relaxed)))
        gt_stacks_load();
    if (HOOKED(name)) {
        if (handle != RTLD_DEFAULT && handle != RTLD_NEXT)
            return replace(real, handle, name, __builtin_return_address(0));
        if (handle == RTLD_DEFAULT && hollow(real, name))
            return no_such(real, name);
    }
    return real(handle, name);
}

GT_EXPORT void *dlopen(const char *file, int mode)
{
    dlopen_fn *real = atomic_load_explicit(&real_dlopen, memory_order_relaxed);

    if (unlikely(!real) && !(real = find_dlopen()))
        return NULL;
    if (unlikely(mode & RTLD_DEEPBIND) &&
        (gt_source_on(GT_SOURCE_CUDA) || gt_source_on(GT_SOURCE_NVTX) ||
         gt_source_on(GT_SOURCE_ROCTX)))
        mode &= ~RTLD_DEEPBIND;
    atomic_fetch_add_explicit(&gt_torch_opened, 1, memory_order_relaxed);
    if (unlikely(atomic_load_explicit(&gt_unwind_wanted, memory_order_relaxed)))
        gt_stacks_load();
    return real(file, mode);
}

/* A stack must not be taken for one of what lay at its addresses before. */
GT_EXPORT int dlclose(void *handle)
{
    dlclose_fn *real = atomic_load_explicit(&real_dlclose, memory_order_relaxed);
    int result;

    if (unlikely(!real) && !(real = find_dlclose()))
        return -1;
    gt_stacks_unloading();
    result = real(handle);
    gt_stacks_unloaded();
    gt_python_look();
    return result;
}
