/* Session -> model. Called by the commands through gt_load_file and by finish.c; single thread.
 * Believes nothing that the file says: every reference is checked, every walk has an end. */
#include "report/load.h"
#include "report/load_slot.h"
#include "report/load_stacks.h"
#include "report/mem.h"
#include "report/overhead.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* All stacks of a session together, 128 MB: stacks share their beginnings in the file, not here. */
#define STACK_FRAMES (UINT64_C(1) << 25)

int gt_load_damaged(struct gt_loader *l, const char *why)
{
    return gt_err_set(l->e, -ENODATA, "%s: damaged: %s", l->in->path, why);
}

int64_t gt_load_ns(const struct gt_loader *l, uint64_t ticks)
{
    unsigned __int128 ns = ((unsigned __int128)ticks * l->mul + l->div / 2) / l->div;
    return ns > INT64_MAX / 4 ? INT64_MAX / 4 : (int64_t)ns;
}

static void keep_text(struct gt_loader *l, gt_ref ref, gt_text text)
{
    size_t at = (ref * 2654435761u) & (l->text_size - 1);
    while (l->texts[at].ref)
        at = (at + 1) & (l->text_size - 1);
    l->texts[at] = (struct gt_ref_text){ref, text};
}

static void grow_texts(struct gt_loader *l)
{
    struct gt_ref_text *old = l->texts;
    size_t size = l->text_size;
    l->text_size = size ? size * 2 : 1024;
    l->texts = gt_mem_new(l->text_size, sizeof *l->texts);
    for (size_t i = 0; i < size; i++)
        if (old[i].ref)
            keep_text(l, old[i].ref, old[i].text);
    free(old);
}

static int raw_text(struct gt_loader *l, gt_ref ref, const struct gt_str **s)
{
    const struct gt_str *str = gt_input_at(l->in, ref, sizeof *str);
    /* what is linked now is complete now; when the file was copied it may not have been */
    if (str && l->live && gt_load_again(l, ref, sizeof *str))
        gt_load_again(l, ref, sizeof *str + (size_t)str->len);
    if (!str || !gt_input_at(l->in, ref, sizeof *str + (size_t)str->len) || str->len > l->text_left)
        return gt_load_damaged(l, "bad text");
    l->text_left -= str->len;
    *s = str;
    return 0;
}

int gt_load_text(struct gt_loader *l, gt_ref ref, gt_text *t)
{
    const struct gt_str *s;
    int rc;
    *t = 0;
    if (!ref)
        return 0;
    if (l->text_count * 2 >= l->text_size)
        grow_texts(l);
    for (size_t at = (ref * 2654435761u) & (l->text_size - 1); l->texts[at].ref;
         at = (at + 1) & (l->text_size - 1))
        if (l->texts[at].ref == ref) {
            *t = l->texts[at].text;
            return 0;
        }
    if ((rc = raw_text(l, ref, &s)))
        return rc;
    *t = gt_model_text(l->m, s->text, s->len);
    keep_text(l, ref, *t);
    l->text_count++;
    return 0;
}

/* A NUL-separated list; the last NUL may be missing. */
static int load_list(struct gt_loader *l, gt_ref ref, struct gt_list *list)
{
    const struct gt_str *s;
    int rc;
    if (!ref)
        return 0;
    if ((rc = raw_text(l, ref, &s)))
        return rc;
    for (size_t at = 0; at < s->len;) {
        size_t n = strnlen(s->text + at, s->len - at);
        gt_model_list(l->m, list, gt_model_text(l->m, s->text + at, n));
        at += n + 1;
    }
    return 0;
}

static int by_name(const void *pa, const void *pb)
{
    const struct gt_load_name *a = pa, *b = pb;
#define BY(field)                                                                                  \
    do {                                                                                           \
        if (a->field != b->field)                                                                  \
            return a->field < b->field ? -1 : 1;                                                   \
    } while (0)
    BY(kind);
    BY(source);
    BY(domain);
    BY(id);
    BY(order);
#undef BY
    return 0;
}

