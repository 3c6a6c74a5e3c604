/* Stacks of a session: what of them comes into the model, what views show, and files that lie. */
#include "session_builder.h"
#include "report/group.h"
#include "report/load.h"
#include "report/writer.h"
#include <elf.h>

static struct sb b;
static struct gt_slot *slot;
static struct gt_model m;
static struct gt_err e;
static uint32_t library, program, python;

#define LIBRARY 0x10000000u
#define PROGRAM 0x20000000u
#define PYTHON 0x30000000u

static void setup(void)
{
    sb_folder();
    sb_init(&b, 1 << 20);
    sb_header(&b)->library = sb_text(&b, "/usr/lib/gputally/libgputally.so");
    library = sb_module(&b, "/usr/lib/gputally/../gputally/libgputally.so", LIBRARY, 1);
    program = sb_module(&b, "/opt/some folder/app", PROGRAM, 0xab);
    python = sb_module(&b, "/usr/lib/libpython3.11.so.1.0", PYTHON, 0);
    slot = sb_slot(&b, "main", 64);
    gt_model_init(&m);
}

static void teardown(void)
{
    gt_model_fini(&m);
    sb_free(&b);
    sb_folder_remove();
}

static uint32_t node(uint32_t parent, const char *key, uint32_t native, uint32_t frames)
{
    uint32_t id = sb_node(&b, slot, parent, key);
    sb_get(&b, slot, id)->stack = native;
    sb_get(&b, slot, id)->python = frames;
    sb_call(&b, slot, id, 10, 10);
    return id;
}

static int load(void)
{
    gt_model_fini(&m);
    gt_model_init(&m);
    e.message[0] = 0;
    sb_save(&b, "s.session");
    return gt_load_file(&m, "s.session", &e);
}

/* What is shown of a row's stack, frames separated by ` | `. */
static const char *shown(int row, enum gt_stack_form form)
{
    static char text[4096];
    gt_stacks_show(&m, form);
    struct gt_list l = gt_stacks_shown(&m, m.rows[row].stack, 0);
    text[0] = 0;
    for (uint32_t i = 0; i < l.count; i++) {
        strcat(text, i ? " | " : "");
        strcat(text, gt_model_string(&m, gt_stacks_text(&m, l, i), NULL));
    }
    return text;
}

static char *written(void (*write)(const struct gt_model *, const struct gt_write_options *,
                                   struct gt_sink *),
                     unsigned by)
{
    struct gt_write_options o = {.row_limit = -1, .group_by = by};
    struct gt_sink s;
    gt_stacks_show(&m, GT_STACK_AUTO);
    gt_sink_open(&s, -1);
    write(&m, &o, &s);
    return gt_sink_take(&s, NULL);
}

static char *json(void)
{
    return written(gt_out_json, GT_BY_STACK);
}

