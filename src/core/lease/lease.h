/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lease.h - the life of a lease: its states, what moves it from one to another, and what must hold in each.
 *
 *   requested → admitted → preparing → active → draining → scrubbing → released
 *        ↘ refused ↙           ↘ failed → scrubbing            ↘ quarantined
 *                              active → parking → suspended → preparing
 *
 * One table says which cause leads where; what is not in it cannot happen, and whoever writes a state down asks the
 * table first. A lease that was given slices ends in `released` only by way of `scrubbing`, and `quarantined` leads
 * nowhere but to another scrub that a person ordered. Nothing here remembers anything: the store does.
 */
#ifndef BH_CORE_LEASE_LEASE_H
#define BH_CORE_LEASE_LEASE_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

enum bh_lease_state {
    BH_LEASE_REQUESTED,   /* asked for, not judged */
    BH_LEASE_ADMITTED,    /* within policy; waits for room and its turn */
    BH_LEASE_REFUSED,     /* not within policy, or withdrawn before it was given anything. Terminal */
    BH_LEASE_PREPARING,   /* its slices are its own; mechanism, tier and keeper are being set up */
    BH_LEASE_ACTIVE,      /* the tenant may use them, running or paused */
    BH_LEASE_PARKING,     /* is being moved to host memory; its slices are scrubbed behind it */
    BH_LEASE_SUSPENDED,   /* lives in host memory, has no slice */
    BH_LEASE_DRAINING,    /* has to end; until nothing of it is left on its slices */
    BH_LEASE_FAILED,      /* never became active: what was set up is being taken back */
    BH_LEASE_SCRUBBING,   /* nobody is on its slices; they are being proved clean */
    BH_LEASE_RELEASED,    /* its slices were proved clean and are free. Terminal */
    BH_LEASE_QUARANTINED, /* some could not be: nobody gets those. Over for the tenant; a retry may free them */
    BH_LEASE_STATES
};

enum bh_lease_cause {
    BH_LEASE_BY_ADMIT,  /* the policy allows it */
    BH_LEASE_BY_REFUSE, /* it does not, or no longer */
    BH_LEASE_BY_CANCEL, /* its owner or an operator wants it no more */
    BH_LEASE_BY_GRANT,  /* the scheduler placed it: slices are taken in the same transaction */
    BH_LEASE_BY_READY,  /* all is set up, the tenant was let go */
    BH_LEASE_BY_BREAK,  /* a step of setting up failed */
    BH_LEASE_BY_END,    /* its work ended by itself, whatever its exit status */
    BH_LEASE_BY_EVICT,  /* it has to make room, or the place is being drained */
    BH_LEASE_BY_EXPIRE, /* its time is over */
    BH_LEASE_BY_BREACH, /* found outside its gate or past its limits */
    BH_LEASE_BY_FAULT,  /* a GPU, link or instance of it failed */
    BH_LEASE_BY_LOSE,   /* what ran it is gone without a word: keeper killed, machine restarted */
    BH_LEASE_BY_PARK,   /* to be suspended to host memory */
    BH_LEASE_BY_PARKED, /* it is there, and the slices it left were proved clean */
    BH_LEASE_BY_UNPARK, /* it could not be, and runs on where it was: no slice was left yet */
    BH_LEASE_BY_WAKE,   /* the scheduler placed it again: slices are taken in the same transaction */
    BH_LEASE_BY_EMPTY,  /* seen: no process, context, channel or mount of it is left */
    BH_LEASE_BY_STUCK,  /* something of it cannot be ended */
    BH_LEASE_BY_CLEAN,  /* every slice has a clean verdict, written down in the same transaction */
    BH_LEASE_BY_DIRTY,  /* one has another verdict, or none */
    BH_LEASE_BY_RETRY,  /* a person ordered another scrub, after a reset or a repair */
    BH_LEASE_CAUSES
};

/* One word each, for the store, the API and the history of a lease. -1: no such word. */
const char *bh_lease_state_str(enum bh_lease_state s);
const char *bh_lease_cause_str(enum bh_lease_cause c);
int bh_lease_state_find(const char *word);
int bh_lease_cause_find(const char *word);

/* Where the cause leads; false: it cannot happen in this state, and *ret is untouched. */
bool bh_lease_next(enum bh_lease_state s, enum bh_lease_cause c, enum bh_lease_state *ret);
/* The same with words: BH_CONFLICT, "a lease that is 'released' cannot ...". */
int bh_lease_step(enum bh_lease_state s, enum bh_lease_cause c, enum bh_lease_state *ret,
                  struct bh_err *err) BH_MUST_USE;
/* Is there any cause that leads from one to the other? For the store, which compares and sets states. */
bool bh_lease_may_become(enum bh_lease_state from, enum bh_lease_state to);

/* May slices name it as their owner? Then nobody else gets them. */
bool bh_lease_holds_slices(enum bh_lease_state s);
/* Does its tenant pay for them? Usage is opened by the step that makes this true, closed by the one that makes it false. */
bool bh_lease_is_charged(enum bh_lease_state s);
/* May a process of the tenant, or its keeper, be alive? */
bool bh_lease_may_run(enum bh_lease_state s);
/* Is what it had free for the next one? Only then; a lease that never had anything is not said to hand it on. */
bool bh_lease_hands_on(enum bh_lease_state s);
/* No cause leads out of it. */
bool bh_lease_is_terminal(enum bh_lease_state s);
/* The attempt has come to its end: the job may be told so, or asked for again under a new lease. */
bool bh_lease_is_over(enum bh_lease_state s);

/* What is written down about one lease. */
struct bh_lease_facts {
    enum bh_lease_state state;
    uint32_t granted;                   /* slices it was ever given; when it wakes they count again */
    uint32_t owned, dirty, quarantined; /* slices that name it now, by their own state */
    uint32_t proved;                    /* clean verdicts by which slices of it became free */
    uint32_t usage_open;                /* intervals without an end */
    bool keeper;                        /* a living keeper */
};
/*
 * BH_CONFLICT with what is wrong: no slice is lost between owners (granted is what names it and what was proved clean),
 * none is held by a state that holds none, none is free unproved, time is charged just while it is used, nobody runs
 * who may not.
 */
int bh_lease_invariant(const struct bh_lease_facts *f, struct bh_err *err) BH_MUST_USE;

#endif
