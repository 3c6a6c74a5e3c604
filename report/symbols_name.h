/* Names of the linker as the programmer wrote them. */
#ifndef GT_SYMBOLS_NAME_H
#define GT_SYMBOLS_NAME_H

/* Longer ones are cut, before and after. */
#define GT_NAME_MAX 4096u

/* C++ and Rust are demangled, with parameters, as c++filt does; anything else stays as it is, but
 * for a version behind '@'. The caller frees. */
char *gt_symbols_name(const char *linkage);

#endif
