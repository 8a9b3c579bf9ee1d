/* SPDX-License-Identifier: Apache-2.0 */
/*
 * use_book.h - how much of the time that a process has the card it works, from the driver's samples of the engine.
 *
 * Pure. What is made of samples and turns is in core/govern/use.h; here the driver's ring of samples is read, each once.
 * Whom a sample names is chance (measured: of two who have half of the card each, one busy and one hardly, it may be either)
 * and is not looked at.
 */
#ifndef BH_WARDEN_USE_BOOK_H
#define BH_WARDEN_USE_BOOK_H

#include "core/govern/use.h"
#include "gpu/abi/rm.h"
#include "warden/busy_book.h"

struct bh_use_book {
    struct bh_use use;
    bool begun;
    uint64_t newest; /* the last sample's own time: only later ones are new */
};

void bh_use_book_init(struct bh_use_book *u);
/* At every reading of the turns: is the driver to be asked for its samples now? */
bool bh_use_book_watch(struct bh_use_book *u, const struct bh_busy_book *turns, uint64_t now_ns);
/* After a record of the turns: they are fetched many at a time, and who had what when is to be known better than that. */
void bh_use_book_note(struct bh_use_book *u, const struct bh_busy_book *turns);
/* What the driver answered at now_ns, with the turns up to then; NULL: it did not. */
void bh_use_book_take(struct bh_use_book *u, const struct rm_use_samples *s, const struct bh_busy_book *turns,
                      uint64_t now_ns);
/* How much of its time on the card it works, or BH_DRIVER_USE_UNKNOWN. */
uint32_t bh_use_book_permille(const struct bh_use_book *u, uint32_t pid);
/* That is not known, and there is reason to think that it is not all. */
bool bh_use_book_doubt(const struct bh_use_book *u, uint32_t pid);

#endif
