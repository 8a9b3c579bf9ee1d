/* SPDX-License-Identifier: Apache-2.0 */
/*
 * state_room.h - what jobs take of the disk: how much waits, of whom, and what is kept of those that ended.
 *
 * What a job wrote lies in files that the store does not know; whoever does measures it once, when the job has ended, and says when
 * it was removed. With that the job's command and environment go too; its row and that it happened stay.
 */
#ifndef BH_STORE_STATE_ROOM_H
#define BH_STORE_STATE_ROOM_H

#include "store/state.h"

struct bh_store_load {
    uint64_t user_waiting, tenant_waiting,
        waiting;           /* jobs: of the user in the tenant, of the tenant, of all */
    uint64_t tenant_bytes; /* of commands and environments of all of the tenant's that have not ended */
};
int bh_store_load_get(struct bh_store *s, const char *tenant, const char *user, struct bh_store_load *ret,
                      struct bh_err *err) BH_MUST_USE;

struct bh_store_remain {
    uint64_t job;
    const char *tenant;
    uint64_t ended_ms;
    uint64_t bytes; /* 0 where it was not measured yet */
};
typedef BH_VEC(struct bh_store_remain) bh_store_remains;

/* Ended, and not measured yet; the first so many. */
int bh_store_remains_new(struct bh_store *s, struct bh_arena *arena, uint32_t limit, bh_store_remains *ret,
                         struct bh_err *err) BH_MUST_USE;
/* output_bytes: of its files. Command and environment are added. */
int bh_store_remain_measure(struct bh_store *s, uint64_t job, uint64_t output_bytes,
                            struct bh_err *err) BH_MUST_USE;
/* Each tenant, and the bytes that are kept of its jobs; job and ended_ms are those of the oldest, 0: none is left. */
int bh_store_remains_of_tenants(struct bh_store *s, struct bh_arena *arena, bh_store_remains *ret,
                                struct bh_err *err) BH_MUST_USE;
/* The oldest of a tenant that can go: none of their leases still needs what is there. */
int bh_store_remains_oldest(struct bh_store *s, struct bh_arena *arena, const char *tenant, uint32_t limit,
                            bh_store_remains *ret, struct bh_err *err) BH_MUST_USE;
/* What it wrote is gone; its command and environment go here. BH_CONFLICT: it was before; BH_NOT_FOUND: there is no such
 * job any more. */
int bh_store_remain_prune(struct bh_store *s, uint64_t job, uint64_t at_ms, struct bh_err *err) BH_MUST_USE;
/* When that was; 0: it was not. */
int bh_store_remain_pruned(struct bh_store *s, uint64_t job, uint64_t *ret_ms,
                           struct bh_err *err) BH_MUST_USE;

#endif
