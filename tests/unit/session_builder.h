/* Writes session files by core/layout.h alone, for the suites of the report house: what a test says
 * is what the file holds, also when no library would write it. Memory: one fixed block, sb_free
 * frees it. */
#ifndef GT_SESSION_BUILDER_H
#define GT_SESSION_BUILDER_H

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "core/layout.h"

struct sb {
    unsigned char *data;
    size_t bytes, used;
};

static inline void *sb_at(struct sb *b, gt_ref ref)
{
    return b->data + (size_t)ref * GT_ALIGN;
}

static inline struct gt_header *sb_header(struct sb *b)
{
    return (struct gt_header *)b->data;
}

static inline gt_ref sb_alloc(struct sb *b, size_t bytes)
{
    size_t at = b->used;
    b->used += (bytes + GT_ALIGN - 1) / GT_ALIGN * GT_ALIGN;
    ck_assert_uint_le(b->used, b->bytes);
    sb_header(b)->used_bytes = b->used;
    return (gt_ref)(at / GT_ALIGN);
}

static inline gt_ref sb_bytes(struct sb *b, const char *text, size_t len)
{
    gt_ref ref = sb_alloc(b, sizeof(struct gt_str) + len + 1);
    struct gt_str *s = sb_at(b, ref);
    s->len = (uint32_t)len;
    memcpy(s->text, text, len);
    return ref;
}

static inline gt_ref sb_text(struct sb *b, const char *text)
{
    return sb_bytes(b, text, strlen(text));
}

/* A process of another boot that ended in order, 1 tick = 1 ns, from tick 1,000 to 1,001,000. */
static inline void sb_init(struct sb *b, size_t bytes)
{
    b->data = calloc(1, bytes);
    b->bytes = bytes;
    b->used = GT_HEADER_BYTES;
    struct gt_header *h = sb_header(b);
    memcpy(h->magic, GT_MAGIC, 8);
    h->version = GT_LAYOUT_VERSION;
    h->header_bytes = GT_HEADER_BYTES;
    h->state = GT_STATE_ENDED;
    h->size_bytes = bytes;
    h->pid = 4711;
    h->ppid = 1;
    h->start_time = 123456;
    strcpy(h->boot_id, "00000000-0000-0000-0000-000000000000");
    h->exe = sb_text(b, "/opt/some folder/app");
    h->argv = sb_bytes(b, "app\0--flag\0", 11);
    h->host = sb_text(b, "node1");
    h->output = sb_text(b, "gputally.%e.%p");
    h->rank = -1;
    h->crash_safe = h->stderr_same = 1;
    h->clock = GT_CLOCK_MONOTONIC;
    h->start = (struct gt_pair){1000, 1000};
    h->end = (struct gt_pair){1001000, 1001000};
    h->start_realtime_ns = 1700000000123456789u;
}

static inline struct gt_slot *sb_slot(struct sb *b, const char *name, uint32_t capacity)
{
    gt_ref ref = sb_alloc(b, sizeof(struct gt_slot));
    gt_ref chunk = sb_alloc(b, sizeof(struct gt_node_chunk) + capacity * sizeof(struct gt_node));
    struct gt_slot *s = sb_at(b, ref);
    ((struct gt_node_chunk *)sb_at(b, chunk))->capacity = capacity;
    s->chunks = chunk;
    s->id = sb_header(b)->slot_count++;
    s->next = sb_header(b)->slots;
    sb_header(b)->slots = ref;
    s->state = GT_SLOT_LIVE;
    strncpy(s->name, name, sizeof s->name - 1);
    s->tid = 4711 + s->id;
    s->threads = 1;
    s->node_count = 1; /* the root */
    return s;
}

static inline struct gt_node *sb_get(struct sb *b, struct gt_slot *s, uint32_t i)
{
    return &((struct gt_node_chunk *)sb_at(b, s->chunks))->nodes[i];
}

/* A node that nobody has called yet. */
static inline uint32_t sb_node(struct sb *b, struct gt_slot *s, uint32_t parent, const char *key)
{
    uint32_t i = s->node_count;
    struct gt_node *n = sb_get(b, s, i);
    n->parent = parent;
    n->key = sb_text(b, key);
    n->source = GT_SOURCE_NVTX;
    n->kind = GT_KIND_RANGE;
    n->scope = 7;
    n->min_ticks = UINT64_MAX;
    s->node_count = i + 1;
    return i;
}

static inline void sb_call(struct sb *b, struct gt_slot *s, uint32_t node, uint64_t total,
                           uint64_t self)
{
    struct gt_node *n = sb_get(b, s, node);
    n->count++;
    n->total_ticks += total;
    n->self_ticks += self;
    n->sumsq_ticks += (double)total * (double)total;
    n->min_ticks = total < n->min_ticks ? total : n->min_ticks;
    n->max_ticks = total > n->max_ticks ? total : n->max_ticks;
}

static inline struct gt_frame *sb_push(struct sb *b, struct gt_slot *s, uint32_t node, uint64_t t0)
{
    uint32_t depth = s->depth;
    gt_ref *at = &s->frames;
    for (uint32_t i = 0;; i += GT_FRAMES_PER_BLOCK) {
        if (!*at)
            *at = sb_alloc(b, sizeof(struct gt_frame_block));
        struct gt_frame_block *block = sb_at(b, *at);
        if (depth < i + GT_FRAMES_PER_BLOCK) {
            struct gt_frame *f = &block->frames[depth - i];
            f->t0 = t0;
            f->record = (uint32_t)GT_RING_RANGE << 28 | node;
            s->depth = depth + 1;
            return f;
        }
        at = &block->next;
    }
}

