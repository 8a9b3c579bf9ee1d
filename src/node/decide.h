/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decide.h - the scheduler as the daemon keeps it: made from the store, told what happens, asked what to do.
 *
 * What it says is committed before anything is done about it. Where that fails the scheduler believes in something that is
 * not so: it is thrown away and made anew.
 */
#ifndef BH_NODE_DECIDE_H
#define BH_NODE_DECIDE_H

#include "node/daemon.h"

/* From the policy in force, the silicon and the runs. Without a policy there is none. */
int bh_decide_anew(struct bh_daemon *d, struct bh_err *err) BH_MUST_USE;
/* A job that waits; its run is among the runs. */
int bh_decide_submit(struct bh_daemon *d, struct bh_life *run, const struct bh_gang_spec *job,
                     struct bh_err *err) BH_MUST_USE;
/* STARTED, GONE, FINISH or CANCEL of a job that it knows. */
void bh_decide_tell(struct bh_daemon *d, enum bh_sched_event_kind kind, struct bh_life *run);
/* One that is among the runs and that it does not know, as the store has it. What the policy no longer allows has to go; what
 * only cannot be set up on this machine now runs on where it runs, and waits where it waits. */
void bh_decide_take_up(struct bh_daemon *d, struct bh_life *run);
/* A card as the store has it now: cordoned, quarantined or well. */
void bh_decide_health(struct bh_daemon *d, const char *uuid);
/* Each card of which the lease was given something. */
void bh_decide_cards(struct bh_daemon *d, uint64_t lease);
/* One cycle. A decision that cannot be written is undone alone, and its job set aside for a while. */
void bh_decide(struct bh_daemon *d);
/* Every now and then: those whose while is over are taken up again, and the doctor is told of the others. */
void bh_decide_tick(struct bh_daemon *d);
/* What it is told; false: nobody is set aside. The text is the arena's. */
bool bh_decide_check(const struct bh_daemon *d, struct bh_arena *arena, struct bh_api_check *ret);
/* The store could not be written: nothing is decided for a moment, then all is made anew. */
void bh_decide_later(struct bh_daemon *d, const struct bh_err *why);

#endif
