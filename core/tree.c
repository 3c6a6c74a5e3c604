/* The calling context tree of one thread: finding and making nodes. Off the hot path: a call comes
 * here when its name is not the one expected next. Runs on the owning thread, no locks. */
#include <string.h>
#include "core/session.h"
#include "core/strings.h"
#include "core/sys.h"
#include "core/text.h"
#include "core/thread.h"
#include "core/window.h"

#define FOLD_NAMES                                                                                 \
    1024u /* names under one parent that are equal but for numbers, before they fold */
#define FOLD_SHAPES 256u /* input shapes of one key under one parent */
#define FOLD_STACKS 256u /* stacks likewise */
#define FIRST_CHUNK 31u  /* with its head, 4 KiB */
#define LAST_CHUNK 4096u

struct gt_link gt_link_none = {
    .text = "", .tag = ~(gt_tag)0, .fits = -1, .after = &gt_link_none, .last = &gt_link_none};

/* Names left out by INCLUDE and EXCLUDE that a thread remembers, and how long they may be; others
 * are judged anew at each call, which takes about as long as finding them. */
#define LEFT_OUT_MOST 4096u
#define LEFT_OUT_BYTES 256u

/* What makes a child of a given parent. */
struct identity {
    gt_tag tag;
    const char *key, *shapes, *overload;
    size_t key_len, shapes_len, overload_len;
    struct gt_stack_ids stack;
    uint8_t scope, flags;
};

/* ---- private memory of the thread ---- */

static void *pool_alloc(struct gt_thread *t, size_t bytes)
{
    bytes = (bytes + 63) / 64 * 64;
    if ((size_t)(t->pool_end - t->pool) < bytes) {
        size_t block = bytes > 16384 - 64 ? bytes : 16384 - 64; /* whole pages: see there */
        char *p = gt_private_alloc(block);
        if (!p)
            return NULL;
        t->pool = p;
        t->pool_end = p + block;
    }
    void *p = t->pool;
    t->pool += bytes;
    return p;
}

/* ---- hash tables ---- */

/* Makes room for one more entry: grows at 3/4 full. The old array is left behind: at most as much
 * again, and nothing in this memory is ever moved under a reader. Returns 0 or -ENOMEM. */
static int table_room(struct gt_thread *t, struct gt_table *table)
{
    struct gt_table_entry *old = table->entries, *e;
    uint32_t old_size = old ? table->mask + 1 : 0, size = old ? 2 * old_size : 64;
    if (old && 4 * (table->used + 1) <= 3 * old_size)
        return 0;
    e = pool_alloc(t, size * sizeof *e);
    if (!e)
        return -ENOMEM;
    for (uint32_t i = 0; i < old_size; i++)
        if (old[i].link || old[i].count) {
            uint32_t k = old[i].hash;
            while (e[k & (size - 1)].link || e[k & (size - 1)].count)
                k++;
            e[k & (size - 1)] = old[i];
        }
    table->entries = e;
    table->mask = size - 1;
    return 0;
}

/* ---- looking up ---- */

/* Is the text at `ref` this one? No text (ref 0) is no text (s NULL). */
static int text_is(gt_ref ref, const char *s, size_t n)
{
    if (!ref || !s)
        return !ref && !s;
    const struct gt_str *p = gt_session_at(ref);
    return p->len == n && memcmp(p->text, s, n) == 0;
}

static uint32_t identity_hash(const struct gt_link *parent, const struct identity *id)
{
    uint32_t h = gt_hash(id->key, id->key_len,
                         GT_RECORD_NODE(parent->record) ^ (uint32_t)(id->tag >> 32) * 0x85ebu ^
                             (uint32_t)id->tag * 0xc2b2ae35u);
    if (id->shapes_len)
        h = gt_hash(id->shapes, id->shapes_len, h);
    if (id->overload_len)
        h = gt_hash(id->overload, id->overload_len, h);
    return (h ^ id->flags) + id->stack.native * 0x9e3779b1u + id->stack.python * 0xc2b2ae3du;
}

static int is_child(const struct gt_link *c, const struct gt_link *parent,
                    const struct identity *id)
{
    if (c->parent != parent || c->tag != id->tag)
        return 0;
    if (!c->node) /* a name that is left out */
        return strncmp(c->text, id->key, id->key_len) == 0 && !c->text[id->key_len];
    return c->node->stack == id->stack.native && c->node->python == id->stack.python &&
           text_is(c->node->key, id->key, id->key_len) && c->node->flags == id->flags &&
           text_is(c->node->shapes, id->shapes, id->shapes_len) &&
           text_is(c->node->overload, id->overload, id->overload_len);
}

