/* SPDX-License-Identifier: Apache-2.0 */
/*
 * job_bind.c - a job and its holds: taking them on, paying for them, leaving them.
 *
 * The queue pays from the moment of the decision, for what was really taken (which model a GPU is of shows only
 * then). What a job leaves stays on the shelf as releasing until the host says that it is gone; where that room
 * is another's already, the node counts who is still to leave it, and whoever is bound to it waits for them.
 */
#include "core/sched/sched_inside.h"

/* ---- paying ---- */

static void fell(struct bh_sched *s, uint32_t queue)
{
    const struct bh_queue *all = s->queues.at.at;
    s->clock++;
    for (uint32_t i = queue;; i = all[i].parent) {
        s->rooms.at[i].fell = s->clock;
        if (!all[i].depth)
            return;
    }
}

static struct bh_charge charge_of(const struct bh_sched *s, const struct bh_gang *g, bool firm,
                                  uint64_t since_ms)
{
    return (struct bh_charge){.queue = g->queue,
                              .firm = firm && s->shapes.at[g->shape].firm,
                              .band = (enum bh_priority)g->band,
                              .started_ms = since_ms};
}

struct bh_charge bh_gang_charge(const struct bh_sched *s, const struct bh_gang *g, bool extra)
{
    struct bh_charge c = charge_of(s, g, true, g->charged_ms);
    for (uint32_t h = g->first_hold; h != BH_NONE; h = s->owners.at[h].next) {
        const struct bh_hold *hold = &s->shelf.holds.at[h];
        if (s->owners.at[h].extra && !extra)
            continue;
        const struct bh_resources one = bh_class_amount(s, hold->class_, hold->node);
        bh_resources_add(&c.amount, &one, 1);
    }
    return c;
}

static bool same_amount(const struct bh_resources *a, const struct bh_resources *b)
{
    return !memcmp(a, b, sizeof(*a));
}

/* What was asked for as `asked` is had as c->amount from now on. */
static void pay(struct bh_sched *s, struct bh_charge c, const struct bh_resources *asked)
{
    if (same_amount(&c.amount, asked)) {
        bh_queue_apply(&s->queues, BH_CHARGE_START, &c, s->now_ms);
        return;
    }
    const struct bh_resources actual = c.amount;
    c.amount = *asked;
    bh_queue_apply(&s->queues, BH_CHARGE_WITHDRAW, &c, s->now_ms);
    c.amount = actual;
    bh_queue_apply(&s->queues, BH_CHARGE_FOUND, &c, s->now_ms);
}

/* The other way; asked NULL: it is not asked for again. */
static void unpay(struct bh_sched *s, struct bh_charge c, const struct bh_resources *asked)
{
    fell(s, c.queue);
    if (asked && same_amount(&c.amount, asked)) {
        bh_queue_apply(&s->queues, BH_CHARGE_EVICT, &c, s->now_ms);
        return;
    }
    bh_queue_apply(&s->queues, BH_CHARGE_END, &c, s->now_ms);
    if (asked) {
        c.amount = *asked;
        bh_queue_apply(&s->queues, BH_CHARGE_SUBMIT, &c, s->now_ms);
    }
}

/* What it would still like to have above its minimum. */
static struct bh_resources elastic_rest(const struct bh_sched *s, const struct bh_gang *g)
{
    const struct bh_shape *shape = &s->shapes.at[g->shape];
    uint32_t has[BH_ROLES_MAX] = {0};
    struct bh_resources rest = {{0}};
    for (uint32_t h = g->first_hold; g->extra && h != BH_NONE; h = s->owners.at[h].next)
        has[s->owners.at[h].role] += s->owners.at[h].extra;
    for (uint32_t i = 0; i < shape->n_roles; i++)
        bh_resources_add(&rest, &shape->roles[i].one, shape->roles[i].max - shape->roles[i].min - has[i]);
    return rest;
}

