/* report/elf_file.c, symbols*.c with files that no linker made: cut off at every place, with bits
 * turned over, with every field of every section header at its extremes. No crash, no read beyond
 * what is there (SAN=address,undefined), no endless loop. */
#include "symbol_files.h"
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

static struct nm nm;
static uint8_t *whole;
static size_t whole_bytes;
static uint64_t asked[64];
static unsigned long named, opened;

static void load(const char *path)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ck_assert_int_eq(fstat(fd, &st), 0);
    whole_bytes = (size_t)st.st_size;
    whole = malloc(whole_bytes);
    ck_assert_int_eq(read(fd, whole, whole_bytes), (long)whole_bytes);
    close(fd);
    nm_read(&nm, symbol_file("gcc.so"));
    for (int i = 0; i < 64; i++)
        asked[i] = nm.lines[i * 7 % nm.count].start + (uint64_t)i % 20;
    /* the stubs, and what is far off */
    asked[60] = nm_start(&nm, "_init") + 0x30;
    asked[61] = 0;
    asked[62] = UINT64_MAX;
    asked[63] = UINT64_C(1) << 47;
}

static void ask(int memory, size_t bytes, int lines)
{
    char path[64];
    struct gt_symbols_of of = {.path = path};
    struct gt_symbol found;
    struct gt_symbols *s;
    const struct gt_line *at;
    snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)getpid(), memory);
    ck_assert_int_eq(ftruncate(memory, (off_t)bytes), 0);
    ck_assert_int_eq(pwrite(memory, whole, bytes, 0), (long)bytes);
    s = gt_symbols_open(&of, NULL);
    opened += !gt_symbols_why(s);
    for (int i = 0; i < 64; i++)
        gt_symbols_want(s, asked[i], i % 2);
    for (int i = 0; i < 64; i++) {
        if (!gt_symbols_at(s, asked[i], i % 2, &found))
            named += strlen(found.name) > 0;
        for (size_t k = lines ? gt_lines_at(s, asked[i], i % 2, &at) : 0; k--;)
            named += at[k].file && strlen(at[k].file) > 100;
    }
    gt_symbols_free(s);
}

