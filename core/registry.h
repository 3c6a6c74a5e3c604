/* What the core needs of registry.c; the sources use record.h. */
#ifndef GT_REGISTRY_H
#define GT_REGISTRY_H

/* Writes the names known so far into a session that has just opened. On the thread that opens it.
 */
void gt_registry_replay(void);

#endif
