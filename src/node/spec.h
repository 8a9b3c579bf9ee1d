/* SPDX-License-Identifier: Apache-2.0 */
/* spec.h - what the keeper of a lease is told: who, what, on which devices, behind which gate. */
#ifndef BH_NODE_SPEC_H
#define BH_NODE_SPEC_H

#include "launch/keeper.h"
#include "node/daemon.h"

/* Where a lease is kept; texts are the arena's. */
struct bh_keeper_place bh_spec_place(const struct bh_daemon *d, struct bh_arena *arena, uint64_t lease);
/* `bulkhead/L17` */
const char *bh_spec_cgroup(const struct bh_daemon *d, struct bh_arena *arena, uint64_t lease);
/* From the rows of the job and of what it was granted; all that hangs below *ret is the arena's. */
int bh_spec_make(struct bh_daemon *d, const struct bh_life *run, struct bh_arena *arena,
                 struct bh_keeper_spec *ret, struct bh_err *err) BH_MUST_USE;

#endif