void bh_gang_asks(struct bh_sched *s, const struct bh_gang *g, enum bh_charge_event event)
{
    const struct bh_shape *shape = &s->shapes.at[g->shape];
    struct bh_charge c = charge_of(s, g, true, s->now_ms);
    c.amount = shape->least;
    bh_queue_apply(&s->queues, event, &c, s->now_ms);
    if (shape->elastic) {
        c.amount = elastic_rest(s, g);
        bh_queue_apply(&s->queues, event, &c, s->now_ms);
    }
}

/* ---- taking on ---- */

static void own(struct bh_sched *s, uint32_t job, const struct bh_place *place, uint32_t hold, bool extra)
{
    struct bh_gang *g = bh_gang_at(s, job);
    while (s->owners.n <= hold)
        *bh_vec_push(&s->owners) = (struct bh_owner){.job = BH_NONE, .next = BH_NONE};
    s->owners.at[hold] = (struct bh_owner){.job = job,
                                           .next = g->first_hold,
                                           .role = (uint8_t)place->role,
                                           .extra = extra,
                                           .since_ms = s->now_ms};
    g->first_hold = hold;
    g->n_holds++;
    g->extra += extra;
    s->rooms.at[g->queue].n_extra += extra;
    if (g->brief_at != BH_NONE)
        s->briefs.at[g->brief_at].milli += bh_hold_milli(s, hold);
}

void bh_gang_bind(struct bh_sched *s, uint32_t job, const struct bh_place *places, const uint32_t *holds,
                  uint32_t n, bool found)
{
    struct bh_gang *g = bh_gang_at(s, job);
    for (uint32_t i = 0; i < n; i++)
        own(s, job, &places[i], holds[i], false);
    g->since_ms = g->charged_ms = s->now_ms;
    g->parked = 0;
    struct bh_charge c = bh_gang_charge(s, g, false);
    s->clock++;
    if (!found) {
        pay(s, c, &s->shapes.at[g->shape].least);
        return;
    }
    bh_queue_apply(&s->queues, BH_CHARGE_FOUND, &c, s->now_ms);
    c.amount = elastic_rest(s, g);
    bh_queue_apply(&s->queues, BH_CHARGE_SUBMIT, &c, s->now_ms);
}

/* What one hold above the minimum costs. */
static struct bh_charge extra_charge(const struct bh_sched *s, const struct bh_gang *g, uint32_t hold)
{
    const struct bh_hold *h = &s->shelf.holds.at[hold];
    struct bh_charge c = charge_of(s, g, false, s->owners.at[hold].since_ms);
    c.amount = bh_class_amount(s, h->class_, h->node);
    return c;
}

void bh_gang_add(struct bh_sched *s, uint32_t job, const struct bh_place *place, uint32_t hold, bool extra)
{
    own(s, job, place, hold, extra);
    const struct bh_gang *g = bh_gang_at(s, job);
    s->clock++;
    if (extra)
        pay(s, extra_charge(s, g, hold), &s->shapes.at[g->shape].roles[place->role].one);
}

void bh_extra_unpaid(struct bh_sched *s, uint32_t job, uint32_t hold)
{
    const struct bh_gang *g = bh_gang_at(s, job);
    unpay(s, extra_charge(s, g, hold), &s->shapes.at[g->shape].roles[s->owners.at[hold].role].one);
}

void bh_gang_unpaid(struct bh_sched *s, uint32_t job, bool asks)
{
    const struct bh_gang *g = bh_gang_at(s, job);
    const struct bh_shape *shape = bh_shape_of(s, g);
    for (uint32_t h = g->first_hold; g->extra && h != BH_NONE; h = s->owners.at[h].next) {
        if (s->owners.at[h].extra)
            unpay(s, extra_charge(s, g, h), &shape->roles[s->owners.at[h].role].one);
    }
    unpay(s, bh_gang_charge(s, g, false), asks ? &shape->least : NULL);
    if (asks || !shape->elastic)
        return;
    struct bh_charge c = charge_of(s, g, false, s->now_ms); /* all it wanted above its minimum */
    for (uint32_t i = 0; i < shape->n_roles; i++)
        bh_resources_add(&c.amount, &shape->roles[i].one, shape->roles[i].max - shape->roles[i].min);
    bh_queue_apply(&s->queues, BH_CHARGE_WITHDRAW, &c, s->now_ms);
}

