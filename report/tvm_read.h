/* Reads the text of a TVM report piece by piece, for load_tvm.c. Single thread.
 *
 * Two ways: as JSON, or raw. TVM's writer escapes nothing, so that a name may hold quotes,
 * backslashes and newlines as they are. Raw, a string has no escapes and ends at the first quote
 * behind which the report can go on. */
#ifndef GT_TVM_READ_H
#define GT_TVM_READ_H

#include <stddef.h>
#include <stdint.h>

#define GT_TVM_DEEPEST 4 /* report, section, row, value */

struct gt_tvm_text {
    const char *begin, *at, *end;
    int raw;
    char open[GT_TVM_DEEPEST]; /* '{' or '[' that we are inside of */
    unsigned depth;
    const char *why;    /* NULL while all is well; a constant */
    const char *bad;    /* where */
    const char *behind; /* the last string */
    char *string;       /* the last string read: good until the next one; NUL-terminated */
    size_t length, room;
};

void gt_tvm_start(struct gt_tvm_text *t, const char *text, size_t bytes, int raw);
void gt_tvm_end(struct gt_tvm_text *t);

/* Notes the first thing that is wrong; returns 0. */
int gt_tvm_fail(struct gt_tvm_text *t, const char *at, const char *why);

/* The next character that is no blank, not taken; 0 at the end. */
char gt_tvm_peek(struct gt_tvm_text *t);
/* Enters what `c` ('{' or '[') opens. 1, or 0 after gt_tvm_fail. */
int gt_tvm_enter(struct gt_tvm_text *t, char c);
/* Steps to the next member of what was entered last: 1 if there is one, 0 behind the end or after
 * gt_tvm_fail. *first is 1 before the first step. */
int gt_tvm_next(struct gt_tvm_text *t, int *first);
/* The name of a member and the colon; the name is in t->string. 1 or 0. */
int gt_tvm_key(struct gt_tvm_text *t);
/* A string as a value. 1 or 0. */
int gt_tvm_string(struct gt_tvm_text *t);
/* A number. *whole: it was written, or is, without a fraction and fits *count. 1 or 0. */
int gt_tvm_number(struct gt_tvm_text *t, double *real, int64_t *count, int *whole);

#endif
