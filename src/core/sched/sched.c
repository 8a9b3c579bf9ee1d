/* SPDX-License-Identifier: Apache-2.0 */
/* sched.c - the outside: events written down, a cycle, and what can be looked at. */
#include "core/sched/sched_inside.h"

#include <inttypes.h>

void bh_sched_config_init(struct bh_sched_config *c)
{
    memset(c, 0, sizeof(*c));
    bh_queues_config_init(&c->queues);
    c->score = BH_SCORE_BULKHEAD;
    c->grace_ms = 60000;
    c->victims_max = 8192;
    c->reclaim_tries = 64;
    memset(c->model_class, BH_SCHED_NO_CLASS, sizeof(c->model_class));
}

struct bh_sched *bh_sched_new(const struct bh_sched_config *c)
{
    struct bh_sched *s = bh_alloc(1, sizeof(*s));
    s->config = *c;
    bh_shelf_init(&s->shelf, &s->requests);
    bh_queues_init(&s->queues, &c->queues);
    s->score = bh_score_new(c->score, &s->shelf, c->seed);
    s->pick = bh_pick_new(&s->shelf, s->score);
    s->free_gang = s->free_left = s->free_line = BH_NONE;
    s->queues_changed = true;
    s->clock = s->round = 1;
    return s;
}

void bh_sched_free(struct bh_sched *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->lines.n; i++)
        bh_vec_fini(&s->lines.at[i].heap);
    bh_vec_fini(&s->lines);
    bh_pick_free(s->pick);
    bh_score_free(s->score);
    bh_queues_fini(&s->queues);
    bh_shelf_fini(&s->shelf);
    bh_requests_fini(&s->requests);
    bh_idmap_fini(&s->shape_ids);
    bh_idmap_fini(&s->gang_ids);
    bh_idmap_fini(&s->line_ids);
#define BH_SCHED_VEC(name) bh_vec_fini(&s->name);
    BH_SCHED_VECS
    BH_SCHED_SCRATCH
#undef BH_SCHED_VEC
    free(s);
}

void bh_sched_typical(struct bh_sched *s, const struct bh_gang_spec *at, const uint32_t *counts, size_t n)
{
    s->typical.n = 0;
    for (size_t i = 0; i < n; i++) {
        for (uint32_t r = 0; r < at[i].n_roles; r++) {
            struct bh_typical t = {.count = counts[i] * at[i].roles[r].min};
            if (bh_request_intern(&s->requests, &at[i].roles[r].request, &t.class_, NULL) >= 0)
                *bh_vec_push(&s->typical) = t;
        }
    }
    bh_score_set_typical(s->score, s->typical.at, s->typical.n);
}

/* ---- writing down ---- */

static int write_job(struct bh_sched *s, const struct bh_sched_event *e, struct bh_inbox *in,
                     struct bh_err *err)
{
    const struct bh_gang_spec *spec = e->job;
    uint32_t shape;
    const int rc = bh_shape_intern(s, spec, &shape, err);
    if (rc < 0)
        return rc;
    if (e->kind == BH_SCHED_FOUND && e->n_places != s->shapes.at[shape].members)
        return bh_fail(err, BH_INVALID, "a job of %" PRIu32 " members found in %" PRIu32 " places",
                       s->shapes.at[shape].members, e->n_places);
    in->id = spec->id;
    in->payload = (uint32_t)s->in_jobs.n;
    in->parent = (uint32_t)s->in_spots.n;
    struct bh_gang *g = bh_vec_push(&s->in_jobs);
    memset(g, 0, sizeof(*g));
    g->id = spec->id;
    g->submit_ms = spec->submit_ms;
    g->deadline_ms = spec->deadline_ms;
    g->runtime_ms = spec->runtime_ms;
    g->min_run_ms = spec->min_run_ms;
    g->shape = shape;
    g->queue = spec->queue;
    g->user = spec->user;
    g->priority = spec->priority;
    g->line = g->prev = g->next = g->brief_at = g->first_hold = g->first_left = BH_NONE;
    for (uint32_t i = 0; i < e->n_places; i++)
        *bh_vec_push(&s->in_spots) = e->places[i];
    return 0;
}

enum { USERS_MAX = 1 << 20 };

