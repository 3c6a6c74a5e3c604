/* report/symbols*.c: names of functions in files that gcc, clang and rustc made (tests/symbols),
 * against nm and objdump; where debug files are found, and which are refused. */
#include "report/symbols_name.h"
#include "report/symbols_table.h"
#include "report/symbols_xz.h"
#include "symbol_files.h"
#include <errno.h>
#include <sys/auxv.h>

#define CHECK_MAX 200000

static struct nm nm;
static uint64_t check[CHECK_MAX];
static int to_check;
static struct gt_symbol_table code; /* for its sections */

/* ---- against nm ---- */

static int bind_of(char type)
{
    return strchr("TWi", type) ? strchr("W", type) != NULL : type == 'w' ? 1 : 2;
}

/* 1: `name` is one that nm knows for the address, and none is better. NULL: none. */
static int agrees(uint64_t address, const char *name, uint64_t start)
{
    uint64_t below = address + 1;
    int nearest = 1;
    for (;;) {
        uint64_t group = 0;
        int sized = 0, best = 3, found = 0, any = 0;
        for (int i = 0; i < nm.count; i++)
            if (nm.lines[i].start < below && nm.lines[i].start >= group &&
                gt_symbol_table_section_end(&code, nm.lines[i].start)) {
                group = nm.lines[i].start;
                any = 1;
            }
        if (!any)
            return !name;
        for (int i = 0; i < nm.count; i++)
            sized |= nm.lines[i].start == group && nm.lines[i].size;
        for (int i = 0; i < nm.count; i++) {
            const struct nm_line *l = &nm.lines[i];
            if (l->start != group || (sized && l->start + l->size <= address) ||
                (!sized && (!nearest || address >= gt_symbol_table_section_end(&code, group))))
                continue;
            /* an ifunc may be local: nm does not tell */
            if (l->type != 'i' && bind_of(l->type) < best)
                best = bind_of(l->type);
            found = 1;
        }
        for (int i = 0; i < nm.count && found; i++) {
            const struct nm_line *l = &nm.lines[i];
            if (l->start == group && name && !strcmp(name, l->name) && start == group &&
                (l->type == 'i' || bind_of(l->type) == best))
                return 1;
        }
        if (found)
            return 0;
        nearest &= !sized;
        below = group;
    }
}

static void check_address(struct gt_symbols *s, const char *path, uint64_t address)
{
    struct gt_symbol found = {0};
    int rc = gt_symbols_at(s, address, 1, &found);
    if (rc && rc != -ENOENT)
        ck_abort_msg("%s: %#llx: %d", path, (unsigned long long)address, rc);
    if (!rc && strstr(found.name, "@plt"))
        return; /* see stubs */
    if (!agrees(address, rc ? NULL : found.name, found.start))
        ck_abort_msg("%s: %#llx: got %s", path, (unsigned long long)address,
                     rc ? "none" : found.name);
}

static void add_address(uint64_t address)
{
    ck_assert_int_lt(to_check, CHECK_MAX);
    check[to_check++] = address;
}

static void check_file(const char *path, const char *truth,
                       const struct gt_symbols_folders *folders)
{
    struct gt_symbols_of of = symbols_of(path);
    struct gt_symbols *s = gt_symbols_open(&of, folders);
    struct gt_elf e;
    ck_assert_ptr_null(gt_symbols_why(s));
    nm_read(&nm, truth);
    ck_assert_int_eq(gt_elf_open(&e, truth), 0);
    gt_symbol_table_code(&code, &e);
    for (int i = 0; i < nm.count; i++)
        for (int d = -1; d < 2; d++) {
            add_address(nm.lines[i].start + (uint64_t)d);
            add_address(nm.lines[i].start + nm.lines[i].size + (uint64_t)d);
        }
    for (size_t i = 0; i < code.code_count; i++)
        for (uint64_t a = code.code[i].start; a < code.code[i].end;)
            add_address(a), a += code.code[i].end - code.code[i].start > 20000 ? 97 : 1;
    ck_assert_int_gt(to_check, 500);
    for (int i = 0; i < to_check; i++)
        gt_symbols_want(s, check[i], 1);
    for (int i = 0; i < to_check; i++)
        check_address(s, path, check[i]);
    gt_symbols_free(s);
    /* what is asked for alone has the same name: nothing around it is kept for another */
    for (int i = 0; i < to_check; i += to_check / 40) {
        s = gt_symbols_open(&of, folders);
        check_address(s, path, check[i]);
        gt_symbols_free(s);
    }
    to_check = 0;
    gt_symbol_table_free(&code);
    gt_elf_close(&e);
}

