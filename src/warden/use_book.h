/* SPDX-License-Identifier: Apache-2.0 */
/*
 * use_book.h - how much of the time that a process has the card it works, from the driver's samples of the engine.
 *
 * Pure. A process that is alone on a card keeps it while it rests, and the card's record of turns (busy_book.h) does not
 * tell the two apart. The driver samples the engine about seven times a second: how busy it was since the sample before,
 * and one process, which was seen there at that moment. So the sum over all of them is good and who is named is chance.
 * Hence the time that nobody can have worked, which is what they had together less what was used, is laid to those who
 * are named less than they had the card, in proportion; and that over about two seconds, as a sample or two say nothing.
 * Only long turns count: in short ones somebody else wanted the card, and who had nothing to do would have given it up.
 */
#ifndef BH_WARDEN_USE_BOOK_H
#define BH_WARDEN_USE_BOOK_H

#include "gpu/abi/rm.h"
#include "warden/busy_book.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What nobody asked for so long is no window any more: it begins anew. */
#define BH_USE_GAP_NS UINT64_C(2000000000)
/* What was found stays good for so long while a process has the card too little for its use to be seen. */
#define BH_USE_KEEP_NS UINT64_C(20000000000)
enum {
    BH_USE_FULL = 850,      /* permille; measured: a busy process comes to this, so it counts as all */
    BH_USE_FEW_SAMPLES = 4, /* before these nothing is said */
};

struct bh_use_line {
    uint32_t pid;
    uint64_t had_ns, had_long_ns; /* by the record of turns, when it was last looked */
    uint64_t time_ns, long_ns;    /* it had the card, of span_ns, and that in long turns */
    uint64_t named;               /* use under its name, of named_all */
    bool known;
    uint32_t permille;
    uint64_t known_ns; /* when that was found */
};

struct bh_use_book {
    struct bh_use_line at[BH_BUSY_PIDS];
    size_t n;
    bool begun;
    uint64_t newest;  /* the last sample's own time: only later ones are new */
    uint64_t from_ns; /* the window began, on the records' clock */
    uint32_t seen;    /* samples, up to BH_USE_FEW_SAMPLES */
    /* What is old fades, here and in the lines alike. */
    uint64_t span_ns, samples, named_all;
};

void bh_use_book_init(struct bh_use_book *u);
/* What the driver answered at now_ns, with the turns up to then. */
void bh_use_book_take(struct bh_use_book *u, const struct rm_use_samples *s, const struct bh_busy_book *turns,
                      uint64_t now_ns);
/* How much of its time on the card it works, or BH_DRIVER_USE_UNKNOWN. */
uint32_t bh_use_book_permille(const struct bh_use_book *u, uint32_t pid, uint64_t now_ns);

#endif
