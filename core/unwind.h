/* Captures the native stack of the calling thread as a node of a trie. Called by the sources at a
 * hooked call, on the program's threads, with the thread's slot held (so a signal handler that
 * comes in between does not get here).
 *
 * Usually nothing is walked: the last stack is kept, and if the registers and all return addresses
 * of it are unchanged so is the stack. Else frames are walked by the rules of rules.h until one is
 * met that is unchanged. What no rule covers is walked by libunwind, if it is there.
 *
 * Memory is only read inside the stack that the thread is on: wild pointers end the walk. No
 * malloc, no lock, no system call but for a stack that was not seen lately (/proc/self/maps) and
 * libunwind's; errno is kept. */
#ifndef GT_UNWIND_H
#define GT_UNWIND_H

#include <stdatomic.h>
#include <stdint.h>
#include <ucontext.h>
#include "core/trie.h"

enum { GT_STACK_DEPTH = 512 }; /* the most frames of one stack; innermost ones are kept */

/* A point to walk from: a return address, and the registers as they will be after that return. */
struct gt_regs {
    uint64_t pc, sp, fp;
};

/* Those of the caller of the function that this is written in, which must not be inlined. */
#define GT_REGS_OF_CALLER()                                                                        \
    ((struct gt_regs){.pc = (uint64_t)__builtin_extract_return_addr(__builtin_return_address(0)),  \
                      .sp = (uint64_t)__builtin_dwarf_cfa(),                                       \
                      .fp = *(const uint64_t *)__builtin_frame_address(0)})

/* Bits that no address has: in the trie they say what a node is (layout.h). */
#define GT_NO_ADDRESS(pc) ((pc) & (GT_TRIE_EXACT | GT_TRIE_PYTHON | GT_TRIE_ENTRY))

/* A stretch of memory: a stack, or code that no module holds. */
struct gt_where {
    uint64_t lo, hi;
};

/* A frame of the last stack. In the pc of this and the next GT_TRIE_EXACT may be set. */
struct gt_kept {
    uint64_t pc, sp, fp;
    uint64_t fp_mask; /* all ones if the frame pointer matters to this or an outer frame's rule */
    uint32_t node;
    uint32_t slots; /* that must be unchanged: of this frame and all outer ones */
};

/* A word of the stack that an outer frame was found by. */
struct gt_kept_slot {
    const uint64_t *at;
    uint64_t value;
};

/* A step of the walk that is going on. */
struct gt_stack_step {
    uint64_t pc, sp, fp;
    uint64_t rule;
};

/* One thread's. About 72 KiB, zeroed by whoever makes it; then gt_stack_init. */
struct gt_stack {
    uint32_t count;      /* frames kept; 0: nothing to go by */
    uint32_t limit;      /* frames, at most GT_STACK_DEPTH */
    uint64_t seed;       /* of the rules that the kept frames were found by */
    uint32_t whole_only; /* 1: the kept frames are the inner end of a deeper stack */
    uint32_t news;       /* set by each capture that may have changed what is counted below */
    uint32_t again;      /* 1: stacks[0] is as it was in this walk */
    uint64_t broken;     /* captures that would have left the stack */
    /* what happened, for whoever reports it */
    uint64_t walked;           /* frames */
    uint64_t fallbacks;        /* captures by libunwind */
    uint64_t truncated;        /* captures */
    uint64_t python_truncated; /* likewise, counted by stacks.c: of Python frames */
    uint64_t cut;              /* captures */
    struct gt_where stacks[4]; /* seen lately, the last one first */
    struct gt_where inherited; /* stacks[0] of the last owner */
    struct gt_where code[4];   /* likewise, outside of modules */
    struct gt_trie trie;
    struct gt_stack_step steps[GT_STACK_DEPTH + 1]; /* innermost first, and where the walk ended */
    char maps[1024];                                /* for reading /proc/self/maps */
    union {
        struct {
            /* outermost first, from [1] on; [0] lies above all stacks */
            struct gt_kept frames[GT_STACK_DEPTH + 1];
            struct gt_kept_slot slots[4 * GT_STACK_DEPTH];
        };
        struct { /* libunwind's; big enough for the cursor of every version */
            uint64_t cursor[4096];
            ucontext_t context;
        };
    };
};

/* 0 or -ENOMEM. `limit` frames are kept of a deeper stack, the innermost. */
int gt_stack_init(struct gt_stack *s, uint32_t limit, const struct gt_trie_memory *memory);

/* Another thread takes it over: the trie stays, the rest is forgotten. */
void gt_stack_reset(struct gt_stack *s);

/* The node of the stack that begins with at->pc; its ancestors are the callers. GT_TRIE_OTHER when
 * memory is used up. gt_rules_init comes before. */
uint32_t gt_stack_capture(struct gt_stack *s, const struct gt_regs *at);

/* 1: a stack was cut that libunwind might have walked, and nobody has tried to load it yet. */
extern _Atomic int gt_unwind_wanted __attribute__((visibility("hidden")));

/* Makes libunwind ready for what the rules do not cover: loads it (RTLD_LOCAL: its _Unwind_*
 * functions must not come before libgcc's). Calls dlopen, so not from a hook. 0 or -ENOENT; without
 * it such stacks are cut. */
int gt_unwind_open(void);

/* ---- among the files of the unwinder ---- */

/* unwind_where.c: finds the stack that sp lies in, which is stacks[0] then. 0: none. */
int gt_where_stack(struct gt_stack *s, uint64_t sp);
/* Makes stacks[0], which sp lies in, as it is now, before a step up to `to`. 0: there is none any
 * more. Before Linux 6.11 a hole between the two that can't be read may go unnoticed; then `again`
 * stays 0, to ask before the next such step. */
int gt_where_again(struct gt_stack *s, uint64_t sp, uint64_t to);
/* Forgets the stack that sp lies in, because it may have changed. */
void gt_where_forget(struct gt_stack *s, uint64_t sp);
/* 1 if pc lies in memory that may be executed. */
int gt_where_code(struct gt_stack *s, uint64_t pc);

/* unwind_fallback.c: walks from `at` by libunwind; return addresses go to s->steps. Returns how
 * many, and what lies below the outermost. 0: libunwind is not there, or did not find `at`. */
uint32_t gt_unwind_fallback(struct gt_stack *s, const struct gt_regs *at, uint32_t *bottom);

#endif
