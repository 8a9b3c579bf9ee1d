/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queue.h - who may have how much: a tree of queues, one account for quota, fairness and priority.
 *
 * Work stands in leaves; every amount counts on the whole path to the root. A queue has
 *
 *   guarantee   kept for it and never lent, even when idle (what is idle of it is stranded, and can be
 *               asked for);
 *   deserved    its own, but lent while it does not need it, and reclaimed when it does;
 *   limit       never exceeded; share_max_ppm is another, as a part of the fleet;
 *   weight      its part of what is left over, after queues of higher priority had what they want.
 *
 * Guarantee and deserved together are its entitlement. Work that cannot be interrupted stays within the
 * entitlements on its path; only what can be interrupted borrows. The model of a tenant (enum bh_quota_model)
 * is a row of one table:
 *
 *   model       entitlement is   at most         priority counts        a deadline counts
 *   hard        kept             entitlement     in its own queue       in its own queue
 *   fairshare   lent             limit           in its own queue       in its own queue
 *   priority    lent             limit           between queues         between queues, if its path is entitled
 *
 * Priority between queues is scarce: above normal it needs GPU time from the queue's budget (queue_budget.h)
 * and from that of each queue above it; without, it counts as normal. So who calls everything high has spent
 * its budget and is ordinary again.
 *
 * All numbers are integers, nothing here allocates but adding queues, a reservation of the undo log, and the
 * growth of that log past it. Ids are dense; a parent comes before its children.
 */
#ifndef BH_CORE_SCHED_QUEUE_H
#define BH_CORE_SCHED_QUEUE_H

#include "base/err.h"
#include "base/mem.h"
#include "core/model/vocab.h"
#include "core/sched/queue_budget.h"
#include "core/sched/usage.h"
#include "core/sched/wide.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * What is counted. GPUs count in all and again by class of model; a share of several devices counts once
 * for each.
 */
enum bh_res {
    BH_RES_GPU, /* thousandths */
    BH_RES_MIB, /* GPU memory */
    BH_RES_CPU, /* thousandths */
    BH_RES_MEM, /* MiB */
    BH_RES_MODEL0,
    BH_RES_COUNT = BH_RES_MODEL0 + 8,
};

#define BH_AMOUNT_MAX  ((UINT64_C(1) << 48) - 1)
#define BH_AMOUNT_ANY  UINT64_MAX /* of a limit: none. Of deserved: nothing is said about this resource */
#define BH_QUEUE_ROOT  0u
#define BH_QUEUE_NONE  UINT32_MAX
#define BH_QUEUE_DEPTH 8u /* levels below the root */
#define BH_WEIGHT_MAX  65535u
#define BH_HISTORY_ONE 65536u                 /* k = 1 */
#define BH_HISTORY_MAX (16u * BH_HISTORY_ONE) /* k = 16 */
#define BH_SHARE_WHOLE 1000000u

struct bh_resources {
    uint64_t at[BH_RES_COUNT];
};

struct bh_queue_config {
    enum bh_quota_model model;
    struct bh_resources guarantee, deserved, limit;
    uint32_t weight;  /* up to BH_WEIGHT_MAX; 0: gets nothing of what is left over */
    int32_t priority; /* higher ones share what is left over first */
    uint32_t share_max_ppm;
    bool serves; /* under an SLO, with all below it: what does not serve never takes from it */
    enum bh_priority band_max;
    uint64_t budget;           /* GPU time above normal, in millionths of a GPU second; BH_BUDGET_ANY */
    uint64_t budget_period_ms; /* in which it comes again */
};
/* Deserves no GPU and everything else, no limit, weight 1, priority no higher than normal. */
void bh_queue_config_init(struct bh_queue_config *c);
/* One that only groups: whatever those below it have. */
void bh_queue_config_group(struct bh_queue_config *c);

