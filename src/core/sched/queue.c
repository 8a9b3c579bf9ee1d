/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queue.c - the tree: what follows from its configuration, the events of work on a path, and taking them
 * back.
 *
 * Two sums go up the tree through a bound: what is held (at least what is kept) and what is wanted (at most
 * the ceiling). Each queue holds the sum of its children before the bound, so that an event costs one step a
 * level.
 */
#include "core/sched/queue_inside.h"

#include <assert.h>
#include <string.h>

void bh_queue_config_init(struct bh_queue_config *c)
{
    *c = (struct bh_queue_config){
        .model = BH_QUOTA_FAIRSHARE,
        .weight = 1,
        .share_max_ppm = BH_SHARE_WHOLE,
        .band_max = BH_PRIORITY_NORMAL,
    };
    BH_EACH_RES(r)
    {
        c->deserved.at[r] = r == BH_RES_GPU ? 0 : BH_AMOUNT_ANY;
        c->limit.at[r] = BH_AMOUNT_ANY;
    }
}

void bh_queue_config_group(struct bh_queue_config *c)
{
    bh_queue_config_init(c);
    c->deserved.at[BH_RES_GPU] = BH_AMOUNT_ANY;
    c->band_max = BH_PRIORITY_CRITICAL;
    c->budget = BH_BUDGET_ANY;
}

void bh_queues_config_init(struct bh_queues_config *c)
{
    *c = (struct bh_queues_config){
        .divided = 1u << BH_RES_GPU | 1u << BH_RES_CPU | 1u << BH_RES_MEM,
        .half_life_ms = UINT64_C(7) * 86400 * 1000,
        .sample_ms = 60000,
        .entry_ms = 300000,
        .horizon_ms = 3600000,
        .slack_ms = 3600000,
        .margin_ppm = BH_SHARE_WHOLE,
    };
}

/* --- what follows from the configuration --- */

static bool states(const struct bh_queue_config *c, unsigned r)
{
    return c->deserved.at[r] != BH_AMOUNT_ANY || (c->model == BH_QUOTA_HARD && c->guarantee.at[r]);
}

static uint64_t own_entitlement(const struct bh_queue_config *c, unsigned r)
{
    return c->guarantee.at[r] + (c->deserved.at[r] == BH_AMOUNT_ANY ? 0 : c->deserved.at[r]);
}

static uint64_t ceiling_of(const struct bh_queues *t, const struct bh_queue *q, unsigned r)
{
    uint64_t most = BH_AMOUNT_ANY;
    if (q->config.model == BH_QUOTA_HARD)
        most = q->entitled.at[r];
    if (q->config.share_max_ppm < BH_SHARE_WHOLE && t->total.at[r])
        most = bh_least(most, bh_most(q->kept.at[r], bh_wide_scale(t->total.at[r], q->config.share_max_ppm,
                                                                   BH_SHARE_WHOLE)));
    return bh_least(most, q->config.limit.at[r]);
}

static uint64_t held_of(const struct bh_queue *q, unsigned r)
{
    return bh_most(q->kept.at[r], bh_queue_leaf(q) ? q->used.at[r] : q->held_below.at[r]);
}

static uint64_t wanted_of(const struct bh_queue *q, unsigned r)
{
    const uint64_t all = bh_queue_leaf(q) ? q->used.at[r] + q->pending.at[r] : q->wanted_below.at[r];
    return bh_least(q->ceiling.at[r], all);
}

/* The sums over its children, of what they have. */
static void gather(const struct bh_queues *t, struct bh_queue *q, unsigned r)
{
    uint64_t kept = 0, held = 0, wanted = 0, entitled = bh_queue_leaf(q) ? BH_AMOUNT_ANY : 0;
    for (uint32_t i = q->first_child; i != BH_QUEUE_NONE; i = t->at.at[i].next_sibling) {
        const struct bh_queue *c = &t->at.at[i];
        kept += c->kept.at[r];
        held += c->held.at[r];
        wanted += c->wanted.at[r];
        if (entitled != BH_AMOUNT_ANY)
            entitled = c->entitled.at[r] == BH_AMOUNT_ANY ? BH_AMOUNT_ANY : entitled + c->entitled.at[r];
    }
    q->kept.at[r] = kept;
    q->held_below.at[r] = held;
    q->wanted_below.at[r] = wanted;
    q->entitled.at[r] = entitled;
}

