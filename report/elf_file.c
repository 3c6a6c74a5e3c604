/* See elf_file.h. */
#include "report/elf_file.h"
#include "report/mem.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Linked files have about 40 sections and 13 segments. */
#define MAX_SECTIONS 65535u
#define MAX_SEGMENTS 512u
#define MAX_NAMES (1u << 24)
#define MAX_NOTES (1u << 16)
/* A program may have hundreds of modules, and we may have 1024 descriptors. */
#define MAX_OPEN 128

static int open_files;

/* Opens the file, or opens it again: it must be the same then. */
static int acquire(struct gt_elf *e)
{
    struct stat st;
    int rc;
    if (e->fd >= 0)
        return 0;
    /* a FIFO must not keep us waiting */
    e->fd = open(e->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (e->fd < 0)
        return -errno;
    open_files++;
    rc = fstat(e->fd, &st) ? -errno : !S_ISREG(st.st_mode) ? -ENOEXEC : 0;
    if (!rc && e->inode && (e->inode != st.st_ino || e->device != st.st_dev))
        rc = -ESTALE;
    if (!rc && !e->inode) {
        e->inode = st.st_ino;
        e->device = st.st_dev;
        e->size = (uint64_t)st.st_size;
    }
    return rc;
}

static void release(struct gt_elf *e)
{
    if (e->fd < 0)
        return;
    close(e->fd);
    e->fd = -1;
    open_files--;
}

int gt_elf_fd(struct gt_elf *e)
{
    return e->memory || acquire(e) ? -1 : fcntl(e->fd, F_DUPFD_CLOEXEC, 0);
}

int gt_elf_read(struct gt_elf *e, uint64_t offset, void *to, size_t n)
{
    int rc = 0;
    if (offset > e->size || n > e->size - offset)
        return -EIO;
    if (e->memory) {
        memcpy(to, e->memory + offset, n);
        return 0;
    }
    if (acquire(e))
        rc = -EIO;
    for (size_t done = 0; !rc && done < n;) {
        ssize_t got = pread(e->fd, (char *)to + done, n - done, (off_t)(offset + done));
        if (got <= 0 && !(got < 0 && errno == EINTR))
            rc = -EIO;
        else if (got > 0)
            done += (size_t)got;
    }
    if (open_files > MAX_OPEN)
        release(e);
    return rc;
}

void *gt_elf_contents(struct gt_elf *e, const Elf64_Shdr *s, size_t most)
{
    char *p;
    if (!s || s->sh_type == SHT_NOBITS || s->sh_size > most || s->sh_offset > e->size ||
        s->sh_size > e->size - s->sh_offset)
        return NULL;
    p = gt_mem_resize(NULL, s->sh_size + 1, 1);
    p[s->sh_size] = 0;
    if (gt_elf_read(e, s->sh_offset, p, s->sh_size)) {
        free(p);
        return NULL;
    }
    return p;
}

const char *gt_elf_section_name(const struct gt_elf *e, const Elf64_Shdr *s)
{
    return s->sh_name < e->names_size ? e->names + s->sh_name : "";
}

const Elf64_Shdr *gt_elf_section(const struct gt_elf *e, const char *name)
{
    for (uint32_t i = 1; i < e->section_count; i++)
        if (e->sections[i].sh_type != SHT_NOBITS &&
            !strcmp(gt_elf_section_name(e, &e->sections[i]), name))
            return &e->sections[i];
    return NULL;
}

/* Looks for the build-id among notes. */
static void read_notes(struct gt_elf *e, uint64_t offset, uint64_t size)
{
    uint8_t *notes;
    size_t at = 0, n = size < MAX_NOTES ? (size_t)size : MAX_NOTES;
    Elf64_Nhdr h;
    if (e->build_id_bytes || offset > e->size || n > e->size - offset)
        return;
    notes = gt_mem_resize(NULL, n, 1);
    if (gt_elf_read(e, offset, notes, n))
        n = 0;
    while (at + sizeof h <= n && !e->build_id_bytes) {
        memcpy(&h, notes + at, sizeof h);
        uint64_t name = at + sizeof h, data = name + ((h.n_namesz + UINT64_C(3)) & ~UINT64_C(3));
        uint64_t end = data + ((h.n_descsz + UINT64_C(3)) & ~UINT64_C(3));
        if (data + h.n_descsz > n)
            break;
        if (h.n_type == NT_GNU_BUILD_ID && h.n_namesz == 4 && !memcmp(notes + name, "GNU", 4) &&
            h.n_descsz && h.n_descsz <= GT_BUILD_ID_MAX) {
            memcpy(e->build_id, notes + data, h.n_descsz);
            e->build_id_bytes = h.n_descsz;
        }
        at = end;
    }
    free(notes);
}

static void read_segments(struct gt_elf *e, const Elf64_Ehdr *h)
{
    uint64_t base = UINT64_MAX;
    Elf64_Phdr p;
    for (unsigned i = 0; i < h->e_phnum && i < MAX_SEGMENTS; i++) {
        if (gt_elf_read(e, h->e_phoff + i * sizeof p, &p, sizeof p))
            break;
        if (p.p_type == PT_LOAD && p.p_vaddr < base)
            base = p.p_vaddr;
        if (p.p_type == PT_NOTE)
            read_notes(e, p.p_offset, p.p_filesz);
    }
    e->base = base == UINT64_MAX ? 0 : base;
}

static int read_sections(struct gt_elf *e, const Elf64_Ehdr *h)
{
    uint32_t count = h->e_shnum, names = h->e_shstrndx;
    Elf64_Shdr first;
    if (!h->e_shoff)
        return 0;
    if (h->e_shentsize != sizeof first || gt_elf_read(e, h->e_shoff, &first, sizeof first))
        return -ENOEXEC;
    /* what does not fit the header is in section 0 */
    if (!count)
        count = first.sh_size > MAX_SECTIONS ? MAX_SECTIONS + 1 : (uint32_t)first.sh_size;
    if (names == SHN_XINDEX)
        names = first.sh_link;
    if (count > MAX_SECTIONS || count > (e->size - h->e_shoff) / sizeof first)
        return -ENOEXEC;
    e->sections = gt_mem_new(count, sizeof *e->sections);
    if (gt_elf_read(e, h->e_shoff, e->sections, count * sizeof *e->sections))
        return -ENOEXEC;
    if (names < count && (e->names = gt_elf_contents(e, &e->sections[names], MAX_NAMES)))
        e->names_size = e->sections[names].sh_size;
    e->section_count = count;
    return 0;
}

static int read_all(struct gt_elf *e)
{
    Elf64_Ehdr h;
    int rc;
    if (gt_elf_read(e, 0, &h, sizeof h) || memcmp(h.e_ident, ELFMAG, SELFMAG) ||
        h.e_ident[EI_CLASS] != ELFCLASS64 || h.e_ident[EI_DATA] != ELFDATA2LSB)
        return -ENOEXEC;
    e->machine = h.e_machine;
    if ((rc = read_sections(e, &h)))
        return rc;
    /* sections first: a debug file has the segments of the file that it was made from */
    for (uint32_t i = 0; i < e->section_count; i++)
        if (e->sections[i].sh_type == SHT_NOTE)
            read_notes(e, e->sections[i].sh_offset, e->sections[i].sh_size);
    if (h.e_phoff && h.e_phentsize == sizeof(Elf64_Phdr))
        read_segments(e, &h);
    return 0;
}

int gt_elf_open(struct gt_elf *e, const char *path)
{
    int rc;
    *e = (struct gt_elf){.fd = -1};
    e->path = gt_mem_copy(path, strlen(path));
    rc = acquire(e);
    return rc ? rc : read_all(e);
}

int gt_elf_open_memory(struct gt_elf *e, const uint8_t *bytes, uint64_t size)
{
    *e = (struct gt_elf){.fd = -1, .memory = bytes, .size = size};
    return read_all(e);
}

void gt_elf_close(struct gt_elf *e)
{
    release(e);
    free(e->path);
    free(e->sections);
    free(e->names);
    *e = (struct gt_elf){.fd = -1};
}
