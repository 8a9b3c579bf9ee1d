/* SPDX-License-Identifier: Apache-2.0 */
/* sched_inside.h - the scheduler's state, for its own rooms: job, gang, cycle, reclaim, sched. Nobody else. */
#ifndef BH_CORE_SCHED_SCHED_INSIDE_H
#define BH_CORE_SCHED_SCHED_INSIDE_H

#include "base/idmap.h"
#include "core/sched/queue_reclaim.h"
#include "core/sched/sched.h"

/* An event as it was written down. What it points to is in the vectors beside. */
struct bh_inbox {
    uint64_t at_ms, id;
    uint32_t kind, parent, level, gpu, rank, health, payload, n_places;
    const struct bh_gpu_model *model;
};

/* Those of a leaf who could go, in order; sorted as far as somebody asked. */
struct bh_ranking {
    uint64_t cycle;        /* in which they were listed */
    uint32_t first, n;     /* part of sched.victims */
    uint32_t sorted, went; /* the first so many went in this cycle */
};

/* What the scheduler keeps of a queue beside the account. */
struct bh_room {
    uint32_t first_line;        /* of a leaf, or BH_NONE */
    uint32_t first_run, n_runs; /* list of running jobs of a leaf */
    uint32_t n_extra;           /* members above the minimum */
    uint64_t fell;              /* when what it uses last became less, or it was changed */
    uint32_t best;              /* line whose first is next below this queue, or BH_NONE */
    uint32_t seats;             /* of an inner queue: where its tree of matches begins */
    uint32_t seat;              /* its own number among its parent's children */
    struct bh_ranking
        rankings[2]; /* of a leaf: [1] for who needs only time, so that others may be paused for it */
    /* Who could lose something, when reclaiming began: [1] counts what is above an entitlement too. */
    uint32_t losers[2];       /* leaves below, itself and all between with too much */
    uint32_t losers_below[2]; /* the same sum over its children, whatever it has itself */
    int32_t low;              /* no running job of a leaf that may be interrupted has a lower priority */
    /* Of one search for victims. */
    uint64_t search; /* which: what follows says nothing about another */
    uint32_t
        cursor[2]; /* victims looked at so far: those of whom one is enough for a member, and the others */
    bool open;     /* something below may go, and was not looked at yet */
    bool could;    /* something below may go */
    struct bh_resources gone; /* released so far */
    uint64_t num, den;        /* its saturation with that gone */
};

/* Of a node: which GPUs could be had whole if all who could go went; at most these. */
struct bh_prospect {
    uint64_t cycle;  /* when that was looked at */
    uint64_t search; /* in which the node was looked at by itself */
    uint32_t gpus;
};

/* One who could go on a node that is looked at; as in bh_unit. */
struct bh_here {
    uint32_t job, hold;
};

/* Something a job was told to leave: a hold that is releasing, or room on a node that is another's already. */
struct bh_left {
    uint32_t hold; /* or BH_NONE */
    uint32_t node, next;
};

struct bh_alarm {
    uint64_t at_ms, id;
};

/* One piece that could go: a whole job, or one member above the minimum. */
struct bh_unit {
    uint32_t job, hold; /* hold: BH_NONE for the whole */
    uint32_t first, n;  /* its places in scratch */
    struct bh_resources amount;
    uint8_t out;  /* goes */
    uint8_t rung; /* enum bh_rung */
};

struct bh_sched {
    struct bh_sched_config config;
    struct bh_requests requests;
    struct bh_shelf shelf;
    struct bh_score *score;
    struct bh_pick *pick;
    struct bh_queues queues;
    BH_VEC(struct bh_typical) typical;

    /* written down, not settled */
    BH_VEC(struct bh_inbox) inbox;
    BH_VEC(struct bh_node_spec) in_nodes;
    BH_VEC(struct bh_queue_config) in_queues;
    BH_VEC(struct bh_gang) in_jobs;
    BH_VEC(struct bh_spot) in_spots;
    BH_VEC(struct bh_sched_refusal) refusals;

    /* jobs */
    BH_VEC(struct bh_shape) shapes;
    struct bh_idmap shape_ids;
    BH_VEC(uint32_t)
    shape_order; /* as jobs came in settled order: their ids depend on how events were written down */
    BH_VEC(struct bh_gang) gangs;
    uint32_t free_gang;
    struct bh_idmap gang_ids;
    BH_VEC(struct bh_owner) owners; /* by hold */
    BH_VEC(struct bh_left) lefts;
    uint32_t free_left;
    BH_VEC(struct bh_line) lines;
    uint32_t free_line;
    struct bh_idmap line_ids;
    uint32_t n_parked;         /* pending ones */
    uint32_t n_movable;        /* that have places, and may be moved for others */
    BH_VEC(uint32_t) draining; /* nodes; some may not be so any more */
    BH_VEC(uint32_t) ranks;    /* by user */
    BH_VEC(struct bh_alarm) alarms;
    BH_VEC(struct bh_brief) briefs;
    BH_VEC(uint32_t) bound, broken, elastic; /* jobs to look at; some may not be so any more */
    BH_VEC(uint32_t) leaving;                /* by node: how many bh_left without a hold */

