/* Native JSON: always valid, says everything, and comes back the same. */
#include <jansson.h>
#include "nasty.h"
#include "report/load.h"
#include "report/writer.h"

static struct sb b;
static struct gt_err e;

static void setup(void)
{
    sb_folder();
    sb_init(&b, 8 << 20);
}

static void teardown(void)
{
    sb_free(&b);
    sb_folder_remove();
}

/* The JSON of whatever lies at `path`. */
static char *convert(const char *path, size_t *len)
{
    struct gt_write_options o = {.row_limit = -1};
    struct gt_model m;
    struct gt_sink s;
    e.message[0] = 0;
    gt_model_init(&m);
    ck_assert_msg(gt_load_file(&m, path, &e) == 0, "%s", e.message);
    gt_sink_open(&s, -1);
    gt_out_json(&m, &o, &s);
    gt_model_fini(&m);
    return gt_sink_take(&s, len);
}

static json_t *parse(const char *text)
{
    json_error_t why;
    json_t *root = json_loads(text, JSON_REJECT_DUPLICATES, &why);
    ck_assert_msg(root != NULL, "line %d: %s", why.line, why.text);
    return root;
}

static const json_t *find(const json_t *root, const char *section, const char *key)
{
    const json_t *v;
    size_t i;
    json_array_foreach(json_object_get(root, section), i, v)
    {
        if (!strcmp(json_string_value(json_object_get(v, "key")), key))
            return v;
    }
    ck_abort_msg("no %s in %s", key, section);
    return NULL;
}

START_TEST(round_trip)
{
    size_t len, again_len;
    nasty_session(&b);
    sb_save(&b, "s.session");
    char *text = convert("s.session", &len);
    sb_write("a.json", text, len);
    char *again = convert("a.json", &again_len);
    ck_assert_uint_eq(strlen(text), len); /* no NUL inside */
    same(again, text);
    ck_assert_uint_eq(again_len, len);
    for (const char *bad = text; *bad; bad++)
        ck_assert_msg((unsigned char)*bad >= 0x20 || *bad == '\n', "raw control character");
    ck_assert_ptr_null(strstr(text, ":nan"));
    ck_assert_ptr_null(strstr(text, "inf,"));
    ck_assert_ptr_null(strstr(text, ":-nan"));
    free(text);
    free(again);
}
END_TEST

START_TEST(says_everything)
{
    nasty_session(&b);
    sb_save(&b, "s.session");
    char *text = convert("s.session", NULL);
    json_t *root = parse(text);
    static const char *const kept[] = {"plain",           "back\\slash",       "\x01",
                                       "operator\"\"_kg", "half \xef\xbf\xbd", "=cmd()",
                                       "</script>"};
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        find(root, "call_tree", kept[i]);
    ck_assert_str_eq(
        json_string_value(json_object_get(find(root, "call_tree", nasty_long), "kind")), "range");
    const json_t *shaped = find(root, "key_averages", "shaped");
    ck_assert_int_eq(json_integer_value(json_object_get(shaped, "count")), 2);
    ck_assert_int_eq(json_integer_value(json_object_get(shaped, "failed")), 1);
    ck_assert_int_eq(json_integer_value(json_object_get(shaped, "bytes")), 4096);
    ck_assert(json_is_true(json_object_get(shaped, "folded")));
    ck_assert(json_is_null(json_object_get(shaped, "use_device")));
    ck_assert_str_eq(json_string_value(json_object_get(shaped, "device_type")), "CPU");
    /* the default table has nothing to say about shapes */
    ck_assert_str_eq(json_string_value(json_object_get(shaped, "input_shapes")), "");
    const json_t *parent = json_object_get(shaped, "cpu_parent");
    ck_assert_str_eq(
        json_string_value(json_object_get(json_array_get(json_object_get(root, "key_averages"),
                                                         (size_t)json_integer_value(parent)),
                                          "key")),
        "plain");
    ck_assert_int_eq(json_integer_value(json_object_get(find(root, "marks", "mark"), "count")), 5);
    const json_t *values = json_object_get(find(root, "counters", "counter"), "values");
    ck_assert(json_is_null(json_object_get(values, "sum")));
    ck_assert(json_is_null(json_object_get(values, "min")));
    ck_assert_double_eq(json_real_value(json_object_get(values, "max")), 0.1);
    ck_assert_uint_eq(json_array_size(json_object_get(root, "open")), 2);
    find(root, "open", "async \"");
    const json_t *process = json_array_get(json_object_get(root, "processes"), 0);
    ck_assert_str_eq(json_string_value(json_object_get(process, "ended")), "exit");
    ck_assert_str_eq(json_string_value(json_object_get(process, "start")),
                     "2023-11-14T22:13:20.123456Z");
    ck_assert_uint_eq(json_array_size(json_object_get(process, "threads")), 2);
    ck_assert_int_eq(
        json_integer_value(json_object_get(json_object_get(root, "lost"), "unbalanced")), 3);
    static const char *const sections[] = {"configuration", "device_metrics", "stacks", "coverage"};
    for (size_t i = 0; i < sizeof sections / sizeof *sections; i++)
        ck_assert_ptr_nonnull(json_object_get(root, sections[i]));
    json_decref(root);
    free(text);
}
END_TEST

