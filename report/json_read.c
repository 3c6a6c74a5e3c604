/* See json_read.h. jansson gets one element at a time: the whole of a report with 10,000 keys took
 * it 380 ms and 90 MB. */
#include "report/json_read.h"
#include "report/mem.h"
#include <errno.h>
#include <math.h>
#include <string.h>

static int fail(struct gt_json_reader *r, const char *where, size_t index, const char *field)
{
    if (!r->bad)
        gt_err_set(r->e, -ENODATA, "%s: damaged report: %s %zu: bad or missing \"%s\"", r->path,
                   where, index, field);
    r->bad = 1;
    return -ENODATA;
}

void gt_json_bad(const struct gt_json_item *i, const char *field)
{
    fail(i->r, i->where, i->index, field);
}

/* Missing is 0. */
int64_t gt_json_integer(const struct gt_json_item *i, const char *field, int64_t least,
                        int64_t most)
{
    const json_t *v = json_object_get(i->object, field);
    if (!v)
        return least > 0 ? least : 0;
    if (!json_is_integer(v) || json_integer_value(v) < least || json_integer_value(v) > most) {
        gt_json_bad(i, field);
        return least > 0 ? least : 0;
    }
    return json_integer_value(v);
}

int64_t gt_json_amount(const struct gt_json_item *i, const char *field)
{
    return gt_json_integer(i, field, 0, INT64_MAX);
}

/* null stands for what JSON can't say: NaN and infinities. */
double gt_json_real(const struct gt_json_item *i, const char *field)
{
    const json_t *v = json_object_get(i->object, field);
    if (json_is_number(v))
        return json_number_value(v);
    if (v && !json_is_null(v))
        gt_json_bad(i, field);
    return v ? NAN : 0;
}

gt_text gt_json_string(const struct gt_json_item *i, const char *field)
{
    const json_t *v = json_object_get(i->object, field);
    if (v && !json_is_string(v))
        gt_json_bad(i, field);
    return v ? gt_model_text(i->r->m, json_string_value(v) ? json_string_value(v) : "",
                             json_string_length(v))
             : 0;
}

int gt_json_truth(const struct gt_json_item *i, const char *field)
{
    const json_t *v = json_object_get(i->object, field);
    if (v && !json_is_boolean(v))
        gt_json_bad(i, field);
    return json_is_true(v);
}

/* Position of a word in a list of words; `missing` if there is none. */
int gt_json_word(const struct gt_json_item *i, const char *field, const char *const *words,
                 int count, int missing)
{
    const json_t *v = json_object_get(i->object, field);
    const char *text = json_string_value(v);
    for (int k = 0; text && k < count; k++)
        if (words[k] && !strcmp(words[k], text))
            return k;
    if (v || missing < 0)
        gt_json_bad(i, field);
    return missing < 0 ? 0 : missing;
}

void gt_json_list(const struct gt_json_item *i, const char *field, struct gt_list *l)
{
    const json_t *v = json_object_get(i->object, field), *element;
    size_t k;
    if (v && !json_is_array(v))
        gt_json_bad(i, field);
    json_array_foreach((json_t *)v, k, element)
    {
        const char *text = json_string_value(element);
        if (!text)
            gt_json_bad(i, field);
        gt_model_list(i->r->m, l, gt_model_textz(i->r->m, text ? text : ""));
    }
}

static const char *blanks(const char *p, const char *end)
{
    while (p < end && (*p == ' ' || *p == '\n' || *p == '\t' || *p == '\r'))
        p++;
    return p;
}

static const char *past_string(const char *p, const char *end)
{
    for (p++; p < end && *p != '"'; p++)
        p += *p == '\\';
    return p < end ? p + 1 : end + 1;
}

/* Behind the value that begins at p; behind `end` if it has none. What it holds is not looked at.
 */
static const char *past_value(const char *p, const char *end)
{
    size_t depth = 0;
    while (p < end) {
        if (*p == '"') {
            p = past_string(p, end);
        } else if (*p == '{' || *p == '[') {
            depth++;
            p++;
        } else if (*p == '}' || *p == ']') {
            if (!depth)
                return p;
            depth--;
            p++;
        } else if (!depth && (*p == ',' || *p == ' ' || *p == '\n' || *p == '\r' || *p == '\t')) {
            return p;
        } else {
            p++;
            continue;
        }
        if (!depth)
            return p;
    }
    return depth || p > end ? end + 1 : p;
}