    /* queues */
    BH_VEC(struct bh_room) rooms;
    BH_VEC(uint32_t) seats;
    bool queues_changed, fleet_changed, ranks_changed;

    /* what changed when: one clock for all */
    uint64_t clock;
    uint64_t
        gain[BH_MODELS_MAX + 1]; /* when room of a model last became free; the last: nodes without GPUs */
    uint64_t now_ms;
    uint32_t
        model_mib[BH_MODELS_MAX]; /* the least memory of a GPU of this model; UINT32_MAX: there is none */

    /* a cycle */
    uint64_t steps_left;
    bool reclaiming; /* lines without room take part instead of those that may have it */
    BH_VEC(struct bh_decision) decisions;
    BH_VEC(struct bh_place) places;
    BH_VEC(struct bh_decision) told; /* from settling, for the next cycle */
    bh_sched_veto *veto;
    void *veto_context;
    struct bh_sched_stats stats;
    uint64_t digest;

    /* scratch, all of it large enough after settling */
    BH_VEC(struct bh_place) try_places;
    BH_VEC(uint32_t) try_holds;
    BH_VEC(uint32_t) domains, slices; /* candidates */
    BH_VEC(uint32_t) victims;
    BH_VEC(struct bh_unit) units;
    BH_VEC(struct bh_place) unit_places;
    BH_VEC(uint32_t) unit_holds;
    BH_VEC(struct bh_charge) charges;
    BH_VEC(struct bh_victim) judged;
    BH_VEC(struct bh_prospect) prospects; /* by node */
    BH_VEC(struct bh_here) here;
    uint64_t search;
    uint64_t round; /* of trying lines for which nobody was found to go */
};

/* Vectors that are the state: freed, saved and loaded as they are. Lines are too, but for their heaps. */
#define BH_SCHED_VECS         \
    BH_SCHED_VEC(typical)     \
    BH_SCHED_VEC(shapes)      \
    BH_SCHED_VEC(shape_order) \
    BH_SCHED_VEC(gangs)       \
    BH_SCHED_VEC(owners)      \
    BH_SCHED_VEC(lefts)       \
    BH_SCHED_VEC(ranks)       \
    BH_SCHED_VEC(alarms)      \
    BH_SCHED_VEC(briefs)      \
    BH_SCHED_VEC(draining)    \
    BH_SCHED_VEC(bound)       \
    BH_SCHED_VEC(broken)      \
    BH_SCHED_VEC(elastic)     \
    BH_SCHED_VEC(leaving)     \
    BH_SCHED_VEC(rooms)       \
    BH_SCHED_VEC(told)
/* Those that are not. */
#define BH_SCHED_SCRATCH      \
    BH_SCHED_VEC(inbox)       \
    BH_SCHED_VEC(in_nodes)    \
    BH_SCHED_VEC(in_queues)   \
    BH_SCHED_VEC(in_jobs)     \
    BH_SCHED_VEC(in_spots)    \
    BH_SCHED_VEC(refusals)    \
    BH_SCHED_VEC(seats)       \
    BH_SCHED_VEC(decisions)   \
    BH_SCHED_VEC(places)      \
    BH_SCHED_VEC(try_places)  \
    BH_SCHED_VEC(try_holds)   \
    BH_SCHED_VEC(domains)     \
    BH_SCHED_VEC(slices)      \
    BH_SCHED_VEC(victims)     \
    BH_SCHED_VEC(units)       \
    BH_SCHED_VEC(unit_places) \
    BH_SCHED_VEC(unit_holds)  \
    BH_SCHED_VEC(charges)     \
    BH_SCHED_VEC(judged)      \
    BH_SCHED_VEC(prospects)   \
    BH_SCHED_VEC(here)

/* Members by which elastic gangs grow in one cycle, at most: what they fill was made large enough before. */
enum { BH_GROW_MAX = 16384 };

/* Make room for n without adding any. */
#define bh_vec_room(v, want) \
    ((v)->at = (v)->cap >= (want) ? (v)->at : bh_grow_((v)->at, &(v)->cap, (want), sizeof(*(v)->at)))

/* One step of the bound; false: it is used up. */
static inline bool bh_sched_step(struct bh_sched *s, uint64_t n)
{
    s->stats.steps += n;
    s->steps_left = s->steps_left > n ? s->steps_left - n : 0;
    return s->steps_left != 0;
}

/* ---- heaps of numbers; before(): the one in front ---- */

