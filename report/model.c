/* See model.h. */
#include "report/model.h"
#include "core/layout.h"
#include "report/mem.h"
#include <stdlib.h>
#include <string.h>

struct gt_string {
    char *text;
    uint32_t len, hash;
};

const char *const gt_device_names[GT_DEVICES] = {"CPU", "CUDA", "XPU", "PrivateUse1"};
const char *const gt_use_devices[GT_DEVICES] = {NULL, "cuda", "xpu", "privateuseone"};
const char *const gt_ended_names[GT_ENDED_KINDS] = {"exit", "exec", "killed", "running"};
const char *const gt_lost_names[GT_LOST_INDICES] = {
#define X(name) #name,
    GT_LOST_NAMES(X)
#undef X
};

const char *const gt_metric_names[GT_METRIC_KINDS] = {"count", "microseconds", "percent", "ratio",
                                                      "string"};

void gt_model_init(struct gt_model *m)
{
    memset(m, 0, sizeof *m);
    gt_model_textz(m, "");
    gt_model_textz(m, "Total");
    gt_model_textz(m, "[]");
}

void gt_model_fini(struct gt_model *m)
{
    for (size_t i = 0; i < m->string_count; i++)
        free(m->strings[i].text);
    free(m->strings);
    free(m->hash);
    free(m->scratch);
    free(m->processes);
    free(m->threads);
    free(m->rows);
    free(m->open);
    free(m->lists);
    free(m->metrics);
    free(m->devices);
    free(m->launched);
    free(m->stacks);
    free(m->frames);
    free(m->modules);
    free(m->stack_hash);
    free(m->frame_hash);
    free(m->module_hash);
    memset(m, 0, sizeof *m);
}

const char *gt_source_name(uint32_t source)
{
    static const char *const names[] = {
        [GT_SOURCE_NONE] = "none",
#define SOURCE(id, number, word, help) [number] = word,
#include "core/sources.def"
#undef SOURCE
    };
    return source < sizeof names / sizeof *names && names[source] ? names[source] : "none";
}

/* Length of the valid UTF-8 sequence at p (no overlong forms, surrogates, nothing over U+10FFFF),
 * or minus the number of bytes that one U+FFFD replaces. */
static int sequence(const unsigned char *p, size_t left)
{
    unsigned char low = 0x80, high = 0xbf;
    int len = p[0] < 0x80 ? 1 : p[0] >= 0xc2 && p[0] <= 0xdf ? 2 : (p[0] & 0xf0) == 0xe0 ? 3 : 4;
    if (len == 1)
        return 1;
    if (len == 4 && (p[0] < 0xf0 || p[0] > 0xf4))
        return -1;
    if (p[0] == 0xe0)
        low = 0xa0;
    else if (p[0] == 0xed)
        high = 0x9f;
    else if (p[0] == 0xf0)
        low = 0x90;
    else if (p[0] == 0xf4)
        high = 0x8f;
    for (int i = 1; i < len; i++) {
        if ((size_t)i >= left || p[i] < low || p[i] > high)
            return -i;
        low = 0x80;
        high = 0xbf;
    }
    return len;
}

/* Returns the text with bad bytes replaced; `text` itself where it is clean. */
static const char *clean(struct gt_model *m, const char *text, size_t *len)
{
    const unsigned char *p = (const unsigned char *)text;
    size_t i = 0, out = 0, n = *len;
    while (i < n && p[i] < 0x80)
        i++;
    while (i < n) {
        int k = sequence(p + i, n - i);
        if (k < 0)
            break;
        i += (size_t)k;
    }
    if (i == n)
        return text;
    if (m->scratch_room < n * 3) {
        m->scratch = gt_mem_resize(m->scratch, n, 3);
        m->scratch_room = n * 3;
    }
    memcpy(m->scratch, text, i);
    out = i;
    while (i < n) {
        int k = sequence(p + i, n - i);
        memcpy(m->scratch + out, k > 0 ? text + i : "\xef\xbf\xbd", k > 0 ? (size_t)k : 3);
        out += k > 0 ? (size_t)k : 3;
        i += (size_t)(k > 0 ? k : -k);
    }
    *len = out;
    return m->scratch;
}

static uint32_t hash_of(const char *text, size_t len)
{
    uint64_t h = 0x9e3779b97f4a7c15u ^ len;
    for (; len >= 8; text += 8, len -= 8) {
        uint64_t w;
        memcpy(&w, text, 8);
        h = (h ^ w) * 0xff51afd7ed558ccdu;
        h ^= h >> 32;
    }
    for (; len; text++, len--)
        h = (h ^ (unsigned char)*text) * 0x100000001b3u;
    /* the last bytes are in the upper bits only, and tables look at the lower ones */
    h = (h ^ h >> 32) * 0xc4ceb9fe1a85ec53u;
    return (uint32_t)(h ^ h >> 32);
}

static void rehash(struct gt_model *m)
{
    size_t size = m->hash_size ? m->hash_size * 2 : 256;
    uint32_t *hash = gt_mem_new(size, sizeof *hash);
    for (size_t i = 0; i < m->string_count; i++) {
        size_t at = m->strings[i].hash & (size - 1);
        while (hash[at])
            at = (at + 1) & (size - 1);
        hash[at] = (uint32_t)i + 1;
    }
    free(m->hash);
    m->hash = hash;
    m->hash_size = size;
}

