/* report/elf_target.c: small ELF files made by hand, scripts, and PATH. */
#include "report/elf_target.h"

#include <check.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#if defined __x86_64__
#define MACHINE EM_X86_64
#else
#define MACHINE EM_AARCH64
#endif

static char dir[64], file[128];
static struct gt_elf_target t;

/* A program: header, three program headers, interpreter, dynamic section, names; loaded at BASE. */
#define BASE 0x400000u
#define TEXT "\0libc.so.6\0libasan.so.8\0ld-linux-x86-64.so.2"
#define TEXT_LIBC 1
#define TEXT_ASAN 11
#define TEXT_LOADER 24
static struct image {
    Elf64_Ehdr eh;
    Elf64_Phdr ph[3];
    char interp[64];
    Elf64_Dyn dyn[4];
    char text[64];
} image;

static void make_image(void)
{
    memset(&image, 0, sizeof image);
    memcpy(image.eh.e_ident, ELFMAG, SELFMAG);
    image.eh.e_ident[EI_CLASS] = ELFCLASS64;
    image.eh.e_ident[EI_DATA] = ELFDATA2LSB;
    image.eh.e_machine = MACHINE;
    image.eh.e_type = ET_DYN;
    image.eh.e_phoff = offsetof(struct image, ph);
    image.eh.e_phentsize = sizeof image.ph[0];
    image.eh.e_phnum = 3;
    image.ph[0] = (Elf64_Phdr){.p_type = PT_LOAD, .p_vaddr = BASE, .p_filesz = sizeof image};
    image.ph[1] = (Elf64_Phdr){.p_type = PT_INTERP,
                               .p_offset = offsetof(struct image, interp),
                               .p_filesz = sizeof image.interp};
    image.ph[2] = (Elf64_Phdr){.p_type = PT_DYNAMIC,
                               .p_offset = offsetof(struct image, dyn),
                               .p_filesz = sizeof image.dyn};
    strcpy(image.interp, "/lib64/ld-linux-x86-64.so.2");
    memcpy(image.text, TEXT, sizeof TEXT);
    image.dyn[0] = (Elf64_Dyn){.d_tag = DT_NEEDED, .d_un.d_val = TEXT_LIBC};
    image.dyn[1] =
        (Elf64_Dyn){.d_tag = DT_STRTAB, .d_un.d_ptr = BASE + offsetof(struct image, text)};
}

static void write_file(const char *path, const void *data, size_t n, mode_t mode)
{
    unlink(path);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0700);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, data, n), n);
    ck_assert_int_eq(fchmod(fd, mode), 0);
    close(fd);
}

static void read_image(size_t n)
{
    write_file(file, &image, n, 0755);
    gt_elf_target_read(file, &t);
}

