/* Reads a library's version needs: a preload that asks for a version the target's glibc lacks would
 * kill the target, so `doctor` tells the number. */
#include "report/elf_floor.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct file {
    const unsigned char *at;
    size_t size;
};

static const void *part(const struct file *f, uint64_t offset, uint64_t n)
{
    return offset <= f->size && n <= f->size - offset ? f->at + offset : NULL;
}

static void take(const struct file *f, uint64_t offset, unsigned *major, unsigned *minor)
{
    const char *name = part(f, offset, 1);
    char text[32];
    unsigned a, b;

    if (!name)
        return;
    snprintf(text, sizeof text, "%.*s",
             (int)(f->size - offset < sizeof text ? f->size - offset : sizeof text - 1), name);
    if (sscanf(text, "GLIBC_%u.%u", &a, &b) == 2 && (a > *major || (a == *major && b > *minor)))
        *major = a, *minor = b;
}

/* The section's links are relative and could form a cycle: every step is counted. */
static void walk(const struct file *f, const Elf64_Shdr *needs, const Elf64_Shdr *names,
                 unsigned *major, unsigned *minor)
{
    uint64_t at = needs->sh_offset;
    const Elf64_Verneed *n;

    for (unsigned i = 0; i < 64 && (n = part(f, at, sizeof *n)); i++) {
        uint64_t aux_at = at + n->vn_aux;
        const Elf64_Vernaux *aux;
        for (unsigned k = 0; k < 256 && (aux = part(f, aux_at, sizeof *aux)); k++) {
            take(f, names->sh_offset + aux->vna_name, major, minor);
            if (!aux->vna_next)
                break;
            aux_at += aux->vna_next;
        }
        if (!n->vn_next)
            break;
        at += n->vn_next;
    }
}

static int scan(const struct file *f, unsigned *major, unsigned *minor)
{
    const Elf64_Ehdr *eh = part(f, 0, sizeof *eh);
    const Elf64_Shdr *sh;

    if (!eh || memcmp(eh->e_ident, ELFMAG, SELFMAG) || eh->e_ident[EI_CLASS] != ELFCLASS64 ||
        eh->e_shentsize != sizeof *sh || eh->e_shoff % 8)
        return -EINVAL;
    sh = part(f, eh->e_shoff, (uint64_t)eh->e_shnum * sizeof *sh);
    if (!sh)
        return -EINVAL;
    for (unsigned i = 0; i < eh->e_shnum; i++)
        if (sh[i].sh_type == SHT_GNU_verneed && sh[i].sh_offset % 4 == 0 &&
            sh[i].sh_link < eh->e_shnum)
            walk(f, &sh[i], &sh[sh[i].sh_link], major, minor);
    return 0;
}

int gt_elf_glibc_floor(const char *path, unsigned *major, unsigned *minor)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC), rc;
    struct file f;
    struct stat st;
    void *map;

    *major = *minor = 0;
    if (fd < 0)
        return -errno;
    if (fstat(fd, &st) || st.st_size <= 0) {
        close(fd);
        return -EINVAL;
    }
    map = mmap(NULL, st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    close(fd);
    if (map == MAP_FAILED)
        return -errno;
    f = (struct file){map, st.st_size};
    rc = scan(&f, major, minor);
    munmap(map, st.st_size);
    return rc;
}
