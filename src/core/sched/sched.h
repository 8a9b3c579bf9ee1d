/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sched.h - the scheduler: events in, decisions out, nothing else.
 *
 * Everything it knows comes in events that carry their time; it reads no clock. The same events give the same
 * decisions, byte for byte, and what happens within one tick may come in any order: events are only written
 * down by bh_sched_apply() and taken in, in an order of their own, when the next tick is settled. Settling is
 * where memory may grow; deciding allocates nothing.
 *
 * A decision is a request to the host, and the scheduler counts on it at once: room and quota are those of the new
 * state. Who was told to go still has its GPUs until the host says that it is gone (BH_SCHED_GONE); who gets
 * them is bound to them and told to start when they are free. So room that was made for a job is its own, and nothing is
 * given out twice.
 *
 * Each cycle: start what waited for room to become free; give broken gangs new places, and those on drained nodes; place
 * what is pending in the order of service, level by level; for what found no room in one piece, find who could stand
 * elsewhere (move.c), and for what is entitled to more, who goes (reclaim.h); grow elastic gangs into what is left.
 *
 * The work of a cycle is bounded in steps, not in time, so that a bounded cycle is as repeatable as another. What
 * was left undone is done in the next.
 */
#ifndef BH_CORE_SCHED_SCHED_H
#define BH_CORE_SCHED_SCHED_H

#include "core/sched/job.h"
#include "core/sched/pick.h"
#include "core/sched/queue.h"

#define BH_SCHED_NO_CLASS 255

struct bh_sched_config {
    struct bh_queues_config queues;
    enum bh_score_mode score;
    uint64_t seed;                      /* BH_SCORE_RANDOM */
    uint8_t model_class[BH_MODELS_MAX]; /* of BH_RES_MODEL0 + class; BH_SCHED_NO_CLASS: not counted apart */
    uint64_t grace_ms;                  /* a broken gang is evicted whole after this */
    uint32_t
        reclaim_tries;    /* lines tried in vain in one cycle, at most; the others in the next. 0: no bound */
    uint32_t victims_max; /* looked at for one job */
};
void bh_sched_config_init(struct bh_sched_config *c);

enum bh_sched_event_kind {
    /* The fleet and the queues. Ids are dense: a new one is the next, an older one is changed. */
    BH_SCHED_MODEL,  /* id, model */
    BH_SCHED_DOMAIN, /* id, level, parent */
    BH_SCHED_NODE,   /* id, node; comes healthy */
    BH_SCHED_HEALTH, /* id: node, gpu or BH_NONE, health: up, down and what is between */
    BH_SCHED_QUEUE,  /* id, parent, queue */
    BH_SCHED_RANK,   /* id: user, rank: Fair Tree, higher first */
    /* Jobs, by the caller's id. Of one job they are taken in this order. */
    BH_SCHED_SUBMIT,     /* job */
    BH_SCHED_FOUND,      /* job, places: runs already, and was never submitted here. Role by role */
    BH_SCHED_STARTED,    /* the host has started it */
    BH_SCHED_CHECKPOINT, /* it has written one */
    BH_SCHED_GONE, /* what it was told to leave is free; of a job that was told nothing: it failed, and comes back */
    BH_SCHED_FINISH, /* it ended by itself */
    BH_SCHED_CANCEL, /* its owner wants it no more */
    /* Time. Settles all that came before. */
    BH_SCHED_TICK,
    BH_SCHED_EVENTS
};

struct bh_sched_event {
    enum bh_sched_event_kind kind;
    uint64_t at_ms;
    uint64_t id;
    uint32_t parent, level, gpu, rank;
    enum bh_health health;
    const struct bh_gpu_model *model; /* NULL: not in the catalogue */
    const struct bh_node_spec *node;
    const struct bh_queue_config *queue;
    const struct bh_gang_spec *job;
    const struct bh_spot *places; /* FOUND: the minimum of role 0, then of role 1 ... */
    uint32_t n_places;
};

/* An event that was taken in and had to be refused. */
struct bh_sched_refusal {
    enum bh_sched_event_kind kind;
    uint64_t id;
    struct bh_err why;
};

enum bh_decision_kind {
    BH_DECIDE_START, /* places: all of it */
    BH_DECIDE_GROW,  /* places: more members of an elastic gang; they may wait for room as a start does */
    /*
     * places: new ones for some of its members. why: BH_FOR_BROKEN, theirs failed and are gone already; else they are
     * still there, and the host says BH_SCHED_GONE when they were left (other: for whom, where it is for a job).
     */
    BH_DECIDE_MOVE,
    BH_DECIDE_EVICT,  /* by the rung; BH_RUNG_NARROW: only the places */
    BH_DECIDE_RESUME, /* a paused or suspended job goes on; places */
    BH_DECISIONS
};
enum bh_evict_for { BH_FOR_JOB, BH_FOR_BROKEN, BH_FOR_CANCEL, BH_FOR_DRAIN };