START_TEST(whole_files)
{
    char paths[32][512];
    int n = symbol_files(paths, 32);
    ck_assert_int_ge(n, 6);
    for (int i = 0; i < n; i++)
        check_file(paths[i], paths[i], NULL);
}
END_TEST

/* Every stub that objdump names has the same name here, at each of its bytes. */
START_TEST(stubs)
{
    char paths[32][512], command[20000], line[65536];
    int n = symbol_files(paths, 32), seen = 0;
    for (int i = 0; i < n; i++) {
        struct gt_symbols_of of = symbols_of(paths[i]);
        struct gt_symbols *s = gt_symbols_open(&of, NULL);
        snprintf(command, sizeof command, "LC_ALL=C objdump -dC '%s'", paths[i]);
        FILE *f = popen(command, "r");
        while (fgets(line, sizeof line, f)) {
            struct gt_symbol found;
            char *end = strstr(line, ">:\n"), *name;
            uint64_t at = strtoull(line, &name, 16);
            if (!end || strncmp(name, " <", 2) || end - name < 6 || strncmp(end - 4, "@plt", 4))
                continue;
            *end = 0;
            /* of an indirect function without a symbol */
            if (!strncmp(name, " <*ABS*", 7))
                continue;
            for (unsigned k = 0; k < 6; k++) {
                if (gt_symbols_at(s, at + k, 1, &found))
                    ck_abort_msg("%s: %#llx: none, not %s", paths[i], (unsigned long long)at + k,
                                 name + 2);
                ck_assert_str_eq(found.name, name + 2);
                ck_assert_uint_eq(found.start, at);
            }
            seen++;
        }
        pclose(f);
        gt_symbols_free(s);
    }
    ck_assert_int_gt(seen, 10);
}
END_TEST

static const char *at(struct gt_symbols *s, uint64_t address, int exact)
{
    struct gt_symbol found = {0};
    return gt_symbols_at(s, address, exact, &found) ? "none" : found.name;
}

START_TEST(kinds)
{
    const char *path = symbol_file("gcc.so");
    struct gt_symbols_of of = symbols_of(path);
    struct gt_symbols *s = gt_symbols_open(&of, NULL);
    nm_read(&nm, path);
    uint64_t outer = nm_start(&nm, "part_outer"), open = nm_start(&nm, "part_open"),
             end = nm_start(&nm, "part_end"), global = nm_start(&nm, "part_global");
    /* functions within others, holes, labels, what tools left in between */
    ck_assert_str_eq(at(s, outer, 1), "part_outer");
    ck_assert_str_eq(at(s, outer + 32, 1), "part_nested");
    ck_assert_str_eq(at(s, outer + 63, 1), "part_nested");
    ck_assert_str_eq(at(s, outer + 64, 1), "part_outer");
    ck_assert_str_eq(at(s, outer + 96, 1), "none");
    ck_assert_str_eq(at(s, open - 1, 1), "none");
    ck_assert_str_eq(at(s, open, 1), "part_open");
    ck_assert_str_eq(at(s, open + 40, 1), "part_open");
    ck_assert_str_eq(at(s, end - 1, 1), "part_open");
    ck_assert_str_eq(at(s, end + 31, 1), "part_end");
    ck_assert_str_eq(at(s, end + 32, 1), "none");
    /* a return address behind the last instruction, of a call that does not return */
    ck_assert_str_eq(at(s, end + 32, 0), "part_end");
    ck_assert_str_eq(at(s, end, 0), "part_open");
    /* global before weak before local, then the shortest */
    ck_assert_str_eq(at(s, global, 1), "part_g");
    ck_assert_str_eq(at(s, nm_start(&nm, "part_ifunc"), 1), "part_ifunc");
    /* outside */
    ck_assert_str_eq(at(s, 0, 1), "none");
    ck_assert_str_eq(at(s, 0, 0), "none");
    ck_assert_str_eq(at(s, UINT64_MAX, 1), "none");
    ck_assert_str_eq(at(s, UINT64_C(1) << 48, 1), "none");
    gt_symbols_free(s);
}
END_TEST