static void setup(void)
{
    strcpy(dir, "/tmp/gputally-test-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(dir));
    snprintf(file, sizeof file, "%s/program", dir);
    make_image();
}

static void teardown(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", dir);
    ck_assert_int_eq(system(command), 0);
}

START_TEST(plain)
{
    read_image(sizeof image);
    ck_assert_int_eq(t.kind, GT_TARGET_OK);
    ck_assert_str_eq(t.why, "");
    ck_assert_str_eq(t.sanitizer, "");
    ck_assert_str_eq(t.path, file);
    /* ourselves: a real one */
    gt_elf_target_read("/proc/self/exe", &t);
    ck_assert_int_eq(t.kind, GT_TARGET_OK);
}
END_TEST

START_TEST(sanitizer)
{
    image.dyn[2] = (Elf64_Dyn){.d_tag = DT_NEEDED, .d_un.d_val = TEXT_ASAN};
    read_image(sizeof image);
    ck_assert_int_eq(t.kind, GT_TARGET_OK);
    ck_assert_str_eq(t.sanitizer, "libasan.so.8");

    ck_assert(gt_elf_is_sanitizer("libtsan.so.2"));
    ck_assert(gt_elf_is_sanitizer("liblsan.so"));
    ck_assert(gt_elf_is_sanitizer("libclang_rt.asan-x86_64.so"));
    ck_assert(!gt_elf_is_sanitizer("libubsan.so.1")); /* does not mind its place */
    ck_assert(!gt_elf_is_sanitizer("libasanything.so"));
    ck_assert(!gt_elf_is_sanitizer("libc.so.6"));
    ck_assert(!gt_elf_is_sanitizer(""));
}
END_TEST

START_TEST(declined)
{
    strcpy(image.interp, "/lib/ld-musl-x86_64.so.1");
    read_image(sizeof image);
    ck_assert_int_eq(t.kind, GT_TARGET_MUSL);

    make_image();
    image.ph[1].p_type = PT_NULL;
    read_image(sizeof image);
    ck_assert_int_eq(t.kind, GT_TARGET_STATIC);
    ck_assert_ptr_nonnull(strstr(t.why, "static"));
    /* the dynamic linker as the command: no interpreter, but it preloads */
    image.dyn[2] = (Elf64_Dyn){.d_tag = DT_SONAME, .d_un.d_val = TEXT_LOADER};
    read_image(sizeof image);
    ck_assert_int_eq(t.kind, GT_TARGET_OK);

    make_image();
    image.eh.e_ident[EI_CLASS] = ELFCLASS32;
    read_image(sizeof image);
    ck_assert_int_eq(t.kind, GT_TARGET_MACHINE);
    make_image();
    image.eh.e_machine = EM_PPC64;
    read_image(sizeof image);
    ck_assert_int_eq(t.kind, GT_TARGET_MACHINE);
    make_image();
    image.eh.e_ident[EI_DATA] = ELFDATA2MSB;
    read_image(sizeof image);
    ck_assert_int_eq(t.kind, GT_TARGET_MACHINE);
}
END_TEST

START_TEST(hostile)
{
    /* cut anywhere: an answer, never a crash */
    for (size_t n = 0; n < sizeof image; n += 7) {
        make_image();
        read_image(n);
        ck_assert_int_ne(t.kind, GT_TARGET_PRIVILEGED);
    }
    make_image();
    image.eh.e_phoff = UINT64_MAX - 3;
    read_image(sizeof image);
    ck_assert_int_eq(t.kind, GT_TARGET_UNKNOWN);
    make_image();
    image.eh.e_phnum = UINT16_MAX;
    read_image(sizeof image);
    ck_assert_int_eq(t.kind, GT_TARGET_UNKNOWN);
    make_image();
    image.ph[1].p_offset = UINT64_MAX;
    image.ph[2].p_filesz = UINT64_MAX;
    image.ph[2].p_offset = UINT64_MAX - 8;
    image.dyn[0].d_un.d_val = UINT64_MAX;
    read_image(sizeof image);
    ck_assert_int_eq(t.kind, GT_TARGET_OK);
    ck_assert_str_eq(t.sanitizer, "");
}
END_TEST

START_TEST(scripts)
{
    char script[128], line[256];

    write_file(file, &image, sizeof image, 0755);
    snprintf(script, sizeof script, "%s/script", dir);
    snprintf(line, sizeof line, "#! %s -x\necho\n", file);
    write_file(script, line, strlen(line), 0755);
    gt_elf_target_read(script, &t);
    ck_assert_int_eq(t.kind, GT_TARGET_OK);
    ck_assert_str_eq(t.path, file);

    /* one that names itself ends */
    snprintf(line, sizeof line, "#!%s\n", script);
    write_file(script, line, strlen(line), 0755);
    gt_elf_target_read(script, &t);
    ck_assert_int_eq(t.kind, GT_TARGET_UNKNOWN);

    write_file(script, "#!\n", 3, 0755);
    gt_elf_target_read(script, &t);
    ck_assert_int_eq(t.kind, GT_TARGET_UNKNOWN);
    write_file(script, "echo\n", 5, 0755);
    gt_elf_target_read(script, &t);
    ck_assert_int_eq(t.kind, GT_TARGET_UNKNOWN);
    write_file(script, "", 0, 0755);
    gt_elf_target_read(script, &t);
    ck_assert_int_eq(t.kind, GT_TARGET_UNKNOWN);
    gt_elf_target_read("/nonexistent/x", &t);
    ck_assert_int_eq(t.kind, GT_TARGET_UNKNOWN);
}
END_TEST

START_TEST(privileged)
{
    write_file(file, &image, sizeof image, 0755);
    if (getuid() == 0)
        ck_assert_int_eq(chown(file, 65534, 65534), 0);
    ck_assert_int_eq(chmod(file, 06755), 0);
    gt_elf_target_read(file, &t);
    /* setuid to ourselves gains nothing, and ld.so preloads as ever */
    ck_assert_int_eq(t.kind, getuid() == 0 ? GT_TARGET_PRIVILEGED : GT_TARGET_OK);
    if (getuid() == 0) {
        ck_assert_int_eq(chown(file, 0, 0), 0);
        ck_assert_int_eq(chmod(file, 04755), 0);
        gt_elf_target_read(file, &t);
        ck_assert_int_eq(t.kind, GT_TARGET_OK);
    }
}
END_TEST

START_TEST(search)
{
    char out[PATH_MAX], path[256], other[128];

    write_file(file, &image, sizeof image, 0755);
    snprintf(other, sizeof other, "%s/plain", dir);
    write_file(other, "x", 1, 0644);
    snprintf(path, sizeof path, "/nonexistent:%s:/bin", dir);
    ck_assert_int_eq(gt_elf_target_find("program", path, out), 0);
    ck_assert_str_eq(out, file);
    ck_assert_int_eq(gt_elf_target_find("plain", path, out), -EACCES);
    ck_assert_int_eq(gt_elf_target_find("no-such-program", path, out), -ENOENT);
    ck_assert_int_eq(gt_elf_target_find("", path, out), -ENOENT);
    ck_assert_int_eq(gt_elf_target_find(file, NULL, out), 0);
    ck_assert_int_eq(gt_elf_target_find(dir, NULL, out), -EACCES);
    ck_assert_int_eq(gt_elf_target_find("sh", NULL, out), 0);
    /* an empty entry is the working folder */
    ck_assert_int_eq(chdir(dir), 0);
    ck_assert_int_eq(gt_elf_target_find("program", "/nonexistent:", out), 0);
    ck_assert_str_eq(out, "./program");
}
END_TEST

int main(void)
{
    Suite *s = suite_create("elf_target");
    TCase *c = tcase_create("all");

    tcase_add_checked_fixture(c, setup, teardown);
    tcase_add_test(c, plain);
    tcase_add_test(c, sanitizer);
    tcase_add_test(c, declined);
    tcase_add_test(c, hostile);
    tcase_add_test(c, scripts);
    tcase_add_test(c, privileged);
    tcase_add_test(c, search);
    suite_add_tcase(s, c);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
