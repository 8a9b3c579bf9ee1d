/* SPDX-License-Identifier: Apache-2.0 */
/*
 * state_lease.h - leases: one attempt to run a job each; what they were given, and how they came where they are.
 *
 * The states and what moves a lease are core/lease's table. A step compares and sets, appends to the history and does
 * what belongs to it in the same transaction, so that no caller can forget it:
 *
 *   grant, wake   the slices become the lease's own (the schema refuses what somebody else has)
 *   ready         usage begins;  leaving the charged states ends it
 *   empty         what it still owns becomes dirty
 *   parked, clean refused unless each slice it was given has a clean verdict (bh_store_scrub_add)
 *   dirty, stuck  what of it is not free becomes quarantined (from parking: it drains, its slices stay dirty)
 *   retry         what is quarantined becomes dirty again
 */
#ifndef BH_STORE_STATE_LEASE_H
#define BH_STORE_STATE_LEASE_H

#include "core/lease/lease.h"
#include "store/state.h"
#include "store/state_slice.h"

struct bh_store_lease {
    uint64_t id, job;
    const char *tenant, *user, *pool; /* of the job */
    const char *domain;               /* trust domain of the tenant when it was admitted */
    uint8_t mechanism;                /* enum bh_mechanism */
    const char *stack;                /* as people say it: `mig 3g.71gb + mps 50%` */
    uint8_t tier;                     /* enum bh_tier */
    uint32_t uid, gid;
    uint64_t until_ms;  /* its time is over then; 0: never */
    const char *detail; /* the daemon's own, of what it set up or is about to */

    enum bh_lease_state state;
    bool paused; /* while it is active or parking */
    uint64_t created_ms, state_ms;
    const char *cause, *why; /* of its last step; cause "" before the first */
};
typedef BH_VEC(struct bh_store_lease) bh_store_leases;

/* One slice that a lease was given. */
struct bh_store_grant {
    uint64_t id, lease;
    struct bh_slice_name slice; /* to grant a share: key "", the store names it */
    uint32_t milli, mib; /* of a whole card 1000, of an instance what it is of its card; and its memory */
    uint64_t proved;     /* the clean verdict by which the slice became free again; 0: not yet */
};
typedef BH_VEC(struct bh_store_grant) bh_store_grants;

struct bh_store_lease_step {
    uint64_t id, lease;
    const char *from, *to, *cause, *why;
    uint64_t at_ms;
};
typedef BH_VEC(struct bh_store_lease_step) bh_store_lease_steps;

struct bh_store_lease_filter {
    const char *tenant; /* NULL: any */
    uint64_t job;       /* 0: any */
    uint32_t states;    /* bits 1 << enum bh_lease_state; 0: any */
};
/* States in which something of a lease may be set up, held or owed: what a start has to look at. */
uint32_t bh_store_lease_live(void);

/* Requested. Of `lease` the second part is not looked at. A job has one lease at a time: BH_CONFLICT. */
int bh_store_lease_add(struct bh_store *s, const struct bh_store_lease *lease, uint64_t at_ms,
                       uint64_t *ret_id, struct bh_err *err) BH_MUST_USE;
/*
 * Compare and set. BH_CONFLICT where the lease is not in `from` (says in which), where the cause leads nowhere from
 * there, or where the schema forbids it; BH_NOT_FOUND. Not for grant and wake. ret_to may be NULL.
 */
int bh_store_lease_step(struct bh_store *s, uint64_t id, enum bh_lease_state from, enum bh_lease_cause cause,
                        uint64_t at_ms, const char *why, enum bh_lease_state *ret_to,
                        struct bh_err *err) BH_MUST_USE;
/*
 * The steps by BH_LEASE_BY_GRANT (from admitted) or BH_LEASE_BY_WAKE (from suspended): all of these slices become the
 * lease's own, or nothing changes. BH_CONFLICT says which slice is not to be had and why.
 */
int bh_store_lease_grant(struct bh_store *s, uint64_t id, enum bh_lease_cause cause,
                         const struct bh_store_grant *grants, size_t n, uint64_t at_ms, const char *why,
                         struct bh_err *err) BH_MUST_USE;
/* Another size of a share (milli 0: paused), where there is room; its usage goes on in a new interval. */
int bh_store_lease_resize(struct bh_store *s, uint64_t id, const struct bh_slice_name *share, uint32_t milli,
                          uint32_t mib, uint64_t at_ms, struct bh_err *err) BH_MUST_USE;
/* Before anything was given: domain, mechanism, stack, tier, uid, gid, until and detail as they are now. */
int bh_store_lease_plan(struct bh_store *s, uint64_t id, const struct bh_store_lease *plan,
                        struct bh_err *err) BH_MUST_USE;
int bh_store_lease_pause(struct bh_store *s, uint64_t id, bool paused, struct bh_err *err) BH_MUST_USE;
int bh_store_lease_detail(struct bh_store *s, uint64_t id, const char *detail,
                          struct bh_err *err) BH_MUST_USE;
int bh_store_lease_until(struct bh_store *s, uint64_t id, uint64_t until_ms, struct bh_err *err) BH_MUST_USE;

int bh_store_lease_get(struct bh_store *s, struct bh_arena *arena, uint64_t id, struct bh_store_lease *ret,
                       struct bh_err *err) BH_MUST_USE;
/* Each adds to ret. */
int bh_store_leases_list(struct bh_store *s, struct bh_arena *arena,
                         const struct bh_store_lease_filter *filter, const struct bh_store_page *page,
                         bh_store_leases *ret, struct bh_err *err) BH_MUST_USE;
int bh_store_leases_count(struct bh_store *s, const struct bh_store_lease_filter *filter, uint64_t *ret,
                          struct bh_err *err) BH_MUST_USE;
int bh_store_lease_grants(struct bh_store *s, struct bh_arena *arena, uint64_t id, bh_store_grants *ret,
                          struct bh_err *err) BH_MUST_USE;
int bh_store_lease_history(struct bh_store *s, struct bh_arena *arena, uint64_t id,
                           const struct bh_store_page *page, bh_store_lease_steps *ret,
                           struct bh_err *err) BH_MUST_USE;
/* What core/lease's invariant is asked with; the keeper is the caller's to find out. */
int bh_store_lease_facts(struct bh_store *s, uint64_t id, struct bh_lease_facts *ret,
                         struct bh_err *err) BH_MUST_USE;

#endif