/* Cold parts have no symbol in a stripped file; the name is the one in the whole file. All else
 * that has none still has none. */
START_TEST(cold_parts)
{
#ifdef __x86_64__
    const char *path = symbol_file("bare/gcc.so");
    struct gt_symbols_of of = symbols_of(path), all = symbols_of(symbol_file("gcc.so"));
    struct gt_symbols *s = gt_symbols_open(&of, NULL), *whole = gt_symbols_open(&all, NULL);
    unsigned named = 0, bytes = 0;
    nm_read(&nm, symbol_file("gcc.so"));
    for (int i = 0; i < nm.count; i++)
        for (uint64_t k = 0; k < nm.lines[i].size; k++) {
            struct gt_symbol a, b;
            if (gt_symbols_at(s, nm.lines[i].start + k, 1, &a) || !strstr(a.name, ".cold"))
                continue;
            bytes++;
            ck_assert_int_eq(gt_symbols_at(whole, nm.lines[i].start + k, 1, &b), 0);
            ck_assert_str_eq(a.name, b.name);
            ck_assert_uint_eq(a.start, b.start);
            named += !strcmp(a.name, "part_split.cold");
        }
    printf("%u bytes of cold parts, %u of part_split\n", bytes, named);
    ck_assert_uint_gt(named, 10);
    gt_symbols_free(s);
    gt_symbols_free(whole);
#endif
}
END_TEST

/* However many there are; also when nobody said that they would be asked for. */
START_TEST(many_cold_parts)
{
#ifdef __x86_64__
    struct gt_symbols_of of = symbols_of(symbol_file("many/bare.so"));
    nm_read(&nm, symbol_file("many/many.so"));
    for (int told = 0; told < 2; told++) {
        struct gt_symbols *s = gt_symbols_open(&of, NULL);
        struct gt_symbol found;
        int parts = 0;
        for (int i = 0; i < nm.count && told; i++)
            gt_symbols_want(s, nm.lines[i].start + 1, 1);
        for (int i = 0; i < nm.count; i++) {
            if (strncmp(nm.lines[i].name, "many_", 5) || !strstr(nm.lines[i].name, ".cold"))
                continue;
            ck_assert_int_eq(gt_symbols_at(s, nm.lines[i].start + 1, 1, &found), 0);
            ck_assert_str_eq(found.name, nm.lines[i].name);
            ck_assert_uint_eq(found.start, nm.lines[i].start);
            parts++;
        }
        ck_assert_int_eq(parts, 100);
        gt_symbols_free(s);
    }
#endif
}
END_TEST

/* ---- other files ---- */

/* The names in `path`, of functions that only .symtab has and that .dynsym has. */
static void check_names(const char *path, const struct gt_symbols_folders *folders, int local,
                        const char *why)
{
    struct gt_symbols_of of = symbols_of(path);
    struct gt_symbols *s = gt_symbols_open(&of, folders);
    nm_read(&nm, symbol_file("gcc.so"));
    if (strcmp(at(s, nm_start(&nm, "part_local"), 1), local ? "part_local" : "none"))
        ck_abort_msg("%s: %s: %s", path, at(s, nm_start(&nm, "part_local"), 1),
                     gt_symbols_why(s) ? gt_symbols_why(s) : "");
    ck_assert_str_eq(at(s, nm_start(&nm, "part_global"), 1), "part_g");
    ck_assert_str_eq(at(s, nm_start(&nm, "_ZN4part3runEi"), 1), "part::run(int)");
    if (why) {
        ck_assert_ptr_nonnull(gt_symbols_why(s));
        ck_assert_msg(strstr(gt_symbols_why(s), why) != NULL, "%s", gt_symbols_why(s));
        ck_assert_ptr_nonnull(strstr(gt_symbols_why(s), "--debug-dir"));
    } else {
        ck_assert_ptr_null(gt_symbols_why(s));
    }
    gt_symbols_free(s);
}

