/* SPDX-License-Identifier: Apache-2.0 */
/* whatif_search.c - waiting, and quotas; and the order in which changes are thought of. */
#include "core/sched/whatif_search.h"

enum { OTHERS = 5 };

void bh_remedy_config_init(struct bh_remedy_config *c)
{
    *c = (struct bh_remedy_config){
        .horizon_ms = UINT64_C(30) * 24 * 3600 * 1000, .steps_max = 2000, .sets_max = 4096};
}

void bh_remedy_fini(struct bh_remedy *r)
{
    bh_vec_fini(&r->steps);
    *r = (struct bh_remedy){0};
}

/* ---- waiting ---- */

bool bh_remedy_wait(struct bh_whatif *w, uint64_t job, const struct bh_remedy_config *c,
                    struct bh_remedy *ret)
{
    struct bh_trial t;
    struct bh_err err;
    if (bh_trial_begin(w, NULL, 0, &t, &err) < 0)
        return false;
    bool runs = bh_trial_runs(&t, job);
    const uint64_t until = w->now_ms + c->horizon_ms;
    for (uint32_t i = 0; i < c->steps_max && !runs && bh_trial_next(&t, until); i++)
        runs = bh_trial_runs(&t, job);
    if (runs) {
        *bh_vec_push(&ret->steps) = (struct bh_change){.kind = BH_CHANGE_WAIT, .at_ms = t.now_ms};
        ret->kind = BH_CHANGE_WAIT;
        ret->cost = t.now_ms - w->now_ms;
        ret->least = true;
    }
    bh_trial_end(&t);
    return runs;
}

/* ---- quotas ---- */

static uint64_t value_of(const struct bh_queue *q, const struct bh_change *c)
{
    const uint64_t values[BH_PARTS] = {
        [BH_PART_LIMIT] = q->config.limit.at[c->res],
        [BH_PART_DESERVED] = q->config.deserved.at[c->res],
        [BH_PART_GUARANTEE] = q->config.guarantee.at[c->res],
        [BH_PART_SHARE_MAX] = q->config.share_max_ppm,
    };
    return values[c->part];
}

/* What a raise costs, in the resource. */
static uint64_t rise_of(const struct bh_queues *t, const struct bh_change *c)
{
    const uint64_t by = c->to - c->from;
    return c->part == BH_PART_SHARE_MAX ? bh_wide_scale(by, t->total.at[c->res], BH_SHARE_WHOLE) + 1 : by;
}

/* A quota above this much of the resource means nothing more: all there is, all that is asked for. */
static uint64_t enough(const struct bh_sched *s, const struct bh_change *c)
{
    const struct bh_queues *t = bh_sched_queues(s);
    const uint64_t total = t->total.at[c->res],
                   own = bh_queue_get(t, c->queue)->used.at[c->res] + bh_pending_below(s, c->queue, c->res);
    return total > own ? total : own;
}

/* Does it start with the quota at `to`? If so, the least value above `low` that will do: what is between was not tried. */
static bool raise_to(struct bh_whatif *w, struct bh_change *c, uint64_t low, uint64_t to, uint64_t job)
{
    uint64_t high = c->to = to;
    if (!bh_whatif_starts(w, c, 1, job))
        return false;
    while (low + 1 < high) {
        c->to = low + (high - low) / 2;
        if (bh_whatif_starts(w, c, 1, job))
            high = c->to;
        else
            low = c->to;
    }
    c->to = high;
    return true;
}

