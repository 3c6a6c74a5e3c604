/* The glibc version that a shared library asks for, for `doctor`. */
#ifndef GT_ELF_FLOOR_H
#define GT_ELF_FLOOR_H

/* Finds the highest GLIBC_x.y that the 64-bit file at `path` needs. Returns 0 with *major and
 * *minor (0.0: none), or -errno (-EINVAL: no such ELF file). Believes nothing in the file. */
int gt_elf_glibc_floor(const char *path, unsigned *major, unsigned *minor);

#endif
