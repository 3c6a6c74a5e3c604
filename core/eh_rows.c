/* Runs the programs of unwind entries: eh_rows.h. The instructions are the DWARF standard's with
 * GNU's and Arm's; the numbers stand beside their names below. */
#include "core/eh_rows.h"

struct run {
    const struct gt_cie *cie;
    struct gt_row row, initial;
    struct gt_row saved[4]; /* of DW_CFA_remember_state */
    unsigned depth;
    uint64_t loc, pc;
};

static void set(struct run *r, uint64_t reg, enum gt_where_saved where, int64_t off)
{
    struct gt_saved p = {where, off};
    if (reg == GT_COLUMN_FP)
        r->row.fp = p;
    else if (reg == GT_COLUMN_SP)
        r->row.sp = p;
    else if (reg == GT_COLUMN_RA)
        r->row.ra = p;
}

static void restore(struct run *r, uint64_t reg)
{
    if (reg == GT_COLUMN_FP)
        r->row.fp = r->initial.fp;
    else if (reg == GT_COLUMN_SP)
        r->row.sp = r->initial.sp;
    else if (reg == GT_COLUMN_RA)
        r->row.ra = r->initial.ra;
}

static int64_t factored(struct gt_in *in, const struct run *r, int64_t n)
{
    int64_t v = 0;
    if (__builtin_mul_overflow(n, r->cie->data_align, &v))
        in->bad = 1;
    return v;
}

enum {
    OP_DEREF = 0x06,
    OP_AND = 0x1a,
    OP_PLUS = 0x22,
    OP_PLUS_CONST = 0x23,
    OP_SHL = 0x24,
    OP_GE = 0x2a,
    OP_LIT0 = 0x30,
    OP_LIT31 = 0x4f,
    OP_BREG0 = 0x70,
    OP_BREG31 = 0x8f
};

/* 1: the expression only calculates with registers, as that of PLT stubs does. */
static int calculates(struct gt_in in)
{
    uint64_t len = gt_get_uleb(&in);

    if (in.bad || len > (uint64_t)(in.end - in.p))
        return 0;
    in.end = in.p + len;
    while (in.p < in.end && !in.bad) {
        unsigned op = (unsigned)gt_get(&in, 1);
        if (op >= OP_BREG0 && op <= OP_BREG31)
            gt_get_sleb(&in);
        else if (op == OP_PLUS_CONST)
            gt_get_uleb(&in);
        else if (op != OP_AND && op != OP_PLUS && op != OP_SHL && op != OP_GE &&
                 (op < OP_LIT0 || op > OP_LIT31))
            return 0;
    }
    return !in.bad;
}

/* Reads an expression. 1: it is no more than frame pointer + *off, followed by the operation `op`
 * unless that is 0. */
static int fp_plus(struct gt_in *in, int64_t *off, unsigned op)
{
    uint64_t len = gt_get_uleb(in);
    struct gt_in e = *in;

    gt_skip(in, len);
    e.end = in->p;
    if (in->bad || gt_get(&e, 1) != OP_BREG0 + GT_COLUMN_FP)
        return 0;
    *off = gt_get_sleb(&e);
    return (!op || gt_get(&e, 1) == op) && !e.bad && e.p == e.end;
}

