/* Finds the interpreter and answers core's question for its frames. Looks in our constructor, for
 * programs that are Python or linked with it, and on the way into dlsym, for those that open it.
 * The look only reads the loaded libraries' symbols: nothing of Python's runs but Py_GetVersion,
 * which may be called at any time.
 *
 * What can't be read is told once, at the first call that should have had Python frames: a version
 * we do not know, one without a GIL, one whose frames are not where they should be. */
#include "preload/python.h"

#include <errno.h>
#include <stdlib.h>
#include "core/say.h"
#include "preload/dl.h"
#include "preload/elf_symbol.h"

struct gt_python gt_python;

/* Of the thread that holds `busy`. */
static atomic_flag busy = ATOMIC_FLAG_INIT;
static const void *found_at; /* in the interpreter that is known */
static uint64_t seen_adds, seen_subs;
/* 1: it has been there from the program's start, and stays */
static _Atomic int settled;

/* Captures whose frames were looked at with care, while none had two of them. As many that had one
 * are enough: a wrong place of the caller would have shown. */
enum { CAREFUL = 64 };
static _Atomic int careful;

static const char *why; /* it can't be read; written before gt_python_walk is set */
static char version_text[16];

/* ---- the question ---- */

static void off(const char *reason)
{
    static _Atomic int told;

    atomic_store_explicit(&gt_python_walk, NULL, memory_order_release);
    if (!atomic_exchange_explicit(&told, 1, memory_order_relaxed))
        gt_say(GT_SAY_WARNING, "Python ", version_text, reason, ": stacks are without its frames");
}

static uint32_t refuse(void *state, struct gt_trie *trie, int *truncated)
{
    (void)state, (void)trie, (void)truncated;
    off(why);
    return GT_TRIE_ROOT;
}

static __attribute__((noinline, cold)) int prove(const char *frame)
{
    int r = gt_python_prove(&gt_python, frame);

    if (r < 0) {
        off(r == -EPERM ? " can't be looked at (process_vm_readv and /proc/self/mem are forbidden)"
                        : " has its frames elsewhere than other builds of it");
        return 0;
    }
    atomic_fetch_add_explicit(&careful, r ? CAREFUL : 1, memory_order_relaxed);
    return 1;
}

/* Before the start and during the end of the interpreter frames come and go without the thread's
 * doing. Threads that Python does not know have no state. */
static uint32_t walk(void *state, struct gt_trie *trie, int *truncated)
{
    const struct gt_python_layout *l = &gt_python.layout;
    const char *thread, *frame;
    uint32_t id;

    if (!gt_python.initialized() || gt_python.finalizing() || !(thread = gt_python.thread_state()))
        return GT_TRIE_ROOT;
    frame = gt_python_pointer(thread, l->frame);
    if (l->via && frame)
        frame = gt_python_pointer(frame, l->via_frame);
    if (!frame ||
        (unlikely(atomic_load_explicit(&careful, memory_order_relaxed) < CAREFUL) && !prove(frame)))
        return GT_TRIE_ROOT;
    id = gt_python_frames(&gt_python, state, trie, frame, truncated);
    if (unlikely(id == GT_PYTHON_BROKEN)) {
        off(" has a frame that is none");
        return GT_TRIE_ROOT;
    }
    return id;
}

/* ---- the interpreter ---- */

/* A program that is linked against the library's data may have taken it over (copy relocations). */
static void *symbol(const struct gt_elf *elf, const char *name)
{
    struct gt_elf program;
    void *at = gt_elf_find("", &program, NULL, NULL) < 0 ? NULL : gt_elf_symbol(&program, name);

    return at ? at : gt_elf_symbol(elf, name);
}

/* As PY_VERSION_HEX has it. */
static uint32_t version_of(const struct gt_elf *elf)
{
    const unsigned long *number = symbol(elf, "Py_Version"); /* since 3.11 */
    const char *(*text)(void) = (const char *(*)(void))symbol(elf, "Py_GetVersion");
    char *end = NULL;
    unsigned long major, minor;

    if (number)
        return (uint32_t)*number;
    if (!text)
        return 0;
    major = strtoul(text(), &end, 10);
    minor = *end == '.' ? strtoul(end + 1, NULL, 10) : 0;
    return (uint32_t)(major << 24 | minor << 16);
}

