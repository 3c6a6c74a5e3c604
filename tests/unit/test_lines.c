/* report/lines*.c: file, line and inlined functions, against addr2line and llvm-symbolizer, which
 * do not use libdw; and a model's frames before and after. */
#include "report/lines.h"
#include "symbol_files.h"
#include "report/libdw.h"

static struct nm nm;

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

struct truth {
    uint64_t address;
    int count;
    char *functions[32], *files[32];
    unsigned lines[32];
};

/* The judge: of gcc's files addr2line, which misses inlined functions in others' that
 * llvm-symbolizer sees. NULL: it is not here. */
static const char *judge(const char *path)
{
    if (!strncmp(base_name(path), "gcc", 3))
        return "addr2line";
    return system("llvm-symbolizer --version >/dev/null 2>&1")
               ? NULL
               : "llvm-symbolizer --output-style=GNU";
}

/* All addresses by one judge: for each `0xADDRESS`, then pairs of lines. */
static struct truth *ask(const char *path, const uint64_t *at, int count)
{
    struct truth *t = calloc((size_t)count, sizeof *t);
    char list[] = "/tmp/gt-lines-XXXXXX", command[20000], line[65536];
    FILE *f = fdopen(mkstemp(list), "w");
    int n = -1, is_file = 0;
    for (int i = 0; i < count; i++)
        fprintf(f, "0x%llx\n", (unsigned long long)at[i]);
    fclose(f);
    snprintf(command, sizeof command, "LC_ALL=C %s -a -f -i -C -e '%s' <'%s'", judge(path), path,
             list);
    f = popen(command, "r");
    while (fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n")] = 0;
        if (!strncmp(line, "0x", 2)) {
            n++;
            ck_assert_int_lt(n, count);
            t[n].address = strtoull(line, NULL, 16);
            is_file = 0;
            continue;
        }
        ck_assert_int_ge(n, 0);
        ck_assert_int_lt(t[n].count, 32);
        if (!is_file) {
            t[n].functions[t[n].count] = strdup(line);
        } else {
            char *colon = strrchr(line, ':');
            t[n].lines[t[n].count] = (unsigned)strtoul(colon + 1, NULL, 10);
            *colon = 0;
            t[n].files[t[n].count++] = strdup(line);
        }
        is_file = !is_file;
    }
    ck_assert_int_eq(pclose(f), 0);
    ck_assert_int_eq(n, count - 1);
    unlink(list);
    return t;
}

/* The name without parameters and without namespaces: addr2line has what DW_AT_name says of what
 * has no linkage name. */
static int same_function(const char *a, const char *b)
{
    size_t n = strlen(b);
    const char *at = strstr(a, b);
    if (!strcmp(a, b))
        return 1;
    for (; n && at; at = strstr(at + 1, b))
        if ((at == a || at[-1] == ':' || at[-1] == ' ') && (!at[n] || strchr("(< ", at[n])))
            return 1;
    return 0;
}

static int libdw_is_here(void)
{
    if (!gt_libdw())
        puts("SKIP: no libdw here");
    return gt_libdw() != NULL;
}