static void derive_resource(struct bh_queues *t, struct bh_queue *q, unsigned r)
{
    const uint64_t own = own_entitlement(&q->config, r);
    gather(t, q, r);
    q->kept.at[r] =
        bh_most(q->kept.at[r], q->config.model == BH_QUOTA_HARD ? own : q->config.guarantee.at[r]);
    if (!q->depth)
        q->entitled.at[r] = t->total.at[r];
    else if (states(&q->config, r))
        q->entitled.at[r] = bh_most(own, q->kept.at[r]);
    q->ceiling.at[r] = q->depth ? ceiling_of(t, q, r) : t->total.at[r];
    q->held.at[r] = held_of(q, r);
    q->wanted.at[r] = wanted_of(q, r);
}

/* What follows for one queue, when it is known for its children. */
static void derive(struct bh_queues *t, uint32_t queue)
{
    struct bh_queue *q = &t->at.at[queue];
    q->weight_below = 0;
    for (uint32_t i = q->first_child; i != BH_QUEUE_NONE; i = t->at.at[i].next_sibling)
        q->weight_below += t->at.at[i].config.weight;
    BH_EACH_RES(r) derive_resource(t, q, r);
    t->dirty[queue] = 1;
}

/* After a queue changed: it and those above it. */
static void derive_path(struct bh_queues *t, uint32_t queue)
{
    for (uint32_t i = queue;; i = t->at.at[i].parent) {
        derive(t, i);
        if (!t->at.at[i].depth)
            break;
    }
}

/* --- building --- */

static void make_room(struct bh_queues *t)
{
    if (t->room >= t->at.n)
        return;
    uint8_t *dirty = bh_alloc(t->at.cap, sizeof(*dirty));
    if (t->room)
        memcpy(dirty, t->dirty, t->room);
    free(t->dirty);
    free(t->items);
    free(t->shadow);
    free(t->touched);
    t->dirty = dirty;
    t->room = t->at.cap;
    t->items = bh_alloc(t->room, sizeof(*t->items));
    t->shadow = bh_alloc(t->room, sizeof(*t->shadow));
    t->touched = bh_alloc(t->room, sizeof(*t->touched));
}

static void push(struct bh_queues *t, uint32_t parent, const struct bh_queue_config *c)
{
    const uint32_t i = (uint32_t)t->at.n;
    struct bh_queue *q = bh_vec_push(&t->at);
    *q = (struct bh_queue){
        .config = *c, .parent = parent, .first_child = BH_QUEUE_NONE, .next_sibling = BH_QUEUE_NONE};
    bh_budget_init(&q->budget, c->budget, c->budget_period_ms, 0);
    if (i) {
        struct bh_queue *up = &t->at.at[parent];
        uint32_t *link = &up->first_child;
        q->depth = up->depth + 1;
        q->serves = c->serves || up->serves;
        while (*link != BH_QUEUE_NONE) /* in the order of creation */
            link = &t->at.at[*link].next_sibling;
        *link = i;
        up->children++;
    }
    make_room(t);
}

void bh_queues_init(struct bh_queues *t, const struct bh_queues_config *c)
{
    struct bh_queue_config root;
    bh_queue_config_group(&root);
    memset(t, 0, sizeof(*t));
    t->config = *c;
    push(t, BH_QUEUE_ROOT, &root);
    derive(t, BH_QUEUE_ROOT);
}

void bh_queues_fini(struct bh_queues *t)
{
    free(t->dirty);
    free(t->items);
    free(t->shadow);
    free(t->touched);
    bh_vec_fini(&t->at);
    bh_vec_fini(&t->undo);
    memset(t, 0, sizeof(*t));
}

static int check_config(const struct bh_queue_config *c, struct bh_err *err)
{
    if (c->weight > BH_WEIGHT_MAX)
        return bh_fail(err, BH_INVALID, "a weight of %u, more than %u", c->weight, BH_WEIGHT_MAX);
    if (c->share_max_ppm > BH_SHARE_WHOLE)
        return bh_fail(err, BH_INVALID, "a largest share of %u ppm, more than the whole", c->share_max_ppm);
    BH_EACH_RES(r)
    {
        const uint64_t g = c->guarantee.at[r], d = c->deserved.at[r], l = c->limit.at[r];
        if (g > BH_AMOUNT_MAX || (d > BH_AMOUNT_MAX && d != BH_AMOUNT_ANY) ||
            (l > BH_AMOUNT_MAX && l != BH_AMOUNT_ANY))
            return bh_fail(err, BH_INVALID, "an amount of resource %u is out of range", r);
        if (g > l)
            return bh_fail(err, BH_INVALID, "guaranteed %llu of resource %u, more than the limit of %llu",
                           (unsigned long long)g, r, (unsigned long long)l);
    }
    return 0;
}

static bool has_work(const struct bh_queue *q)
{
    uint64_t any = 0;
    BH_EACH_RES(r) any |= q->used.at[r] | q->pending.at[r];
    return any != 0;
}

