/* The program of an unwind entry, run up to one place: what eh_frame.c judges. Pure. */
#ifndef GT_EH_ROWS_H
#define GT_EH_ROWS_H

#include "core/eh_read.h"

/* DWARF's numbers of the registers that matter */
#if defined(__x86_64__)
enum { GT_COLUMN_FP = 6, GT_COLUMN_SP = 7, GT_COLUMN_RA = 16, GT_COLUMN_LAST = 16 };
#elif defined(__aarch64__)
enum { GT_COLUMN_FP = 29, GT_COLUMN_SP = 31, GT_COLUMN_RA = 30, GT_COLUMN_LAST = 31 };
#else
#error "no unwind rules for this machine"
#endif

enum gt_where_saved {
    GT_SAVED_NOT = 0,   /* still in the register */
    GT_SAVED_UNDEFINED, /* lost */
    GT_SAVED_AT_CFA,    /* at CFA + off */
    GT_SAVED_AT_FP,     /* at frame pointer + off */
    GT_SAVED_ELSEWHERE,
};
struct gt_row {
    enum {
        GT_CFA_NONE = 0,
        GT_CFA_REGISTER,
        GT_CFA_AT_FP, /* the word at frame pointer + cfa_off */
        GT_CFA_WILD   /* by an expression that reads memory, or may */
    } cfa;
    uint64_t cfa_reg;
    int64_t cfa_off;
    int ra_signed;
    struct gt_saved {
        enum gt_where_saved where;
        int64_t off;
    } fp, sp, ra;
};

/* The entry that all functions of a kind share. */
struct gt_cie {
    uint64_t code_align;
    int64_t data_align;
    unsigned fde_enc; /* encoding of addresses */
    int augmented;    /* the FDE has augmentation data to be skipped */
    int signal;
    struct gt_in program;
};

/* The row at `pc` of the function that begins at `begin`. 0, or -1: what the programs say is
 * unknown to us or damaged. */
int gt_eh_row(const struct gt_cie *cie, struct gt_in program, uint64_t begin, uint64_t pc,
              struct gt_row *row);

#endif