static struct gt_link *find(const struct gt_thread *t, const struct gt_link *parent,
                            const struct identity *id, uint32_t hash)
{
    const struct gt_table *table = &t->children;
    if (!table->entries)
        return NULL;
    for (uint32_t i = hash;; i++) {
        const struct gt_table_entry *e = &table->entries[i & table->mask];
        if (!e->link)
            return NULL;
        if (e->hash == hash && is_child(e->link, parent, id))
            return e->link;
    }
}

/* ---- making ---- */

static struct gt_node *new_node(struct gt_thread *t, uint32_t *index)
{
    struct gt_slot *slot = t->slot;
    struct gt_node_chunk *c = t->chunk;
    uint32_t n = atomic_load_explicit(&slot->node_count, memory_order_relaxed);
    if (n >= GT_MAX_NODES)
        return NULL;
    if (!c || n == c->first + c->capacity) {
        uint32_t capacity = !c ? FIRST_CHUNK : c->capacity < 64 ? 64 : 2 * c->capacity;
        gt_ref ref;
        if (capacity > LAST_CHUNK)
            capacity = LAST_CHUNK;
        struct gt_node_chunk *next =
            gt_session_alloc(sizeof *c + capacity * sizeof(struct gt_node), &ref);
        if (!next)
            return NULL;
        next->first = n;
        next->capacity = capacity;
        /* readers follow this only as far as node_count says, which comes later */
        if (c)
            c->next = ref;
        else
            slot->chunks = ref;
        t->chunk = c = next;
    }
    *index = n;
    return &c->nodes[n - c->first];
}

/* Fills in what gt_hot_same needs. It looks at nothing but the name, so a node that is more than
 * its name (shapes, an overload, many names folded) is never found that way. */
static void prepare_compare(struct gt_link *c, const struct identity *id)
{
    size_t n = id->key_len + 1; /* the NUL is compared too */
    size_t whole = (n - 1) / 8 * 8;
    int may = whole <= 4080 && !id->shapes_len && !id->overload_len && !id->flags;
    c->whole = may ? (uint16_t)whole : 0;
    c->shift = (uint8_t)(64 - 8 * (n - whole));
    c->fits = may ? 4096 - 8 - 1 - (int32_t)whole : -1;
}

static void put(struct gt_thread *t, struct gt_link *c, uint32_t hash)
{
    uint32_t i = hash;
    while (t->children.entries[i & t->children.mask].link)
        i++;
    t->children.entries[i & t->children.mask] = (struct gt_table_entry){hash, 0, c};
    t->children.used++;
}

static struct gt_link *make(struct gt_thread *t, struct gt_link *parent, const struct identity *id,
                            uint32_t hash)
{
    uint32_t index, domain_id = (id->tag >> 32) & 0xffff;
    gt_ref key = 0, shapes = 0, overload = 0, domain = 0;
    const char *domain_name = gt_domain_name(domain_id);
    const struct gt_str *text = gt_strings_session(id->key, id->key_len, &key);
    if (!text || (id->shapes_len && !gt_strings_session(id->shapes, id->shapes_len, &shapes)) ||
        (id->overload_len && !gt_strings_session(id->overload, id->overload_len, &overload)) ||
        (*domain_name && !gt_strings_session(domain_name, strlen(domain_name), &domain)) ||
        table_room(t, &t->children) < 0)
        return NULL;
    struct gt_link *c = pool_alloc(t, sizeof *c);
    struct gt_node *n = c ? new_node(t, &index) : NULL;
    if (!n)
        return NULL;
    n->parent = GT_RECORD_NODE(parent->record);
    n->key = key;
    n->domain = domain;
    n->source = (uint8_t)(id->tag >> 56);
    /* there the scope tells nodes apart */
    n->category = n->source == GT_SOURCE_TORCH ? 0 : (uint32_t)id->tag;
    n->shapes = shapes;
    n->overload = overload;
    n->stack = id->stack.native;
    n->python = id->stack.python;
    n->kind = (uint8_t)(GT_KIND_RANGE + ((id->tag >> 48) & 0xff));
    n->scope = id->scope;
    n->flags = id->flags;
    n->min_ticks = UINT64_MAX;
    /* release: a reader that sees the count sees the node's fixed fields */
    atomic_store_explicit(&t->slot->node_count, index + 1, memory_order_release);
    *c = (struct gt_link){.text = text->text,
                          .node = n,
                          .tag = id->tag,
                          .parent = parent,
                          .last = &gt_link_none,
                          .record = (uint32_t)GT_RING_RANGE << 28 | index,
                          .group = GT_TAG_GROUP(id->tag)};
    c->step = (uint8_t)gt_window_is_step(id->tag, id->key, id->key_len);
    prepare_compare(c, id);
    c->after = c;
    put(t, c, hash);
    return c;
}

/* ---- leaving out ---- */

