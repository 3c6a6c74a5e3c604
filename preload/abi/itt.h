/* ITT's interface between the part that a program links and a collector: the few types a collector
 * needs, written from the documented layout so that no vendor header is needed to build. Used by
 * itt*.c and by the test clients.
 *
 * Each copy of ITT in a process finds its collector in INTEL_LIBITTNOTIFY64, opens it and calls
 * __itt_api_init(its struct gt_itt_global, groups) once, while it holds its own lock. The collector
 * walks api_list and writes the functions that it has to *func_ptr; from then on the program calls
 * them directly. Domains, strings and counters that were created before are structs of that copy.
 */
#ifndef GT_ABI_ITT_H
#define GT_ABI_ITT_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <wchar.h>

/* Passed by value. Whatever the program makes of it: three words that name an instance. */
struct gt_itt_id {
    unsigned long long d1, d2, d3;
};

/* The program looks at flags before each call: 0 switches the domain off. `extra1` and `extra2` are
 * the collector's own; a new struct has 0 there. */
struct gt_itt_domain {
    volatile int flags;
    const char *name;
    void *wide_name;
    int extra1;
    void *extra2;
    struct gt_itt_domain *next;
};

struct gt_itt_string {
    const char *text;
    void *wide_text;
    int extra1; /* here both must stay 0 */
    void *extra2;
    struct gt_itt_string *next;
};

/* As far as a collector reads it: one that was made before it came. */
struct gt_itt_counter {
    const char *name;
    void *wide_name;
    const char *domain;
    void *wide_domain;
    int type; /* enum gt_itt_type */
};

enum gt_itt_type {
    GT_ITT_UNKNOWN = 0,
    GT_ITT_U64 = 1,
    GT_ITT_S64 = 2,
    GT_ITT_U32 = 3,
    GT_ITT_S32 = 4,
    GT_ITT_U16 = 5,
    GT_ITT_S16 = 6,
    GT_ITT_FLOAT = 7,
    GT_ITT_DOUBLE = 8,
};

#define GT_ITT_SCOPE_HOST 1 /* of pause_scoped: a bit */
#define GT_ITT_TIMESTAMP_NONE (~0ull)

struct gt_itt_call {
    const char *name; /* "__itt_task_begin"; NULL ends the list */
    void **func_ptr;
    void *init_func, *null_func;
    int group;
};

struct gt_itt_global {
    unsigned char magic[8];
    unsigned long version_major, version_minor;
    unsigned long version_build; /* a date, 20101002 */
    volatile long api_initialized, mutex_initialized, atomic_counter;
    pthread_mutex_t mutex;
    void *lib, *error_handler;
    const char **dll_path;
    struct gt_itt_call *api_list;
    /* more follows, which a collector need not know */
};

#define GT_ITT_MAGIC "\xed\xab\xab\xec\x0d\xee\xda\x30"
/* Until then the list had no null_func. */
#define GT_ITT_FIRST_BUILD 20101002ul

_Static_assert(sizeof(struct gt_itt_id) == 24, "the size that goes over the stack");
_Static_assert(sizeof(struct gt_itt_domain) == 48, "as every ITT since 3.0 has it");
_Static_assert(sizeof(struct gt_itt_string) == 40, "as every ITT since 3.0 has it");
_Static_assert(sizeof(struct gt_itt_call) == 40, "the stride of the list");

#endif
