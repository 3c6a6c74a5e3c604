/* core/config.c: every type of variable, every warning. */
#include "core/config.h"
#include "core/layout.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct gt_config c;

#define SOURCE(id, number, word, help) | 1u << (number)
#define BY_DEFAULT (all_sources & ~(1u << GT_SOURCE_ONEDNN))
static const uint32_t all_sources = 0
#include "core/sources.def"
    ;
#undef SOURCE

#define PARSE(...) gt_config_parse(&c, (char *[]){__VA_ARGS__ __VA_OPT__(, ) NULL})
#define OK(...)                                                                                    \
    do {                                                                                           \
        ck_assert_int_eq(PARSE(__VA_ARGS__), 0);                                                   \
        ck_assert_str_eq(c.warning, "");                                                           \
    } while (0)

static void warned(const char *variable, const char *part)
{
    ck_assert_msg(!strncmp(c.warning, variable, strlen(variable)), "got '%s'", c.warning);
    ck_assert_msg(strstr(c.warning, part) != NULL, "got '%s', want '%s'", c.warning, part);
    ck_assert_ptr_null(strchr(c.warning, '\n'));
}

START_TEST(defaults)
{
    OK("PATH=/bin", "GPUTALLY", "XGPUTALLY_FORMAT=no");
    ck_assert_str_eq(c.output, "gputally.%e.%p");
    ck_assert_str_eq(c.session_dir, "");
    ck_assert_str_eq(c.run_dir, "");
    ck_assert_str_eq(c.tmpdir, "");
    ck_assert_str_eq(c.exe, "*");
    ck_assert_uint_eq(c.memory_bytes, 64u << 20);
    ck_assert_uint_eq(c.ring_records, 4096);
    ck_assert_uint_eq(c.sources, BY_DEFAULT);
    ck_assert_uint_eq(c.formats, GT_FORMAT_TABLE | GT_FORMAT_JSON);
    ck_assert_int_eq(c.rank, -1);
    ck_assert_int_eq(c.log, 1);
    ck_assert_int_eq(c.children, 1);
    ck_assert_int_eq(c.disable | c.quiet | c.record_shapes, 0);
    ck_assert_int_eq(c.capture_overload_names | c.with_flops, 0);
    ck_assert_int_eq(c.profile_memory, 1);
    ck_assert_uint_eq(c.set_bytes, 0);
    /* an empty variable is an unset one */
    OK("GPUTALLY_FORMAT=", "GPUTALLY_OUTPUT=", "GPUTALLY_RANK=", "GPUTALLY_MEMORY=");
    ck_assert_uint_eq(c.formats, GT_FORMAT_TABLE | GT_FORMAT_JSON);
    ck_assert_str_eq(c.output, "gputally.%e.%p");
}
END_TEST

START_TEST(options_table)
{
    size_t n;
    const struct gt_option *o = gt_config_options(&n);
    int bools = 0;

    ck_assert_uint_gt(n, 5);
    for (size_t i = 0; i < n; i++) {
        char variable[512];

        if (i)
            ck_assert_str_lt(o[i - 1].name, o[i].name);
        ck_assert_uint_gt(strlen(o[i].help), 5);
        bools += o[i].is_bool;
        /* each default is a value that its own parser takes */
        snprintf(variable, sizeof variable, "GPUTALLY_%s=%s", o[i].name, o[i].fallback);
        OK(variable);
    }
    ck_assert_int_eq(bools, 7);
}
END_TEST

START_TEST(bools)
{
    OK("GPUTALLY_CHILDREN=0", "GPUTALLY_DISABLE=1", "GPUTALLY_QUIET=yes",
       "GPUTALLY_RECORD_SHAPES=on");
    ck_assert_int_eq(c.children, 0);
    ck_assert_int_eq(c.disable, 1);
    ck_assert_int_eq(c.quiet, 1);
    ck_assert_int_eq(c.record_shapes, 1);
    OK("GPUTALLY_PROFILE_MEMORY=0", "GPUTALLY_WITH_FLOPS=1", "GPUTALLY_CAPTURE_OVERLOAD_NAMES=1");
    ck_assert_int_eq(c.profile_memory, 0);
    ck_assert_int_eq(c.with_flops, 1);
    ck_assert_int_eq(c.capture_overload_names, 1);
    ck_assert_int_eq(c.record_shapes, 0);
    PARSE("GPUTALLY_CHILDREN=maybe");
    ck_assert_int_eq(c.children, 1);
    warned("GPUTALLY_CHILDREN=maybe", "give 0 or 1");
}
END_TEST

