/* SPDX-License-Identifier: Apache-2.0 */
/*
 * whatif.h - "and if": a change, made on a copy of the scheduler, and what it decides then.
 *
 * The copy is the scheduler itself (saved and loaded), so an answer is not an estimate: it is what the same code does.
 * In the copy the host obeys at once: who is told to start has started, who is told to go is gone. Nothing else comes:
 * no new work, and what runs ends when it said it would, or never.
 */
#ifndef BH_CORE_SCHED_WHATIF_H
#define BH_CORE_SCHED_WHATIF_H

#include "core/sched/reserve.h"

enum bh_change_kind {
    BH_CHANGE_NONE,
    BH_CHANGE_WAIT,   /* until at_ms */
    BH_CHANGE_MOVE,   /* job: to another place */
    BH_CHANGE_FREE,   /* job: it ends */
    BH_CHANGE_QUOTA,  /* queue, part, res: `part` of it becomes `to` */
    BH_CHANGE_ADD,    /* nodes of a model, with gpus each, in a domain */
    BH_CHANGE_HEALTH, /* node, gpu or BH_NONE, health */
    BH_CHANGES
};
enum bh_quota_part { BH_PART_LIMIT, BH_PART_DESERVED, BH_PART_GUARANTEE, BH_PART_SHARE_MAX, BH_PARTS };

struct bh_change {
    enum bh_change_kind kind;
    uint64_t at_ms;
    uint64_t job, milli; /* milli: of GPUs that it has */
    uint32_t queue;
    enum bh_quota_part part;
    enum bh_res res;
    uint64_t from, to;    /* of the resource; BH_PART_SHARE_MAX: in ppm */
    uint32_t nodes, gpus; /* BH_CHANGE_ADD; gpus: of each node */
    uint32_t model;
    uint32_t like;            /* a node to take the rest from */
    uint32_t domain;          /* where: a domain, BH_NONE for none, BH_CHANGE_NEW_DOMAIN for one of its own */
    uint8_t level;            /* of that new domain */
    uint64_t features, pools; /* that the new nodes have besides */
    uint64_t cpu_milli, gpu_mib, mem_mib; /* ... and so much of it; 0: as `like` has */
    uint32_t node, gpu;
    enum bh_health health;
};
#define BH_CHANGE_NEW_DOMAIN (BH_NONE - 1)

typedef BH_VEC(struct bh_change) bh_changes;

/* A state to try things on; as many times as one likes. */
struct bh_whatif {
    struct bh_sched_bytes saved;
    struct bh_reserve_config reserve; /* most 0: the scheduler has no reservations */
    uint64_t now_ms;
    uint64_t tries; /* copies made so far */
};
/* Settles the scheduler, as saving does. */
void bh_whatif_init(struct bh_whatif *w, struct bh_sched *s, const struct bh_reserve_config *reserve,
                    uint64_t now_ms);
void bh_whatif_fini(struct bh_whatif *w);

/* One copy, and its time. */
struct bh_trial {
    struct bh_sched *sched;
    struct bh_reserve *reserve; /* or NULL */
    uint64_t now_ms;
    uint64_t evictions;                    /* since the beginning */
    BH_VEC(struct bh_sched_event) answers; /* scratch: what the host says to the decisions */
};
/* A new copy with the changes made, and decided until nothing more happens. Refuses a change that cannot be. */
int bh_trial_begin(struct bh_whatif *w, const struct bh_change *changes, size_t n, struct bh_trial *ret,
                   struct bh_err *err) BH_MUST_USE;
void bh_trial_end(struct bh_trial *t);
/* Decides, and lets the host obey, until nothing more happens. For whoever makes a trial of a scheduler of its own. */
void bh_trial_play(struct bh_trial *t);
/* Does it run, or has it been given its place? */
bool bh_trial_runs(const struct bh_trial *t, uint64_t job);
/* To the next time at which something that is known happens, and decides. False: nothing is known to happen by then. */
bool bh_trial_next(struct bh_trial *t, uint64_t until_ms);
/* Jobs that ended for this trial come back, each with a new id. True: all found a place and nobody had to go for it. */
bool bh_trial_return(struct bh_trial *t, const struct bh_sched *before, const uint64_t *jobs, size_t n);

/* Does the job start, if these changes are made? */
bool bh_whatif_starts(struct bh_whatif *w, const struct bh_change *changes, size_t n, uint64_t job);
/*
 * Would it start with these changes if it were alone: nobody else runs, nobody else waits? If not, they will not start
 * it whoever ends.
 */
bool bh_whatif_alone(struct bh_whatif *w, const struct bh_sched *s, const struct bh_change *changes, size_t n,
                     uint64_t job);
/* GPU thousandths that a job has. */
uint64_t bh_gang_milli(const struct bh_sched *s, const struct bh_gang *g);
bool bh_queue_is_below(const struct bh_queues *t, uint32_t queue, uint32_t top); /* or is it */
/* What is asked for in the queue and below, and does not run. */
uint64_t bh_pending_below(const struct bh_sched *s, uint32_t queue, enum bh_res res);
/* The request that a gang came with, as far as it is known. */
void bh_gang_spec_of(const struct bh_sched *s, const struct bh_gang *g, struct bh_gang_spec *ret);

#endif