int bh_queues_add(struct bh_queues *t, uint32_t parent, const struct bh_queue_config *c, uint32_t *ret_queue,
                  struct bh_err *err)
{
    assert(!t->marks);
    if (parent >= t->at.n)
        return bh_fail(err, BH_NOT_FOUND, "there is no queue %u to be below", parent);
    const struct bh_queue *up = &t->at.at[parent];
    if (up->depth >= BH_QUEUE_DEPTH)
        return bh_fail(err, BH_INVALID, "more than %u levels of queues", BH_QUEUE_DEPTH);
    if (bh_queue_leaf(up) && has_work(up))
        return bh_fail(err, BH_CONFLICT, "queue %u has work; queues that have others below them have none",
                       parent);
    int rc = check_config(c, err);
    if (rc)
        return rc;
    *ret_queue = (uint32_t)t->at.n;
    push(t, parent, c);
    derive_path(t, *ret_queue);
    return 0;
}

int bh_queues_change(struct bh_queues *t, uint32_t queue, const struct bh_queue_config *c, uint64_t now_ms,
                     struct bh_err *err)
{
    assert(!t->marks);
    if (queue >= t->at.n || queue == BH_QUEUE_ROOT)
        return bh_fail(err, BH_NOT_FOUND, "there is no queue %u to change", queue);
    int rc = check_config(c, err);
    if (rc)
        return rc;
    struct bh_queue *q = &t->at.at[queue];
    if (q->config.budget != c->budget || q->config.budget_period_ms != c->budget_period_ms) {
        const uint64_t rate = q->budget.rate_milli;
        bh_budget_init(&q->budget, c->budget, c->budget_period_ms, now_ms);
        q->budget.rate_milli = rate;
    }
    q->config = *c;
    for (size_t i = queue; i < t->at.n; i++) /* children come after their parents */
        t->at.at[i].serves = t->at.at[i].config.serves || t->at.at[t->at.at[i].parent].serves;
    derive_path(t, queue);
    return 0;
}

void bh_queues_total(struct bh_queues *t, const struct bh_resources *total)
{
    assert(!t->marks);
    BH_EACH_RES(r) t->total.at[r] = bh_least(total->at[r], BH_AMOUNT_MAX);
    for (size_t i = t->at.n; i-- > 0;) /* children come after their parents */
        derive(t, (uint32_t)i);
}

void bh_queues_reserve(struct bh_queues *t, size_t n)
{
    if (t->undo.cap < n)
        t->undo.at = bh_grow_(t->undo.at, &t->undo.cap, n, sizeof(*t->undo.at));
}

/* --- events --- */

static const struct {
    int8_t used, pending;
    enum bh_charge_event inverse;
} events[BH_CHARGE_EVENTS] = {
    [BH_CHARGE_SUBMIT] = {0, 1, BH_CHARGE_WITHDRAW}, [BH_CHARGE_WITHDRAW] = {0, -1, BH_CHARGE_SUBMIT},
    [BH_CHARGE_START] = {1, -1, BH_CHARGE_EVICT},    [BH_CHARGE_EVICT] = {-1, 1, BH_CHARGE_START},
    [BH_CHARGE_FOUND] = {1, 0, BH_CHARGE_END},       [BH_CHARGE_END] = {-1, 0, BH_CHARGE_FOUND},
};

static void change(struct bh_resources *a, const struct bh_resources *by, bool more)
{
    BH_EACH_RES(r)
    {
        assert(more ? by->at[r] <= BH_AMOUNT_MAX : a->at[r] >= by->at[r]);
        a->at[r] += more ? by->at[r] : -by->at[r];
    }
}

/* What is held of a queue, and of those above it. Sums wrap around and come out right. */
static void carry_held(struct bh_queues *t, struct bh_queue *q)
{
    BH_EACH_RES(r)
    {
        const uint64_t held = held_of(q, r), by = held - q->held.at[r];
        q->held.at[r] = held;
        if (q->depth)
            t->at.at[q->parent].held_below.at[r] += by;
    }
}

static void carry_wanted(struct bh_queues *t, struct bh_queue *q)
{
    uint32_t changed = 0;
    BH_EACH_RES(r)
    {
        const uint64_t wanted = wanted_of(q, r), by = wanted - q->wanted.at[r];
        changed |= by ? 1u << r : 0;
        q->wanted.at[r] = wanted;
        if (q->depth)
            t->at.at[q->parent].wanted_below.at[r] += by;
    }
    if (changed & t->config.divided && q->depth)
        t->dirty[q->parent] = 1;
}

