/* Calls every function of preload/hooks/cuda.def or (`runtime`) cudart.def by each way that there
 * is: by its linked name, by dlsym, by cuGetProcAddress. The stub libraries tell what arrived: each
 * argument must, whatever its place. Prints what did not, and with --expect what the report must
 * say. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "stub/cuda_stub.h"

#define HOOK(name, ...) slot_fn name;
#define WIDE HOOK
#include "../../preload/hooks/cuda.def"
#include "../../preload/hooks/cudart.def"
#undef HOOK
#undef WIDE

static struct function {
    const char *name, *key, *parameters;
    unsigned since;
    const char *kind;
    slot_fn *linked;
    unsigned counted, failed;
} driver[] =
    {
#define HOOK(name, key, since, kind, bytes, parameters, arguments, ...)                            \
    {#name, #key, #parameters, since, #kind, name, 0, 0},
#include "../../preload/hooks/cuda.def"
#undef HOOK
},
  runtime[] = {
#define HOOK(name, key, kind, bytes, parameters, arguments)                                        \
    {#name, #key, #parameters, 0, #kind, name, 0, 0},
#define WIDE(name, key, kind, bytes)                                                               \
    {#name, #key, "(w a, w b, w c, w d, w e, w f, w g, w h, w i)", 0, #kind, name, 0, 0},
#include "../../preload/hooks/cudart.def"
};

static stub_seen_fn *stub;
static char *memory; /* zeros, below 2^31: a pointer and an int alike */
#define SLOT(i) ((uintptr_t)(memory + 512 * ((i) + 1)))

/* ---- where the arguments of a function lie: the System V calling convention ---- */

/* Words that a parameter takes, and whether only on the stack. */
static int words(const char *parameter, int *stack)
{
    static const struct {
        const char *type;
        int words, stack;
    } types[] = {{"cudaExtent", 3, 1},
                 {"cudaPitchedPtr", 4, 1},
                 {"pcMemHandle", 8, 1},
                 {"pcEventHandle", 8, 1},
                 {"dim3", 2, 0}};

    *stack = 0;
    if (!strchr(parameter, '*'))
        for (size_t i = 0; i < sizeof types / sizeof *types; i++)
            if (strstr(parameter, types[i].type)) {
                *stack = types[i].stack;
                return types[i].words;
            }
    return 1;
}

/* Fills used[] with 1 for each slot that is an argument's, 2 if it may be of less than 32 bits. */
static void layout(const struct function *f, char *used)
{
    char copy[512], *rest = copy, *p;
    int reg = 0, place = 6, stack, n;

    snprintf(copy, sizeof copy, "%s", f->parameters + 1);
    copy[strlen(copy) - 1] = '\0';
    memset(used, 0, SLOTS);
    if (strcmp(copy, "void") == 0)
        return;
    while ((p = strsep(&rest, ","))) {
        n = words(p, &stack);
        stack |= reg + n > 6;
        for (int i = 0; i < n; i++)
            used[stack ? place++ : reg++] = strstr(p, "char ") || strstr(p, "short ") ? 2 : 1;
    }
}

/* ---- one call ---- */

static int wrong;
static int off; /* nobody listens: what is linked may be another function than what dlsym finds */

static void call(struct function *f, slot_fn *fn, const char *way, unsigned result)
{
    const struct stub_seen *seen = stub();
    unsigned before = seen->calls, r;
    char used[SLOTS];

    stub()->result = result;
    r = fn(SLOT(0), SLOT(1), SLOT(2), SLOT(3), SLOT(4), SLOT(5), SLOT(6), SLOT(7), SLOT(8), SLOT(9),
           SLOT(10), SLOT(11), SLOT(12), SLOT(13), SLOT(14), SLOT(15));
    f->counted++;
    f->failed += result != 0;
    if (r != result || seen->calls != before + 1 || strcmp(seen->name, f->name) != 0) {
        printf("%s by %s: called %s, gave %u\n", f->name, way, seen->name, r);
        wrong++;
    }
#ifdef __x86_64__
    layout(f, used);
    for (int i = 0; i < SLOTS; i++) {
        uintptr_t want = SLOT(i), got = seen->slots[i];

        if (used[i] && got != want && !(used[i] == 2 && got == (want & 0xffff)) &&
            !(used[i] == 2 && got == (want & 0xff))) {
            printf("%s by %s: slot %d has %lx\n", f->name, way, i, (unsigned long)got);
            wrong++;
        }
    }
#else
    (void)used;
#endif
}

/* With failures, and with success where no number of elements must be right. */
static void each_way(struct function *f, void *library, slot_fn *proc)
{
    unsigned fails = strstr(f->name, "Batch") ? 1 : 0;
    slot_fn *found = (slot_fn *)dlsym(library, f->name);

    call(f, f->linked, "name", 700);
    call(f, f->linked, "name", fails);
    if (found)
        call(f, found, "dlsym", fails);
    if (!found || (found != f->linked && !off)) {
        printf("%s: dlsym found %s\n", f->name, found ? "another one" : "none");
        wrong++;
    }
    if (proc) {
        void *pfn = NULL;
        int thread = strstr(f->name, "_ptsz") || strstr(f->name, "_ptds");

        if (proc((uintptr_t)f->key, (uintptr_t)&pfn, f->since, thread ? 2 : 0, 0, 0, 0, 0, 0, 0, 0,
                 0, 0, 0, 0, 0) == 0)
            call(f, (slot_fn *)pfn, "cuGetProcAddress", fails);
        else
            wrong++;
    }
}

/* Once for each key. */
static void expect(struct function *f, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        unsigned counted = 0, failed = 0;

        for (size_t k = 0; k < count; k++)
            if (strcmp(f[k].key, f[i].key) == 0) {
                counted += f[k].counted;
                failed += f[k].failed;
                f[k].counted *= k == i;
                f[k].failed *= k == i;
                if (k != i)
                    f[k].counted = f[k].failed = 0;
            }
        f[i].counted = f[i].failed = 0;
        if (counted)
            printf("expect %s %u\nsum %s failed %u\n", f[i].key, counted, f[i].key, failed);
    }
}

int main(int argc, char **argv)
{
    int of_runtime = argc > 1 && strcmp(argv[1], "runtime") == 0;
    struct function *f = of_runtime ? runtime : driver;
    size_t count = of_runtime ? sizeof runtime / sizeof *runtime : sizeof driver / sizeof *driver;
    const char *name = of_runtime ? "libcudart.so.13" : "libcuda.so.1";
    void *library = dlopen(name, RTLD_NOW | RTLD_NOLOAD), *p;
    int low = 0;

    off = argc > 2 && strcmp(argv[2], "off") == 0;
#ifdef MAP_32BIT
    low = MAP_32BIT;
#endif
    p = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | low, -1, 0);
    if (!library || p == MAP_FAILED)
        return 2;
    memory = p;
    stub = (stub_seen_fn *)dlsym(library, of_runtime ? "stub_runtime_seen" : "stub_driver_seen");
    for (size_t i = 0; i < count; i++)
        /* these are not recorded: cuda_proc.c asks the first, the second pause */
        if (strcmp(f[i].kind, "LOOKUP") != 0 && strcmp(f[i].kind, "CONTROL") != 0)
            each_way(&f[i], library,
                     of_runtime ? NULL : (slot_fn *)dlsym(library, "cuGetProcAddress_v2"));
    printf("%zu functions, %d wrong\n", count, wrong);
    if (strcmp(argv[argc - 1], "--expect") == 0)
        expect(f, count);
    return wrong != 0;
}