START_TEST(debug_files)
{
    const char *folder = symbol_file("ids");
    struct gt_symbols_folders ids = {&folder, 1};
    const char *beside = symbol_file("beside");
    struct gt_symbols_folders link = {&beside, 1};
    check_names(symbol_file("bare/gcc.so"), NULL, 0, NULL);
    check_names(symbol_file("beside/gcc.so"), NULL, 1, NULL);
    check_names(symbol_file("below/gcc.so"), NULL, 1, NULL);
    check_names(symbol_file("bare/gcc.so"), &ids, 1, NULL);
    check_names(symbol_file("mini/gcc.so"), NULL, 1, NULL);
    check_names(symbol_file("noid/gcc.so"), NULL, 1, NULL);
    check_file(symbol_file("beside/gcc.so"), symbol_file("gcc.so"), NULL);
    check_file(symbol_file("bare/gcc.so"), symbol_file("gcc.so"), &ids);
    check_file(symbol_file("noid/gcc.so"), symbol_file("gcc.so"), NULL);
    /* by name, in a folder that is given */
    check_file(symbol_file("bare/gcc.so"), symbol_file("gcc.so"), &link);
    check_names(symbol_file("bomb/gcc.so"), NULL, 0, NULL);
}
END_TEST

/* 200 MB of zeroes in 30 KB, what is cut off, and what is no xz. */
START_TEST(unpacking)
{
    struct gt_elf e;
    const Elf64_Shdr *section;
    uint8_t *packed, *got;
    size_t n;
    ck_assert_int_eq(gt_elf_open(&e, symbol_file("bomb/gcc.so")), 0);
    ck_assert_ptr_nonnull(section = gt_elf_section(&e, ".gnu_debugdata"));
    packed = gt_elf_contents(&e, section, 1u << 20);
    ck_assert_ptr_null(gt_symbols_unxz(packed, section->sh_size, &n));
    free(packed);
    gt_elf_close(&e);

    ck_assert_int_eq(gt_elf_open(&e, symbol_file("mini/gcc.so")), 0);
    ck_assert_ptr_nonnull(section = gt_elf_section(&e, ".gnu_debugdata"));
    packed = gt_elf_contents(&e, section, 1u << 20);
    ck_assert_ptr_nonnull(got = gt_symbols_unxz(packed, section->sh_size, &n));
    ck_assert_int_eq(memcmp(got, ELFMAG, SELFMAG), 0);
    free(got);
    for (size_t cut = 0; cut < section->sh_size; cut++)
        ck_assert_ptr_null(gt_symbols_unxz(packed, cut, &n));
    for (size_t i = 0; i < section->sh_size; i++) {
        packed[i] ^= 1;
        free(gt_symbols_unxz(packed, section->sh_size, &n));
        packed[i] ^= 1;
    }
    free(packed);
    gt_elf_close(&e);
}
END_TEST

