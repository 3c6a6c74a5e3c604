/* cuGetProcAddress and its like: the driver hands out functions by name, CUDA version and kind of
 * default stream, and programs (the runtime first of all) use only those. What comes out is
 * replaced by our function of the same name. Runs on the program's threads, mostly while CUDA
 * starts. */
#include "cuda.h"

#include <dlfcn.h>
#include <link.h>
#include <string.h>
#include "core/compat.h"
#include "core/record.h"
#include "dl.h"
#include "elf_symbol.h"

#define PER_THREAD 2u   /* CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM */
#define NEWEST 13000u   /* of the headers that cuda.def was compared with */
#define NAME_BYTES 128u /* the longest name has some 50 */

/* ---- who asks ---- */

struct place {
    uintptr_t address;
    int inside;
};

static int look_at(struct dl_phdr_info *info, size_t size, void *arg)
{
    static const char *const names[] = {"libcuda.so", "libcupti.so"};
    struct place *place = arg;
    const char *file = strrchr(info->dlpi_name, '/');

    (void)size;
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];

        if (p->p_type != PT_LOAD || place->address - (info->dlpi_addr + p->p_vaddr) >= p->p_memsz)
            continue;
        file = file ? file + 1 : info->dlpi_name;
        for (size_t n = 0; n < sizeof(names) / sizeof(*names); n++)
            place->inside |= strncmp(file, names[n], strlen(names[n])) == 0;
        return 1;
    }
    return 0;
}

/* Not dladdr: it searches the symbols of the caller's library, and of those there may be 10^5. */
int gt_cuda_inside(const void *caller)
{
    struct place place = {(uintptr_t)caller, 0};

    dl_iterate_phdr(look_at, &place);
    return place.inside;
}

/* ---- which function it is ---- */

static const struct gt_cuda_api *const api = &gt_cuda_driver;

/* Per-thread variants end so. */
static int per_thread(const char *name)
{
    size_t n = strlen(name);

    return n > 5 && (strcmp(name + n - 5, "_ptsz") == 0 || strcmp(name + n - 5, "_ptds") == 0);
}

/* First function whose name does not lie before `symbol`: all of its variants begin with it. */
static size_t first(const char *symbol)
{
    size_t low = 0, high = api->count;

    while (low < high) {
        size_t mid = (low + high) / 2;

        if (strcmp(api->hooks[mid].name, symbol) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static int is_variant(size_t i, const char *symbol)
{
    return strcmp(api->info[i].key, symbol) == 0;
}

/* What the driver's rule gives: the newest variant that is not newer than `version`, for per-thread
 * streams if that is asked for and there is one. `count` if there is none. */
static size_t by_rule(const char *symbol, size_t begin, size_t end, unsigned version,
                      uint64_t flags)
{
    size_t best = api->count;

    for (int thread = (flags & PER_THREAD) != 0; thread >= 0 && best == api->count; thread--)
        for (size_t i = begin; i < end; i++)
            if (is_variant(i, symbol) && per_thread(api->hooks[i].name) == thread &&
                api->info[i].since <= version &&
                (best == api->count || api->info[i].since > api->info[best].since))
                best = i;
    return best;
}

/* What the library that `address` lies in exports by that name. */
static void *beside(void *address, const char *name)
{
    struct link_map *map = NULL;
    Dl_info info;

    if (!dladdr1(address, &info, (void **)&map, RTLD_DL_LINKMAP) || !map)
        return NULL;
    return gt_elf_symbol(&(struct gt_elf){map->l_addr, map->l_ld}, name);
}

/* The driver that `theirs` lies in exports function number i at that address. */
static int is_export(size_t i, void *theirs)
{
    return beside(theirs, api->hooks[i].name) == theirs;
}

/* A driver that is newer than our table may have a variant that we do not know: then the rule can't
 * tell what the program got. Every variant is exported too. */
static int may_be_newer(const char *symbol, size_t begin, size_t end, void *theirs)
{
    char name[NAME_BYTES];
    size_t n = strlen(symbol);
    unsigned variant = 1;

    if (n + sizeof "_v99" > sizeof name)
        return 1;
    for (size_t i = begin; i < end; i++) {
        const char *rest = api->hooks[i].name + n;

        if (is_variant(i, symbol) && strncmp(rest, "_v", 2) == 0 &&
            (unsigned)(rest[2] - '0') > variant)
            variant = (unsigned)(rest[2] - '0');
    }
    memcpy(name, symbol, n);
    memcpy(name + n, "_v", 2);
    name[n + 2] = (char)('1' + variant);
    name[n + 3] = '\0';
    return beside(theirs, name) != NULL;
}

/* Number of the function that `theirs` is; `count` if it is none of ours. */
static size_t which(const char *symbol, void *theirs, unsigned version, uint64_t flags)
{
    size_t begin = first(symbol), end = begin, n = strlen(symbol), rule;

    while (end < api->count && strncmp(api->hooks[end].name, symbol, n) == 0)
        end++;
    rule = by_rule(symbol, begin, end, version ? version : UINT32_MAX, flags);
    if (rule < api->count && is_export(rule, theirs))
        return rule;
    for (size_t i = begin; i < end; i++)
        if ((is_variant(i, symbol) || strcmp(api->hooks[i].name, symbol) == 0) &&
            is_export(i, theirs))
            return i;
    /* not one of the exported functions themselves: another way into them */
    if (rule < api->count && version &&
        (version <= NEWEST || !may_be_newer(symbol, begin, end, theirs)))
        return rule;
    return api->count;
}

void gt_cuda_swap(const char *symbol, void **pfn, unsigned version, uint64_t flags,
                  const void *caller)
{
    size_t i;

    /* the runtime first asks for an empty name */
    if (!symbol || !*symbol || !pfn || !*pfn || !gt_source_on(GT_SOURCE_CUDA) || gt_dl_ours(*pfn) ||
        gt_cuda_inside(caller))
        return;
    i = which(symbol, *pfn, version, flags);
    if (i >= api->count)
        return;
    gt_cuda_learn(api, i, *pfn);
    *pfn = (void *)api->hooks[i].fn;
}