struct bh_queues_config {
    uint32_t divided; /* bits of enum bh_res that are shared fairly and count for the dominant share */
    uint64_t quantum[BH_RES_COUNT]; /* shares are multiples of it where that can be; 0 is 1 */
    uint64_t half_life_ms;          /* of usage; 0: it does not fade */
    uint32_t history_k;  /* in BH_HISTORY_ONE: how much past usage moves the shares; 0: not at all */
    uint64_t sample_ms;  /* how often past usage is looked at, for all queues at once */
    uint64_t entry_ms;   /* a start pays for this much time at once (bh_queue_apply) */
    uint64_t horizon_ms; /* a budget must last this long for what runs above normal and one more */
    uint64_t slack_ms;   /* a deadline closer than this is critical */
    uint32_t margin_ppm; /* KAI's multiplier of the taker's saturation in a reclaim; BH_SHARE_WHOLE is 1 */
};
void bh_queues_config_init(struct bh_queues_config *c);

struct bh_queue {
    struct bh_queue_config config;
    uint32_t parent, depth, first_child, next_sibling, children;
    /* What follows from the configuration of the tree. */
    bool serves;                  /* it, or one above it */
    struct bh_resources kept;     /* never lent: its own guarantee, or those below it if they are more */
    struct bh_resources entitled; /* guarantee and deserved; ANY: nothing is said, here or below */
    struct bh_resources ceiling;
    /* What follows from the work in it. */
    struct bh_resources used, used_firm; /* firm: not to be interrupted */
    struct bh_resources held;       /* used, or kept if that is more; above the leaves the sum, or kept */
    struct bh_resources held_below; /* the sum over its children */
    struct bh_resources pending;    /* of a leaf */
    struct bh_resources wanted;     /* used and pending, up to the ceiling */
    struct bh_resources wanted_below;
    struct bh_usage usage;
    struct bh_budget budget;
    /* What bh_queues_refresh() computes. */
    struct bh_resources fair;
    uint64_t past;         /* usage as a part of the fleet's in 2^-32, when it was last looked at */
    uint64_t pull;         /* its weight, moved by past usage, in BH_HISTORY_ONE */
    uint64_t weight_below; /* the sum over its children */
};

/* A piece of work as the account sees it. */
struct bh_charge {
    uint32_t queue;
    bool firm; /* not to be interrupted: for an elastic gang its minimum is one claim and the rest another */
    enum bh_priority band; /* as bh_queue_band() gave it when it started */
    uint64_t started_ms;   /* for what ends: when it started */
    struct bh_resources amount;
};

enum bh_charge_event {
    BH_CHARGE_SUBMIT,   /* asked for */
    BH_CHARGE_WITHDRAW, /* no longer asked for */
    BH_CHARGE_START,    /* asked for, now runs */
    BH_CHARGE_EVICT,    /* ran, is asked for again */
    BH_CHARGE_FOUND,    /* runs, and was never asked for here: found after a restart */
    BH_CHARGE_END,      /* ran, and is gone */
    BH_CHARGE_EVENTS,
};

/* Why not. Numbers are of the resource; queue is the one that stands in the way. */
enum bh_queue_why {
    BH_QUEUE_FREE,      /* nothing is in the way */
    BH_QUEUE_LIMIT,     /* used and asked exceed the limit */
    BH_QUEUE_HARD,      /* ... the quota of a hard partition */
    BH_QUEUE_SHARE_MAX, /* ... the largest share of the fleet */
    BH_QUEUE_TOTAL,     /* ... the fleet */
    BH_QUEUE_KEPT,      /* it would take what is kept for others (kept says how much) */
    BH_QUEUE_FIRM,      /* not interruptible, and more than the entitlement */
    /* Of a reclaim. */
    BH_RECLAIM_OVER,      /* the taker would be above its fair share */
    BH_RECLAIM_SATURATED, /* the taker would be more saturated than the victim's side */
    BH_RECLAIM_WITHIN,    /* the victim's queue is within its fair share */
    BH_RECLAIM_GUARANTEE, /* the victim is inside a guarantee */
    BH_RECLAIM_FIRM,      /* the victim is not to be interrupted */
    BH_RECLAIM_SERVES,    /* the victim serves under an SLO, the taker does not */
    BH_RECLAIM_PRIORITY,  /* the victim, of the same queue, is not of lower priority */
    BH_QUEUE_WHYS,
};
struct bh_queue_reason {
    enum bh_queue_why why;
    uint32_t queue;
    enum bh_res res;
    uint64_t used, asked, bound, kept;
    uint32_t victim; /* of a reclaim: which */
};
const char *bh_queue_why_text(enum bh_queue_why why);

