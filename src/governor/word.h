/* SPDX-License-Identifier: Apache-2.0 */
/*
 * word.h - what one tenant says of its own work, interval by interval, against its time on the card.
 *
 * Kept apart by who else had the card meanwhile, so that it can be compared with itself.
 */
#ifndef BH_GOVERNOR_WORD_H
#define BH_GOVERNOR_WORD_H

#include "base/buf.h"
#include "core/govern/worth.h"
#include "governor/tally.h"

enum bh_word_company { BH_WORD_BETWEEN, BH_WORD_ALONE, BH_WORD_BESIDE, BH_WORD_COMPANIES };

struct bh_word {          /* zeroed: nothing was said */
    bool tells;           /* it ever did */
    bool speaks;          /* and of late */
    uint64_t done, lines; /* up to the last interval */
    uint64_t heard_ns;    /* when it last said something */
    uint64_t taken_ns;    /* the end of the last interval; 0: nothing was made of it */
    uint64_t open_us;     /* of card time since then */
    bool is_mixed; /* its next word is of more than that time: it was silent, or somebody came or went */
    struct bh_worth now; /* of the last moments */
    struct bh_worth at[BH_WORD_COMPANIES];
    enum bh_word_company company;
    uint64_t since_ns; /* in it */
    uint64_t p99_us[BH_WORD_COMPANIES], n_p99[BH_WORD_COMPANIES];
};

/* An interval is over. What a second on the card does by what was said in the last moments, in thousandths; 0: nothing was. */
uint64_t bh_word_take(struct bh_word *w, const struct bh_tally_line *line, enum bh_word_company company,
                      uint64_t at_ns);
/* Nothing is made of that interval, and the next one begins where it ended. */
void bh_word_pass(struct bh_word *w, const struct bh_tally_line *line);
/* What a second on the card does alone; 0: it was not seen alone, or said too little. */
uint64_t bh_word_alone_milli(const struct bh_word *w);
/* What it does beside others, in permille of that; 0: that cannot be told. */
uint32_t bh_word_worth(const struct bh_word *w);
/* In words, marked as its own; nothing where it says nothing. */
void bh_word_say(const struct bh_word *w, const struct bh_culprit_tenant *who, struct bh_buf *out);

#endif
