/* Stacks of a model: lists of frames, innermost first, each list once. Called by the loaders and
 * group.c; single thread. */
#include "report/model.h"
#include "report/mem.h"
#include <stdlib.h>
#include <string.h>

static uint64_t hash_of(const gt_text *frames, size_t count)
{
    uint64_t h = 0x9e3779b97f4a7c15u ^ count;
    for (size_t i = 0; i < count; i++) {
        h = (h ^ frames[i]) * 0xff51afd7ed558ccdu;
        h ^= h >> 32;
    }
    return h;
}

static void rehash(struct gt_model *m)
{
    free(m->stack_hash);
    m->stack_hash_size = m->stack_hash_size ? m->stack_hash_size * 2 : 256;
    m->stack_hash = gt_mem_new(m->stack_hash_size, sizeof *m->stack_hash);
    for (size_t i = 0; i < m->stack_count; i++) {
        const struct gt_list *s = &m->stacks[i];
        size_t at = hash_of(m->lists + s->first, s->count) & (m->stack_hash_size - 1);
        while (m->stack_hash[at])
            at = (at + 1) & (m->stack_hash_size - 1);
        m->stack_hash[at] = (uint32_t)i + 1;
    }
}

uint32_t gt_model_stack(struct gt_model *m, const gt_text *frames, size_t count)
{
    if (!count)
        return 0;
    if (m->stack_count * 2 >= m->stack_hash_size)
        rehash(m);
    size_t at = hash_of(frames, count) & (m->stack_hash_size - 1);
    for (; m->stack_hash[at]; at = (at + 1) & (m->stack_hash_size - 1)) {
        const struct gt_list *s = &m->stacks[m->stack_hash[at] - 1];
        if (s->count == count && !memcmp(m->lists + s->first, frames, count * sizeof *frames))
            return m->stack_hash[at];
    }
    struct gt_list list = {0};
    for (size_t i = 0; i < count; i++)
        gt_model_list(m, &list, frames[i]);
    gt_mem_grow(&m->stacks, &m->stack_room, m->stack_count, sizeof *m->stacks);
    m->stacks[m->stack_count++] = list;
    return m->stack_hash[at] = (uint32_t)m->stack_count;
}

struct gt_list gt_model_frames(const struct gt_model *m, uint32_t stack, uint32_t most)
{
    struct gt_list none = {0}, all = stack ? m->stacks[stack - 1] : none;
    if (most && all.count > most)
        all.count = most;
    return all;
}
