/* SPDX-License-Identifier: Apache-2.0 */
/* ledger_walk.h - the memory that would go if an object, or a file, went; and what runs on the cards. */
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

/* A channel, or a group of channels. */
struct bh_ledger_run {
    uint32_t client, object, class;
    uint32_t gpu;  /* UINT32_MAX: it is not known */
    uint32_t pid;  /* of a process that has its client; 0: none is known */
    uint64_t file; /* by which it has it */
};
struct bh_ledger_runs {
    struct bh_ledger_run *at;
    size_t n, cap;
};
bool bh_ledger_is_channel(uint32_t class);
/* All there are, in no order. What was there stays in front. */
void bh_ledger_runs(const struct bh_ledger *l, struct bh_ledger_runs *add);
/* Another number whenever that answer may have changed. */
uint64_t bh_ledger_runs_changed(const struct bh_ledger *l);

#endif