/* Whole stacks, and what is said at their outer ends. */
START_TEST(forms)
{
    uint32_t top = sb_frame_at(&b, slot, 0, PROGRAM + 0x100, program);
    uint32_t f = sb_frame_at(&b, slot, top, PROGRAM + 0x200, program);
    uint32_t odd = sb_frame_at(&b, slot, f, 0x7000, 0); /* no file: made at run time */
    uint32_t ours = sb_frame_at(&b, slot, odd, LIBRARY + 0x10, library);
    ours = sb_frame_at(&b, slot, ours, LIBRARY + 0x20, library);
    uint32_t def = sb_python(&b, slot, sb_python(&b, slot, 0, "<module>", 3, 1), "C.f", 12, 1);
    uint32_t cut = sb_frame_at(&b, slot, GT_TRIE_CUT, (PROGRAM + 0x300) | GT_TRIE_EXACT, program);
    uint32_t deep = sb_python(&b, slot, GT_TRIE_TRUNCATED, "g", 0, 1);
    node(0, "a", ours, def);
    node(0, "b", ours, 0);
    node(0, "c", cut, deep);
    node(0, "d", GT_TRIE_OTHER, GT_TRIE_OTHER);
    node(0, "e", 0, 0);
    node(0, "f", ours, def);
    node(0, "g", 0, sb_python(&b, slot, def, "", 14, 1));
    slot->stack_missing = 1;
    slot->stack_truncated = 2;
    slot->stack_cut = 3;
    slot->stack_folded = 4;
    ck_assert_msg(load() == 0, "%s", e.message);
    ck_assert_str_eq(shown(0, GT_STACK_AUTO), "/src/app.py(12): C.f | /src/app.py(3): <module>");
    ck_assert_str_eq(shown(0, GT_STACK_PYTHON), shown(0, GT_STACK_AUTO));
    ck_assert_str_eq(shown(6, GT_STACK_AUTO),
                     "/src/app.py(14): ? | /src/app.py(12): C.f | /src/app.py(3): <module>");
    ck_assert_str_eq(shown(0, GT_STACK_NATIVE), "0x7000 | app+0x200 | app+0x100");
    ck_assert_str_eq(shown(1, GT_STACK_AUTO), "0x7000 | app+0x200 | app+0x100");
    ck_assert_str_eq(shown(1, GT_STACK_PYTHON), "");
    ck_assert_str_eq(shown(2, GT_STACK_PYTHON), "/src/app.py: g | (truncated)");
    ck_assert_str_eq(shown(2, GT_STACK_NATIVE), "app+0x300 | (cut)");
    ck_assert_str_eq(shown(3, GT_STACK_AUTO), "(other stacks)");
    ck_assert_str_eq(shown(3, GT_STACK_JOINED), "(other stacks)");
    ck_assert_uint_eq(m.rows[4].stack, 0);
    ck_assert_uint_eq(m.rows[5].stack, m.rows[0].stack);
    ck_assert_uint_eq(m.stack_count, 5);
    const int64_t *lost = m.processes[0].lost;
    ck_assert_int_eq(lost[GT_LOST_INDEX_stack_missing], 1);
    ck_assert_int_eq(lost[GT_LOST_INDEX_stack_truncated], 2);
    ck_assert_int_eq(lost[GT_LOST_INDEX_stack_cut], 3);
    ck_assert_int_eq(lost[GT_LOST_INDEX_stack_folded], 4);
    char *table = written(gt_out_table, GT_BY_STACK), *plain = written(gt_out_table, 0);
    ck_assert_ptr_nonnull(strstr(table, "\n1 call without its stack"));
    ck_assert_ptr_nonnull(strstr(table, "\n2 stacks had more frames"));
    ck_assert_ptr_nonnull(strstr(table, "\n3 stacks could not be followed"));
    ck_assert_ptr_nonnull(strstr(table, "\n4 calls counted under the other stacks"));
    ck_assert_ptr_nonnull(strstr(table, "  /src/app.py(12): C.f "));
    ck_assert_ptr_null(strstr(plain, "stack")); /* who did not ask for them is spared */
    free(table);
    free(plain);
    /* what --lines needs */
    const struct gt_stack_frame *frame = &m.frames[m.lists[m.stacks[0].native.first + 1]];
    ck_assert_uint_eq(frame->offset, 0x200);
    ck_assert_uint_eq(frame->exact, 0);
    ck_assert_uint_eq(m.frames[m.lists[m.stacks[2].native.first]].exact, 1);
    ck_assert_str_eq(gt_model_string(&m, m.modules[frame->module - 1].path, NULL),
                     "/opt/some folder/app");
    ck_assert_str_eq(gt_model_string(&m, m.modules[frame->module - 1].build_id, NULL),
                     "abababababababababababababababababababab");
}
END_TEST

static void count(const char *text, const char *part, int want)
{
    int n = 0;
    for (const char *at = text; (at = strstr(at, part)); at++)
        n++;
    if (n != want)
        ck_abort_msg("%d times \"%s\" in:\n%s", n, part, text);
}

/* One note for each file without names, which says why; where one function has a name there is
 * none. */