int gt_tree_left_out(gt_tag tag, const char *name, size_t n)
{
    if (!*gt_config.include && !*gt_config.exclude)
        return 0;
    const char *domain = gt_domain_name((tag >> 32) & 0xffff);
    const struct gt_label l = {domain, name, strlen(domain), n};
    return gt_config_left_out(&gt_config, &l);
}

/* Remembers that the name is left out below this parent: a link without a node, which the fast way
 * never meets since no `after` leads there. */
static void remember_left_out(struct gt_thread *t, struct gt_link *parent,
                              const struct identity *id, uint32_t hash)
{
    if (t->left_out >= LEFT_OUT_MOST || id->key_len >= LEFT_OUT_BYTES ||
        table_room(t, &t->children) < 0)
        return;
    struct gt_link *c = pool_alloc(t, sizeof *c + id->key_len + 1);
    if (!c)
        return;
    memcpy(c + 1, id->key, id->key_len); /* the pool's memory is zero */
    *c = (struct gt_link){.text = (const char *)(c + 1), .tag = id->tag, .parent = parent};
    put(t, c, hash);
    t->left_out++;
}

/* ---- folding ---- */

/* The count for `hash`; an empty one if there is none yet. The table has room. */
static struct gt_table_entry *fold_entry(struct gt_thread *t, uint32_t hash)
{
    for (uint32_t i = hash;; i++) {
        struct gt_table_entry *e = &t->folds.entries[i & t->folds.mask];
        if (!e->count || e->hash == hash)
            return e;
    }
}

/* Counts one more variant of (parent, what); returns how many there were, UINT32_MAX if it can't
 * count. Two things with one hash share a count: folding then starts a little early. */
static uint32_t variants(struct gt_thread *t, const struct gt_link *parent, const char *what,
                         size_t n, gt_tag tag, uint32_t limit)
{
    uint32_t hash =
        gt_hash(what, n, GT_RECORD_NODE(parent->record) * 2 + limit + (uint32_t)(tag >> 32)) | 1;
    if (table_room(t, &t->folds) < 0)
        return UINT32_MAX;
    struct gt_table_entry *e = fold_entry(t, hash);
    if (e->count)
        return e->count < limit ? e->count++ : e->count;
    e->hash = hash;
    e->count = 1;
    t->folds.used++;
    return 0;
}

static int has_stack(const struct identity *id)
{
    return id->stack.native || id->stack.python;
}

/* Of all that `id` is but its stack. */
static uint32_t plain_hash(const struct gt_link *parent, const struct identity *id)
{
    struct identity plain = *id;
    plain.stack = (struct gt_stack_ids){0, 0};
    return identity_hash(parent, &plain) | 1;
}

static int is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static int is_hex(char c)
{
    return is_digit(c) || ((c | 32) >= 'a' && (c | 32) <= 'f');
}

static int is_alnum(char c)
{
    return is_digit(c) || ((c | 32) >= 'a' && (c | 32) <= 'z');
}

/* Length of the number at s[i], 0 if there is none: "0x1f", a word of hex digits that has a decimal
 * one ("3fa8"), or a run of decimal digits ("12" in "step12"). */
static size_t number_at(const char *s, size_t n, size_t i)
{
    size_t j = i, digits = 0;
    if (s[i] == '0' && i + 2 < n && (s[i + 1] | 32) == 'x' && is_hex(s[i + 2])) {
        for (j = i + 2; j < n && is_hex(s[j]);)
            j++;
        return j - i;
    }
    if (!i || !is_alnum(s[i - 1])) {
        for (; j < n && is_hex(s[j]); j++)
            digits += (size_t)is_digit(s[j]);
        if (digits && (j == n || !is_alnum(s[j])))
            return j - i;
    }
    for (j = i; j < n && is_digit(s[j]);)
        j++;
    return j - i;
}

size_t gt_tree_template(const char *s, size_t n, char *out)
{
    size_t k = 0, any = 0, number;
    if (n >= GT_TEMPLATE_MAX)
        return 0;
    for (size_t i = 0; i < n; i += number ? number : 1) {
        number = number_at(s, n, i);
        any |= number;
        out[k++] = number ? '*' : s[i];
    }
    return any ? k : 0;
}

