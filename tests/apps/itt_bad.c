/* ITT client that does everything wrong that programs do wrong, and more than there is room for;
 * nothing may crash and what is right must be counted. --expect as in nvtx_basic.c, but for the
 * rows of many(): tests/e2e/test_itt.py knows those. */
#include "itt_client.h"

#include <pthread.h>

static struct gt_itt_domain *good;
static long unbalanced;

static void nulls(void)
{
    struct gt_itt_string *s = GET(string_handle_create, "good");
    struct gt_itt_domain nameless = {.flags = 1}, *d = &nameless;
    struct gt_itt_string empty = {0};

    ITT(domain_create, NULL);
    ITT(domain_createW, NULL);
    ITT(string_handle_create, NULL);
    ITT(string_handle_createW, NULL);
    ITT(task_begin, NULL, no_id, no_id, s);
    ITT(task_begin_ex, NULL, NULL, 0, no_id, no_id, s);
    ITT(task_begin_fn, NULL, no_id, no_id, NULL);
    ITT(task_end, NULL);
    ITT(task_end_ex, NULL, NULL, 0);
    ITT(task_begin_overlapped, NULL, no_id, no_id, s);
    ITT(task_end_overlapped, NULL, no_id);
    ITT(region_begin, NULL, no_id, no_id, NULL);
    ITT(region_end, NULL, no_id);
    ITT(frame_begin_v3, NULL, NULL);
    ITT(frame_end_v3, NULL, NULL);
    ITT(frame_submit_v3, NULL, NULL, 1, 2);
    ITT(marker, NULL, no_id, s, 0);
    ITT(task_group, NULL, no_id, no_id, s);
    ITT(counter_create, NULL, NULL);
    ITT(counter_create_v3, NULL, "x", 1);
    ITT(counter_inc, NULL);
    ITT(counter_set_value, NULL, NULL);
    ITT(counter_set_value, GET(counter_create, "no value", NULL), NULL);
    ITT(counter_inc_v3, NULL, s);
    ITT(counter_inc_v3, good, NULL);
    ITT(metadata_add, NULL, no_id, s, 1, 1, &unbalanced);
    ITT(metadata_add, good, no_id, s, 1, 1, NULL);
    ITT(metadata_add, good, no_id, s, 77, 1, &unbalanced);
    ITT(mark_create, NULL);
    ITT(event_create, NULL, 5);
    ITT(event_create, "x", 0);
    ITT(event_create, "x", -1);
    ITT(thread_set_name, NULL);
    ITT(thr_name_set, NULL, 0);
    IN(task_begin, good, no_id, no_id, NULL);
    IN(task_end, good);
    IN(task_begin_fn, good, no_id, no_id, NULL);
    IN(task_end, good);
    IN(task_begin, good, no_id, no_id, &empty);
    IN(task_end, good);
    IN(task_begin_overlapped, good, no_id, no_id, NULL);
    IN(task_end_overlapped, good, no_id);
    IN(marker, good, no_id, NULL, -5);
    IN(task_begin, d, no_id, no_id, s); /* a domain without a name is the default one */
    IN(task_end, d);
    expect("good:(null)", 5);
    expect("good", 1);
}

static void strangers(void)
{
    static const int ids[] = {0, -1, 4095, 123456789, -2147483647 - 1};

    for (size_t i = 0; i < sizeof(ids) / sizeof(*ids); i++) {
        ITT(mark, ids[i], NULL);
        ITT(event_start, ids[i]);
        ITT(event_end, ids[i]);
        ITT(event_end, ids[i]);
        unbalanced++;
        IN(task_end_overlapped, good, id_of((unsigned long long)ids[i] + 77));
        IN(region_end, good, id_of((unsigned long long)ids[i] + 77));
        unbalanced += 2;
        IN(frame_end_v3, good, NULL); /* ITT says that these are ignored */
    }
    for (int i = 0; i < 3; i++)
        end(good);
    unbalanced += 3;
    expect("(invalid mark)", 5);
    expect("(invalid event)", 5);
}

static void odd_order(void)
{
    struct gt_itt_string *s = GET(string_handle_create, "twice");
    unsigned long long now = GET(get_timestamp);

    IN(task_begin_overlapped, good, id_of(1), no_id, s);
    IN(task_begin_overlapped, good, id_of(1), no_id, s); /* again, before it has ended */
    for (int i = 0; i < 3; i++)
        IN(task_end_overlapped, good, id_of(1));
    unbalanced++;
    IN(region_end, good, id_of(1));
    unbalanced++;
    IN(frame_submit_v3, good, NULL, now, now - 5); /* ends before it begins: no time */
    expect("good:twice", 2);
    expect("good:frame", 1);
}

static void *other_thread(void *arg)
{
    IN(task_end_overlapped, good, id_of(50));
    ITT(event_end, *(int *)arg); /* the other thread's: an event is of its thread */
    end(good);
    return NULL;
}

static void threads(void)
{
    pthread_t t;
    int event = GET(event_create, "mine", 4);

    begin(good, "ended here");
    ITT(event_start, event);
    IN(task_begin_overlapped, good, id_of(50), no_id, GET(string_handle_create, "across"));
    if (pthread_create(&t, NULL, other_thread, &event) != 0)
        exit(3);
    pthread_join(t, NULL);
    unbalanced += 2;
    ITT(event_end, event);
    end(good);
    expect("good:ended here", 1);
    expect("good:across", 1);
    expect("mine", 1);
}

/* Thousands of everything. */
static void many(void)
{
    char name[400];
    struct gt_itt_string *s = GET(string_handle_create, "in many");

    for (int i = 0; i < 3000; i++) {
        snprintf(name, sizeof(name), "domain %d", i);
        struct gt_itt_domain *d = GET(domain_create, name);
        IN(task_begin, d, no_id, no_id, s);
        IN(task_end, d);
    }
    memset(name, 'x', sizeof(name));
    for (int i = 0; i < 70000; i++) {
        snprintf(name + 80, sizeof(name) - 80, " step %d", i);
        begin(good, name + 80 - 8 * (i % 10));
        end(good);
    }
    for (unsigned i = 0; i < 5000; i++)
        IN(region_begin, good, id_of(i), no_id, s);
    for (unsigned i = 5000; i-- > 0;)
        IN(region_end, good, id_of(i));
    for (int i = 0; i < 6000; i++) {
        snprintf(name, sizeof(name), "counter %d", i);
        ITT(counter_inc, GET(counter_create, name, NULL));
        snprintf(name, sizeof(name), "mark %d", i);
        ITT(mark, GET(mark_create, name), NULL);
    }
}

int main(int argc, char **argv)
{
    client_start(argc, argv);
    itt_start();
    if (itt_task_begin) { /* what is not ours must not be touched */
        struct gt_itt_global strange = itt_global;
        void (*init)(struct gt_itt_global *, int);

        *(void **)&init =
            dlsym(dlopen(getenv("INTEL_LIBITTNOTIFY64"), RTLD_LAZY), "__itt_api_init");
        strange.api_list = (struct gt_itt_call *)1;
        strange.magic[3]++;
        init(&strange, -1);
        strange.magic[3]--;
        strange.version_build = 20100930;
        init(&strange, -1);
        init(NULL, -1);
    }
    good = GET(domain_create, "good");
    nulls();
    strangers();
    odd_order();
    threads();
    total("unbalanced", unbalanced);
    if (argc > 1 && strcmp(argv[1], "many") == 0)
        many();
    puts("done");
    return 0;
}