START_TEST(refused)
{
    const char *folder = symbol_file("ids"), *all = symbol_folder();
    struct gt_symbols_folders ids = {&folder, 1}, by_name = {&all, 1};
    struct gt_symbols_of of = symbols_of(symbol_file("gcc.so"));
    struct gt_symbols *s;
    /* a debug file of another build: the names that the module itself has stay */
    check_names(symbol_file("other/gcc.so"), NULL, 0,
                "other/gcc.so.debug: a debug file of another");
    check_names(symbol_file("crc/gcc.so"), NULL, 0, "crc/gcc.so.debug: a debug file of another");
    check_names(symbol_file("other/gcc.so"), &ids, 1, NULL);

    /* a module that was replaced */
    nm_read(&nm, symbol_file("gcc.so"));
    uint64_t local = nm_start(&nm, "part_local");
    of.path = symbol_file("replaced/gcc.so");
    s = gt_symbols_open(&of, NULL);
    ck_assert_str_eq(at(s, local, 1), "none");
    ck_assert_str_eq(at(s, nm_start(&nm, "part_global"), 1), "none");
    ck_assert_ptr_nonnull(strstr(gt_symbols_why(s), "replaced/gcc.so: another build"));
    gt_symbols_free(s);
    s = gt_symbols_open(&of, &by_name);
    ck_assert_str_eq(at(s, local, 1), "part_local");
    ck_assert_ptr_null(gt_symbols_why(s));
    gt_symbols_free(s);

    /* one that is gone, and one that never was here but for its debug file */
    of.path = symbol_file("gone/gcc.so");
    s = gt_symbols_open(&of, NULL);
    ck_assert_str_eq(at(s, local, 1), "none");
    ck_assert_ptr_nonnull(strstr(gt_symbols_why(s), "gone/gcc.so: not here"));
    gt_symbols_free(s);
    s = gt_symbols_open(&of, &ids);
    ck_assert_str_eq(at(s, local, 1), "part_local");
    ck_assert_ptr_null(gt_symbols_why(s));
    gt_symbols_free(s);

    /* recorded without an id: a file that has one is another */
    of.path = symbol_file("gcc.so");
    of.build_id_bytes = 0;
    s = gt_symbols_open(&of, NULL);
    ck_assert_str_eq(at(s, local, 1), "none");
    ck_assert_ptr_nonnull(strstr(gt_symbols_why(s), "another build"));
    gt_symbols_free(s);

    /* no file at all */
    of = (struct gt_symbols_of){.path = "linux-vdso.so.1"};
    s = gt_symbols_open(&of, &ids);
    ck_assert_ptr_null(gt_symbols_why(s));
    ck_assert_str_eq(at(s, local, 1), "none");
    gt_symbols_free(s);
    of.path = symbol_folder();
    s = gt_symbols_open(&of, NULL);
    ck_assert_ptr_nonnull(gt_symbols_why(s));
    gt_symbols_free(s);
    of.path = "/dev/zero";
    s = gt_symbols_open(&of, NULL);
    ck_assert_ptr_nonnull(gt_symbols_why(s));
    gt_symbols_free(s);
}
END_TEST

/* Deleted from disk, but its process (this one) runs. */
START_TEST(deleted)
{
    struct gt_symbols_of of = symbols_of("/proc/self/exe");
    struct gt_elf e;
    struct gt_symbols *s;
    if (!of.build_id_bytes) {
        puts("SKIP: this compiler gives no build-id");
        return;
    }
    ck_assert_int_eq(gt_elf_open(&e, "/proc/self/exe"), 0);
    uint64_t bias = (uint64_t)getauxval(AT_PHDR) & ~UINT64_C(0xfff);
    uint64_t here = (uint64_t)(uintptr_t)&symbols_of - bias + e.base;
    of.path = "/gone/for/good";
    s = gt_symbols_open(&of, NULL);
    ck_assert_str_eq(at(s, here, 1), "none");
    gt_symbols_free(s);
    of.pid = (uint32_t)getpid();
    of.start = bias;
    of.end = bias + 1;
    s = gt_symbols_open(&of, NULL);
    ck_assert_str_eq(at(s, here, 1), "symbols_of");
    ck_assert_ptr_null(gt_symbols_why(s));
    gt_symbols_free(s);
    gt_elf_close(&e);
}
END_TEST

/* ---- names ---- */

static void check_name(const char *linkage, const char *want)
{
    char *got = gt_symbols_name(linkage);
    ck_assert_str_eq(got, want);
    free(got);
}

