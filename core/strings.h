/* Interning: equal texts share one gt_str. Lock-free, any thread.
 *
 * There are two tables: the session's (in the file, gone with it) and the process's (gt_keep:
 * private memory that outlives sessions and is inherited over fork). */
#ifndef GT_STRINGS_H
#define GT_STRINGS_H

#include <stddef.h>
#include <stdint.h>
#include "core/layout.h"

#define GT_NAME_MAX 65535u /* longer texts are cut at a character boundary */

/* 32-bit FNV-1a style hash of n bytes, eight at a time. Pure. */
uint32_t gt_hash(const void *p, size_t n, uint32_t seed);

/* strlen, but at most GT_NAME_MAX and never inside a UTF-8 sequence. */
size_t gt_name_length(const char *s);

/* Interns text[0..n) in the session. Returns NULL if memory has run out. */
const struct gt_str *gt_strings_session(const char *text, size_t n, gt_ref *ref);
/* The same, but a new text only takes memory that is for what is nice to have (gt_session_roomy).
 */
const struct gt_str *gt_strings_roomy(const char *text, size_t n, gt_ref *ref);
/* A new session starts with an empty table. Called while it opens, on one thread. */
int gt_strings_reset(void);

#endif
