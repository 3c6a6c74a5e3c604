/* What the unwind data of a module (.eh_frame) says about one place in its code. Called when a
 * return address is met for the first time (rules.c), on any thread, signal handlers included: no
 * malloc, no lock but the loader's on systems before glibc 2.35 (see gt_module_find).
 *
 * Only what nearly all code is made of is understood: the frame begins at a constant distance from
 * the stack or frame pointer, and the return address and the caller's frame pointer lie at constant
 * places in it. The rest is told as "other" and left to libunwind. Everything read is checked
 * against the module's readable segments: a hostile file is refused, not believed. */
#ifndef GT_EH_FRAME_H
#define GT_EH_FRAME_H

#include <stddef.h>
#include <stdint.h>

enum { GT_MODULE_SPANS = 8 };

/* A loaded module: what of it may be read. */
struct gt_eh_module {
    uintptr_t start;          /* lowest address */
    const unsigned char *hdr; /* .eh_frame_hdr */
    int spans;
    struct gt_span {
        const unsigned char *lo, *hi;
    } span[GT_MODULE_SPANS]; /* readable segments */
};

/* Looks for _dl_find_object, at the first call. Before the first gt_module_find; calls dlvsym. */
void gt_module_prepare(void);

/* Finds the module that holds `pc`. 0; -ENOENT: none, or one without unwind data. Where glibc has
 * _dl_find_object no lock is taken; before, dl_iterate_phdr takes the loader's list lock. */
int gt_module_find(uintptr_t pc, struct gt_eh_module *m);

/* 0: certainly none holds `pc`. Where that can't be told without a lock the answer is 1. */
int gt_module_may_hold(uintptr_t pc);

/* How many modules the loader has taken away so far. Takes the loader's list lock. */
uint64_t gt_module_unloads(void);

enum gt_cfi_kind {
    GT_CFI_NONE = 0, /* no unwind data for this place */
    GT_CFI_OTHER,    /* there is some, but nothing that the fields below could hold */
    GT_CFI_SIMPLE,
    GT_CFI_END, /* the outermost frame: it has no caller */
    GT_CFI_BAD, /* damaged. Nobody must be asked to believe it: libunwind would */
};

/* The rule for one place. CFA: the stack pointer's value before the call that made the frame. */
struct gt_cfi {
    enum gt_cfi_kind kind;
    int signal;    /* 1: the frame that a signal handler returns to; kind is GT_CFI_OTHER */
    int realigned; /* 1: CFA = the word at frame pointer - cfa_off, and the caller's frame pointer
                      is the word at the frame pointer; the stack was aligned at run time */
    int leaf;      /* 1: both still are in their registers; only cfa_off is told (aarch64) */
    int from_fp;   /* 1: CFA = frame pointer + cfa_off, 0: stack pointer + cfa_off */
    int base;      /* of OTHER: 1 + the register (DWARF's number) that the CFA is at cfa_off from;
                      0: not known */
    int ra_signed; /* 1: the return address carries a pointer authentication code */
    uint32_t cfa_off; /* bytes, a multiple of 8 */
    uint32_t ra_off;  /* the return address lies at CFA - ra_off */
    uint32_t fp_off; /* the caller's frame pointer lies at CFA - fp_off; 0: still in the register */
};

/* The rule at `pc`, an address inside the instruction that is being executed: for a return address,
 * one less. */
void gt_cfi_find(const struct gt_eh_module *m, uintptr_t pc, struct gt_cfi *out);

#endif