struct bh_place {
    struct bh_spot spot;
    uint32_t role;
};

struct bh_decision {
    uint8_t kind; /* enum bh_decision_kind */
    uint8_t rung; /* EVICT: enum bh_rung */
    uint8_t why;  /* EVICT, MOVE: enum bh_evict_for */
    uint8_t key;  /* START, RESUME: enum bh_turn_key that put it before the next in order */
    uint64_t job;
    uint64_t other; /* EVICT, MOVE for a job: which. START: who would have been next, or 0 */
    uint64_t price; /* EVICT, MOVE: what is lost, in millionths of a GPU second */
    uint32_t first_place, n_places;
};

/* Does the host answer with BH_SCHED_GONE, once the places that were to be left are free? */
static inline bool bh_decision_leaves(const struct bh_decision *d)
{
    return d->kind == BH_DECIDE_MOVE
               ? d->why != BH_FOR_BROKEN
               : d->kind == BH_DECIDE_EVICT && (d->rung != BH_RUNG_NARROW || d->why != BH_FOR_BROKEN);
}

struct bh_sched_stats {
    uint64_t cycles, starts, evictions, narrowings, moves, price;
    uint64_t steps; /* of the last cycle */
    uint32_t pending, bound, runs, leaves;
    bool
        more; /* the last cycle left something undone: out of steps, or gangs grew as far as one cycle goes */
};

struct bh_sched;
struct bh_sched *bh_sched_new(const struct bh_sched_config *c);
void bh_sched_free(struct bh_sched *s);
/* Work to expect (score.h); changes every score. Not saved work but configuration: kept with the state. */
void bh_sched_typical(struct bh_sched *s, const struct bh_gang_spec *at, const uint32_t *counts, size_t n);

/*
 * Writes the event down; all that it points to is copied. Refuses what is wrong in itself. What is wrong
 * only together with others (a job that is not there) shows when the tick is settled: bh_sched_refusals().
 */
int bh_sched_apply(struct bh_sched *s, const struct bh_sched_event *e, struct bh_err *err) BH_MUST_USE;
/* Takes in all that was written down. BH_SCHED_TICK and bh_sched_decide() do so. */
void bh_sched_settle(struct bh_sched *s);
/* Of the last settled tick. */
const struct bh_sched_refusal *bh_sched_refusals(const struct bh_sched *s, size_t *ret_n);

/* One cycle. steps: 0 for no bound. The answer is valid until the next call of anything here. */
const struct bh_decision *bh_sched_decide(struct bh_sched *s, uint64_t now_ms, uint64_t steps, size_t *ret_n);
const struct bh_place *bh_sched_places(const struct bh_sched *s, const struct bh_decision *d);
/* Of all decisions so far and of the state after each cycle. */
uint64_t bh_sched_digest(const struct bh_sched *s);

/*
 * All of it, as bytes for the same build on the same kind of machine; what was written down and not settled is settled
 * first. Loading refuses what is damaged or of another build. What goes on after loading is what would have
 * gone on without.
 */
struct bh_sched_bytes {
    unsigned char *at;
    size_t n, cap;
};
void bh_sched_save(struct bh_sched *s, struct bh_sched_bytes *ret); /* free(ret->at) */
int bh_sched_load(const void *at, size_t n, struct bh_sched **ret, struct bh_err *err) BH_MUST_USE;

/* ---- looking ---- */

const struct bh_shelf *bh_sched_shelf(const struct bh_sched *s);
const struct bh_queues *bh_sched_queues(const struct bh_sched *s);
struct bh_sched_stats bh_sched_stats(const struct bh_sched *s);
/* NULL: there is none. */
const struct bh_gang *bh_sched_job(const struct bh_sched *s, uint64_t id);
const struct bh_shape *bh_sched_shape(const struct bh_sched *s, const struct bh_gang *g);
/* Of a pending job: why it does not run. */
const struct bh_line *bh_sched_line(const struct bh_sched *s, const struct bh_gang *g);
/* The line's first, who stands for all of it; NULL: nobody waits there. */
const struct bh_gang *bh_sched_first(const struct bh_sched *s, const struct bh_line *l);
/* Its holds: begin with g->first_hold, go on with ->next, until BH_NONE. */
const struct bh_owner *bh_sched_owner(const struct bh_sched *s, uint32_t hold);
/* By slot: for walking over all jobs; state BH_GANG_FREE where there is none. */
size_t bh_sched_slots(const struct bh_sched *s);
const struct bh_gang *bh_sched_slot(const struct bh_sched *s, size_t slot);
/*
 * Asked before a job is given places, in the order of service: false keeps it waiting (BH_STUCK_VETO). For
 * reservations. Must be a function of what the events said.
 */
typedef bool bh_sched_veto(void *context, const struct bh_sched *s, const struct bh_gang *g,
                           const struct bh_place *places, uint32_t n, uint64_t now_ms);
void bh_sched_set_veto(struct bh_sched *s, bh_sched_veto *veto, void *context);

#endif