static int memory_file(void)
{
    int fd = memfd_create("hostile", MFD_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    return fd;
}

static const char *const files[] = {"noid/gcc.so", "noid/whole.so"};

START_TEST(cut_off)
{
    int fd = memory_file();
    load(symbol_file(files[_i]));
    for (size_t n = 0; n < whole_bytes; n += n < 4096 ? 8 : 64)
        ask(fd, n, 0);
    ask(fd, whole_bytes, 0);
    ck_assert_uint_gt(named, 10);
    ck_assert_uint_gt(opened, 0);
    close(fd);
    free(whole);
}
END_TEST

START_TEST(bits_turned)
{
    int fd = memory_file();
    unsigned seed = 4711;
    load(symbol_file(files[_i]));
    for (int i = 0; i < 3000; i++) {
        uint8_t kept[8];
        size_t at[8];
        /* half of them where the headers are */
        for (int k = 0; k < 8; k++) {
            size_t from = k % 2 ? 0 : whole_bytes - whole_bytes / 8;
            size_t room = k % 4 == 0 ? whole_bytes / 8 : k % 4 == 1 ? 64 : whole_bytes;
            at[k] = (k % 4 < 2 ? from : 0) + (size_t)rand_r(&seed) % room;
            kept[k] = whole[at[k]];
            if (k <= i % 8)
                whole[at[k]] ^= (uint8_t)(1u << rand_r(&seed) % 8);
        }
        ask(fd, whole_bytes, 0);
        for (int k = 8; k--;)
            whole[at[k]] = kept[k];
    }
    ck_assert_uint_gt(named, 10000);
    close(fd);
    free(whole);
}
END_TEST

/* Unwind data, by which cold parts are found, with words at extremes; and the code. */
START_TEST(unwind_data)
{
    static const uint32_t odd[] = {0,          1,          0x7fffffff, 0x80000000,
                                   UINT32_MAX, 0xffffff00, 0xe9e9e9e9};
    int fd = memory_file();
    struct nm_line *cold = NULL;
    load(symbol_file("noid/gcc.so"));
    for (int i = 0; i < nm.count; i++)
        if (!strcmp(nm.lines[i].linkage, "part_split.cold"))
            cold = &nm.lines[i];
#ifdef __x86_64__
    ck_assert_ptr_nonnull(cold);
#endif
    for (int i = 0; i < 64 && cold; i++)
        asked[i] = cold->start + (uint64_t)i % cold->size;
    Elf64_Ehdr *h = (Elf64_Ehdr *)whole;
    const Elf64_Shdr *s = (const Elf64_Shdr *)(whole + h->e_shoff);
    const char *names = (const char *)whole + s[h->e_shstrndx].sh_offset;
    for (unsigned i = 1; i < h->e_shnum; i++) {
        uint8_t *bytes = whole + s[i].sh_offset;
        if (strncmp(names + s[i].sh_name, ".eh_frame", 9) && strcmp(names + s[i].sh_name, ".text"))
            continue;
        for (size_t at = 0; at + 4 <= s[i].sh_size; at += 4)
            for (size_t k = 0; k < sizeof odd / sizeof *odd; k++) {
                uint8_t kept[4];
                memcpy(kept, bytes + at, 4);
                memcpy(bytes + at, &odd[k], 4);
                if (k == (at / 4) % (sizeof odd / sizeof *odd) || at < 16)
                    ask(fd, whole_bytes, 0);
                memcpy(bytes + at, kept, 4);
            }
    }
#ifdef __x86_64__
    ck_assert_uint_gt(named, 10000);
#endif
    close(fd);
    free(whole);
}
END_TEST

/* Debug information with bits turned over. It is libdw that reads it. */
START_TEST(lines_bits_turned)
{
    int fd = memory_file();
    unsigned seed = 42;
    load(symbol_file("noid/whole.so"));
    Elf64_Ehdr *h = (Elf64_Ehdr *)whole;
    const Elf64_Shdr *s = (const Elf64_Shdr *)(whole + h->e_shoff);
    size_t from = whole_bytes, to = 0;
    /* .debug_*: what is neither loaded nor symbols nor names */
    for (unsigned i = 1; i < h->e_shnum; i++)
        if (s[i].sh_type == SHT_PROGBITS && !(s[i].sh_flags & SHF_ALLOC)) {
            from = s[i].sh_offset < from ? s[i].sh_offset : from;
            to = s[i].sh_offset + s[i].sh_size > to ? s[i].sh_offset + s[i].sh_size : to;
        }
    ck_assert_uint_lt(from, to);
    for (int i = 0; i < 500; i++) {
        uint8_t kept[8];
        size_t place[8];
        for (int k = 0; k < 8; k++) {
            place[k] = from + (size_t)rand_r(&seed) % (to - from);
            kept[k] = whole[place[k]];
            if (k <= i % 8)
                whole[place[k]] ^= (uint8_t)(1u << rand_r(&seed) % 8);
        }
        ask(fd, whole_bytes, 1);
        for (int k = 8; k--;)
            whole[place[k]] = kept[k];
    }
    close(fd);
    free(whole);
}
END_TEST

/* Every field of every section header and of the file's at values that overflow something. */
START_TEST(fields_at_extremes)
{
    static const uint64_t odd[] = {0,
                                   1,
                                   7,
                                   UINT64_MAX,
                                   UINT64_MAX - 7,
                                   UINT64_C(1) << 63,
                                   UINT32_MAX,
                                   UINT64_C(1) << 47,
                                   UINT64_C(0x10000)};
    Elf64_Ehdr *h;
    int fd = memory_file();
    load(symbol_file(files[_i]));
    h = (Elf64_Ehdr *)whole;
    for (size_t field = 0; field < sizeof *h; field += 2)
        for (size_t k = 0; k < sizeof odd / sizeof *odd; k++) {
            uint8_t kept[8];
            size_t n = field + 8 <= sizeof *h ? 8 : sizeof *h - field;
            memcpy(kept, whole + field, n);
            memcpy(whole + field, &odd[k], n);
            ask(fd, whole_bytes, 0);
            memcpy(whole + field, kept, n);
        }
    for (unsigned i = 0; i < h->e_shnum; i++) {
        uint8_t *s = whole + h->e_shoff + i * sizeof(Elf64_Shdr);
        for (size_t field = 0; field < sizeof(Elf64_Shdr); field += 4)
            for (size_t k = 0; k < sizeof odd / sizeof *odd; k++) {
                uint32_t small, kept[2];
                /* 4 bytes are name, type, link, info; 8 all others */
                size_t n = field < 8 || (field >= 40 && field < 48) ? 4 : 8;
                if (n == 8 && field % 8)
                    continue;
                small = (uint32_t)odd[k];
                memcpy(kept, s + field, n);
                memcpy(s + field, n == 8 ? (const void *)&odd[k] : (const void *)&small, n);
                ask(fd, whole_bytes, 0);
                memcpy(s + field, kept, n);
            }
    }
    ck_assert_uint_gt(named, 10000);
    close(fd);
    free(whole);
}
END_TEST

/* Symbols that overlap in every way: random starts and sizes, all names the same place. */
START_TEST(overlapping)
{
    int fd = memory_file();
    unsigned seed = 1;
    load(symbol_file("noid/whole.so"));
    Elf64_Ehdr *h = (Elf64_Ehdr *)whole;
    Elf64_Shdr *s = (Elf64_Shdr *)(whole + h->e_shoff);
    for (int again = 0; again < 50; again++) {
        for (unsigned i = 0; i < h->e_shnum; i++) {
            Elf64_Sym *y = (Elf64_Sym *)(whole + s[i].sh_offset);
            if (s[i].sh_type != SHT_SYMTAB && s[i].sh_type != SHT_DYNSYM)
                continue;
            for (size_t k = 1; k < s[i].sh_size / sizeof *y; k++) {
                y[k].st_value = again % 5 ? asked[rand_r(&seed) % 60] : asked[0];
                y[k].st_size = again % 3 ? (uint64_t)rand_r(&seed) << rand_r(&seed) % 33
                                         : UINT64_MAX - (uint64_t)rand_r(&seed) % 2;
                y[k].st_info = ELF64_ST_INFO(rand_r(&seed) % 3, rand_r(&seed) % 2 * 2);
                y[k].st_shndx = 12;
                if (again % 7 == 0)
                    y[k].st_name = (uint32_t)rand_r(&seed) % 4096;
            }
        }
        ask(fd, whole_bytes, 0);
    }
    ck_assert_uint_gt(named, 1000);
    close(fd);
    free(whole);
}
END_TEST

/* Half a million symbols at one address, and no zero behind the names: done at once. */
START_TEST(one_address)
{
    enum { COUNT = 500000, NAMES = 4096 };
    struct {
        Elf64_Ehdr h;
        Elf64_Shdr s[5];
        char names[NAMES];
        Elf64_Sym y[COUNT];
    } *f = calloc(1, sizeof *f);
    int fd = memory_file();
    whole = (uint8_t *)f;
    whole_bytes = sizeof *f;
    memcpy(f->h.e_ident, ELFMAG, SELFMAG);
    f->h.e_ident[EI_CLASS] = ELFCLASS64;
    f->h.e_ident[EI_DATA] = ELFDATA2LSB;
    f->h.e_machine = EM_X86_64;
    f->h.e_shoff = (uint64_t)((uint8_t *)f->s - whole);
    f->h.e_shentsize = sizeof f->s[0];
    f->h.e_shnum = 5;
    memset(f->names, 'n', NAMES);
    f->s[1] = (Elf64_Shdr){.sh_type = SHT_NOBITS,
                           .sh_flags = SHF_ALLOC | SHF_EXECINSTR,
                           .sh_addr = 0x1000,
                           .sh_size = 0x100000};
    f->s[2] = (Elf64_Shdr){.sh_type = SHT_STRTAB,
                           .sh_offset = (uint64_t)((uint8_t *)f->names - whole),
                           .sh_size = NAMES};
    f->s[3] = (Elf64_Shdr){.sh_type = SHT_SYMTAB,
                           .sh_link = 2,
                           .sh_offset = (uint64_t)((uint8_t *)f->y - whole),
                           .sh_size = sizeof f->y};
    /* functions far apart, and those without a size all between them */
    for (uint32_t i = 0; i < COUNT; i++)
        f->y[i] = (Elf64_Sym){.st_name = 1 + i % (NAMES - 1),
                              .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
                              .st_shndx = 1,
                              .st_value = 0x2000,
                              .st_size = i % 2 ? 64 : 0};
    f->y[1].st_value = 0x1000;
    f->y[3].st_value = 0x100fff;
    f->y[5] = (Elf64_Sym){.st_name = NAMES - 3,
                          .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
                          .st_shndx = 1,
                          .st_value = 0x3000,
                          .st_size = 0x10000};
    for (int i = 0; i < 64; i++)
        asked[i] = 0x2000 + (uint64_t)i * 512;
    for (int i = 0; i < 20; i++)
        ask(fd, whole_bytes, 0);
    ck_assert_uint_gt(named, 20);
    close(fd);
    free(f);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("symbols, hostile");
    TCase *t = tcase_create("symbols, hostile");
    SRunner *r = srunner_create(s);
    int failed;
    tcase_set_timeout(t, 300);
    tcase_add_loop_test(t, cut_off, 0, 2);
    tcase_add_loop_test(t, bits_turned, 0, 2);
    tcase_add_loop_test(t, fields_at_extremes, 0, 2);
    tcase_add_test(t, unwind_data);
    tcase_add_test(t, lines_bits_turned);
    tcase_add_test(t, overlapping);
    tcase_add_test(t, one_address);
    suite_add_tcase(s, t);
    srunner_run_all(r, CK_NORMAL);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