static inline struct gt_async *sb_start(struct sb *b, struct gt_slot *s, const char *key,
                                        uint64_t t0)
{
    if (!s->asyncs)
        s->asyncs = sb_alloc(b, sizeof(struct gt_async_block));
    struct gt_async_block *block = sb_at(b, s->asyncs);
    for (size_t i = 0;; i++)
        if (!block->entries[i].state) {
            block->entries[i].t0 = t0;
            block->entries[i].key = sb_text(b, key);
            block->entries[i].source = GT_SOURCE_NVTX;
            block->entries[i].state = GT_ASYNC_OPEN;
            return &block->entries[i];
        }
}

/* A file that frames lie in; its id. */
static inline uint32_t sb_module(struct sb *b, const char *path, uint64_t bias, uint8_t build_id)
{
    gt_ref ref = sb_alloc(b, sizeof(struct gt_module)), text = sb_text(b, path);
    struct gt_module *m = sb_at(b, ref), *newest = sb_at(b, sb_header(b)->modules);
    m->next = sb_header(b)->modules;
    m->id = m->next ? newest->id + 1 : 1;
    m->path = text;
    m->bias = m->start = bias;
    m->end = bias + 0x100000;
    m->build_id_bytes = build_id ? 20 : 0;
    memset(m->build_id, build_id, m->build_id_bytes);
    sb_header(b)->modules = ref;
    return m->id;
}

/* A frame below its caller's, in chunks of five; its id. */
static inline uint32_t sb_frame_at(struct sb *b, struct gt_slot *s, uint32_t parent, uint64_t pc,
                                   uint32_t module)
{
    uint32_t id = s->stack_count < GT_TRIE_FIRST ? GT_TRIE_FIRST : s->stack_count;
    gt_ref ref = s->stacks, before = 0;
    for (uint32_t first = 0;; first += 5) {
        struct gt_trie_chunk *c;
        if (!ref) {
            ref = sb_alloc(b, sizeof *c + 5 * sizeof *c->nodes);
            c = sb_at(b, ref);
            c->first = first;
            c->capacity = 5;
            if (before)
                ((struct gt_trie_chunk *)sb_at(b, before))->next = ref;
            else
                s->stacks = ref;
        }
        c = sb_at(b, ref);
        if (id < first + 5) {
            c->nodes[id - first] = (struct gt_trie_node){pc, parent, module};
            s->stack_count = id + 1;
            return id;
        }
        before = ref;
        ref = c->next;
    }
}

/* Likewise a frame of Python. */
static inline uint32_t sb_python(struct sb *b, struct gt_slot *s, uint32_t parent,
                                 const char *function, uint32_t line, int entry)
{
    gt_ref ref = sb_alloc(b, sizeof(struct gt_code));
    gt_ref name = sb_text(b, function), file = sb_text(b, "/src/app.py");
    *(struct gt_code *)sb_at(b, ref) = (struct gt_code){file, name, 1};
    return sb_frame_at(b, s, parent, GT_TRIE_PYTHON_PC(ref, line) | (entry ? GT_TRIE_ENTRY : 0), 0);
}

static inline void sb_write(const char *path, const void *data, size_t bytes)
{
    FILE *f = fopen(path, "wb");
    ck_assert_ptr_nonnull(f);
    ck_assert_uint_eq(fwrite(data, 1, bytes, f), bytes);
    ck_assert_int_eq(fclose(f), 0);
}

/* The file is as long as what is used. */
static inline void sb_save(struct sb *b, const char *path)
{
    sb_write(path, b->data, b->used);
}

static inline void sb_free(struct sb *b)
{
    free(b->data);
}

/* A fresh folder for a test's files, entered; gone at the end of the process. */
static char sb_folder_name[64];
static inline void sb_folder(void)
{
    /* in memory where possible: some tests write thousands of files */
    strcpy(sb_folder_name, access("/dev/shm", W_OK) ? "/tmp/gputally-test-XXXXXX"
                                                    : "/dev/shm/gputally-test-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(sb_folder_name));
    ck_assert_int_eq(chdir(sb_folder_name), 0);
}

static inline void sb_folder_remove(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", sb_folder_name);
    ck_assert_int_eq(chdir("/"), 0);
    ck_assert_int_eq(system(command), 0);
}

static inline char *sb_read(const char *path, size_t *len)
{
    FILE *f = fopen(path, "rb");
    char *text = malloc(1 << 24);
    ck_assert_ptr_nonnull(f);
    size_t n = fread(text, 1, (1 << 24) - 1, f);
    fclose(f);
    text[n] = 0;
    if (len)
        *len = n;
    return text;
}

/* ck_assert_str_eq for long texts: shows where they part. */
static inline void same(const char *got, const char *want)
{
    size_t at = 0, line;
    while (got[at] && got[at] == want[at])
        at++;
    for (line = at; line > 0 && got[line - 1] != '\n'; line--)
        ;
    ck_assert_msg(got[at] == want[at], "at byte %zu:\ngot  %.300s\nwant %.300s", at, got + line,
                  want + line);
}

static inline int sb_run(Suite *s)
{
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}

#endif
