/* SPDX-License-Identifier: Apache-2.0 */
/*
 * busy_book.h - GPU time of processes, added up from the card's own records of turns.
 *
 * Pure. One process has the card at a time, so the book is a line of time that is given out once: up to `until_ns` it has
 * been given to somebody or to nobody, and never again. Hence the times never fall, and their sum never exceeds the clock,
 * whatever the records say. What a lost record hides is given to nobody.
 */
#ifndef BH_WARDEN_BUSY_BOOK_H
#define BH_WARDEN_BUSY_BOOK_H

#include "gpu/abi/rm.h"
#include "warden/driver.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { BH_BUSY_PIDS = 256 };
/* Whoever has no name here: the kernel's own work, and processes that cannot be seen. */
#define BH_BUSY_OTHERS UINT32_C(0)
/* A change of turns is written down when it is done, so the last of a turn that goes on may be another's yet. */
#define BH_BUSY_SETTLE_NS UINT64_C(200000)
/* So soon after a turn's end another one's beginning was what ended it; measured: 85 us. */
#define BH_BUSY_CUT_NS UINT64_C(300000)
/* A turn that is longer may have been kept without work: beside others who want the card it would have been given up. */
#define BH_BUSY_LONG_NS UINT64_C(4000000)
/* A process that had no turn for so long is forgotten. */
#define BH_BUSY_FORGET_NS (UINT64_C(60) * 1000000000)

struct bh_busy_line {
    struct bh_driver_busy busy;
    uint64_t heard_ns; /* when it last had the card */
    uint64_t long_ns;  /* of its time, what was in long turns */
};

struct bh_busy_book {
    struct bh_busy_line at[BH_BUSY_PIDS];
    size_t n;
    uint64_t until_ns;
    bool known;    /* whether anybody has the card now, and who */
    bool held;     /* somebody has, */
    uint32_t pid;  /* this one, */
    uint64_t from; /* since then */
    struct {       /* the turn that ended last, while nothing has come between */
        bool known;
        uint32_t pid;
        uint64_t at_ns, ns;
    } ended;
    bool begun; /* a record was read, and the next one's number is known */
    uint16_t next_seq;
    uint64_t lost; /* times that something was missing */
};

void bh_busy_book_init(struct bh_busy_book *b);
/* A record. One that says it is later than latest_ns is damaged, and as good as lost. */
void bh_busy_book_add(struct bh_busy_book *b, const struct rm_switch_record *r, uint64_t latest_ns);
/* Records were lost: who has the card is not known until the next one. */
void bh_busy_book_lose(struct bh_busy_book *b);
/* It is now_ns, and all turns that began before are in the book. Who has the card gets the time up to about now. */
void bh_busy_book_look(struct bh_busy_book *b, uint64_t now_ns);
/* Fills up to max, returns how many there are; 0 while it is not known who has the card. */
size_t bh_busy_book_tell(const struct bh_busy_book *b, struct bh_driver_busy *ret, size_t max);

#endif
