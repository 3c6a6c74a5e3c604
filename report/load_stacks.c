/* See load_stacks.h. */
#include "report/load_stacks.h"
#include "report/mem.h"
#include "report/symbols.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct gt_load_module {
    uint32_t id, module; /* of the file; of the model */
    int own;             /* libgputally.so: what it called to capture the stack is no part of it */
    const struct gt_module *as; /* in the copy */
    struct gt_symbols *symbols; /* opened for the first frame that wants a name */
    struct gt_load_address {
        uint64_t offset;
        int exact;
    } * addresses; /* of all frames, for gt_symbols_want; freed then */
    size_t address_count, address_room;
};

static int by_id(const void *pa, const void *pb)
{
    const struct gt_load_module *a = pa, *b = pb;
    return a->id < b->id ? -1 : a->id > b->id;
}

static const char *base(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static int add_module(struct gt_loader *l, const struct gt_module *d)
{
    struct gt_model *m = l->m;
    struct gt_stack_module to = {0};
    char hex[2 * GT_BUILD_ID_MAX + 1] = "";
    int rc = gt_load_text(l, d->path, &to.path);
    if (rc)
        return rc;
    if (d->build_id_bytes > GT_BUILD_ID_MAX)
        return gt_load_damaged(l, "bad module");
    for (uint32_t i = 0; i < d->build_id_bytes; i++)
        snprintf(hex + (size_t)2 * i, 3, "%02x", d->build_id[i]);
    to.build_id = gt_model_textz(m, hex);
    const char *library = gt_model_string(m, m->processes[l->process].library, NULL);
    gt_mem_grow(&l->modules, &l->module_room, l->module_count, sizeof *l->modules);
    l->modules[l->module_count++] = (struct gt_load_module){
        .id = d->id,
        .module = gt_stacks_module(m, &to),
        /* by name: the loader may know it by another path to the same file */
        .own = *library && !strcmp(base(library), base(gt_model_string(m, to.path, NULL))),
        .as = d};
    return 0;
}

int gt_load_modules(struct gt_loader *l)
{
    size_t left = l->in->bytes / sizeof(struct gt_module);
    gt_ref ref = l->h->modules;
    const struct gt_module *d;
    int rc;
    /* a living process may have linked one since its file was copied */
    if (l->live && pread(l->in->fd, &ref, sizeof ref, offsetof(struct gt_header, modules)) !=
                       (ssize_t)sizeof ref)
        ref = l->h->modules;
    for (; ref; ref = d->next) {
        if (l->live && !gt_load_again(l, ref, sizeof *d))
            break;
        if (!left-- || !(d = gt_input_at(l->in, ref, sizeof *d)))
            return gt_load_damaged(l, "bad list of modules");
        if ((rc = add_module(l, d)))
            return rc;
    }
    if (l->module_count)
        qsort(l->modules, l->module_count, sizeof *l->modules, by_id);
    return 0;
}

void gt_load_modules_free(struct gt_loader *l)
{
    for (size_t i = 0; i < l->module_count; i++) {
        gt_symbols_free(l->modules[i].symbols);
        free(l->modules[i].addresses);
    }
    free(l->modules);
}

/* NULL: not known. */
static struct gt_load_module *module_of(const struct gt_loader *l, uint32_t id)
{
    struct gt_load_module want = {.id = id};
    return id && l->module_count ? bsearch(&want, l->modules, l->module_count, sizeof want, by_id)
                                 : NULL;
}

int gt_load_trie(struct gt_loader *l, const struct gt_slot *s, struct gt_load_trie *t)
{
    const struct gt_trie_chunk *c;
    uint32_t want = s->stacks ? s->stack_count : 0;
    if (!want)
        return 0;
    if (want > l->trie_left)
        return gt_load_damaged(l, "more stacks than fit");
    l->trie_left -= want;
    t->nodes = gt_mem_new(want, sizeof *t->nodes);
    t->frames = gt_mem_new(want, sizeof *t->frames);
    for (gt_ref ref = s->stacks; t->count < want; ref = c->next) {
        if (l->live)
            gt_load_again(l, ref, sizeof *c);
        if (!(c = gt_input_at(l->in, ref, sizeof *c)))
            return gt_load_damaged(l, "bad chunk of stacks");
        uint32_t n = want - t->count;
        if (n > c->capacity)
            n = c->capacity;
        size_t bytes = sizeof *c + n * sizeof *c->nodes;
        if (!n || c->first != t->count || !gt_input_at(l->in, ref, bytes))
            return gt_load_damaged(l, "bad chunk of stacks");
        if (l->live)
            gt_load_again(l, ref, bytes);
        memcpy(t->nodes + t->count, c->nodes, n * sizeof *c->nodes);
        t->count += n;
    }
    return 0;
}

void gt_load_trie_free(struct gt_load_trie *t)
{
    free(t->nodes);
    free(t->frames);
    free(t->pairs);
    free(t->lists[0]);
    free(t->lists[1]);
}

static uint64_t offset_of(const struct gt_load_module *module, uint64_t pc)
{
    return ((pc & ~GT_TRIE_EXACT) - (module ? module->as->bias : 0)) & INT64_MAX;
}

int gt_load_addresses(struct gt_loader *l, const struct gt_slot *s)
{
    struct gt_load_trie t = {0};
    int rc = gt_load_trie(l, s, &t);
    for (uint32_t i = GT_TRIE_FIRST; !rc && i < t.count; i++) {
        uint64_t pc = t.nodes[i].pc;
        struct gt_load_module *m = pc & GT_TRIE_PYTHON ? NULL : module_of(l, t.nodes[i].module);
        if (!m)
            continue;
        gt_mem_grow(&m->addresses, &m->address_room, m->address_count, sizeof *m->addresses);
        m->addresses[m->address_count++] =
            (struct gt_load_address){offset_of(m, pc), (pc & GT_TRIE_EXACT) != 0};
    }
    gt_load_trie_free(&t);
    return rc;
}

static int python_frame(struct gt_loader *l, uint64_t pc, struct gt_stack_frame *f)
{
    gt_ref ref = GT_TRIE_CODE(pc);
    const struct gt_code *c;
    int rc;
    if (l->live)
        gt_load_again(l, ref, sizeof *c);
    if (!(c = gt_input_at(l->in, ref, sizeof *c)))
        return gt_load_damaged(l, "bad code object");
    f->kind = GT_STACK_IS_PYTHON;
    f->line = GT_TRIE_LINE(pc);
    f->entry = (pc & GT_TRIE_ENTRY) != 0;
    if (!(rc = gt_load_text(l, c->name, &f->function)))
        rc = gt_load_text(l, c->file, &f->file);
    return rc;
}

/* Here, where the program ran: its files may be others tomorrow. */
static gt_text function_at(struct gt_loader *l, struct gt_load_module *module,
                           const struct gt_stack_frame *f)
{
    const struct gt_module *d = module->as;
    struct gt_symbol symbol;
    if (!module->symbols) {
        const struct gt_stack_module *known = &l->m->modules[module->module - 1];
        struct gt_symbols_of of = {.path = gt_model_string(l->m, known->path, NULL),
                                   .build_id = d->build_id_bytes ? d->build_id : NULL,
                                   .build_id_bytes = d->build_id_bytes,
                                   .pid = l->live ? l->h->pid : 0,
                                   .start = d->start,
                                   .end = d->end};
        module->symbols = gt_symbols_open(&of, NULL);
        l->m->modules[module->module - 1].no_names = (uint8_t)gt_symbols_no_names(module->symbols);
        for (size_t i = 0; i < module->address_count; i++)
            gt_symbols_want(module->symbols, module->addresses[i].offset,
                            module->addresses[i].exact);
        free(module->addresses);
        module->addresses = NULL;
        module->address_count = 0;
    }
    if (gt_symbols_at(module->symbols, f->offset, f->exact, &symbol))
        return 0;
    return gt_model_textz(l->m, symbol.name);
}

static void native_frame(struct gt_loader *l, const struct gt_trie_node *n,
                         struct gt_stack_frame *f)
{
    struct gt_load_module *module = module_of(l, n->module);
    f->kind = GT_STACK_IS_NATIVE;
    f->exact = (n->pc & GT_TRIE_EXACT) != 0;
    f->module = module ? module->module : 0;
    f->offset = offset_of(module, n->pc);
    if (module)
        f->function = function_at(l, module, f);
}

/* The model's frame of a node of the trie. */
static int frame_of(struct gt_loader *l, struct gt_load_trie *t, uint32_t id, uint32_t *frame)
{
    struct gt_stack_frame f = {0};
    int rc = 0;
    if (!t->frames[id]) {
        if (t->nodes[id].pc & GT_TRIE_PYTHON)
            rc = python_frame(l, t->nodes[id].pc, &f);
        else
            native_frame(l, &t->nodes[id], &f);
        t->frames[id] = gt_stacks_frame(l->m, &f) + 1;
    }
    *frame = t->frames[id] - 1;
    return rc;
}

static void put(struct gt_load_trie *t, int which, size_t *count, uint32_t frame)
{
    gt_mem_grow(&t->lists[which], &t->rooms[which], *count, sizeof frame);
    t->lists[which][(*count)++] = frame;
}

/* What lies below the outermost frame. */
static void put_root(struct gt_loader *l, struct gt_load_trie *t, int which, size_t *count,
                     uint32_t root)
{
    static const char *const notes[GT_TRIE_FIRST] = {NULL, "(other stacks)", "(truncated)",
                                                     "(cut)"};
    struct gt_stack_frame f = {.kind = GT_STACK_IS_NOTE};
    if (!notes[root])
        return;
    f.function = gt_model_textz(l->m, notes[root]);
    put(t, which, count, gt_stacks_frame(l->m, &f));
}

/* The frames from `id` outwards into t->lists[which]. */
static int walk(struct gt_loader *l, struct gt_load_trie *t, int which, uint32_t id, size_t *count)
{
    int rc, inside = 1; /* of our own library, where every captured stack begins */
    uint32_t frame;
    for (; id >= GT_TRIE_FIRST; id = t->nodes[id].parent) {
        const struct gt_load_module *m;
        if (id >= t->count && l->live)
            return 0; /* made after we had read the file */
        if (id >= t->count || t->nodes[id].parent >= id)
            return gt_load_damaged(l, "bad stack");
        if (!l->stack_frames_left)
            return -E2BIG;
        l->stack_frames_left--;
        if (inside && !(t->nodes[id].pc & GT_TRIE_PYTHON) &&
            (m = module_of(l, t->nodes[id].module)) && m->own)
            continue;
        inside = 0;
        if ((rc = frame_of(l, t, id, &frame)))
            return rc;
        put(t, which, count, frame);
    }
    put_root(l, t, which, count, id);
    return 0;
}

static struct gt_load_pair *find(const struct gt_load_trie *t, uint32_t native, uint32_t python)
{
    uint64_t h = ((uint64_t)native << 32 | python) * 0x9e3779b97f4a7c15u;
    size_t at = (h ^ h >> 32) & (t->pair_size - 1);
    while ((t->pairs[at].native || t->pairs[at].python) &&
           (t->pairs[at].native != native || t->pairs[at].python != python))
        at = (at + 1) & (t->pair_size - 1);
    return &t->pairs[at];
}

static void grow(struct gt_load_trie *t)
{
    struct gt_load_pair *old = t->pairs;
    size_t size = t->pair_size;
    t->pair_size = size ? size * 2 : 64;
    t->pairs = gt_mem_new(t->pair_size, sizeof *t->pairs);
    for (size_t i = 0; i < size; i++)
        if (old[i].native || old[i].python)
            *find(t, old[i].native, old[i].python) = old[i];
    free(old);
}

int gt_load_stack(struct gt_loader *l, struct gt_load_trie *t, const struct gt_node *n,
                  uint32_t *stack)
{
    size_t pythons = 0, natives = 0;
    int rc;
    *stack = 0;
    if (!n->stack && !n->python)
        return 0;
    if (t->pair_count * 2 >= t->pair_size)
        grow(t);
    struct gt_load_pair *pair = find(t, n->stack, n->python);
    if (!pair->native && !pair->python) {
        if ((rc = walk(l, t, 0, n->python, &pythons)) || (rc = walk(l, t, 1, n->stack, &natives))) {
            int64_t *lost = &l->lost[GT_LOST_INDEX_stack_missing];
            if (rc == -E2BIG)
                *lost = gt_add(*lost, n->count > INT64_MAX ? INT64_MAX : (int64_t)n->count);
            return rc == -E2BIG ? 0 : rc;
        }
        *pair = (struct gt_load_pair){
            n->stack, n->python, gt_stacks_add(l->m, t->lists[0], pythons, t->lists[1], natives)};
        t->pair_count++;
    }
    *stack = pair->stack;
    return 0;
}