START_TEST(formats)
{
    OK("GPUTALLY_FORMAT=csv, tree,");
    ck_assert_uint_eq(c.formats, GT_FORMAT_CSV | GT_FORMAT_TREE);
    OK("GPUTALLY_FORMAT=none");
    ck_assert_uint_eq(c.formats, 0);
    PARSE("GPUTALLY_FORMAT=tabel");
    ck_assert_uint_eq(c.formats, GT_FORMAT_TABLE | GT_FORMAT_JSON);
    warned("GPUTALLY_FORMAT=tabel", "did you mean table?");
    warned("GPUTALLY_FORMAT", "known: table json csv tree folded tvm tvm-csv tvm-table none");
    PARSE("GPUTALLY_FORMAT=-json");
    warned("GPUTALLY_FORMAT", "unknown name '-json'");
    PARSE("GPUTALLY_FORMAT=none,json");
    warned("GPUTALLY_FORMAT", "none");
    PARSE("GPUTALLY_FORMAT=,");
    warned("GPUTALLY_FORMAT", "names nothing");
}
END_TEST

START_TEST(sources)
{
    OK("GPUTALLY_SOURCES=nvtx");
    ck_assert_uint_eq(c.sources, 1u << GT_SOURCE_NVTX);
    OK("GPUTALLY_SOURCES=-nvtx");
    ck_assert_uint_eq(c.sources, BY_DEFAULT & ~(1u << GT_SOURCE_NVTX));
    OK("GPUTALLY_SOURCES=-nvtx,onednn");
    ck_assert_uint_eq(c.sources, all_sources & ~(1u << GT_SOURCE_NVTX));
    OK("GPUTALLY_SOURCES=all,-api");
    ck_assert_uint_eq(c.sources, all_sources & ~(1u << GT_SOURCE_API));
    PARSE("GPUTALLY_SOURCES=nvtc");
    warned("GPUTALLY_SOURCES=nvtc",
           "did you mean nvtx? (known: all api cublas cuda itt kokkos nvtx onednn roctx torch)");
    ck_assert_uint_eq(c.sources, BY_DEFAULT);
}
END_TEST