struct bh_queue_undo {
    enum bh_charge_event event;
    struct bh_charge claim;
    uint32_t depth;
    struct bh_usage
        usage[BH_QUEUE_DEPTH + 1]; /* as they were, from the leaf up: time cannot be computed backwards */
    struct bh_budget budget[BH_QUEUE_DEPTH + 1];
};

struct bh_queues {
    struct bh_queues_config config;
    struct bh_resources total;
    BH_VEC(struct bh_queue) at;
    uint8_t *dirty; /* its children's shares are to be divided anew */
    struct bh_share_item *items;
    struct bh_queue_shadow *shadow;
    uint32_t *touched; /* by the reclaim being judged */
    size_t touched_n, room;
    uint32_t marks;
    uint64_t sampled_ms;
    bool sampled;
    BH_VEC(struct bh_queue_undo) undo;
};

void bh_queues_init(struct bh_queues *t, const struct bh_queues_config *c); /* with the root */
void bh_queues_fini(struct bh_queues *t);
int bh_queues_add(struct bh_queues *t, uint32_t parent, const struct bh_queue_config *c, uint32_t *ret_queue,
                  struct bh_err *err) BH_MUST_USE;
/* Work stays where it is, also above a new limit; nothing more starts there. Not while a mark is set. */
int bh_queues_change(struct bh_queues *t, uint32_t queue, const struct bh_queue_config *c, uint64_t now_ms,
                     struct bh_err *err) BH_MUST_USE;
/* The fleet. What is promised may be more than it: then promises are cut in proportion. */
void bh_queues_total(struct bh_queues *t, const struct bh_resources *total);
/* So that n events after a mark do not allocate. */
void bh_queues_reserve(struct bh_queues *t, size_t n);

/*
 * One event of a claim, on the whole path. Whether it may start is the caller's question beforehand
 * (bh_queue_may_start). A start pays entry_ms of its GPU time at once, so that a burst is seen before it has
 * run; when it ends it gets back what it has really run of that. Work that ran at least as long pays exactly
 * its time; a shorter one pays for entry_ms.
 */
void bh_queue_apply(struct bh_queues *t, enum bh_charge_event event, const struct bh_charge *c,
                    uint64_t now_ms);

/*
 * After a mark events are written down until it is rolled back or dropped. Marks nest; the innermost ends
 * first.
 */
size_t bh_queues_mark(struct bh_queues *t);
void bh_queues_rollback(struct bh_queues *t, size_t mark); /* bit for bit as it was */
void bh_queues_keep(struct bh_queues *t, size_t mark);

bool bh_queue_may_start(const struct bh_queues *t, const struct bh_charge *c, struct bh_queue_reason *ret);
/* Within what the queue is entitled to, with this much more? */
bool bh_queue_within(const struct bh_queue *q, const struct bh_resources *more);
/* The priority that counts: as asked, or normal where the budget is spent or the queue's highest is less. */
enum bh_priority bh_queue_band(const struct bh_queues *t, uint32_t queue, enum bh_priority asked,
                               uint64_t gpu_milli, uint64_t now_ms, uint32_t *ret_queue);
/* Idle, and kept from others. */
uint64_t bh_queue_stranded(const struct bh_queue *q, enum bh_res res);

/* Fair shares where something changed, from the root down. Returns how many queues' children were divided. */
uint32_t bh_queues_refresh(struct bh_queues *t, uint64_t now_ms);

static inline struct bh_queue *bh_queue_get(const struct bh_queues *t, uint32_t queue)
{
    return &t->at.at[queue];
}
/* The children of their lowest common ancestor; both are the queue itself when they are the same. */
void bh_queue_fork(const struct bh_queues *t, uint32_t *a, uint32_t *b);

#endif
