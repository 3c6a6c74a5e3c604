/* gputally.h - mark up your own program for gputally.
 *
 * Header only: the functions below look for the injected library when they are first called and do
 * nothing when it is not there, so a program that uses them runs the same with and without the
 * profiler and links with nothing (on glibc before 2.34: -ldl). C90 with gcc or clang, and C++.
 *
 * THREADS. Every function may be called from any thread at any time. A range belongs to the thread
 * that pushed it and must be popped there; a started range may end on any thread. In a signal
 * handler call only what the program has called before outside of one: the first call of each
 * function looks it up with dlsym. A call that comes inside another one is counted as lost.
 * STRINGS are borrowed until the function returns and read up to their NUL. UTF-8 is shown as it
 * is, bytes that are not UTF-8 are replaced in the report. NULL is shown as "(null)". ERRORS.
 * Nothing here fails loudly: calls that could not be recorded are counted in the report. WITHOUT
 * the library every function returns 0. It is looked for once for each function and each source
 * file: do not load it later by hand. */
#ifndef GPUTALLY_H
#define GPUTALLY_H

#include <stddef.h>
#include <stdint.h>

/* A range with more than a name. Set `size` (GPUTALLY_ATTRIBUTES_INIT does) and zero the rest: a
 * library reads no further than `size`, and not what it does not know. */
struct gputally_attributes {
    size_t size;        /* sizeof(struct gputally_attributes) */
    const char *name;   /* key of the row */
    const char *domain; /* ranges nest for each domain on its own; NULL or "": the default one.
                           The row is called "domain:name". At most 65,535 domains a process. */
    const char *shapes; /* input shapes, "[[2, 3], []]"; NULL: none. Rows are kept apart by shape
                           with GPUTALLY_RECORD_SHAPES=1 */
    uint64_t bytes;     /* bytes moved by this call; summed */
    uint64_t flops;     /* floating-point operations of this call; summed */
    uint32_t scope;     /* PyTorch's RecordScope, under 256: 1 backward, 7 user; 0 is taken as 7 */
    uint32_t reserved;  /* 0 */
};
#define GPUTALLY_ATTRIBUTES_INIT                                                                   \
    {                                                                                              \
        sizeof(struct gputally_attributes), 0, 0, 0, 0, 0, 0, 0                                    \
    }

#if defined(GPUTALLY_IMPLEMENTATION) /* the library itself */
#define GPUTALLY_FUNCTION_(result, none, name, parameters, arguments)                              \
    __attribute__((visibility("default"))) result name parameters;
#else
#include <dlfcn.h>

/* Looks for the library's `name` and remembers it, or that there is none. Any number of threads may
 * do so at once: all store the same value. */
static __inline__ __attribute__((unused)) void *gputally_find_(void **entry, const char *name)
{
    void *f = dlsym((void *)0 /* RTLD_DEFAULT */, name);

    if (!f)
        f = (void *)entry; /* its own address: no function lies there */
    __atomic_store_n(entry, f, __ATOMIC_RELAXED);
    return f;
}

#define GPUTALLY_FUNCTION_(result, none, name, parameters, arguments)                              \
    static __inline__ __attribute__((unused)) result name parameters                               \
    {                                                                                              \
        static void *entry;                                                                        \
        void *f = __atomic_load_n(&entry, __ATOMIC_RELAXED);                                       \
        if (!f)                                                                                    \
            f = gputally_find_(&entry, #name);                                                     \
        if (f == (void *)&entry)                                                                   \
            return none;                                                                           \
        return (__extension__(result(*) parameters) f)arguments;                                   \
    }
#endif

/* Opens a range on this thread, in the default domain. Returns how many were open there below it
 * (0: it is the outermost), or -1 if it could not be kept. */
GPUTALLY_FUNCTION_(int, 0, gputally_range_push, (const char *name), (name))
/* Likewise, with attributes (NULL: as if all were zero). */
GPUTALLY_FUNCTION_(int, 0, gputally_range_push_ex, (const struct gputally_attributes *attributes),
                   (attributes))
/* Closes the range pushed last in the default domain. Returns its level as the push did, -1 if none
 * is open (counted as unbalanced). */
GPUTALLY_FUNCTION_(int, 0, gputally_range_pop, (void), ())
/* Likewise in the domain of that name. */
GPUTALLY_FUNCTION_(int, 0, gputally_range_pop_domain, (const char *domain), (domain))

/* Starts a range that may overlap others and end on another thread: a row of its own, marked async,
 * whose time belongs to no other row. Returns its id, 0 if it could not be kept. */
GPUTALLY_FUNCTION_(uint64_t, 0, gputally_range_start, (const char *name), (name))
/* Ends it. 0 is ignored; an id that is not open is counted as unbalanced. Returns 0, -1 if it was
 * not open. */
GPUTALLY_FUNCTION_(int, 0, gputally_range_end, (uint64_t id), (id))

/* Counts an instant. Returns 0. */
GPUTALLY_FUNCTION_(int, 0, gputally_mark, (const char *name), (name))
/* Records a sample of a quantity, in any unit: the report has count, sum, minimum, maximum and the
 * last. NaN is ignored. Returns 0. */
GPUTALLY_FUNCTION_(int, 0, gputally_counter, (const char *name, double value), (name, value))

/* Nothing is recorded, in the whole process and from any source, until as many resumes have come.
 * Ranges that are open are still closed and counted in full; ranges opened meanwhile never count.
 * A resume without a pause does nothing. Return 0. */
GPUTALLY_FUNCTION_(int, 0, gputally_pause, (void), ())
GPUTALLY_FUNCTION_(int, 0, gputally_resume, (void), ())

/* Writes a report of what was recorded so far, as GPUTALLY_SNAPSHOT does: files of their own, with
 * `.snapshot-N` before the ending, and waits for it (some 0.1 s). Ranges that are open count up to
 * now. Returns 0, also where nothing has been recorded yet; -1 if no report could be written. */
GPUTALLY_FUNCTION_(int, 0, gputally_flush, (void), ())

#endif
