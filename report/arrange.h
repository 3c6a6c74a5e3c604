/* The call tree as views show it, where a stack is part of a place's identity: either rows that
 * differ in their stacks alone are one, or the frames are rows of their own above the rows they
 * lead to. Used by the writers that show places (tree, folded, tvm…); single thread. */
#ifndef GT_ARRANGE_H
#define GT_ARRANGE_H

#include "report/model.h"

/* Returns the model to show: *m itself where no row has a stack, else *room, which shares all but
 * rows and open ranges with *m. That must live as long and not change. `by`: enum gt_by, of which
 * GT_BY_STACK asks for frames (as gt_stacks_show has set them) and GT_BY_FRAMES(by) says how many
 * of the innermost. The caller frees with gt_arrange_fini, never gt_model_fini.
 *
 * Of rows of devices that became one `launched` is the first one's: its delays are not theirs.
 * Rows of frames have GT_ROW_FRAME, count 0, self 0 and the totals of what is below them. Where the
 * row above has a stack too, only the frames that it does not have are put in between. */
const struct gt_model *gt_arrange(struct gt_model *room, const struct gt_model *m, unsigned by);
void gt_arrange_fini(struct gt_model *room);

#endif