START_TEST(no_names)
{
    static const struct {
        const char *path, *word, *note;
        uint8_t id;
    } files[] = {
        {"/memfd:code (deleted)", "no file", "/memfd:code (deleted): it is in no file", 0},
        {"/proc/self/fd/0", "no file", "/proc/self/fd/0: it is in no file", 0},
        {"linux-vdso.so.1", "no file", "linux-vdso.so.1: it is in no file", 7},
        {"/opt/lib/bundle.zip!/lib/in.so", "no file", "bundle.zip!/lib/in.so: it is in no", 7},
        {"/opt/gone/gone.so", "gone", " gone.so: its file is not there", 7},
        {"./bare.elf", "no symbols", " bare.elf: its file has no symbols", 0},
        {"././bare.elf", "another build", " bare.elf: another build", 7},
        {"./text", "no ELF file", " text: its file is no ELF file", 0},
        {"./loop", "unreadable", " loop: its file cannot be read", 0},
    };
    enum { FILES = sizeof files / sizeof *files };
    Elf64_Ehdr bare = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB},
                       .e_machine = EM_X86_64};
    uint32_t n = 0;
    sb_write("bare.elf", &bare, sizeof bare);
    sb_write("text", "not one", 7);
    ck_assert_int_eq(symlink("loop", "loop"), 0);
    for (uint32_t i = 0; i < FILES; i++) {
        uint64_t at = 0x40000000 + 0x1000000 * (uint64_t)i;
        uint32_t module = sb_module(&b, files[i].path, at, files[i].id);
        n = sb_frame_at(&b, slot, n, at + 0x100, module);
        n = sb_frame_at(&b, slot, n, at + 0x200, module);
    }
    sb_module(&b, "/opt/gone/unused.so", 0x60000000, 7);
    node(0, "a", n, 0);
    ck_assert_msg(load() == 0, "%s", e.message);
    for (int again = 0; again < 2; again++) {
        char *table = written(gt_out_table, GT_BY_STACK), *plain = written(gt_out_table, 0);
        char *whole = json();
        count(plain, "no names", 0);
        count(table, "no names of functions in ", FILES);
        count(table, "no names of functions in 1 more file", 1);
        count(whole, "\"no_names\":", FILES);
        for (int i = 0; i < FILES; i++) {
            char field[256];
            snprintf(field, sizeof field, "\"no_names\":\"%s\"", files[i].word);
            ck_assert_ptr_nonnull(strstr(whole, field));
            if (i) /* the newest come first */
                count(table, files[i].note, 1);
        }
        /* from the saved report */
        sb_write("a.json", whole, strlen(whole));
        gt_model_fini(&m);
        gt_model_init(&m);
        ck_assert_msg(gt_load_file(&m, "a.json", &e) == 0, "%s", e.message);
        free(table);
        free(plain);
        free(whole);
    }
    /* some have names now: as --debug-dir finds them */
    for (size_t i = 0; i < m.frame_count; i++)
        if (m.frames[i].offset == 0x200 && m.frames[i].module != 2)
            m.frames[i].function = gt_model_textz(&m, "found");
    char *table = written(gt_out_table, GT_BY_STACK), *whole = json();
    count(table, "no names of functions in ", 1);
    count(table, files[8].note, 1);
    count(whole, "\"no_names\":", 1);
    free(table);
    free(whole);
}
END_TEST

/* The model's native frames get names as if they had been found. */
static void name(uint64_t offset, const char *function)
{
    for (size_t i = 0; i < m.frame_count; i++)
        if (m.frames[i].kind == GT_STACK_IS_NATIVE && m.frames[i].offset == offset)
            m.frames[i].function = gt_model_textz(&m, function);
}