static void write_version(uint32_t version)
{
    char *p = version_text;
    unsigned minor = version >> 16 & 255;

    *p++ = (char)('0' + (version >> 24) % 10);
    *p++ = '.';
    if (minor >= 100)
        *p++ = (char)('0' + minor / 100);
    if (minor >= 10)
        *p++ = (char)('0' + minor / 10 % 10);
    *p++ = (char)('0' + minor % 10);
    *p = 0;
}

/* 0, or -errno with `why`. */
static int read_interpreter(const struct gt_elf *elf)
{
    struct gt_python *p = &gt_python;
    uint32_t version = version_of(elf);
    int r = gt_python_layout_find(&p->layout, version, symbol(elf, "_PyRuntime"));

    write_version(version);
    why = r == -ENOTSUP  ? " is none of " GT_PYTHON_VERSIONS
          : r == -ENOSYS ? " runs without its lock"
                         : " is not built as others are";
    if (r)
        return r;
    p->thread_state = (void *(*)(void))symbol(elf, "PyGILState_GetThisThreadState");
    p->initialized = (int (*)(void))symbol(elf, "Py_IsInitialized");
    p->finalizing = (int (*)(void))symbol(elf, "Py_IsFinalizing");
    if (!p->finalizing)
        p->finalizing = (int (*)(void))symbol(elf, "_Py_IsFinalizing");
    p->code_type = symbol(elf, "PyCode_Type");
    p->str_type = symbol(elf, "PyUnicode_Type");
    p->bytes_type = symbol(elf, "PyBytes_Type");
    return p->initialized && p->finalizing && p->code_type && p->str_type && p->bytes_type
               ? 0
               : -EINVAL;
}

/* ---- looking for it ---- */

/* The program itself, or a library ("libpython3.so" is but a door to another one). Returns the
 * address of a function of it, NULL if there is none. */
static const void *find(struct gt_elf *elf)
{
    static const char *const names[] = {"", "libpython3.1", "libpython3.9"};
    const void *at = NULL;

    for (size_t i = 0; !at && i < sizeof names / sizeof *names; i++)
        if (gt_elf_find(names[i], elf, &seen_adds, &seen_subs) == 0)
            at = gt_elf_symbol(elf, "PyGILState_GetThisThreadState");
    return at;
}

static void look(void)
{
    uint64_t subs = seen_subs;
    const void *at;
    struct gt_elf elf;

    if (gt_elf_unchanged(seen_adds, seen_subs))
        return;
    at = find(&elf);
    if (at == found_at && seen_subs == subs)
        return;
    if (at) { /* it may be on its way in: see find_loaded of torch.c */
        gt_dl_global("getenv");
        at = find(&elf);
    }
    atomic_store_explicit(&gt_python_walk, NULL, memory_order_release);
    atomic_store_explicit(&careful, 0, memory_order_relaxed);
    found_at = at;
    if (at) /* release pairs with core's acquire: what the walk reads is written */
        atomic_store_explicit(&gt_python_walk, read_interpreter(&elf) ? refuse : walk,
                              memory_order_release);
}

void gt_python_look(void)
{
    int saved = errno;

    gt_core_init(); /* for the configuration */
    if ((gt_config.stacks & GT_STACKS_PYTHON) && !gt_config.disable &&
        !atomic_load_explicit(&settled, memory_order_relaxed) &&
        !atomic_flag_test_and_set_explicit(&busy, memory_order_acquire)) {
        look();
        atomic_flag_clear_explicit(&busy, memory_order_release);
    }
    errno = saved;
}

void gt_python_init(void)
{
    gt_python_look();
    atomic_store_explicit(&settled, found_at != NULL, memory_order_relaxed);
}