/* With shapes kept apart they are lists, where what the program said is one. */
START_TEST(shapes)
{
    struct gt_write_options o = {.row_limit = -1, .group_by = GT_BY_SHAPE};
    struct gt_model m;
    struct gt_sink s;
    nasty_session(&b);
    sb_save(&b, "s.session");
    gt_model_init(&m);
    ck_assert_int_eq(gt_load_file(&m, "s.session", &e), 0);
    gt_sink_open(&s, -1);
    gt_out_json(&m, &o, &s);
    char *text = gt_sink_take(&s, NULL);
    json_t *root = parse(text);
    const json_t *list = json_object_get(find(root, "key_averages", "shaped"), "input_shapes");
    ck_assert_uint_eq(json_array_size(list), 3);
    ck_assert_int_eq(json_integer_value(json_array_get(json_array_get(list, 0), 1)), -3);
    ck_assert_str_eq(json_string_value(
                         json_object_get(find(root, "key_averages", "not shapes"), "input_shapes")),
                     "[[007],\"]");
    json_decref(root);
    free(text);
    gt_model_fini(&m);
}
END_TEST

static void refused(const char *text, const char *why)
{
    struct gt_model m;
    sb_write("bad.json", text, strlen(text));
    gt_model_init(&m);
    e.message[0] = 0;
    ck_assert_int_lt(gt_load_file(&m, "bad.json", &e), 0);
    ck_assert_msg(!strncmp(e.message, "bad.json: ", 10) && strstr(e.message, why), "%s", e.message);
    gt_model_fini(&m);
}

START_TEST(refused_files)
{
    refused("", "empty");
    refused("hello", "not a gputally report");
    refused("{\"a\":1,\n\"b\" 2}", "line 2: a colon");
    refused("{\"a\":[1,{]\n}", "line 2: the file ends");
    refused("{} x", "line 1: text behind");
    refused("{\"format\":\n\"gputally-report\",\n\"version\"", "line 3");
    refused("[]", "not a gputally report");
    refused("{\"format\":\"x\"}", "not a gputally report");
    refused("{\"format\":\"gputally-report\",\"version\":2}", "newer");
    refused("{\"format\":\"gputally-report\",\"version\":1}", "no \"processes\"");
#define HEAD                                                                                       \
    "{\"format\":\"gputally-report\",\"version\":1,\"processes\":[{\"threads\":[{\"id\":0}]}],"    \
    "\"open\":[{\"row\":9}],\"call_tree\":"
    refused(HEAD "[{\"parent\":0,\"thread\":0,\"kind\":\"range\"}]}", "\"parent\"");
    refused(HEAD "[{\"thread\":1,\"kind\":\"range\"}]}", "\"thread\"");
    refused(HEAD "[{\"thread\":0,\"kind\":\"root\"}]}", "\"kind\"");
    refused(HEAD "[{\"thread\":0,\"kind\":\"range\",\"count\":-1}]}", "\"count\"");
    refused(HEAD "[{\"thread\":0,\"kind\":\"range\",\"key\":7}]}", "\"key\"");
    refused(HEAD "[7]}", "row 0");
    refused(HEAD "[\n{\"kind\":\"range\",\n\"key\":tru}]}", "line 3");
    refused(HEAD "[{\"thread\":0,\"kind\":\"range\"}{}]}", "line 1: a comma");
    refused(HEAD "[{\"thread\":0,\"kind\":\"range\"}]}", "\"row\"");
#define STACKS HEAD "[{\"thread\":0,\"kind\":\"range\",\"stack\":0}],"
    refused(STACKS "\"stacks\":[]}", "row 0: bad or missing \"stack\"");
    refused(STACKS "\"stacks\":[{\"python\":[0]}]}", "stack 0: bad or missing \"python\"");
    refused(STACKS "\"frames\":[{\"kind\":\"note\"}],\"stacks\":[{\"native\":[1]}]}",
            "stack 0: bad or missing \"native\"");
    refused(STACKS "\"frames\":[{\"kind\":\"note\"}],\"stacks\":[{\"native\":7}]}", "\"native\"");
    refused(STACKS "\"frames\":[{\"kind\":\"x\"}]}", "frame 0: bad or missing \"kind\"");
    refused(STACKS "\"frames\":[{\"kind\":\"native\",\"module\":0}]}", "\"module\"");
    refused(STACKS "\"frames\":[{\"kind\":\"native\",\"offset\":-1}]}", "\"offset\"");
    refused(STACKS "\"frames\":[{\"kind\":\"python\",\"line\":4294967296}]}", "\"line\"");
    refused(STACKS "\"modules\":[{\"path\":1}]}", "module 0: bad or missing \"path\"");
}
END_TEST

