/* SPDX-License-Identifier: Apache-2.0 */
/*
 * daemon.h - bulkheadd: one machine's tenants, from a policy to leases and back. Private to src/node.
 *
 * Observe, decide, apply, record, in one thread:
 *
 *   observe   silicon.h   what this machine is: GPUs, their health, as the fleet that the core judges
 *   decide    rule.h      the policy in force and the scheduler made from it (core/admit, core/sched)
 *   apply     run.h       one lease after another from state to state, through keepers, cgroups and scrubs
 *   record    the store, and the audit log in the same transaction
 *
 * The store is the truth. The scheduler and the table of runs are made from it when the daemon starts, and again whenever
 * they cannot be trusted any more (a commit failed, the policy changed): rebuild() is the one way in. So a crash at any
 * instruction is a restart, and a failed disk is a pause.
 *
 * What is about to be done to the machine is committed first; what was done is committed after. Between the two the daemon
 * may die, and the start that follows looks at both sides (start.c).
 */
#ifndef BH_NODE_DAEMON_H
#define BH_NODE_DAEMON_H

#include "api/api.h"
#include "base/idmap.h"
#include "core/admit/admit.h"
#include "core/lease/lease.h"
#include "host/cgroup.h"
#include "node/cert.h"
#include "node/clock.h"
#include "node/mech/tier.h"
#include "node/memo.h"
#include "node/meter.h"
#include "node/owed.h"
#include "node/room.h"
#include "node/silicon.h"
#include "node/sleep.h"
#include "node/watch/checks.h"
#include "node/watch/health.h"
#include "node/watch/watchdog.h"
#include "node/worker.h"
#include "store/audit.h"
#include "store/state_job.h"
#include "store/state_lease.h"

#include <systemd/sd-event.h>

struct bh_daemon_options {
    const char *state_dir, *run_dir;
    const char *policy_path; /* applied at the start where it differs from the one in force; NULL: none */
    const char *node_name;   /* NULL: the host's */
    const char *listen;      /* HTTPS, at ADDRESS:PORT; NULL: none */
    bool
        replace_audit_key; /* the key of the audit log is lost: go on with a new one, and a mark in the log */
    const char *cert_path, *key_path; /* of HTTPS: both or none; none: one is made */
};

/* The policy in force, as the core has it. */
struct bh_rule_book {
    uint64_t version;         /* of the store; 0: none was applied yet */
    struct bh_policy *policy; /* the admission borrows it; NULL: none */
    struct bh_admit *admit;
    struct bh_memo *memo; /* what was judged by it; NULL: nothing yet */
};

/* What an admitted job will run under; worked out once, when it is submitted or when the daemon starts. */
struct bh_terms {
    struct bh_request request; /* of its one role */
    uint32_t members;
    uint64_t cap_bytes;
    uint32_t weight, cap_permille, floor_permille;
    uint8_t latency, view, mechanism, tier;
};

/* What is to become of the job when its lease is over. */
enum bh_after {
    BH_AFTER_ENDS,
    BH_AFTER_WAITS,
    BH_AFTER_CANCELLED,
    BH_AFTER_FAILED,
    BH_AFTER_SETTLED, /* the job is over already: nobody is left, and what it had is being cleared */
    BH_AFTER_NOTHING, /* that was settled long before: its slices are looked at once more */
    BH_AFTERS
};

/* A command that was taken and not answered yet: its rows wait for the commit at the end of this turn. */
struct bh_pending {
    uint64_t ticket, id;
    struct bh_life *run; /* new; NULL: nothing for the scheduler */
    struct bh_gang_spec job;
};

/* A lease that is not over, or the one that a waiting job would get. */
struct bh_daemon;
struct bh_life {
    struct bh_daemon *of;
    uint64_t job, lease;
    enum bh_lease_state state; /* as the store has it */
    enum bh_after after;
    bool known;        /* the scheduler knows the job */
    bool taken;        /* ... was told of it in the round that goes on (decide.c) */
    bool leaving;      /* the scheduler told it to go */
    bool moved;        /* the scheduler has another place for it already */
    bool stopping;     /* its keeper was told to end it */
    bool held_off;     /* paused or suspended, as the store has it */
    uint64_t since_ms; /* in its state, as far as this daemon knows */
    uint32_t tries;    /* of emptying it, in vain */
    uint32_t doubts;   /* times that nobody could say what its keeper does */
    char tenant[64];
    char why[160];     /* it has to leave, or could not be set up */
    char *waits;       /* why it waits, as it was last worked out; NULL: it was not yet */
    uint64_t waits_ms; /* then; 0: never */
    uint64_t held_ms;  /* set aside until then: what was decided of it could not be written; 0: it is not */
    char *held;        /* ... the last time, and why; NULL: never */
    uint64_t server;   /* of MPS, that its work talks to; 0: none */
    struct bh_terms terms; /* of the policy as it is */
    struct bh_terms
        granted; /* ... as it was when it was granted something; of one that this daemon granted */
    sd_event_source *source; /* what it waits for: a keeper that starts or ends, a worker */
    int starting;            /* the descriptor of a keeper that starts; -1: none does */
    struct bh_worker worker;
};

