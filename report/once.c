/* See once.h. Called by cmd_report.c after each file: a report may be named twice, or beside the
 * session it was made from, or beside a report of several processes that has it too. */
#include "report/once.h"
#include "report/mem.h"
#include <stdlib.h>

#define GONE UINT32_MAX

static int same(const struct gt_process *a, const struct gt_process *b)
{
    /* the start to the ns too: pid and ticks can be equal in two containers of one machine */
    return a->pid == b->pid && a->start_time == b->start_time && a->boot_id == b->boot_id &&
           a->sequence == b->sequence && a->start_unix_ns == b->start_unix_ns;
}

static int is_known(const struct gt_model *m, size_t process, size_t known)
{
    for (size_t i = 0; i < known; i++)
        if (same(&m->processes[i], &m->processes[process]))
            return 1;
    return 0;
}

size_t gt_once(struct gt_model *m, const struct gt_model *before)
{
    uint32_t *process = gt_mem_new(m->process_count, sizeof *process);
    uint32_t *thread = gt_mem_new(m->thread_count, sizeof *thread);
    uint32_t *row = gt_mem_new(m->row_count, sizeof *row);
    size_t n = before->process_count, gone;

    for (size_t i = n; i < m->process_count; i++) {
        process[i] = is_known(m, i, before->process_count) ? GONE : (uint32_t)n;
        if (process[i] != GONE)
            m->processes[n++] = m->processes[i];
    }
    gone = m->process_count - n;
    m->process_count = n;
    n = before->thread_count;
    for (size_t i = n; gone && i < m->thread_count; i++) {
        struct gt_thread t = m->threads[i];
        thread[i] = process[t.process] == GONE ? GONE : (uint32_t)n;
        t.process = process[t.process];
        if (thread[i] != GONE)
            m->threads[n++] = t;
    }
    m->thread_count = gone ? n : m->thread_count;
    n = before->row_count;
    for (size_t i = n; gone && i < m->row_count; i++) {
        struct gt_row r = m->rows[i];
        row[i] = thread[r.thread] == GONE ? GONE : (uint32_t)n;
        r.thread = thread[r.thread];
        /* a row above is of the same thread, or not there */
        if (r.parent >= 0)
            r.parent = (int32_t)row[r.parent];
        if (row[i] != GONE)
            m->rows[n++] = r;
    }
    m->row_count = gone ? n : m->row_count;
    n = before->open_count;
    for (size_t i = n; gone && i < m->open_count; i++) {
        struct gt_open o = m->open[i];
        uint32_t to = row[o.row];
        o.row = (int32_t)to;
        if (to != GONE)
            m->open[n++] = o;
    }
    m->open_count = gone ? n : m->open_count;
    n = before->device_count;
    for (size_t i = n; gone && i < m->device_count; i++) {
        struct gt_device_metrics d = m->devices[i];
        uint32_t to = process[d.process];
        d.process = to;
        if (to != GONE)
            m->devices[n++] = d;
    }
    m->device_count = gone ? n : m->device_count;
    free(process);
    free(thread);
    free(row);
    return gone;
}