static void wrong(struct gt_json_reader *r, const char *at, int line, const char *why)
{
    for (const char *p = r->text.at; p < at && p < r->text.end; p++)
        line += *p == '\n';
    if (!r->bad)
        gt_err_set(r->e, -ENODATA, "%s: line %d: %s", r->path, line, why);
    r->bad = 1;
}

/* The value in the span; NULL after telling why not. The caller drops it. */
json_t *gt_json_value(struct gt_json_reader *r, struct gt_span v)
{
    json_error_t why;
    json_t *root;
    gt_mem_failed = 0;
    root = json_loadb(v.at, (size_t)(v.end - v.at), JSON_DECODE_ANY, &why);
    /* also where it returns something: jansson goes on after some failures */
    if (gt_mem_failed)
        gt_mem_out();
    if (!root)
        wrong(r, v.at, why.line, why.text);
    return root;
}

/* One step through an array or object: the next value, behind a comma but for the first. 0 at the
 * end. */
static int step(struct gt_json_reader *r, const char **p, const char *end, char close, int first)
{
    *p = blanks(*p, end);
    if (*p < end && **p == close) {
        ++*p;
        return 0;
    }
    if (!first) {
        if (*p >= end || **p != ',') {
            wrong(r, *p, 1, *p < end ? "a comma is missing" : "the file ends too early");
            return 0;
        }
        *p = blanks(*p + 1, end);
    }
    if (*p >= end)
        wrong(r, *p, 1, "the file ends too early");
    return *p < end;
}

void gt_json_each(struct gt_json_reader *r, struct gt_span section, const char *title,
                  const char *where, void (*read)(const struct gt_json_item *))
{
    const char *p = section.at;
    size_t k = 0;
    if (r->bad)
        return;
    if (!p || *p != '[') {
        r->bad = 1;
        gt_err_set(r->e, -ENODATA, "%s: damaged report: no \"%s\"", r->path, title);
        return;
    }
    for (p++; !r->bad && step(r, &p, section.end, ']', !k); k++) {
        const char *end = past_value(p, section.end);
        json_t *v = end > section.end ? NULL : gt_json_value(r, (struct gt_span){p, end});
        struct gt_json_item i = {r, v, where, k};
        if (v && !json_is_object(v))
            gt_json_bad(&i, "{");
        else if (v)
            read(&i);
        else if (!r->bad)
            wrong(r, p, 1, "the file ends too early");
        json_decref(v);
        p = end;
    }
}

void gt_json_members(struct gt_json_reader *r, const char *const *names, int count,
                     struct gt_span *found)
{
    const char *end = r->text.end, *p = blanks(r->text.at, end);
    int first = 1;
    if (p == end || *p != '{') {
        gt_err_set(r->e, -ENODATA, "%s: not a gputally report", r->path);
        r->bad = 1;
        return;
    }
    for (p++; !r->bad && step(r, &p, end, '}', first); first = 0) {
        const char *name = p, *behind = *p == '"' ? past_string(p, end) : p;
        if (behind == p || behind > end) {
            wrong(r, p, 1, "a name is missing");
            return;
        }
        p = blanks(behind, end);
        if (p >= end || *p != ':') {
            wrong(r, p, 1, "a colon is missing");
            return;
        }
        p = blanks(p + 1, end);
        struct gt_span v = {p, past_value(p, end)};
        if (p >= end || v.end > end || v.end == p) {
            wrong(r, p, 1, "a value is missing");
            return;
        }
        for (int i = 0; i < count; i++)
            if ((size_t)(behind - name) == strlen(names[i]) + 2 &&
                !memcmp(name + 1, names[i], strlen(names[i])))
                found[i] = v;
        p = v.end;
    }
    p = blanks(p, end);
    if (p < end)
        wrong(r, p, 1, "text behind the end of the report");
}