static int by_value(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* What the queue would hold, with this much more in a leaf below it: what is kept for others counts. */
static uint64_t held_with(const struct bh_queues *t, uint32_t leaf, uint32_t queue, enum bh_res res,
                          uint64_t asked)
{
    uint64_t rise = 0;
    for (uint32_t i = leaf;; i = bh_queue_get(t, i)->parent) {
        const struct bh_queue *q = bh_queue_get(t, i);
        const uint64_t below = i == leaf ? q->used.at[res] + asked : q->held_below.at[res] + rise;
        const uint64_t held = below > q->kept.at[res] ? below : q->kept.at[res];
        if (i == queue)
            return held;
        rise = held - q->held.at[res];
    }
}

/* Amounts of the resource as values of the part that is raised. */
static void as_values(const struct bh_queues *t, const struct bh_change *c, uint64_t *values, size_t n)
{
    const uint64_t total = t->total.at[c->res], kept = bh_queue_get(t, c->queue)->config.guarantee.at[c->res];
    for (size_t i = 0; i < n; i++) {
        if (c->part == BH_PART_DESERVED)
            values[i] -= values[i] < kept ? values[i] : kept;
        if (c->part != BH_PART_SHARE_MAX)
            continue;
        values[i] = values[i] < total ? bh_wide_scale(values[i], BH_SHARE_WHOLE, total) + 1 : BH_SHARE_WHOLE;
        values[i] = values[i] < BH_SHARE_WHOLE ? values[i] : BH_SHARE_WHOLE;
    }
}

/*
 * More is not always better: a higher quota may start others, who come first and take the room. So the values at which
 * requests become legal are tried from the lowest on: this job's, and that together with others who wait there. With
 * more than a few of these not every combination; *ret_all then becomes false.
 */
static size_t legal_values(const struct bh_sched *s, const struct bh_change *c, uint64_t job,
                           uint64_t *values, bool *ret_all)
{
    const struct bh_queues *t = bh_sched_queues(s);
    const struct bh_queue *q = bh_queue_get(t, c->queue);
    const struct bh_gang *mine = bh_sched_job(s, job);
    const uint64_t asked = bh_sched_shape(s, mine)->least.at[c->res];
    uint32_t others = 0;
    size_t n = 0;
    values[n++] = q->used.at[c->res] + asked;
    values[n++] = held_with(t, mine->queue, c->queue, c->res, asked);
    for (size_t i = 0; i < bh_sched_slots(s); i++) {
        const struct bh_gang *g = bh_sched_slot(s, i);
        if (g->state != BH_GANG_PENDING || g->id == job || !bh_queue_is_below(t, g->queue, c->queue))
            continue;
        if (others++ == OTHERS) {
            *ret_all = false;
            break;
        }
        for (size_t k = n; k-- > 0;)
            values[n++] = values[k] + bh_sched_shape(s, g)->least.at[c->res];
    }
    values[n++] = q->used_firm.at[c->res] + asked;
    values[n++] = enough(s, c);
    values[n++] = q->held.at[c->res] + bh_pending_below(s, c->queue, c->res);
    as_values(t, c, values, n);
    qsort(values, n, sizeof(values[0]), by_value);
    return n;
}

static bool raise_it(struct bh_whatif *w, const struct bh_sched *s, struct bh_change *c, uint64_t job,
                     bool *ret_all)
{
    uint64_t values[(2 << OTHERS) + 3], low = c->from;
    const size_t n = legal_values(s, c, job, values, ret_all);
    for (size_t i = 0; i < n; i++) {
        if (values[i] <= low)
            continue;
        if (raise_to(w, c, low, values[i], job))
            return true;
        low = values[i];
    }
    return false;
}

/* The smaller rise; of equal ones the lower queue, whom it concerns alone. */
static bool is_better(const struct bh_queues *t, const struct bh_change *a, const struct bh_change *b)
{
    const uint64_t x = rise_of(t, a), y = rise_of(t, b);
    return x != y ? x < y : bh_queue_get(t, a->queue)->depth > bh_queue_get(t, b->queue)->depth;
}

bool bh_remedy_quota(struct bh_whatif *w, const struct bh_sched *s, uint64_t job, struct bh_remedy *ret)
{
    static const uint8_t parts[] = {BH_PART_LIMIT, BH_PART_DESERVED, BH_PART_SHARE_MAX};
    const struct bh_gang *g = bh_sched_job(s, job);
    const struct bh_shape *shape = bh_sched_shape(s, g);
    const struct bh_queues *t = bh_sched_queues(s);
    struct bh_change best = {0};
    bool all = true;
    for (uint32_t r = 0; r < BH_RES_COUNT && best.kind == BH_CHANGE_NONE; r++) {
        for (uint32_t i = g->queue; shape->least.at[r] && i != BH_QUEUE_ROOT; i = bh_queue_get(t, i)->parent)
            for (size_t k = 0; k < sizeof(parts); k++) {
                struct bh_change c = {.kind = BH_CHANGE_QUOTA,
                                      .queue = i,
                                      .part = (enum bh_quota_part)parts[k],
                                      .res = (enum bh_res)r};
                c.from = value_of(bh_queue_get(t, i), &c);
                if (c.from != BH_AMOUNT_ANY && raise_it(w, s, &c, job, &all) &&
                    (best.kind == BH_CHANGE_NONE || is_better(t, &c, &best)))
                    best = c;
            }
    }
    if (best.kind == BH_CHANGE_NONE)
        return false;
    *bh_vec_push(&ret->steps) = best;
    ret->kind = BH_CHANGE_QUOTA;
    ret->cost = rise_of(t, &best);
    ret->least = all;
    return true;
}

/* ---- all of them ---- */

void bh_remedy_find(struct bh_whatif *w, const struct bh_sched *s, uint64_t job,
                    const struct bh_remedy_config *c, struct bh_remedy *ret)
{
    *ret = (struct bh_remedy){0};
    const struct bh_gang *g = bh_sched_job(s, job);
    if (!g || g->state != BH_GANG_PENDING)
        return;
    if (bh_whatif_alone(w, s, NULL, 0, job) &&
        (bh_remedy_wait(w, job, c, ret) || bh_remedy_free(w, s, job, c, ret)))
        return;
    if (bh_remedy_quota(w, s, job, ret) || bh_remedy_add(w, s, job, ret) ||
        bh_remedy_clear(w, s, job, NULL, 0, c, ret))
        return;
    struct bh_change raised[BH_RAISES_MAX];
    const size_t n = bh_remedy_raises(s, job, raised);
    (void)bh_remedy_clear(w, s, job, raised, n, c, ret);
}
