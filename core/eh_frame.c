/* Finds the entry of .eh_frame that covers an address, by .eh_frame_hdr, and judges its row:
 * eh_frame.h. Format: the Linux Standard Base's. */
#include "core/eh_frame.h"

#include "core/eh_rows.h"

/* larger frames do not fit a rule (rules.h) and are rare enough for libunwind */
#define MAX_OFF ((1 << 21) - 8)

static struct gt_in open_at(const struct gt_eh_module *m, const unsigned char *p)
{
    for (int i = 0; i < m->spans; i++)
        if (p >= m->span[i].lo && p < m->span[i].hi)
            return (struct gt_in){p, m->span[i].hi, 0};
    return (struct gt_in){.bad = 1};
}

/* ---- finding the entry ---- */

/* Where the FDE that may cover pc begins: binary search in the sorted table behind the header. The
 * steps are libunwind's, which comes to the same entry then, whatever the order is. *kind: BAD or
 * NONE where NULL is returned. */
static const unsigned char *search(const struct gt_eh_module *m, uintptr_t pc,
                                   enum gt_cfi_kind *kind)
{
    struct gt_in in = open_at(m, m->hdr);
    uint64_t data = (uint64_t)(uintptr_t)m->hdr;
    unsigned version = (unsigned)gt_get(&in, 1);
    unsigned frame_enc = (unsigned)gt_get(&in, 1), count_enc = (unsigned)gt_get(&in, 1);
    unsigned table_enc = (unsigned)gt_get(&in, 1);

    /* All linkers write these encodings, the last two omitted where they made no table. */
    *kind = GT_CFI_BAD;
    if (version != 1 || frame_enc != GT_PE_FRAME)
        return NULL;
    if (count_enc == GT_PE_OMIT && table_enc == GT_PE_OMIT)
        *kind = GT_CFI_NONE;
    if (count_enc != GT_PE_COUNT || table_enc != GT_PE_TABLE)
        return NULL;
    gt_get_encoded(&in, frame_enc, data);
    uint64_t count = gt_get_encoded(&in, count_enc, data);
    if (in.bad || !count || count > (uint64_t)(in.end - in.p) / 8)
        return NULL;
    uint64_t lo = 0, hi = count;
    int32_t entry[2]; /* first address, FDE: both from the header */
    while (lo < hi) {
        uint64_t mid = (lo + hi) / 2;
        memcpy(entry, in.p + mid * 8, sizeof entry);
        if (data + (uint64_t)(int64_t)entry[0] <= pc)
            lo = mid + 1;
        else
            hi = mid;
    }
    *kind = GT_CFI_NONE;
    if (!hi)
        return NULL;
    memcpy(entry, in.p + (hi - 1) * 8, sizeof entry);
    return (const unsigned char *)(uintptr_t)(data + (uint64_t)(int64_t)entry[1]);
}

/* An entry's body: behind its length, ending where the length says. */
static struct gt_in body(const struct gt_eh_module *m, const unsigned char *at)
{
    struct gt_in in = open_at(m, at);
    uint64_t len = gt_get(&in, 4);
    if (in.bad || len < 8 || len >= 0xfffffff0 || len > (uint64_t)(in.end - in.p))
        in.bad = 1;
    else
        in.end = in.p + len;
    return in;
}

static int read_cie(const struct gt_eh_module *m, const unsigned char *at, struct gt_cie *c)
{
    struct gt_in in = body(m, at);
    char aug[8] = "";
    unsigned version, n = 0;

    *c = (struct gt_cie){0};
    if (gt_get(&in, 4) != 0)
        return -1;
    version = (unsigned)gt_get(&in, 1);
    if (version != 1 && version != 3)
        return -1;
    do {
        if (n == sizeof aug)
            return -1;
        aug[n] = (char)gt_get(&in, 1);
    } while (!in.bad && aug[n++]);
    c->code_align = gt_get_uleb(&in);
    c->data_align = gt_get_sleb(&in);
    if ((version == 1 ? gt_get(&in, 1) : gt_get_uleb(&in)) != GT_COLUMN_RA)
        return -1;
    if (aug[0] == 'z') {
        uint64_t len = gt_get_uleb(&in);
        if (in.bad || len > (uint64_t)(in.end - in.p))
            return -1;
        struct gt_in data = {in.p, in.p + len, 0};
        c->augmented = 1;
        for (const char *a = aug + 1; *a; a++) {
            if (*a == 'R')
                c->fde_enc = (unsigned)gt_get(&data, 1);
            else if (*a == 'L')
                gt_get(&data, 1);
            else if (*a == 'P')
                gt_get_encoded(&data, (unsigned)gt_get(&data, 1) & 0x7f, 0);
            else if (*a == 'S')
                c->signal = 1;
            else if (*a != 'B' && *a != 'G') /* aarch64: the key of the signature, memory tags */
                return -1;
        }
        if (data.bad)
            return -1;
        gt_skip(&in, len);
    } else if (aug[0]) {
        return -1;
    }
    c->program = in;
    return in.bad ? -1 : 0;
}

/* 1 and the distance if the place is one that a rule can name. */
static int below_cfa(const struct gt_saved *p, uint32_t *off)
{
    if (p->where != GT_SAVED_AT_CFA || p->off >= 0 || p->off < -MAX_OFF || p->off % 8)
        return 0;
    *off = (uint32_t)-p->off;
    return 1;
}

