/* A session with every name that ever broke a profiler's output (case 31), zero durations (32),
 * payloads that JSON can't say, marks and counters. For the suites of the writers. */
#ifndef GT_NASTY_H
#define GT_NASTY_H

#include <math.h>
#include "session_builder.h"

static char nasty_long[65536];

static const char *const nasty_names[] = {"plain",
                                          "quote \" and \"\"",
                                          "back\\slash",
                                          "new\nline\r\nand more",
                                          "\x01",
                                          "tab\tbell\a",
                                          "operator\"\"_kg",
                                          "bad \xff\xfe\x80",
                                          "half \xe2\x82",
                                          "a,b;c",
                                          "=cmd()",
                                          "</script>",
                                          "\xe6\x97\xa5\xe6\x9c\xac",
                                          "\x7f\x1b[0m",
                                          "",
                                          "%s%n",
                                          "surrogate \xed\xa0\x80",
                                          nasty_long};
#define NASTY_COUNT (sizeof nasty_names / sizeof *nasty_names)

static inline void nasty_session(struct sb *b)
{
    struct gt_slot *s = sb_slot(b, "main", 64);
    struct gt_node *n;
    memset(nasty_long, 'x', sizeof nasty_long - 1);
    nasty_long[70] = '"';
    for (size_t i = 0; i < NASTY_COUNT; i++) {
        uint32_t id = sb_node(b, s, 0, nasty_names[i]);
        sb_call(b, s, id, i % 3 * 1001, i % 3 * 1001);
        if (i % 4 == 1)
            sb_get(b, s, id)->domain = sb_text(b, nasty_names[i / 2]);
    }
    uint32_t shaped = sb_node(b, s, 1, "shaped");
    sb_call(b, s, shaped, 0, 0);
    n = sb_get(b, s, shaped);
    n->shapes = sb_text(b, "[[2, -3], [], [10]]");
    n->bytes = 4096;
    n->failed = 1;
    n->category = 3;
    n->flags = GT_NODE_FOLDED;
    n = sb_get(b, s, sb_node(b, s, 1, "not shapes"));
    n->count = 1;
    n->shapes = sb_text(b, "[[007],\"]");
    n = sb_get(b, s, sb_node(b, s, shaped, "mark"));
    n->kind = GT_KIND_MARK;
    n->count = 5;
    n = sb_get(b, s, sb_node(b, s, 0, "counter"));
    n->kind = GT_KIND_COUNTER;
    n->count = 3;
    n->extra = sb_alloc(b, sizeof(struct gt_extra));
    *(struct gt_extra *)sb_at(b, n->extra) = (struct gt_extra){3, NAN, -INFINITY, 0.1, 1e300};
    sb_push(b, s, shaped, 2000);
    sb_start(b, s, "async \"", 3000);
    s->unbalanced = 3;
    s->overlapped = UINT64_MAX; /* more than any reader's integers hold */
    s = sb_slot(b, "second \"\n", 8);
    sb_call(b, s, sb_node(b, s, 0, "plain"), UINT64_MAX, 5); /* of a broken clock */
}

#endif