static int load_names(struct gt_loader *l)
{
    size_t left = l->in->bytes / sizeof(struct gt_name);
    const struct gt_name *n;
    int rc;
    for (gt_ref ref = l->h->names; ref; ref = n->next) {
        if (!left-- || !(n = gt_input_at(l->in, ref, sizeof *n)))
            return gt_load_damaged(l, "bad list of names");
        gt_mem_grow(&l->names, &l->name_room, l->name_count, sizeof *l->names);
        struct gt_load_name *name = &l->names[l->name_count];
        /* of a thread the number says all, whoever named it */
        *name = (struct gt_load_name){n->kind, n->kind == GT_NAME_THREAD ? 0 : n->source,
                                      n->id,   (uint32_t)l->name_count,
                                      0,       0};
        l->name_count++;
        if ((rc = gt_load_text(l, n->kind == GT_NAME_THREAD ? 0 : n->domain, &name->domain)) ||
            (rc = gt_load_text(l, n->text, &name->text)))
            return rc;
    }
    if (l->name_count)
        qsort(l->names, l->name_count, sizeof *l->names, by_name);
    return 0;
}

gt_text gt_load_name(const struct gt_loader *l, uint32_t kind, uint32_t source, gt_text domain,
                     uint32_t id)
{
    /* order 0: the first that is not smaller is the newest one */
    struct gt_load_name want = {kind, source, id, 0, domain, 0};
    size_t low = 0, high = l->name_count;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (by_name(&l->names[mid], &want) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    if (low == l->name_count)
        return 0;
    const struct gt_load_name *n = &l->names[low];
    return n->kind == kind && n->source == source && n->domain == domain && n->id == id ? n->text
                                                                                        : 0;
}

/* The window may have shut by itself where no call came to tell so. */
static void set_window(struct gt_loader *l)
{
    const struct gt_header *h = l->h;
    uint64_t since = h->window_since, ticks = h->window_ticks;
    l->window = l->last;
    if (since && h->window_shut_ns && l->mul) {
        uint64_t ns =
            h->window_shut_ns > h->start.mono_ns ? h->window_shut_ns - h->start.mono_ns : 0;
        unsigned __int128 end = (unsigned __int128)ns * l->div / l->mul + h->start.ticks;
        if (end < l->last)
            l->window = (uint64_t)end;
    }
    if (since && since < l->window)
        ticks += l->window - since;
    l->m->processes[l->process].recorded_ns = gt_load_ns(l, ticks);
}

uint64_t gt_load_window_end(const struct gt_loader *l, uint32_t n)
{
    uint32_t shuts = l->h->window_shuts;
    if (n >= shuts)
        return l->window;
    if (shuts - n > GT_WINDOW_ENDS)
        n = shuts - GT_WINDOW_ENDS;
    uint64_t end = l->h->window_ends[n % GT_WINDOW_ENDS];
    return end && end < l->last ? end : l->last;
}

/* Slots of the file, each once. */
static int list_slots(struct gt_loader *l, gt_ref **refs, size_t *count)
{
    size_t room = 0, left = l->in->bytes / sizeof(struct gt_slot);
    const struct gt_slot *s;
    for (gt_ref ref = l->h->slots; ref; ref = s->next) {
        if (!left-- || !(s = gt_input_at(l->in, ref, sizeof *s)))
            return gt_load_damaged(l, "bad list of threads");
        gt_mem_grow(refs, &room, *count, sizeof **refs);
        (*refs)[(*count)++] = ref;
    }
    return 0;
}

/* Two points give the length of a tick; refuses what no clock does (over 10 GHz, under 1 MHz). */
static int usable(struct gt_loader *l, const struct gt_pair *a, const struct gt_pair *b)
{
    if (b->ticks <= a->ticks || b->mono_ns <= a->mono_ns)
        return 0;
    uint64_t ns = b->mono_ns - a->mono_ns, ticks = b->ticks - a->ticks;
    if (ticks / 10 > ns || ns / 1000 > ticks)
        return 0;
    l->mul = ns;
    l->div = ticks;
    return 1;
}

static int set_clock(struct gt_loader *l, const gt_ref *slots, size_t count, int ended)
{
    const struct gt_header *h = l->h;
    struct gt_pair now = {0}, best = h->start;
    uint64_t limit = UINT64_MAX, decade;
    int seen = !l->live && h->seen.ticks;
    int here = seen || (gt_session_same_boot(h) && !gt_clock_point(h->clock, &now));
    int rc, exact = 1;
    if (seen)
        now = h->seen;
    for (size_t i = 0; i < count; i++) {
        const struct gt_slot *s = gt_input_at(l->in, slots[i], sizeof *s);
        if (!(s->seq & 1) && s->last.ticks > best.ticks && s->last.mono_ns > best.mono_ns)
            best = s->last;
    }
    if (h->clock == GT_CLOCK_MONOTONIC)
        l->mul = l->div = 1;
    else if (!(ended && usable(l, &h->start, &h->end)) && !(here && usable(l, &h->start, &now)) &&
             !usable(l, &h->start, &best)) {
        l->mul = l->div = 1;
        exact = 0;
    }
    l->m->processes[l->process].approximate = !exact;
    if (ended && h->end.ticks >= h->start.ticks) {
        l->last = h->end.ticks;
        return 0;
    }
    if ((l->live && here) || (seen && h->seen_death && now.ticks > h->start.ticks)) {
        l->last = now.ticks;
        return 0;
    }
    /* a torn ring record may hold anything: nothing is later than now, or ten years after the start
     */
    decade = (uint64_t)((unsigned __int128)315360000000000000u * l->div / l->mul);
    if (h->start.ticks < UINT64_MAX - decade)
        limit = h->start.ticks + decade;
    if (here && now.ticks < limit)
        limit = now.ticks;
    l->last = h->start.ticks;
    for (size_t i = 0; i < count; i++)
        if ((rc = gt_load_slot_last(l, gt_input_at(l->in, slots[i], sizeof(struct gt_slot)), limit,
                                    &l->last)))
            return rc;
    return 0;
}

static int load_process(struct gt_loader *l)
{
    static const char *const clocks[] = {"unknown", "tsc", "cntvct", "monotonic"};
    const struct gt_header *h = l->h;
    struct gt_process *p = &l->m->processes[l->process];
    int rc;
    p->pid = h->pid;
    p->ppid = h->ppid;
    p->start_time = h->start_time > INT64_MAX ? INT64_MAX : (int64_t)h->start_time;
    p->sequence = h->sequence;
    p->rank = h->rank < -1 ? -1 : h->rank;
    p->crash_safe = h->crash_safe != 0;
    p->end_known = h->state == GT_STATE_ENDED || l->live || (h->seen.ticks && h->seen_death);
    p->memory_full = h->memory_full != 0;
    p->start_unix_ns = h->start_realtime_ns > INT64_MAX / 2 ? 0 : (int64_t)h->start_realtime_ns;
    p->boot_id = gt_model_textz(l->m, h->boot_id);
    p->clock = gt_model_textz(l->m, clocks[h->clock <= GT_CLOCK_MONOTONIC ? h->clock : 0]);
    if ((rc = gt_load_text(l, h->exe, &p->exe)) || (rc = gt_load_text(l, h->cwd, &p->cwd)) ||
        (rc = gt_load_text(l, h->base ? h->base : h->cwd, &p->base)) ||
        (rc = gt_load_text(l, h->host, &p->host)) ||
        (rc = gt_load_text(l, h->library, &p->library)) ||
        (rc = gt_load_text(l, h->output, &p->output)) || (rc = load_list(l, h->argv, &p->argv)))
        return rc;
    return load_list(l, h->config, &p->config);
}

static void set_end(struct gt_loader *l, int alive)
{
    struct gt_process *p = &l->m->processes[l->process];
    const struct gt_header *h = l->h;
    if (h->state == GT_STATE_ENDED)
        p->ended = GT_ENDED_EXIT;
    else if (h->state == GT_STATE_EXEC || (l->in->fd >= 0 && gt_session_followed(l->in->path, h)))
        p->ended = GT_ENDED_EXEC;
    else
        p->ended = alive ? GT_ENDED_RUNNING : GT_ENDED_KILLED;
    p->duration_ns = l->last > h->start.ticks ? gt_load_ns(l, l->last - h->start.ticks) : 0;
    for (size_t i = 0; i < GT_LOST_INDICES; i++)
        p->lost[i] = l->lost[i];
#define LOST(name, index)                                                                          \
    p->lost[GT_LOST_INDEX_##name] = h->lost[index] > INT64_MAX ? INT64_MAX : (int64_t)h->lost[index]
    LOST(memory, GT_LOST_MEMORY);
    LOST(nested, GT_LOST_NESTED);
    LOST(deep, GT_LOST_DEEP);
    LOST(late, GT_LOST_LATE);
#undef LOST
}

static int load(struct gt_loader *l, gt_ref **slots)
{
    size_t first_thread = l->m->thread_count, first_row = l->m->row_count, count = 0;
    int rc, alive = gt_session_life(l->h) == GT_LIFE_ALIVE;
    int ended = l->h->state == GT_STATE_ENDED;
    l->live = alive && l->h->state == GT_STATE_RUNNING && l->in->fd >= 0 &&
              !gt_session_followed(l->in->path, l->h);
    if ((rc = load_process(l)) || (rc = load_names(l)) || (rc = list_slots(l, slots, &count)))
        return rc;
    for (size_t i = 0; l->live && i < count; i++)
        gt_load_settle(l, (*slots)[i]);
    if ((rc = set_clock(l, *slots, count, ended)))
        return rc;
    set_window(l);
    if (l->h->call_ps)
        l->m->processes[l->process].call_ns = l->h->call_ps / 1000.0;
    else if (gt_session_same_boot(l->h)) /* elsewhere a call costs something else */
        l->m->processes[l->process].call_ns = gt_overhead_call_ns();
    rc = gt_load_modules(l);
    uint64_t left = l->trie_left;
    for (size_t i = 0; !rc && i < count; i++)
        rc = gt_load_addresses(l, gt_input_at(l->in, (*slots)[i], sizeof(struct gt_slot)));
    l->trie_left = left; /* each is read once more with its slot */
    /* the list has the newest first; people expect the first thread first */
    for (size_t i = count; !rc && i-- > 0;)
        rc = gt_load_slot(l, (*slots)[i]);
    if (rc || (rc = gt_load_activities(l)) || (rc = gt_load_driver_memory(l, first_row)))
        return rc;
    gt_model_finish(l->m, first_thread, first_row);
    set_end(l, alive);
    return 0;
}

int gt_load_session(struct gt_model *m, const struct gt_input *in, struct gt_err *e)
{
    struct gt_loader l = {.m = m, .in = in, .e = e, .mul = 1, .div = 1};
    gt_ref *slots = NULL;
    int rc;
    if (!(l.h = gt_input_header(in, e)))
        return -ENODATA;
    l.nodes_left = in->bytes / sizeof(struct gt_node);
    l.frames_left = in->bytes / sizeof(struct gt_frame);
    l.asyncs_left = in->bytes / sizeof(struct gt_async);
    l.records_left = in->bytes / sizeof(struct gt_record);
    l.text_left = in->bytes * 4u;
    l.steps_left = 200000000;
    l.trie_left = in->bytes / sizeof(struct gt_trie_node);
    l.stack_frames_left = STACK_FRAMES;
    l.process = (uint32_t)m->process_count;
    gt_model_process(m);
    rc = load(&l, &slots);
    free(slots);
    for (size_t i = 0; i < l.place_count; i++)
        free(l.places[i].rows);
    free(l.places);
    free(l.texts);
    free(l.names);
    gt_load_modules_free(&l);
    return rc;
}

int gt_load_file(struct gt_model *m, const char *path, struct gt_err *e)
{
    struct gt_input in;
    int rc = gt_input_read(&in, path, e);
    if (rc)
        return rc;
    rc = gt_input_is_session(&in) ? gt_load_session(m, &in, e) : gt_load_json(m, &in, e);
    gt_input_free(&in);
    return rc;
}