START_TEST(sizes)
{
    static const struct {
        const char *text;
        uint64_t bytes; /* 0: refused */
    } cases[] = {
        {"262144", 256 << 10},
        {"256K", 256 << 10},
        {"3m", 3 << 20},
        {"2G", 2ull << 30},
        {"1MiB", 1 << 20},
        {"1MB", 1 << 20},
        {"255K", 0},
        {"0", 0},
        {"33G", 0},
        {"-1", 0},
        {"64 M", 0},
        {"64MX", 0},
        {"M", 0},
        {"12345678901234567890123G", 0},
        {"18014398509481985K", 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char v[64];
        snprintf(v, sizeof v, "GPUTALLY_MEMORY=%s", cases[i].text);
        PARSE(v);
        ck_assert_uint_eq(c.memory_bytes, cases[i].bytes ? cases[i].bytes : 64u << 20);
        if (cases[i].bytes)
            ck_assert_str_eq(c.warning, "");
        else
            warned(v, "give a size from 256K");
    }
}
END_TEST

START_TEST(numbers)
{
    OK("GPUTALLY_RING=0", "GPUTALLY_LOG=2");
    ck_assert_uint_eq(c.ring_records, 0);
    ck_assert_int_eq(c.log, 2);
    OK("GPUTALLY_RING=65536");
    ck_assert_uint_eq(c.ring_records, 65536);
    PARSE("GPUTALLY_RING=1000");
    warned("GPUTALLY_RING=1000", "power of two");
    ck_assert_uint_eq(c.ring_records, 4096);
    PARSE("GPUTALLY_RING=4294967296");
    warned("GPUTALLY_RING", "power of two");
    PARSE("GPUTALLY_LOG=3");
    warned("GPUTALLY_LOG=3", "0, 1 or 2");
    ck_assert_int_eq(c.log, 1);
}
END_TEST

START_TEST(ranks)
{
    OK("GPUTALLY_RANK=7", "OMPI_COMM_WORLD_RANK=3");
    ck_assert_int_eq(c.rank, 7);
    OK("OMPI_COMM_WORLD_RANK=3", "PMIX_RANK=4");
    ck_assert_int_eq(c.rank, 3);
    OK("PMI_RANK=5");
    ck_assert_int_eq(c.rank, 5);
    OK("PMIX_RANK=6");
    ck_assert_int_eq(c.rank, 6);
    OK("SLURM_PROCID=0");
    ck_assert_int_eq(c.rank, -1);
    OK("SLURM_PROCID=2", "SLURM_STEP_ID=0");
    ck_assert_int_eq(c.rank, 2);
    OK("RANK=9");
    ck_assert_int_eq(c.rank, -1);
    OK("RANK=9", "LOCAL_RANK=1");
    ck_assert_int_eq(c.rank, 9);
    /* somebody else's nonsense is not our user's mistake */
    OK("PMI_RANK=x", "RANK=-1", "LOCAL_RANK=0");
    ck_assert_int_eq(c.rank, -1);
    PARSE("GPUTALLY_RANK=first", "PMI_RANK=5");
    warned("GPUTALLY_RANK=first", "give a number");
    ck_assert_int_eq(c.rank, 5);
}
END_TEST

START_TEST(output)
{
    OK("GPUTALLY_OUTPUT=o/%e.%p.%h.%t.%n.%%");
    ck_assert_str_eq(c.output, "o/%e.%p.%h.%t.%n.%%");
    OK("JOB=a%b", "GPUTALLY_OUTPUT=%q{JOB}-%r", "GPUTALLY_RANK=12");
    ck_assert_str_eq(c.output, "a%%b-12");
    OK("GPUTALLY_OUTPUT=%r");
    ck_assert_str_eq(c.output, "norank");
    OK("GPUTALLY_OUTPUT=%r", "PMI_RANK=0");
    ck_assert_str_eq(c.output, "0");
    PARSE("GPUTALLY_OUTPUT=x%q{NOT_SET}y");
    ck_assert_str_eq(c.output, "xy");
    warned("GPUTALLY_OUTPUT=x%q{NOT_SET}y", "not set");
    PARSE("GPUTALLY_OUTPUT=x%zy%");
    ck_assert_str_eq(c.output, "x%%zy%%");
    warned("GPUTALLY_OUTPUT=x%zy%", "known: %p %h");
    PARSE("GPUTALLY_OUTPUT=%q{open");
    ck_assert_str_eq(c.output, "%%q{open");
    warned("GPUTALLY_OUTPUT", "unknown pattern");
}
END_TEST

START_TEST(texts_and_set)
{
    OK("GPUTALLY_SESSION_DIR=/a b", "A=1", "GPUTALLY_EXE=x*", "GPUTALLY_EXE=second",
       "GPUTALLY_RUN_DIR=/run/x", "TMPDIR=/t");
    ck_assert_str_eq(c.tmpdir, "/t");
    ck_assert_str_eq(c.cwd, "");
    ck_assert_str_eq(c.library, "");
    ck_assert_str_eq(c.session_dir, "/a b");
    ck_assert_str_eq(c.exe, "x*");
    ck_assert_str_eq(c.run_dir, "/run/x");
    static const char set[] = "GPUTALLY_SESSION_DIR=/a b\0GPUTALLY_EXE=x*";
    ck_assert_uint_eq(c.set_bytes, sizeof set);
    ck_assert_mem_eq(c.set, set, sizeof set);
}
END_TEST

START_TEST(unknown_variable)
{
    PARSE("GPUTALLY_FROMAT=json");
    warned("GPUTALLY_FROMAT: unknown variable", "did you mean GPUTALLY_FORMAT?");
    size_t n;
    const struct gt_option *o = gt_config_options(&n);
    for (size_t i = 0; i < n; i++)
        warned("GPUTALLY_FROMAT", o[i].name);
    PARSE("GPUTALLY_ZZZZZZZZZZZZZZZ=1");
    ck_assert_ptr_null(strstr(c.warning, "did you mean"));
    /* the first mistake is the one that is told; names and values can't break the line */
    PARSE("GPUTALLY_A\nB=1", "GPUTALLY_C=1");
    warned("GPUTALLY_A?B: unknown variable", "known");
    PARSE("GPUTALLY_LOG=\033[2J");
    warned("GPUTALLY_LOG=?[2J", "give 0");
}
END_TEST

START_TEST(too_long)
{
    static char big[20000], most[12200];

    memset(big, 'x', sizeof big - 1);
    memcpy(big, "GPUTALLY_OUTPUT=", 16);
    ck_assert_int_eq(PARSE(big, "GPUTALLY_EXE=y"), -E2BIG);
    ck_assert_str_eq(c.output, "gputally.%e.%p");
    ck_assert_str_eq(c.exe, "y");
    memcpy(big, "GPUTALLY_LOG=xxx", 16);
    ck_assert_int_eq(PARSE(big), -E2BIG);
    ck_assert_int_eq(c.log, 1);
    /* fits once, not twice: the copy is kept, the expansion is not */
    memset(most, 'x', sizeof most - 1);
    memcpy(most, "GPUTALLY_OUTPUT=", 16);
    ck_assert_int_eq(PARSE(most), -E2BIG);
    ck_assert_str_eq(c.output, "gputally.%e.%p");
    /* a very long bad value still gives a short warning that ends */
    memset(most, 'x', sizeof most - 1);
    memcpy(most, "GPUTALLY_RING=", 14);
    ck_assert_int_eq(PARSE(most), 0);
    warned("GPUTALLY_RING=xxx", "...: give 0 or a power of two");
}
END_TEST

START_TEST(windows)
{
    static const struct {
        const char *text;
        int kind;
        uint64_t a, b;
        const char *range;
    } cases[] = {
        {"all", GT_WINDOW_ALL, 0, 0, NULL},
        {"paused", GT_WINDOW_PAUSED, 0, 0, NULL},
        {"torch", GT_WINDOW_TORCH, 0, 0, NULL},
        {"delay=2", GT_WINDOW_TIME, 2000000000, 0, NULL},
        {"delay=0.5,duration=.25", GT_WINDOW_TIME, 500000000, 250000000, NULL},
        {"duration=1.000000001,delay=3.", GT_WINDOW_TIME, 3000000000, 1000000001, NULL},
        {"range=step", GT_WINDOW_RANGE, 0, 0, "step"},
        {"range=step,skip=2,count=3", GT_WINDOW_RANGE, 2, 3, "step"},
        {"range=step,count=3,skip=0", GT_WINDOW_RANGE, 0, 3, "step"},
        {"range=f<a,b>,count=1", GT_WINDOW_RANGE, 0, 1, "f<a,b>"},
        {"range=d:a=b c", GT_WINDOW_RANGE, 0, 0, "d:a=b c"},
    };
    static const char *const refused[] = {"al",
                                          "all,paused",
                                          "delay",
                                          "delay=",
                                          "delay=0",
                                          "delay=-1",
                                          "delay=1s",
                                          "delay=1e3",
                                          "delay=1,delay=2",
                                          "delay=1,",
                                          "duration=1,range=a",
                                          "delay=1000001",
                                          "delay=.",
                                          "delay=1.0000000001",
                                          "range=",
                                          "range=,skip=1",
                                          "range=a,count=0",
                                          "range=a,skip=-1",
                                          "range=a,skip=1,skip=2",
                                          "range=f<a,skip=x>,skip=",
                                          "range=a,count=",
                                          "torch,delay=1",
                                          "range=a,skip=18446744073709551615,count=1",
                                          "range=a,skip=18446744073709551616"};
    char text[256];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        snprintf(text, sizeof text, "GPUTALLY_WINDOW=%s", cases[i].text);
        OK(text);
        const struct gt_window_spec *w = &c.window;
        ck_assert_msg((int)w->kind == cases[i].kind, "%s", text);
        ck_assert_uint_eq(w->kind == GT_WINDOW_RANGE ? w->skip : w->delay_ns, cases[i].a);
        ck_assert_uint_eq(w->kind == GT_WINDOW_RANGE ? w->count : w->duration_ns, cases[i].b);
        if (cases[i].range) {
            ck_assert_uint_eq(w->range_bytes, strlen(cases[i].range));
            ck_assert_mem_eq(w->range, cases[i].range, w->range_bytes);
        }
    }
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        snprintf(text, sizeof text, "GPUTALLY_WINDOW=%s", refused[i]);
        PARSE(text);
        warned(text, "give all, paused, torch, delay=S");
        ck_assert_int_eq(c.window.kind, GT_WINDOW_ALL);
    }
}
END_TEST