static void judge(const struct gt_row *row, struct gt_cfi *out)
{
    out->kind = GT_CFI_OTHER;
    if (row->ra.where == GT_SAVED_UNDEFINED) {
        out->kind = GT_CFI_END;
        return;
    }
    if (row->cfa == GT_CFA_WILD || row->ra.where == GT_SAVED_ELSEWHERE) {
        out->kind = GT_CFI_BAD; /* no code that calls is like that, and whoever steps out of it
                                   reads where he can't know that he may */
        return;
    }
    if (row->cfa == GT_CFA_REGISTER && (row->cfa_reg > GT_COLUMN_LAST || row->cfa_off < 0)) {
        out->kind = GT_CFI_BAD;
        return;
    }
    if (row->cfa == GT_CFA_REGISTER) {
        out->base = row->cfa_reg < 31 ? 1 + (int)row->cfa_reg : 0; /* five bits of a rule */
        out->cfa_off = row->cfa_off > MAX_OFF ? MAX_OFF : (uint32_t)row->cfa_off;
    } else if (row->cfa == GT_CFA_AT_FP) {
        out->base = 1 + GT_COLUMN_FP;
    }
#ifdef __x86_64__
    if (row->cfa == GT_CFA_AT_FP && row->cfa_off <= -8 && row->cfa_off >= -MAX_OFF &&
        row->cfa_off % 8 == 0 && row->fp.where == GT_SAVED_AT_FP && row->fp.off == 0 &&
        row->sp.where == GT_SAVED_NOT && below_cfa(&row->ra, &out->ra_off) && out->ra_off == 8) {
        out->kind = GT_CFI_SIMPLE;
        out->realigned = 1;
        out->from_fp = 1;
        out->cfa_off = (uint32_t)-row->cfa_off;
        return;
    }
#endif
#ifdef __aarch64__
    if (row->cfa == GT_CFA_REGISTER && row->cfa_reg == GT_COLUMN_SP && row->cfa_off >= 0 &&
        row->cfa_off <= MAX_OFF && row->cfa_off % 8 == 0 && row->ra.where == GT_SAVED_NOT &&
        row->fp.where == GT_SAVED_NOT && row->sp.where == GT_SAVED_NOT) {
        out->kind = GT_CFI_SIMPLE;
        out->leaf = 1;
        out->cfa_off = (uint32_t)row->cfa_off;
        out->ra_signed = row->ra_signed;
        return;
    }
#endif
    if (row->cfa != GT_CFA_REGISTER ||
        (row->cfa_reg != GT_COLUMN_SP && row->cfa_reg != GT_COLUMN_FP) || row->cfa_off < 8 ||
        row->cfa_off > MAX_OFF || row->cfa_off % 8 || row->sp.where != GT_SAVED_NOT ||
        !below_cfa(&row->ra, &out->ra_off))
        return;
#ifdef __x86_64__
    if (out->ra_off != 8)
        return;
#endif
    if (row->fp.where != GT_SAVED_NOT && !below_cfa(&row->fp, &out->fp_off))
        return;
    out->from_fp = row->cfa_reg == GT_COLUMN_FP;
    out->cfa_off = (uint32_t)row->cfa_off;
    out->ra_signed = row->ra_signed;
    /* a place below the stack pointer: it was popped from there, and gcc does not say so */
    if (!out->from_fp && out->fp_off > out->cfa_off)
        out->fp_off = 0;
    /* what was saved lies at or above the register that the CFA is told from: so whoever checks
     * that register against the stack has checked these too */
    if (out->ra_off <= out->cfa_off && out->fp_off <= out->cfa_off)
        out->kind = GT_CFI_SIMPLE;
}

void gt_cfi_find(const struct gt_eh_module *m, uintptr_t pc, struct gt_cfi *out)
{
    struct gt_cie cie;
    struct gt_row row;
    const unsigned char *fde;

    *out = (struct gt_cfi){.kind = GT_CFI_BAD};
    fde = search(m, pc, &out->kind);
    if (!fde)
        return;
    out->kind = GT_CFI_BAD;
    struct gt_in in = body(m, fde);
    uint64_t back = (uint64_t)(uintptr_t)in.p; /* a CIE pointer counts back from its own place */
    back -= gt_get(&in, 4);
    if (in.bad || read_cie(m, (const unsigned char *)(uintptr_t)back, &cie))
        return;
    if (cie.fde_enc & 0x80) /* a pointer to the address: not seen in the wild */
        return;
    uint64_t begin = gt_get_encoded(&in, cie.fde_enc, (uint64_t)(uintptr_t)m->hdr);
    uint64_t range = gt_get_encoded(&in, cie.fde_enc & 0x0f, 0);
    if (in.bad)
        return;
    if (pc < begin || pc - begin >= range) {
        out->kind = GT_CFI_NONE;
        return;
    }
    if (cie.augmented)
        gt_skip(&in, gt_get_uleb(&in));
    if (in.bad || gt_eh_row(&cie, in, begin, pc, &row))
        return;
    out->signal = cie.signal;
    if (cie.signal)
        out->kind = GT_CFI_OTHER;
    else
        judge(&row, out);
}
