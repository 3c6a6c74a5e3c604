/* ITT client: every call that is recorded, with counts that are known. */
#include "itt_client.h"

static struct gt_itt_domain *alpha, *beta;

/* Made by the program's ITT before it has asked for a collector. */
static struct gt_itt_domain made_before = {.flags = 1, .name = "made before"};
static struct gt_itt_domain *before = &made_before;
static struct gt_itt_string early = {.text = "early name"};
static struct gt_itt_counter early_counter = {
    .name = "early", .domain = "made before", .type = GT_ITT_U64};

static void tasks(void)
{
    struct gt_itt_string *inner = GET(string_handle_create, "inner");

    for (int i = 0; i < 3; i++) {
        begin(alpha, "outer");
        for (int j = 0; j < 10; j++) {
            IN(task_begin, beta, id_of(7), no_id, inner);
            begin(beta, "leaf");
            end(beta);
            end(beta);
        }
        end(alpha);
    }
    for (int i = 0; i < 5; i++) {
        IN(task_begin_ex, alpha, NULL, 12345, no_id, no_id, inner);
        begin(beta, "above");
        IN(task_end_ex, alpha, NULL, 12345); /* from under beta's */
        end(beta);
    }
    for (int i = 0; i < 4; i++) {
        IN(task_begin, before, no_id, no_id, &early);
        end(before);
    }
    alpha->flags = 0; /* the program switches it off */
    begin(alpha, "never");
    end(alpha);
    ITT(task_begin, alpha, no_id, no_id, inner); /* as a binding that does not look */
    ITT(task_end, alpha);
    alpha->flags = 1;
    IN(task_group, alpha, id_of(1), no_id, GET(string_handle_create, "group"));
    expect("beta:inner", 30);
    expect("beta:leaf", 30);
    expect("alpha:inner", 5);
    expect("beta:above", 5);
    expect("made before:early name", 4);
    expect("alpha:group", 1);
    total("overlapped", 5);
}

static void local_function(void) {}

static void functions(void)
{
    Dl_info in;

    for (int i = 0; i < 2; i++) {
        IN(task_begin_fn, alpha, no_id, no_id, (void *)atoi);
        end(alpha);
        IN(task_begin_fn_ex, alpha, NULL, 0, no_id, no_id, (void *)local_function);
        end(alpha);
    }
    if (!expecting)
        return;
    dladdr((void *)atoi, &in);
    printf("expect alpha:%s 2\n", in.dli_sname);
    dladdr((void *)local_function, &in);
    printf("expect alpha:%s+%#lx 2\n", strrchr(in.dli_fname, '/') + 1,
           (unsigned long)((char *)local_function - (char *)in.dli_fbase));
}

static void by_id(void)
{
    struct gt_itt_string *s = GET(string_handle_create, "overlapped");
    struct gt_itt_string *region = GET(string_handle_create, "phase");
    struct gt_itt_id frame = {1, 2, 3};
    unsigned long long now;

    for (unsigned i = 0; i < 6; i++)
        IN(task_begin_overlapped, alpha, id_of(i), no_id, s);
    IN(task_begin_overlapped_ex, beta, NULL, 1, id_of(0), no_id, s);
    for (unsigned i = 0; i < 6; i++)
        IN(task_end_overlapped, alpha, id_of(i));
    IN(task_end_overlapped_ex, beta, NULL, 1, id_of(0));
    IN(region_begin, alpha, id_of(0), no_id, region); /* a task and a region may have one id */
    IN(task_begin_overlapped, alpha, id_of(0), no_id, s);
    IN(region_end, alpha, id_of(0));
    IN(task_end_overlapped, alpha, id_of(0));
    for (int i = 0; i < 3; i++) {
        IN(frame_begin_v3, alpha, NULL);
        IN(frame_begin_v3, alpha, NULL); /* ignored, as ITT says */
        IN(frame_begin_v3, alpha, &frame);
        IN(frame_end_v3, alpha, NULL);
        IN(frame_end_v3, alpha, NULL);
        IN(frame_end_v3, alpha, &frame);
    }
    now = GET(get_timestamp);
    IN(frame_submit_v3, beta, NULL, now - 1000, now);
    IN(frame_submit_v3, beta, &frame, now, GT_ITT_TIMESTAMP_NONE);
    expect("alpha:overlapped", 7);
    expect("beta:overlapped", 1);
    expect("alpha:phase", 1);
    expect("alpha:frame", 6);
    expect("beta:frame", 2);
}