int bh_sched_apply(struct bh_sched *s, const struct bh_sched_event *e, struct bh_err *err)
{
    struct bh_inbox in = {.at_ms = e->at_ms,
                          .id = e->id,
                          .kind = e->kind,
                          .parent = e->parent,
                          .level = e->level,
                          .gpu = e->gpu,
                          .rank = e->rank,
                          .health = e->health,
                          .n_places = e->kind == BH_SCHED_FOUND ? e->n_places : 0,
                          .model = e->model};
    int rc = 0;
    switch (e->kind) {
    case BH_SCHED_NODE:
        in.payload = (uint32_t)s->in_nodes.n;
        *bh_vec_push(&s->in_nodes) = *e->node;
        break;
    case BH_SCHED_QUEUE:
        in.payload = (uint32_t)s->in_queues.n;
        *bh_vec_push(&s->in_queues) = *e->queue;
        break;
    case BH_SCHED_SUBMIT:
    case BH_SCHED_FOUND:
        rc = e->job->user < USERS_MAX
                 ? write_job(s, e, &in, err)
                 : bh_fail(err, BH_INVALID, "user %" PRIu32 ", past the last", e->job->user);
        break;
    case BH_SCHED_RANK:
        rc = e->id < USERS_MAX ? 0 : bh_fail(err, BH_INVALID, "user %" PRIu64 ", past the last", e->id);
        break;
    case BH_SCHED_HEALTH:
        rc =
            e->health < BH_HEALTHS ? 0 : bh_fail(err, BH_INVALID, "health %d: there is none", (int)e->health);
        break;
    case BH_SCHED_MODEL:
    case BH_SCHED_DOMAIN:
    case BH_SCHED_STARTED:
    case BH_SCHED_CHECKPOINT:
    case BH_SCHED_GONE:
    case BH_SCHED_FINISH:
    case BH_SCHED_CANCEL:
        break;
    case BH_SCHED_TICK:
        s->now_ms = e->at_ms > s->now_ms ? e->at_ms : s->now_ms;
        bh_sched_settle(s);
        return 0;
    case BH_SCHED_EVENTS:
        return bh_fail(err, BH_INVALID, "an event of no kind");
    }
    if (rc >= 0)
        *bh_vec_push(&s->inbox) = in;
    return rc;
}

const struct bh_sched_refusal *bh_sched_refusals(const struct bh_sched *s, size_t *ret_n)
{
    *ret_n = s->refusals.n;
    return s->refusals.at;
}

/* ---- deciding and looking ---- */

const struct bh_decision *bh_sched_decide(struct bh_sched *s, uint64_t now_ms, uint64_t steps, size_t *ret_n)
{
    s->now_ms = now_ms > s->now_ms ? now_ms : s->now_ms;
    bh_sched_settle(s);
    s->decisions.n = s->places.n = 0;
    for (size_t i = 0; i < s->told.n; i++)
        *bh_vec_push(&s->decisions) = s->told.at[i];
    s->told.n = 0;
    s->steps_left = steps ? steps : UINT64_MAX;
    bh_cycle(s);
    *ret_n = s->decisions.n;
    return s->decisions.at;
}

const struct bh_place *bh_sched_places(const struct bh_sched *s, const struct bh_decision *d)
{
    return &s->places.at[d->first_place];
}

uint64_t bh_sched_digest(const struct bh_sched *s)
{
    return s->digest;
}

const struct bh_shelf *bh_sched_shelf(const struct bh_sched *s)
{
    return &s->shelf;
}

const struct bh_queues *bh_sched_queues(const struct bh_sched *s)
{
    return &s->queues;
}

struct bh_sched_stats bh_sched_stats(const struct bh_sched *s)
{
    return s->stats;
}

const struct bh_gang *bh_sched_job(const struct bh_sched *s, uint64_t id)
{
    const uint32_t job = bh_idmap_find(&s->gang_ids, id);
    return job == BH_IDMAP_NONE ? NULL : &s->gangs.at[job];
}

const struct bh_shape *bh_sched_shape(const struct bh_sched *s, const struct bh_gang *g)
{
    return &s->shapes.at[g->shape];
}

const struct bh_line *bh_sched_line(const struct bh_sched *s, const struct bh_gang *g)
{
    if (g->line == BH_NONE)
        return NULL;
    (void)bh_line_stuck(s, &s->lines.at[g->line]); /* its shape may have been found so for another line */
    return &s->lines.at[g->line];
}

const struct bh_gang *bh_sched_first(const struct bh_sched *s, const struct bh_line *l)
{
    return l->heap.n ? &s->gangs.at[l->heap.at[0]] : NULL;
}

const struct bh_owner *bh_sched_owner(const struct bh_sched *s, uint32_t hold)
{
    return &s->owners.at[hold];
}

size_t bh_sched_slots(const struct bh_sched *s)
{
    return s->gangs.n;
}

const struct bh_gang *bh_sched_slot(const struct bh_sched *s, size_t slot)
{
    return &s->gangs.at[slot];
}

void bh_sched_set_veto(struct bh_sched *s, bh_sched_veto *veto, void *context)
{
    s->veto = veto;
    s->veto_context = context;
}