/* ---- what stays behind of a parked job ---- */

/*
 * Memory only: the time that is said of a paused one is there to hold its place. Who is paused keeps all the memory
 * of its share, also where that was not said in MiB. The image of a suspended one is not its queue's to pay for: it was
 * made for the sake of another. So nobody pays for more than before, which is what queue_reclaim.h counts on.
 */
struct bh_resources bh_parked_amount(const struct bh_sched *s, const struct bh_gang_role *r,
                                     enum bh_rung rung, uint32_t node)
{
    const struct bh_resources had = bh_class_amount(s, r->class_, node);
    struct bh_resources a = {{0}};
    if (rung == BH_RUNG_PAUSE)
        a.at[BH_RES_MIB] = had.at[BH_RES_MIB];
    a.at[BH_RES_MEM] = had.at[BH_RES_MEM];
    return a;
}

static struct bh_charge stays_charge(const struct bh_gang *g)
{
    struct bh_charge c = {.queue = g->queue, .band = BH_PRIORITY_NORMAL};
    c.amount.at[BH_RES_MIB] = g->stays_mib;
    c.amount.at[BH_RES_MEM] = g->stays_mem_mib;
    return c;
}

void bh_gang_stays(struct bh_sched *s, uint32_t job, const struct bh_resources *amount)
{
    struct bh_gang *g = bh_gang_at(s, job);
    g->stays_mib = amount->at[BH_RES_MIB];
    g->stays_mem_mib = amount->at[BH_RES_MEM];
    const struct bh_charge c = stays_charge(g);
    bh_queue_apply(&s->queues, BH_CHARGE_FOUND, &c, s->now_ms);
}

void bh_gang_stays_no_more(struct bh_sched *s, uint32_t job)
{
    struct bh_gang *g = bh_gang_at(s, job);
    if (!g->stays_mib && !g->stays_mem_mib)
        return;
    unpay(s, stays_charge(g), NULL);
    g->stays_mib = g->stays_mem_mib = 0;
}

struct bh_resources bh_beside_stays(const struct bh_gang *g, const struct bh_resources *amount)
{
    const struct bh_charge stays = stays_charge(g);
    struct bh_resources a = *amount;
    bh_resources_less(&a, &stays.amount);
    return a;
}

/* ---- leaving ---- */

/* Who refuses strangers in its NVLink domain kept others from all of its nodes. */
void bh_room_gain(struct bh_sched *s, uint32_t node)
{
    const struct bh_shelf_node *n = &s->shelf.nodes.at[node];
    uint64_t models = n->link == BH_NONE ? 0 : s->shelf.domains.at[n->link].models;
    s->clock++;
    s->gain[n->model] = s->clock;
    for (; models; models &= models - 1)
        s->gain[__builtin_ctzll(models)] = s->clock;
}

void bh_room_free(struct bh_sched *s, uint32_t hold)
{
    const uint32_t node = s->shelf.holds.at[hold].node;
    bh_shelf_free(&s->shelf, hold);
    bh_room_gain(s, node);
}

void bh_gang_disown(struct bh_sched *s, uint32_t job, uint32_t hold)
{
    struct bh_gang *g = bh_gang_at(s, job);
    uint32_t *link = &g->first_hold;
    while (*link != hold)
        link = &s->owners.at[*link].next;
    *link = s->owners.at[hold].next;
    g->n_holds--;
    g->extra -= s->owners.at[hold].extra;
    s->rooms.at[g->queue].n_extra -= s->owners.at[hold].extra;
    if (g->brief_at != BH_NONE)
        s->briefs.at[g->brief_at].milli -= bh_hold_milli(s, hold);
    s->owners.at[hold] = (struct bh_owner){.job = BH_NONE, .next = BH_NONE};
}

void bh_gang_drop(struct bh_sched *s, uint32_t job, uint32_t hold)
{
    bh_gang_disown(s, job, hold);
    bh_room_free(s, hold);
}