void bh_queue_move(struct bh_queues *t, const struct bh_charge *c, bool more)
{
    for (uint32_t i = c->queue;; i = t->at.at[i].parent) {
        struct bh_queue *q = &t->at.at[i];
        change(&q->used, &c->amount, more);
        if (c->firm)
            change(&q->used_firm, &c->amount, more);
        carry_held(t, q);
        if (!q->depth)
            break;
    }
}

static void apply_amounts(struct bh_queues *t, enum bh_charge_event event, const struct bh_charge *c)
{
    struct bh_queue *leaf = &t->at.at[c->queue];
    assert(bh_queue_leaf(leaf));
    if (events[event].used)
        bh_queue_move(t, c, events[event].used > 0);
    if (events[event].pending)
        change(&leaf->pending, &c->amount, events[event].pending > 0);
    for (struct bh_queue *q = leaf;; q = &t->at.at[q->parent]) {
        carry_wanted(t, q);
        if (!q->depth)
            break;
    }
}

static uint64_t times_ms(uint64_t milli, uint64_t ms)
{
    const bh_u128 p = bh_wide_mul(milli, ms);
    return p < BH_USAGE_MAX ? (uint64_t)p : BH_USAGE_MAX - 1;
}

/* What an event means in GPU time, the same on every queue of the path. */
struct pay {
    uint64_t now_ms, gpu_milli, high_milli;
    uint64_t fee, back; /* paid at once; given back of that */
};

static struct pay pay_for(const struct bh_queues_config *f, enum bh_charge_event event,
                          const struct bh_charge *c, uint64_t now_ms)
{
    const uint64_t gpu = c->amount.at[BH_RES_GPU],
                   begin_ms = event == BH_CHARGE_START ? now_ms : c->started_ms;
    const uint64_t ran_ms = now_ms > begin_ms ? now_ms - begin_ms : 0;
    const uint64_t left = bh_usage_faded(times_ms(gpu, f->entry_ms), f->half_life_ms, ran_ms);
    struct pay p = {.now_ms = now_ms, .gpu_milli = gpu, .high_milli = c->band > BH_PRIORITY_NORMAL ? gpu : 0};
    if (events[event].used > 0)
        p.fee = left;
    else if (f->entry_ms)
        p.back = bh_wide_scale(left, bh_least(ran_ms, f->entry_ms), f->entry_ms);
    return p;
}

static void apply_pay(struct bh_queue *q, const struct pay *p, uint64_t half_life_ms, bool more)
{
    if (more) {
        bh_usage_faster(&q->usage, half_life_ms, p->now_ms, p->gpu_milli);
        bh_usage_add(&q->usage, half_life_ms, p->now_ms, p->fee);
        bh_budget_faster(&q->budget, p->now_ms, p->high_milli);
    } else {
        bh_usage_slower(&q->usage, half_life_ms, p->now_ms, p->gpu_milli);
        bh_usage_give(&q->usage, half_life_ms, p->now_ms, p->back);
        bh_budget_slower(&q->budget, p->now_ms, p->high_milli);
    }
}

void bh_queue_apply(struct bh_queues *t, enum bh_charge_event event, const struct bh_charge *c,
                    uint64_t now_ms)
{
    struct bh_queue_undo *undo = t->marks ? bh_vec_push(&t->undo) : NULL;
    if (undo) {
        undo->event = event;
        undo->claim = *c;
        undo->depth = t->at.at[c->queue].depth;
    }
    apply_amounts(t, event, c);
    if (!events[event].used)
        return;
    const struct pay pay = pay_for(&t->config, event, c, now_ms);
    for (struct bh_queue *q = &t->at.at[c->queue];; q = &t->at.at[q->parent]) {
        if (undo) {
            undo->usage[q->depth] = q->usage;
            undo->budget[q->depth] = q->budget;
        }
        apply_pay(q, &pay, t->config.half_life_ms, events[event].used > 0);
        if (!q->depth)
            break;
    }
}

size_t bh_queues_mark(struct bh_queues *t)
{
    t->marks++;
    return t->undo.n;
}

void bh_queues_rollback(struct bh_queues *t, size_t mark)
{
    assert(t->marks && t->undo.n >= mark);
    while (t->undo.n > mark) {
        const struct bh_queue_undo *undo = &t->undo.at[--t->undo.n];
        apply_amounts(t, events[undo->event].inverse, &undo->claim);
        if (!events[undo->event].used)
            continue;
        for (struct bh_queue *q = &t->at.at[undo->claim.queue];; q = &t->at.at[q->parent]) {
            q->usage = undo->usage[q->depth];
            q->budget = undo->budget[q->depth];
            if (!q->depth)
                break;
        }
    }
    t->marks--;
}

void bh_queues_keep(struct bh_queues *t, size_t mark)
{
    assert(t->marks && t->undo.n >= mark);
    if (!--t->marks)
        t->undo.n = mark;
}
