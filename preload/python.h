/* The Python frames of a recorded call: what the files of the part share.
 *   python.c         finds the interpreter, and is asked by core (gt_python_walk)
 *   python_layout.c  where things lie in an interpreter of each version
 *   python_prove.c   whether they lie there in this one
 *   python_walk.c    from frame to frame, reusing what was there the last time
 *   python_code.c    code objects as records of the session; python_lines.c  lines of a code object
 *
 * Nothing of Python's is called but PyGILState_GetThisThreadState and two questions that need no
 * GIL; frames and code objects are read where they lie. That is safe for the frames of the calling
 * thread: whether it holds the GIL or not, they stay as they are until it goes on, and they hold
 * references to their code. */
#ifndef GT_PYTHON_H
#define GT_PYTHON_H

#include <stdint.h>
#include <string.h>
#include "core/core.h"
#include "core/stacks.h"
#include "preload/python_layout.h"

/* ---- python.c ---- */

/* The constructor's part: Python programs have their interpreter in place already. */
void gt_python_init(void);
/* Looks whether an interpreter came in by dlopen, or is gone. On the way into dlsym, like
 * gt_torch_look. Cheap when nothing has changed. */
void gt_python_look(void);

/* The interpreter. Constant while gt_python_walk is set. */
struct gt_python {
    struct gt_python_layout layout;
    void *(*thread_state)(void);
    int (*initialized)(void), (*finalizing)(void);
    const void *code_type, *str_type, *bytes_type;
};
extern struct gt_python gt_python GT_HIDDEN;

/* Reading an interpreter's memory. */
static inline const char *gt_python_pointer(const char *at, size_t offset)
{
    const char *p;
    memcpy(&p, at + offset, sizeof p);
    return p;
}

static inline uint32_t gt_python_u32(const char *at, size_t offset)
{
    uint32_t v;
    memcpy(&v, at + offset, sizeof v);
    return v;
}

static inline uint64_t gt_python_u64(const char *at, size_t offset)
{
    uint64_t v;
    memcpy(&v, at + offset, sizeof v);
    return v;
}

/* A frame's executable: its code object, but for shims. */
static inline const char *gt_python_frame_code(const struct gt_python_layout *l, const char *frame)
{
    return (const char *)((uintptr_t)gt_python_pointer(frame, l->code) & ~(uintptr_t)l->code_tag);
}

/* Where the frame is: its instruction, and in 3.11 whether it is an entry. Equal keys of one frame
 * and code object mean the same. */
#define GT_PYTHON_KEY_ENTRY (UINT64_C(1) << 63)
static inline uint64_t gt_python_frame_key(const struct gt_python_layout *l, const char *frame)
{
    uint64_t entry = (unsigned char)frame[l->entry] & l->entry_mask;
    return (gt_python_u64(frame, l->instr) & l->instr_mask) | entry << 63;
}

/* ---- python_prove.c ---- */

/* Reads the chain of frames as gt_python_frames would, but so that what is not there is an error
 * and no crash. 1: this is Python. 0: can't tell yet, but a walk is safe now. -EFAULT: it is not
 * what the layout says. -EPERM: may not read memory that way. */
int gt_python_prove(const struct gt_python *p, const char *frame);

/* ---- python_walk.c ---- */

/* The innermost frame's id in `trie`. `state` and `truncated` as gt_python_fn has them.
 * GT_PYTHON_BROKEN: there is something that can't be. */
#define GT_PYTHON_BROKEN UINT32_MAX
uint32_t gt_python_frames(const struct gt_python *p, void *state, struct gt_trie *trie,
                          const char *frame, int *truncated);

/* ---- python_code.c ---- */

/* A code object and key, and what they are in the trie: one slot's. */
struct gt_python_known {
    const char *code;
    uint64_t key, stamp;
    uint64_t pc; /* 0: empty */
};
#define GT_PYTHON_TEXT 2048u /* longer names and paths that are not ASCII are cut */

/* The pc of a trie node for the frame; 0: there is no memory for it. `text` is GT_PYTHON_TEXT bytes
 * to work in. */
uint64_t gt_python_pc(const struct gt_python *p, const char *code, uint64_t key, char *text);

/* ---- python_lines.c ---- */

/* The line of the instruction at byte `at` of the code; 0: it has none. `table` is
 * co_linetable, co_lnotab before 3.10, n bytes long. Pure. */
uint32_t gt_python_line(unsigned minor, const unsigned char *table, size_t n, int64_t first_line,
                        int64_t at);

#endif