/* Applies the limits to a new identity. Returns 1 if it now stands for many. */
static int fold(struct gt_thread *t, const struct gt_link *parent, struct identity *id,
                char *template)
{
    int folded = 0;
    uint32_t plain = has_stack(id) && table_room(t, &t->folds) == 0 ? plain_hash(parent, id) : 0;
    /* a name is one variant, however many stacks it comes with */
    if (plain && fold_entry(t, plain)->count)
        return 0;
    size_t n = gt_tree_template(id->key, id->key_len, template);
    if (n && variants(t, parent, template, n, id->tag, FOLD_NAMES) >= FOLD_NAMES) {
        id->key = template;
        id->key_len = n;
        folded = 1;
    }
    if (id->shapes_len &&
        variants(t, parent, id->key, id->key_len, id->tag, FOLD_SHAPES) >= FOLD_SHAPES) {
        id->shapes = "other shapes";
        id->shapes_len = strlen(id->shapes);
        folded = 1;
    }
    if (folded) {
        id->flags |= GT_NODE_FOLDED;
    } else if (plain && table_room(t, &t->folds) == 0) {
        *fold_entry(t, plain) = (struct gt_table_entry){.hash = plain, .count = 1};
        t->folds.used++;
    }
    return folded;
}

/* Likewise to its stack. The row stays the name's, so it is none that stands for many. */
static int fold_stack(struct gt_thread *t, const struct gt_link *parent, struct identity *id)
{
    /* bits of a tag that no source has: a count of their own */
    const gt_tag tag = id->tag | (gt_tag)1 << 63;
    if (!has_stack(id) || variants(t, parent, id->key, id->key_len, tag, FOLD_STACKS) < FOLD_STACKS)
        return 0;
    id->stack = (struct gt_stack_ids){GT_TRIE_OTHER, GT_TRIE_OTHER};
    return 1;
}

struct gt_link *gt_tree_child(struct gt_thread *t, struct gt_link *parent, gt_tag tag,
                              const struct gt_attr *a)
{
    return gt_tree_child_at(t, parent, tag, a, (struct gt_stack_ids){0, 0});
}

struct gt_link *gt_tree_child_at(struct gt_thread *t, struct gt_link *parent, gt_tag tag,
                                 const struct gt_attr *a, struct gt_stack_ids stack)
{
    char template[GT_TEMPLATE_MAX];
    struct identity id = {
        .tag = tag, .key = a->name ? a->name : "(null)", .scope = a->scope, .stack = stack};
    id.key_len = gt_name_length(id.key);
    if (a->shapes && *a->shapes && gt_config.record_shapes) {
        id.shapes = a->shapes;
        id.shapes_len = gt_name_length(a->shapes);
    }
    if (a->overload && *a->overload) {
        id.overload = a->overload;
        id.overload_len = gt_name_length(a->overload);
    }
    uint32_t hash = identity_hash(parent, &id);
    struct gt_link *c = find(t, parent, &id, hash);
    if (c ? !c->node : gt_tree_left_out(tag, id.key, id.key_len)) {
        if (!c)
            remember_left_out(t, parent, &id, hash);
        t->slot->excluded++;
        return NULL;
    }
    if (!c) {
        if (fold(t, parent, &id, template)) {
            t->slot->folded++;
            hash = identity_hash(parent, &id);
            c = find(t, parent, &id, hash);
        }
        if (!c && fold_stack(t, parent, &id)) {
            t->slot->stack_folded++;
            hash = identity_hash(parent, &id);
            c = find(t, parent, &id, hash);
        }
        if (!c)
            c = make(t, parent, &id, hash);
        if (!c) {
            t->slot->folded += !(id.flags & GT_NODE_FOLDED);
            return t->other;
        }
    }
    if (c->step)
        return c;
    if (parent->last != &gt_link_none)
        parent->last->after = c;
    parent->last = c;
    return c;
}

int gt_tree_init(struct gt_thread *t)
{
    struct identity root = {.key = "", .flags = 0},
                    other = {.key = "(other)", .key_len = 7, .flags = GT_NODE_FOLDED};
    struct gt_link top = {.last = &gt_link_none};
    t->root = make(t, &top, &root, 0);
    if (!t->root)
        return -ENOMEM;
    t->root->parent = t->root;
    t->root->node->kind = GT_KIND_ROOT;
    t->other = make(t, t->root, &other, identity_hash(t->root, &other));
    return t->other ? 0 : -ENOMEM;
}

void gt_tree_value(struct gt_node *n, double value)
{
    struct gt_extra *x;
    if (!n->extra) {
        gt_ref ref;
        x = gt_session_alloc(sizeof *x, &ref);
        if (!x)
            return;
        x->min = x->max = value;
        n->extra = ref;
    }
    x = gt_session_at(n->extra);
    x->sum += value;
    x->min = value < x->min ? value : x->min;
    x->max = value > x->max ? value : x->max;
    x->last = value;
    x->count++;
}

struct gt_op_stats *gt_tree_op(struct gt_node *n)
{
    gt_ref ref;
    if (!n->op) {
        if (!gt_session_alloc(sizeof(struct gt_op_stats), &ref))
            return NULL;
        n->op = ref;
    }
    return gt_session_at(n->op);
}