/* The instructions with an opcode of their own. -1: unknown, nothing after it can be trusted. */
static int extended(struct gt_in *in, struct run *r, unsigned op)
{
    uint64_t reg;
    int64_t off = 0;
    enum gt_where_saved where;
    switch (op) {
    case 0x00: /* nop */
        return 0;
    case 0x05: /* offset_extended */
        reg = gt_get_uleb(in);
        set(r, reg, GT_SAVED_AT_CFA, factored(in, r, (int64_t)gt_get_uleb(in)));
        return 0;
    case 0x06: /* restore_extended */
        restore(r, gt_get_uleb(in));
        return 0;
    case 0x07: /* undefined */
        set(r, gt_get_uleb(in), GT_SAVED_UNDEFINED, 0);
        return 0;
    case 0x08: /* same_value */
        set(r, gt_get_uleb(in), GT_SAVED_NOT, 0);
        return 0;
    case 0x09: /* register */
        reg = gt_get_uleb(in);
        gt_get_uleb(in);
        set(r, reg, GT_SAVED_ELSEWHERE, 0);
        return 0;
    case 0x0a: /* remember_state */
        if (r->depth == sizeof r->saved / sizeof *r->saved)
            return -1;
        r->saved[r->depth++] = r->row;
        return 0;
    case 0x0b: /* restore_state */
        if (!r->depth)
            return -1;
        r->row = r->saved[--r->depth];
        return 0;
    case 0x0c: /* def_cfa */
    case 0x12: /* def_cfa_sf */
        r->row.cfa_reg = gt_get_uleb(in);
        r->row.cfa_off = op == 0x0c ? (int64_t)gt_get_uleb(in) : factored(in, r, gt_get_sleb(in));
        r->row.cfa = GT_CFA_REGISTER;
        return 0;
    case 0x0d: /* def_cfa_register */
        r->row.cfa_reg = gt_get_uleb(in);
        return 0;
    case 0x0e: /* def_cfa_offset */
        r->row.cfa_off = (int64_t)gt_get_uleb(in);
        return 0;
    case 0x13: /* def_cfa_offset_sf */
        r->row.cfa_off = factored(in, r, gt_get_sleb(in));
        return 0;
    case 0x0f: /* def_cfa_expression */
        r->row.cfa = calculates(*in) ? GT_CFA_NONE : GT_CFA_WILD;
        if (fp_plus(in, &r->row.cfa_off, OP_DEREF))
            r->row.cfa = GT_CFA_AT_FP;
        return 0;
    case 0x10: /* expression */
    case 0x16: /* val_expression */
        reg = gt_get_uleb(in);
        where = fp_plus(in, &off, 0) && op == 0x10 ? GT_SAVED_AT_FP : GT_SAVED_ELSEWHERE;
        set(r, reg, where, off);
        return 0;
    case 0x11: /* offset_extended_sf */
        reg = gt_get_uleb(in);
        set(r, reg, GT_SAVED_AT_CFA, factored(in, r, gt_get_sleb(in)));
        return 0;
    case 0x14: /* val_offset */
    case 0x15: /* val_offset_sf */
        reg = gt_get_uleb(in);
        gt_get_uleb(in); /* signed or not, it takes the same bytes */
        set(r, reg, GT_SAVED_ELSEWHERE, 0);
        return 0;
    case 0x2e: /* GNU_args_size */
        gt_get_uleb(in);
        return 0;
#ifdef __aarch64__
    case 0x2d: /* AARCH64_negate_ra_state */
        r->row.ra_signed = !r->row.ra_signed;
        return 0;
#endif
    default:
        return -1;
    }
}

/* Runs until the row that covers r->pc is complete. Returns 0 or -1. */
static int run(struct gt_in in, struct run *r)
{
    while (!in.bad && in.p < in.end) {
        unsigned b = (unsigned)gt_get(&in, 1), low = b & 0x3f;
        uint64_t delta;
        switch (b >> 6) {
        case 2: /* offset */
            set(r, low, GT_SAVED_AT_CFA, factored(&in, r, (int64_t)gt_get_uleb(&in)));
            continue;
        case 3: /* restore */
            restore(r, low);
            continue;
        case 1: /* advance_loc */
            delta = low;
            break;
        default:
            if (low == 0x01) /* set_loc */
                return -1;
            if (low < 0x02 || low > 0x04) {
                if (extended(&in, r, low))
                    return -1;
                continue;
            }
            delta = gt_get(&in, 1u << (low - 2)); /* advance_loc1, 2, 4 */
        }
        if (in.bad || __builtin_mul_overflow(delta, r->cie->code_align, &delta) ||
            __builtin_add_overflow(r->loc, delta, &r->loc))
            return -1;
        if (r->loc > r->pc)
            return 0;
    }
    return in.bad ? -1 : 0;
}

int gt_eh_row(const struct gt_cie *cie, struct gt_in program, uint64_t begin, uint64_t pc,
              struct gt_row *row)
{
    struct run r = {.cie = cie, .loc = begin, .pc = pc};

    if (run(cie->program, &r))
        return -1;
    r.initial = r.row;
    r.loc = begin;
    if (run(program, &r))
        return -1;
    *row = r.row;
    return 0;
}
