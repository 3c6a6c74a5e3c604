/* Decides from a program's file whether the library can be injected, and what must be loaded before
 * it. Used by `gputally run` before it starts the program. */
#include "report/elf_target.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#if defined __x86_64__
#define OUR_MACHINE EM_X86_64
#elif defined __aarch64__
#define OUR_MACHINE EM_AARCH64
#else
#error "gputally is for x86-64 and aarch64"
#endif

/* Linux gives up with ELOOP after as many interpreters. */
#define MAX_SCRIPTS 5
/* Real programs have about 13 program headers and 30 dynamic entries; hostile ones get no more. */
#define MAX_PHDRS 128
#define MAX_DYNAMIC 4096

static int executable(const char *path)
{
    struct stat st;

    if (stat(path, &st))
        return errno == EACCES ? -EACCES : -ENOENT;
    if (!S_ISREG(st.st_mode) || faccessat(AT_FDCWD, path, X_OK, AT_EACCESS))
        return -EACCES;
    return 0;
}

int gt_elf_target_find(const char *command, const char *path, char out[PATH_MAX])
{
    int found = -ENOENT;

    if (!*command)
        return -ENOENT;
    if (strchr(command, '/')) {
        if (snprintf(out, PATH_MAX, "%s", command) >= PATH_MAX)
            return -ENOENT;
        return executable(out);
    }
    if (!path)
        path = "/bin:/usr/bin";
    for (;;) {
        size_t len = strcspn(path, ":");
        int n = snprintf(out, PATH_MAX, "%.*s%s%s", (int)len, path, len ? "/" : "./", command);

        if (n < PATH_MAX) {
            int rc = executable(out);
            if (!rc)
                return 0;
            if (rc == -EACCES)
                found = rc;
        }
        if (!path[len])
            return found;
        path += len + 1;
    }
}

static int read_at(int fd, uint64_t offset, void *to, size_t n)
{
    if (offset > INT64_MAX)
        return -EINVAL;
    return pread(fd, to, n, (off_t)offset) == (ssize_t)n ? 0 : -EINVAL;
}

/* Reads up to n - 1 bytes of a NUL-terminated text. */
static void read_text(int fd, uint64_t offset, char *to, size_t n)
{
    ssize_t got = offset > INT64_MAX ? -1 : pread(fd, to, n - 1, (off_t)offset);

    to[got < 0 ? 0 : got] = 0;
}

int gt_elf_is_sanitizer(const char *name)
{
    static const char *const kinds[] = {"asan", "hwasan", "tsan", "lsan"};

    if (!strncmp(name, "libclang_rt.", 12))
        name += 12;
    else if (!strncmp(name, "lib", 3))
        name += 3;
    else
        return 0;
    for (unsigned i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        size_t len = strlen(kinds[i]);
        if (!strncmp(name, kinds[i], len) && strchr(".-_", name[len]))
            return 1;
    }
    return 0;
}

struct dynamic {
    uint64_t strtab; /* file offset, 0: none */
    uint64_t offset, bytes;
};

static uint64_t file_offset(const Elf64_Phdr *ph, unsigned n, uint64_t address)
{
    for (unsigned i = 0; i < n; i++)
        if (ph[i].p_type == PT_LOAD && address >= ph[i].p_vaddr &&
            address - ph[i].p_vaddr < ph[i].p_filesz)
            return address - ph[i].p_vaddr + ph[i].p_offset;
    return 0;
}

/* Walks DT_NEEDED for a sanitizer. Returns 1 if DT_SONAME says that this is a dynamic linker. */
static int read_dynamic(int fd, const Elf64_Phdr *ph, unsigned phnum, const Elf64_Phdr *dynamic,
                        struct gt_elf_target *t)
{
    uint64_t strtab = 0;
    int loader = 0;
    Elf64_Dyn d;

    for (int pass = 0; pass < 2; pass++) {
        for (unsigned i = 0; i < MAX_DYNAMIC && (i + 1) * sizeof d <= dynamic->p_filesz; i++) {
            char name[sizeof t->sanitizer];

            if (read_at(fd, dynamic->p_offset + i * sizeof d, &d, sizeof d) || d.d_tag == DT_NULL)
                break;
            if (d.d_tag == DT_STRTAB && !pass)
                strtab = file_offset(ph, phnum, d.d_un.d_ptr);
            if (!pass || (d.d_tag != DT_NEEDED && d.d_tag != DT_SONAME))
                continue;
            read_text(fd, strtab + d.d_un.d_val, name, sizeof name);
            if (d.d_tag == DT_SONAME)
                loader = !strncmp(name, "ld-linux", 8) || !strncmp(name, "ld.so", 5);
            else if (!t->sanitizer[0] && gt_elf_is_sanitizer(name))
                memcpy(t->sanitizer, name, sizeof name);
        }
        if (!strtab)
            return 0;
    }
    return loader;
}