typedef bool bh_before(const void *context, uint32_t a, uint32_t b);
void bh_heap_make(uint32_t *at, size_t n, bh_before *before, const void *context);
void bh_heap_sift(uint32_t *at, size_t n, size_t i, bh_before *before, const void *context);
/* All of it, the one in front first. */
void bh_heap_sort(uint32_t *at, size_t n, bh_before *before, const void *context);

/* ---- job.c ---- */

int bh_shape_intern(struct bh_sched *s, const struct bh_gang_spec *spec, uint32_t *ret, struct bh_err *err);
/* What one member takes; node BH_NONE: not placed yet. */
struct bh_resources bh_class_amount(const struct bh_sched *s, uint32_t class_, uint32_t node);
/* The least that a shape takes wherever it is placed: as shape.least, and the GPU memory that goes with it. */
struct bh_resources bh_shape_asks(const struct bh_sched *s, const struct bh_shape *shape);
void bh_models_measure(struct bh_sched *s); /* nodes were added */
void bh_resources_add(struct bh_resources *a, const struct bh_resources *b, uint64_t times);
/* Where there is less than that, nothing is left. */
void bh_resources_less(struct bh_resources *a, const struct bh_resources *b);
uint32_t bh_gang_new(struct bh_sched *s, const struct bh_gang *like);
void bh_gang_forget(struct bh_sched *s, uint32_t job);
static inline struct bh_gang *bh_gang_at(const struct bh_sched *s, uint32_t job)
{
    return &s->gangs.at[job];
}
static inline struct bh_shape *bh_shape_of(const struct bh_sched *s, const struct bh_gang *g)
{
    return &s->shapes.at[g->shape];
}
/* Into its line and out of it. */
void bh_line_join(struct bh_sched *s, uint32_t job);
void bh_line_leave(struct bh_sched *s, uint32_t job);
/* So that a job which has places now can join without allocating. */
void bh_line_prepare(struct bh_sched *s, uint32_t job);
/* Ranks or urgencies changed. */
void bh_lines_rebuild(struct bh_sched *s);
void bh_lines_alarm(struct bh_sched *s);
struct bh_turn bh_line_turn(const struct bh_sched *s, const struct bh_line *l);
/* Among those of its queue that have places, and out. */
void bh_run_join(struct bh_sched *s, uint32_t job);
void bh_run_leave(struct bh_sched *s, uint32_t job);
void bh_run_since(struct bh_sched *s, uint32_t job, uint64_t at_ms); /* it was started then */
/* What a hold counts for whoever asks who has what. */
uint32_t bh_hold_milli(const struct bh_sched *s, uint32_t hold);

/* Make the look-up of shapes, jobs and lines anew, and the lines' heaps. */
void bh_jobs_index(struct bh_sched *s);

/* ---- job_bind.c: a job's holds, and what its queue pays ---- */

struct bh_charge bh_gang_charge(const struct bh_sched *s, const struct bh_gang *g, bool extra);
void bh_gang_asks(struct bh_sched *s, const struct bh_gang *g, enum bh_charge_event event);
/* The holds were taken on the shelf; they are the job's from now on, and its queue pays. */
void bh_gang_bind(struct bh_sched *s, uint32_t job, const struct bh_place *places, const uint32_t *holds,
                  uint32_t n, bool found);
void bh_gang_add(struct bh_sched *s, uint32_t job, const struct bh_place *place, uint32_t hold, bool extra);
/* A hold is no longer the job's; what becomes of it is the caller's business. */
void bh_gang_disown(struct bh_sched *s, uint32_t job, uint32_t hold);
/* A hold of the job ends now. */
void bh_gang_drop(struct bh_sched *s, uint32_t job, uint32_t hold);
/* The shelf frees it: who waited for room may look again. */
void bh_room_free(struct bh_sched *s, uint32_t hold);
void bh_room_gain(struct bh_sched *s, uint32_t node);
/* Its queue no longer pays; it asks again (EVICT) or not (END). */
void bh_gang_unpaid(struct bh_sched *s, uint32_t job, bool asks);
void bh_extra_unpaid(struct bh_sched *s, uint32_t job, uint32_t hold);
/* What stays behind of a member when it is parked in this way on its node, and what its queue pays for that. */
struct bh_resources bh_parked_amount(const struct bh_sched *s, const struct bh_gang_role *r,
                                     enum bh_rung rung, uint32_t node);