/* Every instruction's first byte, as far as addr2line knows it, of every function of ours. */
static void check_file(const char *path, const char *truth)
{
    struct gt_symbols_of of = symbols_of(path);
    struct gt_symbols *s = gt_symbols_open(&of, NULL);
    const struct gt_line *got;
    uint64_t *at = calloc(200000, sizeof *at);
    int count = 0, inlined = 0, with_line = 0;
    nm_read(&nm, truth);
    for (int i = 0; i < nm.count; i++)
        if (strstr(nm.lines[i].name, "part"))
            for (uint64_t k = 0; k < nm.lines[i].size; k++)
                at[count++] = nm.lines[i].start + k;
    ck_assert_int_gt(count, 100);
    struct truth *t = ask(truth, at, count);
    for (int i = 0; i < count; i++)
        gt_symbols_want(s, t[i].address + (uint64_t)(i % 2), i % 2 == 0);
    for (int i = 0; i < count; i++) {
        size_t n = gt_lines_at(s, t[i].address + (uint64_t)(i % 2), i % 2 == 0, &got);
        if (!t[i].lines[0] && t[i].count == 1) {
            ck_assert(n == 0 || !got[0].line);
            continue;
        }
        if ((int)n != t[i].count)
            ck_abort_msg("%s: %#llx: %zu frames, not %d: %s", path,
                         (unsigned long long)t[i].address, n, t[i].count, t[i].functions[0]);
        for (size_t k = 0; k < n; k++) {
            if (got[k].line != t[i].lines[k] ||
                strcmp(base_name(got[k].file ? got[k].file : "??"), base_name(t[i].files[k])))
                ck_abort_msg("%s: %#llx frame %zu: %s:%u, not %s:%u", path,
                             (unsigned long long)t[i].address, k, got[k].file, got[k].line,
                             t[i].files[k], t[i].lines[k]);
            /* the outermost has the symbol's name: of several another than addr2line's, maybe;
             * which names the function around what has no linkage name, see `scopes`. Of Rust's,
             * LLVM's reading is another */
            if (k + 1 < n && strncmp(base_name(path), "rust", 4) &&
                (k || strcmp(t[i].functions[0], t[i].functions[n - 1])) &&
                !same_function(got[k].function, t[i].functions[k]))
                ck_abort_msg("%s: %#llx frame %zu: %s, not %s", path,
                             (unsigned long long)t[i].address, k, got[k].function,
                             t[i].functions[k]);
        }
        inlined += n > 1;
        with_line += got[0].line != 0;
    }
    ck_assert_int_gt(with_line, 100);
    printf("%s: %d addresses, %d with inlined functions\n", base_name(path), count, inlined);
    ck_assert_ptr_null(gt_lines_why(s));
    ck_assert_int_gt(strstr(path, ".pie") ? 1 : inlined, 0);
    gt_symbols_free(s);
    for (int i = 0; i < count; i++)
        for (int k = 0; k < t[i].count; k++) {
            free(t[i].functions[k]);
            free(t[i].files[k]);
        }
    free(t);
    free(at);
}

START_TEST(as_others)
{
    char paths[32][512];
    int n = symbol_files(paths, 32);
    if (!libdw_is_here())
        return;
    for (int i = 0; i < n; i++)
        if (judge(paths[i]))
            check_file(paths[i], paths[i]);
        else
            printf("%s: not judged: no llvm-symbolizer here\n", base_name(paths[i]));
    check_file(symbol_file("beside/gcc.so"), symbol_file("gcc.so"));
    check_file(symbol_file("noid/gcc.so"), symbol_file("gcc.so"));
}
END_TEST

/* Inlined functions have their namespaces and classes, also those without a linkage name. */
START_TEST(scopes)
{
    static const char *const files[] = {"gcc.so", "clang.so"};
    static const char *const names[] = {"part::(anonymous namespace)::nowhere", "part::nobodys",
                                        "part::Held::member(int) const::Local::within",
                                        "part::Held::member(int) const",
                                        "part::holds(part::Held const&)"};
    const char *path = symbol_file(files[_i]);
    const struct gt_line *at;
    unsigned full = 0;
    if (!libdw_is_here())
        return;
    if (access(path, F_OK)) {
        puts("SKIP: no clang here");
        return;
    }
    struct gt_symbols_of of = symbols_of(path);
    struct gt_symbols *s = gt_symbols_open(&of, NULL);
    nm_read(&nm, path);
    uint64_t start = nm_start(&nm, "_ZN4part5holdsERKNS_4HeldE");
    for (uint64_t k = 0; k < 40; k++) {
        size_t n = gt_lines_at(s, start + k, 1, &at);
        if (n != 5)
            continue;
        full++;
        for (size_t i = 0; i < n; i++) {
            /* with the linkage name the parameters too */
            size_t length = strlen(names[i]);
            if (strncmp(at[i].function, names[i], length) ||
                (at[i].function[length] && at[i].function[length] != '('))
                ck_abort_msg("%s: frame %zu: %s", path, i, at[i].function);
        }
    }
    ck_assert_uint_gt(full, 0);
    gt_symbols_free(s);
}
END_TEST

START_TEST(without)
{
    struct gt_symbols_of of = symbols_of(symbol_file("bare/gcc.so"));
    struct gt_symbols *s = gt_symbols_open(&of, NULL);
    const struct gt_line *at;
    nm_read(&nm, symbol_file("gcc.so"));
    ck_assert_ptr_null(gt_lines_why(s));
    ck_assert_uint_eq(gt_lines_at(s, nm_start(&nm, "part_global"), 1, &at), 0);
    ck_assert_ptr_nonnull(strstr(gt_lines_why(s), "bare/gcc.so: no debug information"));
    gt_symbols_free(s);
    /* nothing at all: told once, by gt_symbols_why */
    of.path = "/gone/gcc.so";
    s = gt_symbols_open(&of, NULL);
    ck_assert_uint_eq(gt_lines_at(s, nm_start(&nm, "part_global"), 1, &at), 0);
    ck_assert_ptr_null(gt_lines_why(s));
    gt_symbols_free(s);
}
END_TEST

