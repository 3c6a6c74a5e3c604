/* See part.h. */
#include "report/part.h"
#include "report/mem.h"
#include <stdlib.h>

#define GONE UINT32_MAX

void gt_part_init(struct gt_model *part, const struct gt_model *m, size_t process)
{
    uint32_t *thread = gt_mem_new(m->thread_count, sizeof *thread);
    uint32_t *row = gt_mem_new(m->row_count, sizeof *row);
    *part = *m;
    part->process_count = part->thread_count = part->row_count = 0;
    part->open_count = part->device_count = 0;
    part->processes = gt_mem_new(1, sizeof *part->processes);
    part->threads = gt_mem_new(m->thread_count, sizeof *part->threads);
    part->rows = gt_mem_new(m->row_count, sizeof *part->rows);
    part->open = gt_mem_new(m->open_count, sizeof *part->open);
    part->devices = gt_mem_new(m->device_count, sizeof *part->devices);
    part->processes[part->process_count++] = m->processes[process];
    for (size_t i = 0; i < m->thread_count; i++) {
        thread[i] = m->threads[i].process == process ? (uint32_t)part->thread_count : GONE;
        if (thread[i] == GONE)
            continue;
        part->threads[part->thread_count] = m->threads[i];
        part->threads[part->thread_count++].process = 0;
    }
    for (size_t i = 0; i < m->row_count; i++) {
        struct gt_row *r = &part->rows[part->row_count];
        row[i] = thread[m->rows[i].thread] == GONE ? GONE : (uint32_t)part->row_count;
        if (row[i] == GONE)
            continue;
        *r = m->rows[i];
        r->thread = thread[r->thread];
        /* a row above is of the same thread */
        r->parent = r->parent >= 0 ? (int32_t)row[r->parent] : -1;
        part->row_count++;
    }
    for (size_t i = 0; i < m->open_count; i++) {
        uint32_t at = row[m->open[i].row];
        if (at == GONE)
            continue;
        part->open[part->open_count] = m->open[i];
        part->open[part->open_count++].row = (int32_t)at;
    }
    for (size_t i = 0; i < m->device_count; i++) {
        if (m->devices[i].process != process)
            continue;
        part->devices[part->device_count] = m->devices[i];
        part->devices[part->device_count++].process = 0;
    }
    free(thread);
    free(row);
}

void gt_part_fini(struct gt_model *part)
{
    free(part->processes);
    free(part->threads);
    free(part->rows);
    free(part->open);
    free(part->devices);
}
