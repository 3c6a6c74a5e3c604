/* ITT's ranges that are ended by their id: overlapped tasks, regions, frames. Any thread may begin
 * or end one, so they are start/end ranges: total time, no self time. Called by the program's ITT
 * on its own threads. */
#include "itt.h"

#define NOT_USED(x) (void)(x)

static struct gt_itt_key key_of(int info, enum gt_itt_kind kind, const struct gt_itt_id *id)
{
    struct gt_itt_key key = {.domain_id = (uint32_t)info & 0xffff, .kind = kind};

    if (id) {
        key.words[0] = id->d1;
        key.words[1] = id->d2;
        key.words[2] = id->d3;
    }
    return key;
}

static void begin(const struct gt_itt_domain *d, enum gt_itt_kind kind, const struct gt_itt_id *id,
                  const char *name)
{
    int info = gt_itt_info(d);
    struct gt_itt_key key = key_of(info, kind, id);
    uint64_t open;

    if (info & GT_ITT_OFF)
        return;
    /* a frame that has begun goes on: ITT wants a second begin to be ignored */
    if (kind == GT_ITT_FRAME && gt_itt_find(&key, 0, &open) == 0)
        return;
    open = gt_start(gt_itt_tag(info), &(struct gt_attr){.name = name, .scope = gt_itt_scope(info)});
    /* no room: the range stays open in the report, and its end will be one too many */
    gt_itt_put(&key, open);
}

static void end(const struct gt_itt_domain *d, enum gt_itt_kind kind, const struct gt_itt_id *id)
{
    int info = gt_itt_info(d);
    struct gt_itt_key key = key_of(info, kind, id);
    uint64_t open = 0;

    if (info & GT_ITT_OFF)
        return;
    if (gt_itt_find(&key, 1, &open) != 0) {
        if (kind != GT_ITT_FRAME) /* of frames ITT wants them to be ignored */
            gt_end(0);            /* counted as unbalanced */
    } else if (open) {            /* 0: it could not be kept, or began while paused */
        gt_end(open);
    }
}

/* ---- overlapped tasks ---- */

void on_task_begin_overlapped(const struct gt_itt_domain *d, struct gt_itt_id id,
                              struct gt_itt_id parent, const struct gt_itt_string *name)
{
    NOT_USED(parent);
    begin(d, GT_ITT_TASK, &id, gt_itt_text(name));
}

void on_task_begin_overlapped_ex(const struct gt_itt_domain *d, void *clock,
                                 unsigned long long timestamp, struct gt_itt_id id,
                                 struct gt_itt_id parent, const struct gt_itt_string *name)
{
    NOT_USED(clock), NOT_USED(timestamp), NOT_USED(parent);
    begin(d, GT_ITT_TASK, &id, gt_itt_text(name));
}

void on_task_end_overlapped(const struct gt_itt_domain *d, struct gt_itt_id id)
{
    end(d, GT_ITT_TASK, &id);
}

void on_task_end_overlapped_ex(const struct gt_itt_domain *d, void *clock,
                               unsigned long long timestamp, struct gt_itt_id id)
{
    NOT_USED(clock), NOT_USED(timestamp);
    end(d, GT_ITT_TASK, &id);
}

/* ---- regions ---- */

void on_region_begin(const struct gt_itt_domain *d, struct gt_itt_id id, struct gt_itt_id parent,
                     const struct gt_itt_string *name)
{
    NOT_USED(parent);
    begin(d, GT_ITT_REGION, &id, gt_itt_text(name));
}

void on_region_end(const struct gt_itt_domain *d, struct gt_itt_id id)
{
    end(d, GT_ITT_REGION, &id);
}

/* ---- frames: of the domain, they have no name of their own ---- */

void on_frame_begin_v3(const struct gt_itt_domain *d, const struct gt_itt_id *id)
{
    begin(d, GT_ITT_FRAME, id, "frame");
}

void on_frame_end_v3(const struct gt_itt_domain *d, const struct gt_itt_id *id)
{
    end(d, GT_ITT_FRAME, id);
}

unsigned long long on_get_timestamp(void)
{
    return gt_now();
}

/* Both times are of get_timestamp. */
void on_frame_submit_v3(const struct gt_itt_domain *d, const struct gt_itt_id *id,
                        unsigned long long from, unsigned long long until)
{
    int info = gt_itt_info(d);

    NOT_USED(id);
    if (info & GT_ITT_OFF)
        return;
    gt_span(gt_itt_tag(info), &(struct gt_attr){.name = "frame", .scope = gt_itt_scope(info)}, from,
            until == GT_ITT_TIMESTAMP_NONE ? gt_now() : until);
}
