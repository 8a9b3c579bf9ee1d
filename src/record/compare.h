/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compare.h - what a new recording does otherwise than an old one.
 *
 * Section by section, as an operator needs it who must know which rows of the interface tables a new driver
 * touches: one line for each topic and kind of change, however many calls it concerns. Objects count as what
 * they are (their class), not by their number, so that one object more at the start does not make everything
 * after it a change.
 */
#ifndef BH_RECORD_COMPARE_H
#define BH_RECORD_COMPARE_H

#include "record/record.h"
#include "record/topic.h"

enum bh_change_kind {
    BH_CHANGE_SECTION_GONE,
    BH_CHANGE_SECTION_NEW,
    BH_CHANGE_TOPIC_GONE, /* the old recording has it, the new one nowhere */
    BH_CHANGE_TOPIC_NEW,
    BH_CHANGE_FIELD,   /* `field` of a call is another: from, to */
    BH_CHANGE_LESS,    /* made less often in this section */
    BH_CHANGE_MORE,    /* more often */
    BH_CHANGE_ORDER,   /* the same calls, in another order */
    BH_CHANGE_OBJECTS, /* the same calls, on other objects of the same class */
};

struct bh_change {
    uint8_t kind;  /* enum bh_change_kind */
    uint8_t field; /* an index; its name and form are known to bh_comparison_write */
    struct bh_topic topic;
    uint64_t from, to;
    uint64_t calls;
    const char *section; /* the first one, the comparison's own copy */
    uint32_t sections;   /* how many */
    uint32_t last;       /* which one was counted last */
};

struct bh_comparison {
    struct bh_arena arena;
    BH_VEC(struct bh_change) changes; /* none: nothing changed */
};

void bh_recording_compare(const struct bh_recording *old, const struct bh_recording *new,
                          struct bh_comparison *ret);
void bh_comparison_fini(struct bh_comparison *c);
/* One line a change. */
void bh_comparison_write(struct bh_buf *out, const struct bh_comparison *c);

#endif