static void decline(struct gt_elf_target *t, enum gt_target_kind kind, const char *why)
{
    t->kind = kind;
    t->why = why;
}

static void read_elf(int fd, const Elf64_Ehdr *eh, struct gt_elf_target *t)
{
    Elf64_Phdr ph[MAX_PHDRS];
    const Elf64_Phdr *interp = NULL, *dynamic = NULL;
    char name[PATH_MAX];

    if (eh->e_ident[EI_CLASS] != ELFCLASS64) {
        decline(t, GT_TARGET_MACHINE, "it is a 32-bit program");
        return;
    }
    if (eh->e_ident[EI_DATA] != ELFDATA2LSB || eh->e_machine != OUR_MACHINE) {
        decline(t, GT_TARGET_MACHINE, "it was built for another machine");
        return;
    }
    if (eh->e_phentsize != sizeof *ph || eh->e_phnum > MAX_PHDRS ||
        read_at(fd, eh->e_phoff, ph, eh->e_phnum * sizeof *ph)) {
        decline(t, GT_TARGET_UNKNOWN, "its ELF header makes no sense");
        return;
    }
    for (unsigned i = 0; i < eh->e_phnum; i++) {
        if (ph[i].p_type == PT_INTERP)
            interp = &ph[i];
        if (ph[i].p_type == PT_DYNAMIC)
            dynamic = &ph[i];
    }
    int loader = dynamic ? read_dynamic(fd, ph, eh->e_phnum, dynamic, t) : 0;
    if (!interp) {
        /* ld.so given as the command has no interpreter and preloads all the same */
        if (!loader)
            decline(t, GT_TARGET_STATIC, "it is statically linked");
        return;
    }
    read_text(fd, interp->p_offset, name,
              interp->p_filesz < sizeof name ? interp->p_filesz + 1 : sizeof name);
    if (strstr(name, "musl"))
        decline(t, GT_TARGET_MUSL, "it uses musl, not glibc");
}

/* Would the kernel set AT_SECURE? Then ld.so ignores a preload with a path. */
static void check_privilege(int fd, struct gt_elf_target *t)
{
    struct stat st;
    struct statvfs fs;

    if (fstat(fd, &st) || prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1)
        return;
    if (!fstatvfs(fd, &fs) && (fs.f_flag & ST_NOSUID))
        return;
    if ((st.st_mode & S_ISUID) && st.st_uid != getuid())
        decline(t, GT_TARGET_PRIVILEGED, "it is setuid");
    else if ((st.st_mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP) && st.st_gid != getgid())
        decline(t, GT_TARGET_PRIVILEGED, "it is setgid");
    else if (getuid() != 0 && fgetxattr(fd, "security.capability", NULL, 0) > 0)
        decline(t, GT_TARGET_PRIVILEGED, "it has file capabilities");
}

/* "#! /path arg" -> "/path" in place. Returns 0 if there is none. */
static char *interpreter(char *line)
{
    char *s = line + 2 + strspn(line + 2, " \t");

    s[strcspn(s, " \t\n")] = 0;
    return *s ? s : NULL;
}

void gt_elf_target_read(const char *path, struct gt_elf_target *t)
{
    union {
        Elf64_Ehdr eh;
        char text[257];
    } head;

    memset(t, 0, sizeof *t);
    t->why = "";
    snprintf(t->path, sizeof t->path, "%s", path);
    for (int depth = 0; depth <= MAX_SCRIPTS; depth++) {
        int fd = open(t->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        ssize_t n = fd < 0 ? -1 : pread(fd, head.text, sizeof head.text - 1, 0);
        char *next;

        memset(head.text + (n < 0 ? 0 : n), 0, sizeof head.text - (n < 0 ? 0 : n));
        if (n >= (ssize_t)sizeof head.eh && !memcmp(head.eh.e_ident, ELFMAG, SELFMAG)) {
            read_elf(fd, &head.eh, t);
            if (t->kind == GT_TARGET_OK)
                check_privilege(fd, t);
            close(fd);
            return;
        }
        if (fd >= 0)
            close(fd);
        if (n < 2 || memcmp(head.text, "#!", 2)) {
            /* execute-only files are programs too: what can't be read counts as what most are */
            if (n < 0)
                decline(t, GT_TARGET_UNKNOWN, "its file can't be read");
            else
                decline(t, GT_TARGET_UNKNOWN, "it is neither an ELF file nor a script");
            return;
        }
        if (!(next = interpreter(head.text)))
            break;
        snprintf(t->path, sizeof t->path, "%s", next);
    }
    decline(t, GT_TARGET_UNKNOWN, "its #! lines lead nowhere");
}