static void instants(void)
{
    int tick = GET(mark_create, "tick"), same = GET(mark_create, "tick");
    int event = GET(event_create, "event, not ended", 5),
        never = GET(event_create, "never ends", 10);

    for (int i = 0; i < 2; i++)
        IN(marker, alpha, no_id, GET(string_handle_create, "marker"), i);
    IN(marker_ex, alpha, NULL, 5, no_id, GET(string_handle_create, "marker"), 1);
    ITT(mark, tick, "with a text");
    ITT(mark, same, NULL);
    ITT(mark_global, tick, NULL);
    for (int i = 0; i < 4; i++) {
        ITT(event_start, event);
        ITT(event_end, event);
    }
    ITT(event_start, event);
    ITT(event_start, event); /* they nest */
    ITT(event_end, event);
    ITT(event_end, event);
    for (int i = 0; i < 5; i++)
        ITT(event_start, never);
    ITT(event_end, never); /* but the last */
    expect("alpha:marker", 3);
    expect("tick", 3);
    expect("event", 6);
    expect("never ends", 5);
}

static void values(void)
{
    void *c = GET(counter_create, "queue", "dom"),
         *f = GET(counter_create_typed, "load", NULL, GT_ITT_FLOAT);
    void *v3 = GET(counter_create_v3, alpha, "v3", GT_ITT_S16);
    struct gt_itt_string *name = GET(string_handle_create, "by name");
    unsigned long long big = 40;
    float half = 0.5f;
    short minus = -7;
    double metadata[] = {2.5, 3.5};

    ITT(counter_inc, c);                                   /* 1 */
    ITT(counter_inc_delta, c, 9);                          /* 10 */
    ITT(counter_dec, c);                                   /* 9 */
    ITT(counter_dec_delta, c, 4);                          /* 5 */
    ITT(counter_set_value, c, &big);                       /* 40 */
    ITT(counter_inc, GET(counter_create, "queue", "dom")); /* 41 */
    ITT(counter_set_value_ex, f, NULL, 0, &half);
    ITT(counter_set_value_v3, v3, &minus);
    ITT(counter_inc, &early_counter);
    ITT(counter_inc, &early_counter);
    IN(counter_inc_v3, beta, name);
    IN(counter_inc_delta_v3, beta, name, 3);
    IN(counter_dec_v3, beta, name);
    IN(counter_dec_delta_v3, beta, name, 2);
    begin(alpha, "outer");
    IN(metadata_add, alpha, no_id, GET(string_handle_create, "bytes"), GT_ITT_DOUBLE, 1, metadata);
    IN(metadata_add_with_scope, alpha, 1, GET(string_handle_create, "bytes"), GT_ITT_DOUBLE, 1,
       metadata + 1);
    IN(metadata_add, alpha, no_id, GET(string_handle_create, "bytes"), GT_ITT_DOUBLE, 2, metadata);
    end(alpha);
    if (!expecting)
        return;
    expect("dom:queue", 6);
    puts("value dom:queue 6 106 1 41");
    expect("load", 1);
    puts("value load 1 0.5 0.5 0.5");
    expect("alpha:v3", 1);
    puts("value alpha:v3 1 -7 -7 -7");
    expect("made before:early", 2);
    expect("beta:by name", 4);
    puts("value beta:by name 4 9 1 4");
    expect("alpha:outer", 4);
    expect("alpha:bytes", 2);
    puts("value alpha:bytes 2 6 2.5 3.5");
}

static void pauses(void)
{
    ITT(resume); /* nothing was paused */
    ITT(pause);
    ITT(pause); /* pausing twice is pausing */
    begin(alpha, "paused");
    end(alpha);
    IN(task_begin_overlapped, alpha, id_of(99), no_id, GET(string_handle_create, "paused"));
    ITT(resume);
    IN(task_end_overlapped, alpha, id_of(99));
    begin(alpha, "running");
    end(alpha);
    ITT(pause_scoped, 2); /* another device's */
    begin(alpha, "running");
    end(alpha);
    ITT(pause_scoped, 1);
    begin(alpha, "paused");
    end(alpha);
    ITT(resume_scoped, 0x7fffffff);
    begin(alpha, "running");
    end(alpha);
    ITT(detach);
    ITT(resume); /* in vain */
    begin(alpha, "paused");
    end(alpha);
    expect("alpha:running", 3);
}

int main(int argc, char **argv)
{
    client_start(argc, argv);
    itt_start();
    if (itt_suppress_push || itt_thread_ignore != own_thread_ignore)
        puts("a call that nobody has is set");
    alpha = GET(domain_create, "alpha");
    beta = GET(domain_createA, "beta");
    if (GET(domain_createW, L"alpha") != alpha || GET(domain_create, NULL))
        puts("a name with two domains");
    if (GET(string_handle_create, "x") != GET(string_handle_createA, "x") ||
        GET(string_handle_createW, L"x") != GET(string_handle_create, "x"))
        puts("a text with two handles");
    if (!alpha)
        alpha = beta = before; /* no collector: nothing is called */
    ITT(thread_set_name, "the main one");
    ITT(thr_name_set, "the main one", 12);
    tasks();
    functions();
    by_id();
    instants();
    values();
    pauses();
    puts("done");
    return 0;
}
