/* What `run` learns from a program's file before it starts it. Pure look-ups, nothing is executed.
 */
#ifndef GT_ELF_TARGET_H
#define GT_ELF_TARGET_H

#include <limits.h>

enum gt_target_kind {
    GT_TARGET_OK = 0,     /* the preload will be loaded */
    GT_TARGET_STATIC,     /* no dynamic linker: harmless, its children may be dynamic */
    GT_TARGET_PRIVILEGED, /* gains rights at exec: the dynamic linker drops our variable */
    GT_TARGET_MACHINE,    /* another word size, byte order or machine */
    GT_TARGET_MUSL,       /* another C library: our preload would kill it */
    GT_TARGET_UNKNOWN,    /* can't be read, or neither ELF nor a script */
};

struct gt_elf_target {
    enum gt_target_kind kind;
    char path[PATH_MAX]; /* the ELF file at the end of the #! lines */
    char sanitizer[128]; /* DT_NEEDED name of a sanitizer runtime that must come first, or "" */
    const char *why;     /* constant: "it is statically linked"; "" for OK */
};

/* Finds `command` the way execvp does; `path` is the value of PATH or NULL. Returns 0, -ENOENT, or
 * -EACCES if something of that name exists but can't be executed. */
int gt_elf_target_find(const char *command, const char *path, char out[PATH_MAX]);

/* Reads the file at `path`, following #! lines to their interpreter (as the kernel does, at most
 * 5). Always fills *t; a file that can't be read is GT_TARGET_UNKNOWN. Believes nothing in the
 * file. */
void gt_elf_target_read(const char *path, struct gt_elf_target *t);

/* 1 for the file name of a sanitizer runtime (libasan.so.8, libclang_rt.tsan-x86_64.so, …) that
 * refuses to start when another library was loaded before it. */
int gt_elf_is_sanitizer(const char *name);

#endif