/* Labels are matched as the views show them, byte by byte. */
START_TEST(labels)
{
#define LABEL(domain, name) (&(struct gt_label){domain, name, strlen(domain), strlen(name)})
#define MATCH(glob, domain, name) gt_config_match(glob, strlen(glob), LABEL(domain, name))
    ck_assert(MATCH("a:b", "a", "b"));
    ck_assert(MATCH("a:b", "", "a:b"));
    ck_assert(!MATCH("b", "a", "b"));
    ck_assert(MATCH("*b", "a", "b"));
    ck_assert(MATCH("*:b", "a", "b") && !MATCH("*:b", "", "b"));
    ck_assert(MATCH("a?b*", "a", "bcd") && MATCH("*", "", "") && MATCH("", "", ""));
    ck_assert(!MATCH("", "", "x") && !MATCH("?", "", ""));
    ck_assert(MATCH("a:*b*c", "a", "xbxbxc") && !MATCH("a:*b*c", "a", "xcxbx"));
    ck_assert(MATCH("a,b", "", "a,b"));
    OK("GPUTALLY_INCLUDE=a*,d:*", "GPUTALLY_EXCLUDE=ab*,*:x");
    ck_assert(!gt_config_left_out(&c, LABEL("", "aa")) && gt_config_left_out(&c, LABEL("", "ab")));
    ck_assert(!gt_config_left_out(&c, LABEL("d", "y")) && gt_config_left_out(&c, LABEL("d", "x")));
    ck_assert(gt_config_left_out(&c, LABEL("", "z")));
    OK("GPUTALLY_EXCLUDE=ab*,,");
    ck_assert(!gt_config_left_out(&c, LABEL("", "z")) && !gt_config_left_out(&c, LABEL("", "")));
    OK("A=1");
    ck_assert(!gt_config_left_out(&c, LABEL("", "ab")));
}
END_TEST

