/* SPDX-License-Identifier: Apache-2.0 */
/* card.h - one card through the vendor's library: all of its free memory, written and looked at page by page. */
#ifndef BH_SCRUB_CARD_H
#define BH_SCRUB_CARD_H

#include "base/err.h"
#include "base/mem.h"
#include "gpu/abi/cuda.h"

#include <stdbool.h>
#include <stdint.h>

#define BH_SCRUB_PAGE \
    (UINT64_C(2) << 20) /* a card's large page: what is handed from one process to another */

struct bh_scrub_piece {
    CUdeviceptr at;
    uint64_t bytes;
};

struct bh_scrub_card {
    uint64_t total_bytes; /* of the card */
    uint64_t held_bytes;  /* that were obtained */
    BH_VEC(struct bh_scrub_piece) pieces;
};

/* A context on the card of this uuid (`GPU-...`, `MIG-...`). BH_NOT_FOUND, BH_REFUSED, BH_SYSTEM. */
int bh_scrub_open(const char *uuid, struct bh_scrub_card *ret, struct bh_err *err) BH_MUST_USE;
/* As much as there is, in large pieces and then smaller ones; most: no more than so much. */
void bh_scrub_take(struct bh_scrub_card *c, uint64_t most);
/* Every byte becomes this one. */
int bh_scrub_fill(const struct bh_scrub_card *c, uint8_t byte, struct bh_err *err) BH_MUST_USE;
struct bh_scrub_seen {
    uint64_t pages, wrong; /* looked at; not as they should be */
};
/*
 * Piece by piece: filled with the canary, then (overwrite) with zeros, then 64 bytes of each page are looked at, elsewhere in
 * each. Wrong is a page with anything but zeros.
 */
int bh_scrub_wash(const struct bh_scrub_card *c, uint8_t canary, bool overwrite, struct bh_scrub_seen *ret,
                  struct bh_err *err) BH_MUST_USE;
/* Looks for that byte in every page. Wrong is a page where it is. */
int bh_scrub_search(const struct bh_scrub_card *c, uint8_t byte, struct bh_scrub_seen *ret,
                    struct bh_err *err) BH_MUST_USE;

#endif