/* main -> interpreter [<module> calls f] -> C -> interpreter [callback] -> launch */
START_TEST(joined)
{
    uint32_t n = sb_frame_at(&b, slot, 0, PROGRAM + 1, program);
    n = sb_frame_at(&b, slot, n, PYTHON + 2, python); /* Py_RunMain */
    n = sb_frame_at(&b, slot, n, PYTHON + 3, python); /* loop */
    n = sb_frame_at(&b, slot, n, PYTHON + 4, python); /* cfunction_call */
    n = sb_frame_at(&b, slot, n, PROGRAM + 5, program);
    uint32_t outer = n;
    n = sb_frame_at(&b, slot, n, PYTHON + 6, python); /* no name */
    n = sb_frame_at(&b, slot, n, PYTHON + 7, python); /* loop.cold */
    n = sb_frame_at(&b, slot, n, PYTHON + 8, python); /* time_sleep */
    uint32_t p = sb_python(&b, slot, 0, "<module>", 1, 1);
    p = sb_python(&b, slot, p, "f", 2, 0);
    uint32_t callback = sb_python(&b, slot, p, "callback", 3, 1);
    node(0, "a", n, callback);
    node(0, "b", outer, callback); /* more activations than native frames of them */
    node(0, "c", n, p);            /* fewer */
    node(0, "d", n, 0);
    node(0, "e", 0, p);
    ck_assert_msg(load() == 0, "%s", e.message);
    name(1, "main");
    name(2, "Py_RunMain");
    name(3, "_PyEval_EvalFrameDefault");
    name(4, "cfunction_call");
    name(5, "apply");
    name(7, "_PyEval_EvalFrameDefault.cold");
    name(8, "time_sleep");
    gt_text *path = &m.modules[0].path,
            whole = *path; /* the newest, a file that is the interpreter and no more */
    ck_assert_str_eq(shown(0, GT_STACK_JOINED),
                     "/src/app.py(3): callback | apply (app) | "
                     "/src/app.py(2): f | /src/app.py(1): <module> | main (app)");
    *path = gt_model_textz(&m, "/opt/embeds");
    ck_assert_str_eq(shown(0, GT_STACK_JOINED),
                     "time_sleep (embeds) | /src/app.py(3): callback | apply (app) | "
                     "/src/app.py(2): f | /src/app.py(1): <module> | main (app)");
    /* innermost first: what is known of one side alone comes last */
    ck_assert_str_eq(shown(1, GT_STACK_JOINED), "apply (app) | cfunction_call (embeds) | "
                                                "/src/app.py(3): callback | main (app) | "
                                                "/src/app.py(2): f | /src/app.py(1): <module>");
    ck_assert_str_eq(shown(2, GT_STACK_JOINED),
                     "time_sleep (embeds) | /src/app.py(2): f | "
                     "/src/app.py(1): <module> | apply (app) | main (app)");
    *path = whole;
    /* nothing stands for the interpreter's frames there: none is left out */
    ck_assert_ptr_nonnull(strstr(shown(3, GT_STACK_JOINED), "Py_RunMain (libpython3.11.so.1.0)"));
    ck_assert_str_eq(shown(4, GT_STACK_JOINED), "/src/app.py(2): f | /src/app.py(1): <module>");
    /* as --lines has it */
    struct gt_list *by = calloc(m.frame_count, sizeof *by);
    size_t frames = m.frame_count;
    for (uint32_t i = 0; i < frames; i++) {
        struct gt_stack_frame f = m.frames[i], in;
        if (f.offset != 5)
            continue;
        f.file = gt_model_textz(&m, "a.c");
        f.line = 7;
        in = f;
        in.inlined = 1;
        in.line = 70;
        in.function = gt_model_textz(&m, "deeper");
        gt_model_list(&m, &by[i], gt_stacks_frame(&m, &in));
        gt_model_list(&m, &by[i], gt_stacks_frame(&m, &f));
    }
    gt_stacks_replace(&m, by, frames);
    free(by);
    ck_assert_ptr_nonnull(strstr(shown(0, GT_STACK_JOINED),
                                 "callback | a.c(70): deeper (inlined) | a.c(7): apply | /src"));
    ck_assert_uint_eq(gt_stacks_add(&m, m.lists + m.stacks[0].python.first,
                                    m.stacks[0].python.count, m.lists + m.stacks[0].native.first,
                                    m.stacks[0].native.count),
                      1);
}
END_TEST

/* Python 3.14 as a build with tail calls has it, with its names or without those of local
 * functions: main -> interpreter [<module> calls f] -> C -> interpreter [callback] -> launch */