START_TEST(globs)
{
    ck_assert(gt_config_glob("*", "anything"));
    ck_assert(gt_config_glob("python*,app", "python3.11"));
    ck_assert(gt_config_glob("python*,app", "app"));
    ck_assert(!gt_config_glob("python*,app", "apps"));
    ck_assert(gt_config_glob("a?c", "abc"));
    ck_assert(!gt_config_glob("a?c", "ac"));
    ck_assert(gt_config_glob("*a*b", "xaxbab"));
    ck_assert(!gt_config_glob("*a*b", "xaxba"));
    ck_assert(!gt_config_glob("", "x"));
    ck_assert(!gt_config_glob(",", ""));
    ck_assert(gt_config_glob(",x", "x"));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("config");
    TCase *t = tcase_create("all");

    tcase_add_test(t, defaults);
    tcase_add_test(t, options_table);
    tcase_add_test(t, bools);
    tcase_add_test(t, formats);
    tcase_add_test(t, sources);
    tcase_add_test(t, sizes);
    tcase_add_test(t, numbers);
    tcase_add_test(t, ranks);
    tcase_add_test(t, output);
    tcase_add_test(t, texts_and_set);
    tcase_add_test(t, unknown_variable);
    tcase_add_test(t, too_long);
    tcase_add_test(t, globs);
    tcase_add_test(t, windows);
    tcase_add_test(t, labels);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
