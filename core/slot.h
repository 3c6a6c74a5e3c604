/* What core.c needs of slot.c. */
#ifndef GT_SLOT_H
#define GT_SLOT_H

/* Once, in gt_core_init. */
void gt_slot_init(void);

/* Opens or shuts the fast way as the number of pauses says; the phase is OPEN. */
void gt_pause_apply(void);

#endif
