/* What the readers of JSON files share: finds the members of the outermost object without looking
 * into them, hands out the elements of a section one at a time, and the fields of an element. The
 * first thing that is wrong goes into *e as "FILE: why", and all later calls give zeros: check
 * `bad` at the end. Single thread. */
#ifndef GT_JSON_READ_H
#define GT_JSON_READ_H

#include <jansson.h>
#include "report/err.h"
#include "report/model.h"

/* A piece of the file; at is NULL if there is none. */
struct gt_span {
    const char *at, *end;
};

struct gt_json_reader {
    struct gt_model *m;
    struct gt_err *e;
    const char *path;
    struct gt_span text;
    size_t process0, thread0, row0; /* what the model had before */
    void *own;                      /* of whoever reads */
    int bad;
};

/* One element, and where it is for messages: "row 7". */
struct gt_json_item {
    struct gt_json_reader *r;
    const json_t *object;
    const char *where;
    size_t index;
};

/* The values of the outermost object's members with these names, in `found`; those that are missing
 * stay as they are.
 */
void gt_json_members(struct gt_json_reader *r, const char *const *names, int count,
                     struct gt_span *found);
/* Calls `read` for each element of an array of objects, called `title` in the file. */
void gt_json_each(struct gt_json_reader *r, struct gt_span section, const char *title,
                  const char *where, void (*read)(const struct gt_json_item *));
/* The value in the span; NULL after telling why not. The caller drops it. */
json_t *gt_json_value(struct gt_json_reader *r, struct gt_span v);

/* Tells that a field is bad or missing. */
void gt_json_bad(const struct gt_json_item *i, const char *field);
/* Fields; a missing one is 0, "" or false. */
int64_t gt_json_integer(const struct gt_json_item *i, const char *field, int64_t least,
                        int64_t most);
int64_t gt_json_amount(const struct gt_json_item *i, const char *field); /* >= 0 */
/* null stands for what JSON can't say: NaN and infinities. */
double gt_json_real(const struct gt_json_item *i, const char *field);
gt_text gt_json_string(const struct gt_json_item *i, const char *field);
int gt_json_truth(const struct gt_json_item *i, const char *field);
/* Position of a word in a list of words; `missing` if there is none, and bad if that is negative.
 */
int gt_json_word(const struct gt_json_item *i, const char *field, const char *const *words,
                 int count, int missing);
void gt_json_list(const struct gt_json_item *i, const char *field, struct gt_list *l);

/* The object `launch` of a row: 1 + its position in the model, 0 if it has none. */
uint32_t gt_json_launched(const struct gt_json_item *row);

#endif
