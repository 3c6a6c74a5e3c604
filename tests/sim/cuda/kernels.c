/* What stands for kernels: functions of the libraries in GTSIM_KERNELS (paths, by colons), named as
   the kernels are; and how long each kernel takes. */
#include "sim.h"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct text {
    struct text *next;
    char text[];
};

static struct text *texts[256]; /* under sim_lock */
static void *libraries[16];
static int library_count;
static pthread_once_t once = PTHREAD_ONCE_INIT;

const char *sim_intern(const char *text, size_t length)
{
    unsigned h = 5381;

    for (size_t i = 0; i < length; i++)
        h = h * 33 + (unsigned char)text[i];
    struct text **at = &texts[h % 256];
    for (struct text *t = *at; t; t = t->next) {
        if (!strncmp(t->text, text, length) && !t->text[length])
            return t->text;
    }
    struct text *t = malloc(sizeof *t + length + 1);
    if (!t)
        return "";
    memcpy(t->text, text, length);
    t->text[length] = 0;
    t->next = *at;
    *at = t;
    return t->text;
}

static void open_libraries(void)
{
    const char *list = getenv("GTSIM_KERNELS");
    char *copy = list ? strdup(list) : NULL, *rest = copy, *path;

    while (copy && (path = strsep(&rest, ":")) && library_count < 16) {
        void *l = *path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;

        if (l)
            libraries[library_count++] = l;
        else if (*path)
            fprintf(stderr, "gtsim: GTSIM_KERNELS: %s\n", dlerror());
    }
    free(copy);
}

void *sim_host_function(const char *name)
{
    pthread_once(&once, open_libraries);
    for (int i = 0; i < library_count; i++) {
        void *f = dlsym(libraries[i], name);

        if (f)
            return f;
    }
    return NULL;
}

/* of "..._20us": 20000; 0: the name does not tell */
static uint64_t suffix_ns(const char *name, size_t length)
{
    static const struct {
        const char *unit;
        uint64_t ns;
    } units[] = {{"ns", 1}, {"us", 1000}, {"ms", 1000000}};
    size_t i = length;

    if (length < 4)
        return 0;
    for (int u = 0; u < 3; u++) {
        if (strncmp(name + length - 2, units[u].unit, 2))
            continue;
        for (i = length - 2; i && name[i - 1] >= '0' && name[i - 1] <= '9'; i--)
            ;
        if (i == length - 2 || !i || name[i - 1] != '_')
            return 0;
        return strtoull(name + i, NULL, 10) * units[u].ns;
    }
    return 0;
}

static uint64_t listed_ns(const char *name, size_t length)
{
    const char *list = getenv("GTSIM_DURATIONS");

    while (list && *list) {
        if (!strncmp(list, name, length) && list[length] == '=')
            return strtoull(list + length + 1, NULL, 10);
        list = strchr(list, ',');
        list += list != NULL;
    }
    return 0;
}

/* By the mangled name, then by each name in it: _Z9fill_20usPfi has one of 9 letters. */
uint64_t sim_kernel_ns(const char *name)
{
    uint64_t ns = listed_ns(name, strlen(name));

    if (!ns && strncmp(name, "_Z", 2))
        ns = suffix_ns(name, strlen(name));
    for (const char *p = name; !ns && !strncmp(name, "_Z", 2) && *p;) {
        char *at;
        size_t n = *p >= '1' && *p <= '9' ? strtoul(p, &at, 10) : 0;

        if (!n || n > strlen(at)) {
            p++;
            continue;
        }
        ns = listed_ns(at, n);
        if (!ns)
            ns = suffix_ns(at, n);
        p = at + n;
    }
    return ns ? ns : (uint64_t)sim_number("GTSIM_KERNEL_NS", 10000);
}
