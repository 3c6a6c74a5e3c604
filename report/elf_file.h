/* An ELF file of 64 bits, little-endian, of any machine: its sections, and bytes of it. For the
 * readers of symbols and debug information. Believes nothing that the file says: every offset and
 * count is checked against its size. Single thread.
 *
 * It is read, not mapped: a file that gets shorter while we look would end us by SIGBUS. */
#ifndef GT_ELF_FILE_H
#define GT_ELF_FILE_H

#include <elf.h>
#include <stddef.h>
#include <stdint.h>
#include "core/layout.h"

struct gt_elf {
    char *path;
    int fd;                /* -1: memory, or closed for the time being */
    const uint8_t *memory; /* borrowed; NULL: a file */
    uint64_t size;
    uint64_t device, inode; /* the file that was opened first: no other is read later */
    uint16_t machine;
    uint32_t section_count;
    Elf64_Shdr *sections;
    char *names; /* of sections; ends with a NUL */
    size_t names_size;
    uint64_t base; /* lowest address that is loaded */
    uint8_t build_id[GT_BUILD_ID_MAX];
    size_t build_id_bytes; /* 0: none */
};

/* 0, or -errno: -ENOEXEC is for no such ELF file. The caller closes with gt_elf_close, also after a
 * failure. */
int gt_elf_open(struct gt_elf *e, const char *path);
/* Borrows the bytes until gt_elf_close. */
int gt_elf_open_memory(struct gt_elf *e, const uint8_t *bytes, uint64_t size);
void gt_elf_close(struct gt_elf *e);

/* `n` bytes at `offset`: 0 or -EIO. */
int gt_elf_read(struct gt_elf *e, uint64_t offset, void *to, size_t n);

/* A descriptor of the file, which the caller closes; -1: it is gone, or memory. */
int gt_elf_fd(struct gt_elf *e);

/* The section of that name that the file has bytes of; NULL. */
const Elf64_Shdr *gt_elf_section(const struct gt_elf *e, const char *name);
const char *gt_elf_section_name(const struct gt_elf *e, const Elf64_Shdr *s);
/* Its bytes as they are in the file, with a NUL behind; NULL if it has none, cannot be read, or is
 * longer than `most`. The caller frees. */
void *gt_elf_contents(struct gt_elf *e, const Elf64_Shdr *s, size_t most);

#endif