START_TEST(names)
{
    char text[10000] = "_Z1f1PI1AS0_E";
    char *got;
    check_name("main", "main");
    check_name("", "");
    check_name("_", "_");
    check_name("@", "@");
    check_name("memcpy@@GLIBC_2.14", "memcpy");
    check_name("_ZN4part3runEi", "part::run(int)");
    check_name("_ZN4part3runEi.cold", "part::run(int) [clone .cold]");
    check_name("_Znonsense", "_Znonsense");
    check_name("_ZN5parts5apply17h0123456789abcdefE", "parts::apply");
    check_name("_RNvC5parts5apply", "parts::apply");
    check_name("_RNvNtNtCs1234_7mycrate3foo3bar3baz", "mycrate::foo::bar::baz");
    check_name("_D3foo3barFZv", "_D3foo3barFZv");
    /* twice as long with each of 60 steps */
    for (int i = 1; i <= 60; i++) {
        char id[8];
        int k = i;
        snprintf(id, sizeof id, k <= 9 + 1 ? "%c" : "1%c",
                 k <= 9    ? '0' + k
                 : k <= 35 ? 'A' + k - 10
                           : 'A');
        if (k >= 10 && k <= 35)
            snprintf(id, sizeof id, "%c", 'A' + k - 10);
        if (k > 35)
            snprintf(id, sizeof id, "1%c", k - 36 < 10 ? '0' + k - 36 : 'A' + k - 46);
        snprintf(text + strlen(text), 64, "S_IS%s_S%s_E", id, id);
    }
    got = gt_symbols_name(text);
    ck_assert_uint_eq(strlen(got), GT_NAME_MAX);
    ck_assert_int_eq(strncmp(got, "f(P<A, A>, P<P<A, A>, P<A, A> >, ", 33), 0);
    ck_assert_str_eq(got + GT_NAME_MAX - 3, "...");
    free(got);
    /* longer than any name, and deep */
    memset(text, 'P', sizeof text - 1);
    memcpy(text, "_Z1f", 4);
    text[4000] = 'i';
    text[4001] = 0;
    got = gt_symbols_name(text);
    ck_assert_uint_le(strlen(got), GT_NAME_MAX);
    free(got);
    memset(text, 'x', sizeof text - 1);
    got = gt_symbols_name(text);
    ck_assert_uint_eq(strlen(got), GT_NAME_MAX);
    free(got);
}
END_TEST

/* Names that nobody made: real ones with bytes changed, parts doubled or cut out. */
START_TEST(damaged_names)
{
    char paths[32][512];
    int n = symbol_files(paths, 32), cases = 0;
    unsigned seed = 1;
    for (int i = 0; i < n; i++) {
        if (strstr(paths[i], "-now") || strstr(paths[i], "-lazy"))
            continue;
        nm_read(&nm, paths[i]);
        for (int k = 0; k < nm.count; k++)
            for (int again = 0; again < 12 && nm.lines[k].linkage[0] == '_'; again++, cases++) {
                char text[8200];
                size_t len = strlen(nm.lines[k].linkage);
                ck_assert_uint_lt(len, 4000);
                memcpy(text, nm.lines[k].linkage, len + 1);
                for (int edit = rand_r(&seed) % 3; edit >= 0; edit--) {
                    size_t from = 2 + (size_t)rand_r(&seed) % len, m = (size_t)rand_r(&seed) % 20;
                    if (from >= len)
                        continue;
                    if (rand_r(&seed) % 3 == 0) {
                        text[from] = text[(size_t)rand_r(&seed) % len];
                    } else if (rand_r(&seed) % 2 && from + m < len) {
                        memmove(text + from, text + from + m, len - from - m + 1);
                        len -= m;
                    } else if (from + m < len) {
                        memmove(text + from + m, text + from, len - from + 1);
                        len += m;
                    }
                }
                char *got = gt_symbols_name(text);
                ck_assert_uint_le(strlen(got), GT_NAME_MAX);
                free(got);
            }
    }
    ck_assert_int_gt(cases, 5000);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("symbols");
    TCase *t = tcase_create("symbols");
    SRunner *r = srunner_create(s);
    int failed;
    tcase_set_timeout(t, 120);
    tcase_add_test(t, whole_files);
    tcase_add_test(t, stubs);
    tcase_add_test(t, kinds);
    tcase_add_test(t, cold_parts);
    tcase_add_test(t, many_cold_parts);
    tcase_add_test(t, debug_files);
    tcase_add_test(t, unpacking);
    tcase_add_test(t, refused);
    tcase_add_test(t, deleted);
    tcase_add_test(t, names);
    tcase_add_test(t, damaged_names);
    suite_add_tcase(s, t);
    srunner_run_all(r, CK_NORMAL);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