/* Reports of versions that knew a stack as texts. */
START_TEST(old_stacks)
{
    struct gt_model m;
    static const char old[] =
        "{\"format\":\"gputally-report\",\"version\":1,\"processes\":[{\"threads\":[{\"id\":0}]}],"
        "\"open\":[],\"call_tree\":[{\"thread\":0,\"kind\":\"range\",\"stack\":1}],"
        "\"stacks\":[{\"frames\":[]},{\"frames\":[\"a.py(1): f\",\"b\"]}]}";
    sb_write("old.json", old, strlen(old));
    gt_model_init(&m);
    ck_assert_msg(gt_load_file(&m, "old.json", &e) == 0, "%s", e.message);
    gt_stacks_show(&m, GT_STACK_NATIVE); /* texts are shown whatever was asked for */
    struct gt_list l = gt_stacks_shown(&m, m.rows[0].stack, 0);
    ck_assert_uint_eq(l.count, 2);
    ck_assert_str_eq(gt_model_string(&m, gt_stacks_text(&m, l, 0), NULL), "a.py(1): f");
    gt_model_fini(&m);
}
END_TEST

static const char events[] =
    "{\"format\": \"gputally-events\", \"version\": 1, \"use_device\": \"cuda\", "
    "\"profile_memory\": true,\n\"events\": [\n"
    "{\"name\": \"A\", \"thread\": 1, \"start_us\": 0, \"end_us\": 100, \"input_shapes\": [[2], "
    "[[3, "
    "4]]], \"kernels\": [{\"duration_us\": 7}]},\n"
    "{\"name\": \"A\", \"thread\": 1, \"start_us\": 10.5, \"end_us\": 60, \"node_id\": -1},\n"
    "{\"name\": \"k\", \"thread\": -7, \"start_us\": 2, \"end_us\": 7, \"device_type\": "
    "\"CUDA\"},\n"
    "{\"name\": \"s\", \"thread\": 1, \"start_us\": 5, \"end_us\": 95, \"is_async\": true, "
    "\"cpu_memory_usage\": -5, \"flops\": 9}\n]}";

/* 2,000 changed files: each loads or is refused with a word, and what loads can be written.
 * Reports, and lists of events. */
START_TEST(mutations)
{
    struct gt_write_options o = {.row_limit = -1, .group_by = _i == 2 ? GT_BY_STACK : 0};
    size_t len;
    uint32_t random = 7;
    int refusals = 0;
    struct gt_slot *slot = sb_slot(&b, "main", 16);
    uint32_t a = sb_node(&b, slot, 0, "a"), c = sb_node(&b, slot, a, "b");
    sb_call(&b, slot, a, 100, 60);
    sb_call(&b, slot, c, 40, 40);
    sb_push(&b, slot, a, 2000);
    if (_i == 2) {
        uint32_t module = sb_module(&b, "/x", 0, 1);
        sb_get(&b, slot, a)->stack = sb_frame_at(&b, slot, GT_TRIE_CUT, 0x1000, module);
        sb_get(&b, slot, c)->stack = sb_frame_at(&b, slot, 4, 0x2000, module);
        sb_get(&b, slot, c)->python = sb_python(&b, slot, 0, "f", 3, 1);
    }
    sb_save(&b, "s.session");
    char *good = convert("s.session", &len), *text;
    if (_i == 1) {
        free(good);
        good = strdup(events);
        len = strlen(good);
    }
    text = malloc(len + 1);
    static const char tokens[] = "0123456789-{}[],:\"\\eEntf. \xff";
    for (int i = 0; i < 2000; i++) {
        struct gt_model m;
        memcpy(text, good, len + 1);
        for (int k = 0; k <= i % 3; k++) {
            random = random * 1664525 + 1013904223;
            size_t at = (random >> 8) % len;
            random = random * 1664525 + 1013904223;
            text[at] = tokens[(random >> 16) % (sizeof tokens - 1)];
        }
        sb_write("m.json", text, i % 50 ? len : (random >> 8) % len);
        gt_model_init(&m);
        e.message[0] = 0;
        int rc = gt_load_file(&m, "m.json", &e);
        ck_assert_int_eq(rc == 0, e.message[0] == 0);
        refusals += rc != 0;
        gt_stacks_show(&m, (enum gt_stack_form)(i % GT_STACK_FORMS));
        for (size_t w = 0; !rc && w < gt_writer_count; w++) {
            struct gt_sink s;
            gt_sink_open(&s, -1);
            gt_writers[w].write(&m, &o, &s);
            gt_sink_close(&s);
        }
        gt_model_fini(&m);
    }
    ck_assert_int_gt(refusals, 200);
    ck_assert_int_lt(refusals, 1990);
    free(good);
    free(text);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("json");
    TCase *t = tcase_create("json");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 60);
    tcase_add_test(t, round_trip);
    tcase_add_test(t, says_everything);
    tcase_add_test(t, shapes);
    tcase_add_test(t, refused_files);
    tcase_add_test(t, old_stacks);
    tcase_add_loop_test(t, mutations, 0, 3);
    suite_add_tcase(s, t);
    return sb_run(s);
}