START_TEST(joined_tail_calls)
{
    static const char want[] = "/src/app.py(3): callback | apply (app) | "
                               "/src/app.py(2): f | /src/app.py(1): <module> | main (app)";
    uint32_t n = sb_frame_at(&b, slot, 0, PROGRAM + 1, program);
    n = sb_frame_at(&b, slot, n, PYTHON + 2, python); /* loop */
    n = sb_frame_at(&b, slot, n, PYTHON + 3, python); /* its first function, not optimised */
    n = sb_frame_at(&b, slot, n, PYTHON + 4, python);
    n = sb_frame_at(&b, slot, n, PROGRAM + 5, program);
    n = sb_frame_at(&b, slot, n, PYTHON + 6, python); /* its loop was cut off */
    n = sb_frame_at(&b, slot, n, PYTHON + 7, python); /* time_sleep */
    uint32_t p = sb_python(&b, slot, 0, "<module>", 1, 1);
    p = sb_python(&b, slot, p, "f", 2, 0);
    node(0, "a", n, sb_python(&b, slot, p, "callback", 3, 1));
    ck_assert_msg(load() == 0, "%s", e.message);
    name(1, "main");
    name(2, "_PyEval_EvalFrameDefault");
    name(5, "apply");
    name(7, "time_sleep");
    name(3, "_TAIL_CALL_start_frame");
    name(4, "_TAIL_CALL_CALL.llvm.10282351651392433962");
    name(6, "_TAIL_CALL_INSTRUMENTED_CALL");
    ck_assert_str_eq(shown(0, GT_STACK_JOINED), want);
    name(6, "_PyEval_EvalFrameDefault.cold");
    ck_assert_str_eq(shown(0, GT_STACK_JOINED), want);
    name(3, "");
    name(4, "");
    ck_assert_str_eq(shown(0, GT_STACK_JOINED), want);
}
END_TEST

START_TEST(round_trip)
{
    uint32_t f = sb_frame_at(&b, slot, 0, PROGRAM + 0x100, program);
    uint32_t g = sb_frame_at(&b, slot, f, (PROGRAM + 0x200) | GT_TRIE_EXACT, program);
    uint32_t p = sb_python(&b, slot, sb_python(&b, slot, GT_TRIE_CUT, "f\n\"", 1, 1), "g", 2, 0);
    node(0, "a", g, p);
    node(node(0, "b", f, 0), "b", 0x0, p);
    node(0, "c", sb_frame_at(&b, slot, f, 0x1234, 0), 0);
    ck_assert_int_eq(load(), 0);
    char *text = json();
    sb_write("a.json", text, strlen(text));
    gt_model_fini(&m);
    gt_model_init(&m);
    ck_assert_msg(gt_load_file(&m, "a.json", &e) == 0, "%s", e.message);
    char *again = json();
    same(again, text);
    /* another file with the same frames adds none */
    size_t stacks = m.stack_count, frames = m.frame_count, modules = m.module_count;
    ck_assert_int_eq(gt_load_file(&m, "a.json", &e), 0);
    ck_assert_uint_eq(m.stack_count, stacks);
    ck_assert_uint_eq(m.frame_count, frames);
    ck_assert_uint_eq(m.module_count, modules);
    ck_assert_uint_eq(m.rows[4].stack, m.rows[0].stack);
    free(text);
    free(again);
}
END_TEST

static void refused(const char *why)
{
    ck_assert_int_lt(load(), 0);
    ck_assert_msg(strstr(e.message, "s.session: damaged: ") && strstr(e.message, why), "%s",
                  e.message);
}

static struct gt_trie_node *trie_node(uint32_t id)
{
    struct gt_trie_chunk *c = sb_at(&b, slot->stacks);
    while (id >= c->first + c->capacity)
        c = sb_at(&b, c->next);
    return &c->nodes[id - c->first];
}

