/* Binds what moved from libdl and libpthread into libc (glibc 2.34) by its first version, so that a
 * library built on a newer system loads on glibc 2.31: a missing symbol version in a preload keeps
 * every program from starting. Included by the files that use these; scripts/check-library proves
 * that no newer version is asked for. */
#ifndef GT_COMPAT_H
#define GT_COMPAT_H

#ifdef __x86_64__
#define GT_FIRST_GLIBC "GLIBC_2.2.5"
#else
#define GT_FIRST_GLIBC "GLIBC_2.17"
#endif

#define GT_BIND_FIRST(name) __asm__(".symver " #name "," #name "@" GT_FIRST_GLIBC)
GT_BIND_FIRST(dladdr);
#ifdef __x86_64__
__asm__(".symver dladdr1,dladdr1@GLIBC_2.3.3");
#else
GT_BIND_FIRST(dladdr1);
#endif
GT_BIND_FIRST(dlvsym);
GT_BIND_FIRST(pthread_key_create);
GT_BIND_FIRST(pthread_setspecific);

#endif
