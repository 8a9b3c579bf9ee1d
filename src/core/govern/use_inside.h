/* SPDX-License-Identifier: Apache-2.0 */
/*
 * use_inside.h - what the parts of the book of uses share; nobody else includes it.
 *
 *   use.c          when to ask, what is believed of each, whether the sum of it can be true
 *   use_row.c      what samples in a row of a full card tell, before the sum does
 *   use_review.c   a look now and then, where some of the card stays empty though the sum is as it should be
 *   use_blame.c    who had the card when it was empty, of many
 *   use_samples.c  samples in order of their times
 */
#ifndef BH_CORE_GOVERN_USE_INSIDE_H
#define BH_CORE_GOVERN_USE_INSIDE_H

#include "core/govern/use.h"

#define BH_USE_MS UINT64_C(1000000)
/* Measured: 143 to 167 ms, and another day 194 to 206; then their times tell. */
#define BH_USE_WINDOW_NS (170 * BH_USE_MS)
#define BH_USE_LATE_NS   (5 * BH_USE_MS) /* the turns are read before the samples, and that takes its time */

enum {
    BH_USE_WHOLE = 1000,  /* permille */
    BH_USE_FEW = 3,       /* samples before anything is compared */
    BH_USE_OTHERS = 20,   /* permille of a span that others may have had of one that is seen alone */
    BH_USE_SUSPECT = 100, /* permille of the time held: enough to be the reason */
};

/* Nothing, where it would be negative. */
static inline uint64_t bh_use_less(uint64_t more, uint64_t by)
{
    return more > by ? more - by : 0;
}

/* The newest mark that is at least so old; BH_USE_MARKS: none. */
uint32_t bh_use_mark_before(const struct bh_use *u, uint64_t now_ns, uint64_t ns);

static inline uint64_t bh_use_since(const struct bh_use_line *line, uint32_t mark)
{
    return bh_use_less(line->had_ns, line->marks_ns[mark]);
}
static inline uint64_t bh_use_long_since(const struct bh_use_line *line, uint32_t mark)
{
    return bh_use_less(line->long_ns, line->marks_long_ns[mark]);
}

/* Who uses so little is on the card while another rests in its turn. */
static inline bool bh_use_is_light(const struct bh_use_line *line)
{
    return line->known && line->permille < BH_USE_LIGHT;
}

/* Another sample or more, of so long. */
void bh_use_row_watch(struct bh_use *u, const struct bh_use_samples *s, uint64_t span);
void bh_use_row_forget(struct bh_use *u);
/* It had some of a full card that several had: it cannot have rested for long. */
bool bh_use_works_in_full(const struct bh_use *u, const struct bh_use_line *line);
/* Whoever would have rested for longer than is missing, if it were as believed, is believed no longer. Was there anybody? */
bool bh_use_refute(struct bh_use *u, uint64_t now_ns);

/* It is in doubt, for whatever reason: nothing is believed of it. */
void bh_use_give_up(struct bh_use *u, struct bh_use_line *line, uint64_t now_ns);
/* Another sample or more, of so long. */
void bh_use_review(struct bh_use *u, const struct bh_use_samples *s, uint64_t span, uint64_t now_ns);
/* Who comes may be what it is about; but not again and again, of one that starts processes all the time. */
void bh_use_review_anew(struct bh_use *u, uint64_t now_ns);
/* Would a look tell something? Not while others are in doubt, nor beside one of whom nothing is known and who makes short visits, as one
 * of class latency does: nobody would be seen alone. */
bool bh_use_may_look(const struct bh_use *u);
/* It is to be looked at, for no other reason than that some of the card is empty. */
void bh_use_look_at(struct bh_use *u, struct bh_use_line *line, uint64_t now_ns);

/* Samples, each with the turns of its time. */
void bh_use_blame_add(struct bh_use *u, const struct bh_use_samples *s, uint64_t now_ns);
/* What was gathered is of other beliefs. */
void bh_use_blame_forget(struct bh_use *u);
/* Another so long passed: if something was missing for a while, whoever is to blame comes into doubt. */
void bh_use_blame(struct bh_use *u, uint64_t span, uint64_t now_ns);

#endif