void bh_left_add(struct bh_sched *s, uint32_t job, uint32_t hold, uint32_t node)
{
    struct bh_gang *g = bh_gang_at(s, job);
    uint32_t id = s->free_left;
    if (id == BH_NONE) {
        id = (uint32_t)s->lefts.n;
        (void)bh_vec_push(&s->lefts);
    } else {
        s->free_left = s->lefts.at[id].next;
    }
    s->lefts.at[id] = (struct bh_left){.hold = hold, .node = node, .next = g->first_left};
    g->first_left = id;
    if (hold == BH_NONE)
        s->leaving.at[node]++;
    else
        bh_shelf_release(&s->shelf, hold);
}

void bh_gang_leave(struct bh_sched *s, uint32_t job)
{
    struct bh_gang *g = bh_gang_at(s, job);
    while (g->first_hold != BH_NONE) {
        const uint32_t hold = g->first_hold;
        bh_gang_disown(s, job, hold);
        bh_left_add(s, job, hold, s->shelf.holds.at[hold].node);
    }
}

void bh_left_gone(struct bh_sched *s, uint32_t job)
{
    struct bh_gang *g = bh_gang_at(s, job);
    while (g->first_left != BH_NONE) {
        const uint32_t id = g->first_left;
        struct bh_left *left = &s->lefts.at[id];
        g->first_left = left->next;
        if (left->hold == BH_NONE)
            s->leaving.at[left->node]--;
        else
            bh_room_free(s, left->hold);
        left->next = s->free_left;
        s->free_left = id;
    }
}

bool bh_gang_waits(const struct bh_sched *s, const struct bh_gang *g)
{
    for (uint32_t h = g->first_hold; h != BH_NONE; h = s->owners.at[h].next) {
        if (s->leaving.at[s->shelf.holds.at[h].node])
            return true;
    }
    return false;
}

/* ---- what going costs ---- */

/* Milliseconds to write a MiB of image to host memory (1.8 GB/s) and read it back (5.4 GB/s), as a fraction. */
enum { IMAGE_MS = 20, IMAGE_MIB = 27 };

bool bh_shape_parks(const struct bh_shape *shape, enum bh_rung rung)
{
    const bool pause = rung == BH_RUNG_PAUSE;
    bool ok = shape->can & (pause ? BH_CAN_PAUSE : BH_CAN_SUSPEND);
    for (uint32_t i = 0; i < shape->n_roles && ok; i++)
        ok = !shape->roles[i].min || (pause ? shape->roles[i].paused : shape->roles[i].suspended) != BH_NONE;
    return ok;
}

uint64_t bh_gang_lost_ms(const struct bh_sched *s, const struct bh_gang *g, enum bh_rung rung)
{
    const struct bh_shape *shape = &s->shapes.at[g->shape];
    const uint64_t kept =
        rung == BH_RUNG_REQUEUE && g->checkpoint_ms > g->since_ms ? g->checkpoint_ms : g->since_ms;
    if (rung == BH_RUNG_REQUEUE || rung == BH_RUNG_KILL)
        return s->now_ms > kept ? s->now_ms - kept : 0;
    if (rung != BH_RUNG_SUSPEND)
        return 0;
    uint64_t most = 0; /* members are written at the same time */
    for (uint32_t i = 0; i < shape->n_roles; i++) {
        const uint32_t class_ = shape->roles[i].suspended;
        const uint64_t mib =
            class_ == BH_NONE || !shape->roles[i].min ? 0 : s->requests.at.at[class_].mem_mib;
        most = mib > most ? mib : most;
    }
    return most * IMAGE_MS / IMAGE_MIB;
}

uint64_t bh_gang_price(const struct bh_sched *s, const struct bh_gang *g, enum bh_rung rung)
{
    const uint64_t ms = bh_gang_lost_ms(s, g, rung);
    uint64_t milli = 0;
    for (uint32_t h = g->first_hold; ms && h != BH_NONE; h = s->owners.at[h].next)
        milli += bh_class_amount(s, s->shelf.holds.at[h].class_, BH_NONE).at[BH_RES_GPU];
    return bh_wide_scale(milli, ms, 1);
}
