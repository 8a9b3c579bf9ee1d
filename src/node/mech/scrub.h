/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scrub.h - proof that a slice has nothing of the one before: who looks, how, and how much of it was looked at.
 *
 * A whole card is overwritten and probed by a program of its own (bulkhead-scrub), which takes all its memory. On a shared
 * card nobody but the driver can reach the pages that were freed; it clears them, and whether it really does was tested with
 * canaries on this driver (the note `canary`). Where that was not tested, or failed, shares are not given in the first place.
 */
#ifndef BH_NODE_MECH_SCRUB_H
#define BH_NODE_MECH_SCRUB_H

#include "node/mech/mech.h"

struct bh_scrub_order {
    char gpu[96];
    uint8_t kind; /* enum bh_slice_kind */
    uint64_t grant;
    char key[64], base[64];
    struct bh_mech_cut cut; /* of an instance of MIG */
    char program[4000];
    char canary[256]; /* of a share: what the test of the driver said; "": there was none */
};

/* The next slice of the lease that is not proved clean. BH_NOT_FOUND: all are. BH_REFUSED: one was found not to be, and err says
 * which and why. */
int bh_scrub_next(struct bh_daemon *d, const struct bh_life *run, struct bh_scrub_order *ret,
                  struct bh_err *err) BH_MUST_USE;
/* In a worker. */
void bh_scrub_work(const void *order, struct bh_worker_result *ret);
/* The verdict of a worker on what bh_scrub_next named; a clean one frees the slice. Durable when it returns BH_OK. */
int bh_scrub_record(struct bh_daemon *d, struct bh_life *run, const struct bh_worker_result *result,
                    struct bh_err *err) BH_MUST_USE;

/* In a worker: asks the program that scrubs; what it did not say is unknown. quick: of a canary. */
void bh_scrub_ask(const char *program, const char *mode, const char *gpu, bool quick,
                  struct bh_worker_result *ret);

#endif
