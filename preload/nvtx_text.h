/* The text that PyTorch's emit_nvtx writes into a range's name. Pure: no malloc, no globals. */
#ifndef GT_NVTX_TEXT_H
#define GT_NVTX_TEXT_H

#include <stddef.h>
#include <stdint.h>
#include <wchar.h>

/* What one such name says:
 *   aten::mm, seq = 0, op_id = 3, sizes = [[2, 3], [3, 4]], input_op_ids = [(0,-1), (0,-1)]
 * Every field but the name may be missing (seq is, when it is negative; sizes, unless asked for).
 * The pointers point into the parsed text. */
struct gt_nvtx_op {
    size_t key_len;     /* "aten::mm" are the first key_len bytes */
    const char *shapes; /* "[[2, 3], [3, 4]]", not terminated; NULL: none */
    size_t shapes_len;
    int64_t seq;   /* sequence number, -1: none */
    int64_t op_id; /* -1: none */
};

/* Takes `text` apart (borrowed until the results are no longer used). Returns 0, or -EINVAL if it
 * is not of that form to its last byte: then it is a name like any other. */
int gt_nvtx_parse(const char *text, struct gt_nvtx_op *op);

/* Writes the wide string `text` as UTF-8 into out[size] (size >= 4), always terminated; what does
 * not fit is cut at a character. Values that are no characters become U+FFFD. Returns `out`, or
 * NULL for NULL. wchar_t holds code points (32 bits) on all systems we run on. */
const char *gt_nvtx_utf8(char *out, size_t size, const wchar_t *text);

/* nvtx.c: opens a range whose text may be one of PyTorch's; `tag` as in core/record.h. On AMD's
 * devices PyTorch hands the same texts to ROCTX. Returns the range's level, -1 if not kept. */
int gt_nvtx_push_new(uint64_t tag, const char *text);

#endif
