/* SPDX-License-Identifier: Apache-2.0 */
/* ledger_walk.h - the memory that would go if an object, or a file, went. */
#ifndef BH_WARDEN_LEDGER_WALK_H
#define BH_WARDEN_LEDGER_WALK_H

#include "base/mem.h"
#include "warden/ledger.h"

struct bh_ledger_piece {
    uint32_t client, object;
    uint32_t gpu;   /* UINT32_MAX: it is not known */
    uint32_t names; /* how many objects name this memory */
    uint32_t block; /* which memory it is: the same for all its names */
    uint64_t bytes;
};
struct bh_ledger_pieces {
    struct bh_ledger_piece *at;
    size_t n, cap;
};

/* Of an object and all below it; a client's own handle: all it has. What was there stays in front. */
void bh_ledger_pieces_below(const struct bh_ledger *l, uint32_t client, uint32_t object,
                            struct bh_ledger_pieces *add);
void bh_ledger_pieces_of_file(const struct bh_ledger *l, uint64_t file, struct bh_ledger_pieces *add);

#endif