/* An instance of MIG that is there (mech/mig.c). */
struct bh_made_cut {
    char gpu[96], key[48], uuid[80];
    uint32_t gi_cap, ci_cap; /* BH_NO_ID: not known */
};

/* An MPS server that runs, or is about to (mech/mps.c). */
struct bh_made_server {
    struct bh_daemon *of;
    uint64_t number;
    char domain[64], pool[64], gpus[1600];
    uint32_t uid, gid;
    bool up, stopping;
    bool unsure;             /* whether it runs was not to be known at the start */
    bool gone;               /* and that is not written yet */
    sd_event_source *source; /* its keeper's end */
};

/* Questions that a child works out, and answers that still hold (ponder.c). */
struct bh_ponder;
struct bh_ponder_kept;
struct bh_bill;   /* bill.c */
struct bh_retain; /* retain.c */

struct bh_daemon {
    struct bh_daemon_options opt;
    sd_event *loop;
    struct bh_store *store;
    struct bh_audit *audit;
    struct bh_api *api;
    struct bh_cert cert; /* of HTTPS */
    struct bh_api_ops ops;
    struct bh_api_view view;
    struct bh_silicon silicon;
    struct bh_node_health health;
    struct bh_sleepers sleepers;
    struct bh_rule_book book;
    struct bh_sched *sched; /* NULL: no policy yet */
    struct bh_cgroups cgroups;
    bool has_cgroups;
    struct bh_containers tier;
    struct bh_meter meter;
    struct bh_watch watch;
    struct bh_checks checks;
    BH_VEC(struct bh_made_cut) cuts;
    BH_VEC(struct bh_made_server *) servers;
    char mps[4000];         /* the control program of MPS; "": it is not here */
    char servers_dir[4000]; /* RUN/mps */
    char canary[256]; /* what the test of the driver's own scrub said; "": it did not pass, or was not made */
    char canary_why[200]; /* ... and why not */
    char node[256], leases_dir[4000], runs_dir[4000], keeper[4000], scrubber[4000];
    char cgroup[64]; /* below which the leases' are */
    BH_VEC(struct bh_life *) runs;
    struct bh_idmap by_job, by_lease; /* to places in runs */
    BH_VEC(struct bh_pending) pending;
    struct bh_room room;
    struct bh_retain *retain;
    BH_VEC(struct bh_ponder *) ponders;
    struct bh_ponder_kept *pondered;
    size_t pondered_next;
    BH_VEC(struct bh_bill *) bills; /* in the order in which they were asked for */
    struct bh_idmap came_in;        /* tokens and users that asked for something since the start */
    struct bh_owed owed;            /* what is not in the log yet and has happened all the same */
    sd_event_source *turn_source, *tick_source, *look_source, *api_source;
    sd_event_source *chore_source; /* what is left of a tick */
    size_t chore;                  /* ... from here on */
    struct bh_clock clock;
    uint64_t last_ms;         /* what it said last; it never goes back */
    uint64_t broken_until_ms; /* the disk failed: nothing is decided before */
    uint64_t upkeep_ms;       /* the books are looked after then */
    uint64_t asked_ms;        /* somebody asked the API then */
    uint64_t shown_ms;        /* the rows of the GPUs were made then ... */
    uint64_t shown_of;        /* ... of a store with so many changes */
    uint32_t whys_left;       /* waiting jobs that may be explained to lists before the next tick */
    bool due;                 /* a cycle is */
    bool put_off;             /* ... and gave way to a commit */
    uint32_t api_row;         /* times in a row that the API came first */
    bool look_deep;           /* the next look at the cards is at all of them */
    bool moved;               /* the GPUs are not those that it started with */
    bool shares;              /* cards may be shared: the driver was seen to clear what it frees */
    bool stopping;
    bool any_held; /* jobs may be set aside; else nobody looks for one among ten thousand */
    bool started;  /* up to where requests are served */
};

/* Milliseconds since 1970 that never fall and never jump while something is charged (clock.h). */
uint64_t bh_daemon_now(struct bh_daemon *d);
/* At the end of this turn of the loop: commit what was asked for, answer, decide. */
void bh_daemon_due(struct bh_daemon *d);
/*
 * Once, when nobody asks for anything, behind all that wait for that already: those and the daemon's own turns take turns. Made anew each
 * time: a source that is only enabled again keeps its place before all others. Says bh_daemon_had_turn first.
 */
int bh_daemon_idle(struct bh_daemon *d, sd_event_source **ret, sd_event_handler_t then, void *arg);
void bh_daemon_had_turn(struct bh_daemon *d);
/* The rows of the GPUs anew, from what the driver said last and what the store says now. */
void bh_daemon_show(struct bh_daemon *d);
/* The policy that the store has now: read, and the scheduler made anew. */
int bh_daemon_take_policy(struct bh_daemon *d, struct bh_err *err) BH_MUST_USE;
/* All of it, up to where requests are served; and the serving, until a signal. */
int bh_daemon_start(struct bh_daemon *d, struct bh_err *err) BH_MUST_USE;
int bh_daemon_serve(struct bh_daemon *d, struct bh_err *err) BH_MUST_USE;
void bh_daemon_fini(struct bh_daemon *d);
void bh_daemon_say(const struct bh_daemon *d, const char *fmt, ...) BH_PRINTF(2, 3);

#endif
