/* The modules that stacks go through, as readers get them: gt_header.modules. Asked by the trie
 * (trie.c) for each new node, on the program's threads, with the slot held.
 *
 * The list is append-only and shared without locks. What was unloaded stays in it; which ones are
 * gone is known here only, so that another module in the same place gets nodes of its own. */
#ifndef GT_MODULES_H
#define GT_MODULES_H

#include <stdint.h>
#include "core/trie.h"

/* Id of the module that a trie node's pc lies in; 0: none (code made at run time, Python), or no
 * memory for one more. Takes the loader's list lock when the module is seen for the first time. */
uint32_t gt_modules_of(uint64_t pc);

/* After an unload, which the seed of rules.h tells of: looks which modules are gone. */
void gt_modules_check(void);

/* Likewise, and the trie's nodes of those that are gone are never found again. */
void gt_modules_forget(struct gt_trie *trie);

/* A new session begins with an empty list. Called while it opens, on one thread. */
void gt_modules_reset(void);

#endif