/* ---- a model ---- */

static uint32_t native(struct gt_model *m, uint32_t module, const char *function, uint64_t offset)
{
    struct gt_stack_frame f = {.kind = GT_STACK_IS_NATIVE,
                               .module = module,
                               .offset = offset,
                               .exact = 1,
                               .function = function ? gt_model_textz(m, function) : 0};
    return gt_stacks_frame(m, &f);
}

static const char *text(const struct gt_model *m, gt_text t)
{
    return gt_model_string(m, t, NULL);
}

START_TEST(of_a_model)
{
    const char *folder = symbol_file("ids"), *id_folder;
    struct gt_symbols_folders folders = {&folder, 1};
    char hex[65] = "", path[] = "/another/machine/gcc.so";
    struct gt_model m;
    struct gt_elf e;
    uint32_t frames[3], module, stack;
    struct gt_list list;
    const struct gt_line *at;
    uint64_t inlined = 0;
    id_folder = symbol_file("gcc.so");
    if (!libdw_is_here())
        return;
    /* an address in part_global where something was inlined */
    struct gt_symbols_of of = symbols_of(id_folder);
    struct gt_symbols *s = gt_symbols_open(&of, NULL);
    nm_read(&nm, id_folder);
    uint64_t global = nm_start(&nm, "part_global"), local = nm_start(&nm, "part_local");
    for (uint64_t k = 0; k < 64 && !inlined; k++)
        if (gt_lines_at(s, global + k, 1, &at) == 3)
            inlined = global + k;
    ck_assert_uint_ne(inlined, 0);
    gt_symbols_free(s);

    gt_model_init(&m);
    ck_assert_int_eq(gt_elf_open(&e, id_folder), 0);
    for (size_t i = 0; i < e.build_id_bytes; i++)
        snprintf(hex + 2 * i, 3, "%02x", e.build_id[i]);
    gt_elf_close(&e);
    module = gt_stacks_module(&m, &(struct gt_stack_module){.path = gt_model_textz(&m, path),
                                                            .build_id = gt_model_textz(&m, hex)});
    frames[0] = native(&m, module, NULL, local);
    frames[1] = native(&m, module, "part_g", inlined);
    frames[2] = native(&m, 0, NULL, 4711);
    stack = gt_stacks_add(&m, NULL, 0, frames, 3);

    /* names only */
    gt_lines_fill(&m, &folders, 0);
    list = m.stacks[stack - 1].native;
    ck_assert_uint_eq(list.count, 3);
    ck_assert_str_eq(text(&m, m.frames[m.lists[list.first]].function), "part_local");
    ck_assert_uint_eq(m.frames[m.lists[list.first]].line, 0);

    /* twice: what is known is not looked up again */
    for (int again = 0; again < 2; again++) {
        static const char *const want[] = {"part_local", "part_inner", "part_middle", "part_g"};
        gt_lines_fill(&m, &folders, 1);
        list = m.stacks[stack - 1].native;
        ck_assert_uint_eq(list.count, 5);
        for (uint32_t i = 0; i < 4; i++) {
            const struct gt_stack_frame *f = &m.frames[m.lists[list.first + i]];
            ck_assert_str_eq(text(&m, f->function), want[i]);
            ck_assert_str_eq(base_name(text(&m, f->file)), "parts.c");
            ck_assert_uint_ne(f->line, 0);
            ck_assert_uint_eq(f->inlined, i == 1 || i == 2);
            ck_assert_uint_eq(f->offset, i ? inlined : local);
        }
        ck_assert_uint_eq(m.frames[m.lists[list.first + 4]].offset, 4711);
    }
    gt_model_fini(&m);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("lines");
    TCase *t = tcase_create("lines");
    SRunner *r = srunner_create(s);
    int failed;
    tcase_set_timeout(t, 300);
    tcase_add_test(t, as_others);
    tcase_add_loop_test(t, scopes, 0, 2);
    tcase_add_test(t, without);
    tcase_add_test(t, of_a_model);
    suite_add_tcase(s, t);
    srunner_run_all(r, CK_NORMAL);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