gt_text gt_model_text(struct gt_model *m, const char *text, size_t len)
{
    len = strnlen(text, len);
    if (len > UINT32_MAX / 4)
        len = UINT32_MAX / 4;
    text = clean(m, text, &len);
    if (m->string_count * 2 >= m->hash_size)
        rehash(m);
    uint32_t h = hash_of(text, len);
    size_t at = h & (m->hash_size - 1);
    for (; m->hash[at]; at = (at + 1) & (m->hash_size - 1)) {
        const struct gt_string *s = &m->strings[m->hash[at] - 1];
        if (s->hash == h && s->len == len && !memcmp(s->text, text, len))
            return m->hash[at] - 1;
    }
    gt_mem_grow(&m->strings, &m->string_room, m->string_count, sizeof *m->strings);
    struct gt_string *s = &m->strings[m->string_count];
    s->text = gt_mem_copy(text, len);
    s->len = (uint32_t)len;
    s->hash = h;
    m->hash[at] = (uint32_t)++m->string_count;
    return (gt_text)(m->string_count - 1);
}

gt_text gt_model_textz(struct gt_model *m, const char *text)
{
    return gt_model_text(m, text, strlen(text));
}

const char *gt_model_string(const struct gt_model *m, gt_text id, size_t *len)
{
    if (len)
        *len = m->strings[id].len;
    return m->strings[id].text;
}

#define APPEND(function, type, array, count, room)                                                 \
    struct type *function(struct gt_model *m)                                                      \
    {                                                                                              \
        gt_mem_grow(&m->array, &m->room, m->count, sizeof *m->array);                              \
        return memset(&m->array[m->count++], 0, sizeof *m->array);                                 \
    }
APPEND(gt_model_process, gt_process, processes, process_count, process_room)
APPEND(gt_model_thread, gt_thread, threads, thread_count, thread_room)
APPEND(gt_model_row, gt_row, rows, row_count, row_room)
APPEND(gt_model_open, gt_open, open, open_count, open_room)
APPEND(gt_model_device, gt_device_metrics, devices, device_count, device_room)
APPEND(gt_model_launched, gt_launched, launched, launched_count, launched_room)

struct gt_metric *gt_model_metric(struct gt_model *m, struct gt_list *l)
{
    gt_mem_grow(&m->metrics, &m->metric_room, m->metric_count, sizeof *m->metrics);
    if (!l->count)
        l->first = (uint32_t)m->metric_count;
    l->count++;
    return memset(&m->metrics[m->metric_count++], 0, sizeof *m->metrics);
}

void gt_model_list(struct gt_model *m, struct gt_list *l, gt_text text)
{
    gt_mem_grow(&m->lists, &m->list_room, m->list_count, sizeof *m->lists);
    if (!l->count)
        l->first = (uint32_t)m->list_count;
    l->count++;
    m->lists[m->list_count++] = text;
}

void gt_model_label(struct gt_model *m, struct gt_row *r)
{
    static const char step[] = "ProfilerStep#";
    size_t key_len, domain_len;
    const char *key = gt_model_string(m, r->key, &key_len);
    const char *domain = gt_model_string(m, r->domain, &domain_len);
    r->label = r->key;
    if (domain_len) {
        char *both = gt_mem_format("%s:%s", domain, key);
        r->label = gt_model_text(m, both, domain_len + 1 + key_len);
        free(both);
    } else if (!strncmp(key, step, sizeof step - 1) && key[sizeof step - 1] &&
               strspn(key + sizeof step - 1, "0123456789") == key_len - (sizeof step - 1)) {
        r->label = gt_model_textz(m, "ProfilerStep*");
    }
}

void gt_model_finish(struct gt_model *m, size_t first_thread, size_t first_row)
{
    for (size_t i = first_thread; i < m->thread_count; i++)
        m->threads[i].inside_ns = 0;
    for (size_t i = first_row; i < m->row_count; i++) {
        struct gt_row *r = &m->rows[i];
        gt_model_label(m, r);
        if (r->parent < 0 && r->kind == GT_KIND_RANGE && r->device == GT_CPU) {
            struct gt_thread *t = &m->threads[r->thread];
            t->inside_ns = gt_add(t->inside_ns, r->total_ns);
        }
    }
}

int gt_row_counts(const struct gt_row *r)
{
    return r->count > 0 && (r->kind == GT_KIND_RANGE || r->kind == GT_KIND_ASYNC);
}

int gt_model_recorded(const struct gt_model *m)
{
    for (size_t i = 0; i < m->row_count; i++)
        if (m->rows[i].count > 0 || m->rows[i].values.count > 0)
            return 1;
    for (size_t i = 0; i < m->process_count; i++) {
        const int64_t *lost = m->processes[i].lost;
        if (lost[GT_LOST_INDEX_memory] || lost[GT_LOST_INDEX_nested] || lost[GT_LOST_INDEX_deep] ||
            lost[GT_LOST_INDEX_late] || lost[GT_LOST_INDEX_unbalanced])
            return 1;
    }
    return 0;
}

void gt_values_add(struct gt_values *to, const struct gt_values *from)
{
    if (from->count <= 0)
        return;
    if (!to->count || from->min < to->min)
        to->min = from->min;
    if (!to->count || from->max > to->max)
        to->max = from->max;
    to->sum += from->sum;
    to->last = from->last;
    to->count = gt_add(to->count, from->count);
}