void bh_gang_stays(struct bh_sched *s, uint32_t job, const struct bh_resources *amount);
void bh_gang_stays_no_more(struct bh_sched *s, uint32_t job);
/* What a pending job would take beside what stayed behind of it. */
struct bh_resources bh_beside_stays(const struct bh_gang *g, const struct bh_resources *amount);
/* All holds will end: they are releasing until the host says GONE. */
void bh_gang_leave(struct bh_sched *s, uint32_t job);
void bh_left_add(struct bh_sched *s, uint32_t job, uint32_t hold, uint32_t node);
void bh_left_gone(struct bh_sched *s, uint32_t job);
/* Does it wait for somebody to leave its nodes? */
bool bh_gang_waits(const struct bh_sched *s, const struct bh_gang *g);
/* Could all of its minimum be paused, or suspended, as far as what it is says? */
bool bh_shape_parks(const struct bh_shape *shape, enum bh_rung rung);
uint64_t bh_gang_lost_ms(const struct bh_sched *s, const struct bh_gang *g, enum bh_rung rung);
uint64_t bh_gang_price(const struct bh_sched *s, const struct bh_gang *g, enum bh_rung rung);

/* ---- gang.c ---- */

/* All of the minimum, taken on the shelf, in try_places and try_holds; false: nothing is taken. */
bool bh_gang_place(struct bh_sched *s, const struct bh_shape *shape);
/* A parked job at its own place; the caller has a mark and takes it back when it is false. */
bool bh_gang_unpark(struct bh_sched *s, const struct bh_gang *g);
/* One more of a role (a slice of it), where the others are; adds to try_places. */
bool bh_gang_more(struct bh_sched *s, const struct bh_gang *g, uint32_t role);
/* New places for all holds that lost theirs; replaced holds in unit_holds, new ones in try_*. */
bool bh_gang_repair(struct bh_sched *s, const struct bh_gang *g);
bool bh_hold_lost(const struct bh_sched *s, uint32_t hold);

/* The best place below a domain; BH_NONE: of all. */
bool bh_gang_pick(struct bh_sched *s, uint32_t class_, uint32_t domain, struct bh_spot *ret);
/* Where a member that is on this node must stay, as near to the others as it is; BH_NONE: anywhere. */
uint32_t bh_member_domain(const struct bh_sched *s, const struct bh_gang *g, uint32_t role, uint32_t node);

/* ---- move.c ---- */

/* Could moving somebody help the line's first? Cheap, and wrong only on the side of yes. */
bool bh_move_hopeful(const struct bh_sched *s, const struct bh_line *l);
/* Who stands elsewhere so that the line's first can start; true: it has been started. */
bool bh_move(struct bh_sched *s, uint32_t line);
/* Off the nodes and GPUs that are drained, as far as there are places. */
void bh_move_drained(struct bh_sched *s);

/* ---- cycle*.c ---- */

/* Did room of a model it could use become free since? */
bool bh_shape_gained(const struct bh_sched *s, const struct bh_shape *shape, uint64_t since);
void bh_order_lay(struct bh_sched *s); /* queues were added */
void bh_order_all(struct bh_sched *s); /* seat everybody anew */
void bh_order_leaf(struct bh_sched *s, uint32_t queue);
uint32_t bh_order_rival(const struct bh_sched *s, uint32_t line, enum bh_turn_key *ret_key);
bool bh_line_ready(struct bh_sched *s, struct bh_line *l); /* takes part now */
bool bh_line_stuck(const struct bh_sched *s,
                   struct bh_line *l); /* nothing became better since it was found so */
struct bh_decision *bh_decision_add(struct bh_sched *s, enum bh_decision_kind kind, uint32_t job);
void bh_decision_place(struct bh_sched *s, struct bh_decision *d, const struct bh_place *place);
void bh_cycle(struct bh_sched *s);
/* It is told to go, and its queue no longer pays. Its holds are the caller's to take. */
void bh_gang_evict(struct bh_sched *s, uint32_t job, enum bh_rung rung, enum bh_evict_for why,
                   uint64_t other);
struct bh_place bh_hold_place(const struct bh_sched *s, uint32_t hold);
/* Has it run for its minimum? */
bool bh_gang_past_min_run(const struct bh_sched *s, const struct bh_gang *g);
/* What a job of the shape takes in the places of try_places; what the line's first would cost there. */
struct bh_resources bh_placed_amount(const struct bh_sched *s, const struct bh_shape *shape);
struct bh_charge bh_placed_charge(const struct bh_sched *s, const struct bh_line *l);
/* Give the line's first the places in try_*, which are taken; pays, decides, leaves the line. */
void bh_cycle_start(struct bh_sched *s, uint32_t line);

/* ---- sched_take.c ---- */

void bh_sched_room(struct bh_sched *s); /* so that deciding allocates nothing */

/* ---- reclaim*.c ---- */

/* Before the first: who has too much. */
void bh_reclaim_prepare(struct bh_sched *s);
/* Could anybody at all go for the line's first? Cheap, and wrong only on the side of yes. */
bool bh_reclaim_hopeful(const struct bh_sched *s, const struct bh_line *l);

/* Who goes so that the line's first can start; true: it has been started. */
bool bh_reclaim(struct bh_sched *s, uint32_t line);

#endif