/* Each lie alone; without it the file loads again. */
START_TEST(lies)
{
    uint32_t f = sb_frame_at(&b, slot, 0, PROGRAM + 0x100, program), g = f;
    for (int i = 0; i < 10; i++)
        g = sb_frame_at(&b, slot, g, PROGRAM + 0x200, program);
    uint32_t p = sb_python(&b, slot, 0, "f", 1, 1);
    uint32_t n = node(0, "a", g, p);
    struct gt_module *mod = sb_at(&b, sb_header(&b)->modules);
    struct gt_trie_chunk *c = sb_at(&b, slot->stacks);
    struct gt_code *code = sb_at(&b, GT_TRIE_CODE(trie_node(p)->pc));
#define LIE(place, value, why)                                                                     \
    do {                                                                                           \
        __typeof__(place) truth = place;                                                           \
        place = value;                                                                             \
        refused(why);                                                                              \
        place = truth;                                                                             \
        ck_assert_int_eq(load(), 0);                                                               \
    } while (0)
    LIE(sb_get(&b, slot, n)->stack, 1000, "bad stack");
    LIE(sb_get(&b, slot, n)->python, UINT32_MAX, "bad stack");
    LIE(trie_node(g)->parent, g, "bad stack");
    LIE(trie_node(g)->parent, g + 1, "bad stack");
    LIE(slot->stacks, UINT32_MAX, "bad chunk");
    LIE(c->next, slot->stacks, "bad chunk");
    LIE(c->next, 0, "bad chunk");
    LIE(c->first, 1, "bad chunk");
    LIE(c->capacity, 0, "bad chunk");
    LIE(c->capacity, UINT32_MAX, "bad "); /* what lies behind it is no node */
    LIE(slot->stack_count, UINT32_MAX, "more stacks than fit");
    LIE(trie_node(p)->pc, GT_TRIE_PYTHON | 0x00ffffff, "bad code object");
    LIE(code->name, 0x00ffffff, "bad text");
    LIE(code->file, 0x00ffffff, "bad text");
    LIE(mod->next, sb_header(&b)->modules, "bad list of modules");
    LIE(mod->next, UINT32_MAX, "bad list of modules");
    LIE(mod->path, UINT32_MAX, "bad text");
    LIE(mod->build_id_bytes, GT_BUILD_ID_MAX + 1, "bad module");
    /* these are no lies that matter */
    trie_node(g)->module = 77;
    mod->bias = UINT64_MAX;
    mod->id = 0;
    ck_assert_int_eq(load(), 0);
    free(json());
}
END_TEST

/* Every node its own stack, each as deep as it can be: the file is small, what it asks for not. */
START_TEST(too_much)
{
    sb_free(&b);
    sb_init(&b, 4 << 20);
    slot = sb_slot(&b, "main", 16384);
    gt_ref ref = sb_alloc(&b, sizeof(struct gt_trie_chunk) + 16384 * sizeof(struct gt_trie_node));
    struct gt_trie_chunk *c = sb_at(&b, ref);
    c->capacity = 16384;
    slot->stacks = ref;
    slot->stack_count = 16384;
    for (uint32_t i = GT_TRIE_FIRST; i < 16384; i++)
        c->nodes[i] = (struct gt_trie_node){i, i == GT_TRIE_FIRST ? 0 : i - 1, 0};
    for (uint32_t i = GT_TRIE_FIRST; i < 16384; i++)
        node(0, "a", i, 0);
    ck_assert_msg(load() == 0, "%s", e.message);
    ck_assert_uint_gt(m.processes[0].lost[GT_LOST_INDEX_stack_missing], 1000);
    ck_assert_uint_lt(m.list_count, (1u << 25) + 16384);
    ck_assert_uint_eq(m.row_count, 16380);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("load_stacks");
    TCase *t = tcase_create("load_stacks");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 60);
    tcase_add_test(t, forms);
    tcase_add_test(t, no_names);
    tcase_add_test(t, joined);
    tcase_add_test(t, joined_tail_calls);
    tcase_add_test(t, round_trip);
    tcase_add_test(t, lies);
    tcase_add_test(t, too_much);
    suite_add_tcase(s, t);
    return sb_run(s);
}
