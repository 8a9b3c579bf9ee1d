/* SPDX-License-Identifier: Apache-2.0 */
/* job.c - shapes, and the lines in which jobs of one shape wait. */
#include "core/sched/job.h"

#include "core/sched/mig.h"
#include "core/sched/sched_inside.h"

#include <inttypes.h>
#include <stddef.h>

/* ---- heaps ---- */

void bh_heap_sift(uint32_t *at, size_t n, size_t i, bh_before *before, const void *context)
{
    const uint32_t what = at[i];
    for (size_t child; (child = 2 * i + 1) < n; i = child) {
        if (child + 1 < n && before(context, at[child + 1], at[child]))
            child++;
        if (!before(context, at[child], what))
            break;
        at[i] = at[child];
    }
    at[i] = what;
}

void bh_heap_make(uint32_t *at, size_t n, bh_before *before, const void *context)
{
    for (size_t i = n / 2; i-- > 0;)
        bh_heap_sift(at, n, i, before, context);
}

void bh_heap_sort(uint32_t *at, size_t n, bh_before *before, const void *context)
{
    bh_heap_make(at, n, before, context);
    for (size_t left = n; left-- > 1;) {
        const uint32_t front = at[0];
        at[0] = at[left];
        at[left] = front;
        bh_heap_sift(at, left, 0, before, context);
    }
    for (size_t i = 0; i < n / 2; i++) { /* that was the last one first */
        const uint32_t swap = at[i];
        at[i] = at[n - 1 - i];
        at[n - 1 - i] = swap;
    }
}

/* ---- amounts ---- */

void bh_resources_add(struct bh_resources *a, const struct bh_resources *b, uint64_t times)
{
    for (unsigned r = 0; r < BH_RES_COUNT; r++)
        a->at[r] += b->at[r] * times;
}

void bh_resources_less(struct bh_resources *a, const struct bh_resources *b)
{
    for (unsigned r = 0; r < BH_RES_COUNT; r++)
        a->at[r] -= a->at[r] < b->at[r] ? a->at[r] : b->at[r];
}

/* The class of models that a mask leaves no choice about. */
static uint8_t only_class(const struct bh_sched *s, uint64_t models)
{
    uint8_t only = BH_SCHED_NO_CLASS;
    for (uint64_t left = models; left; left &= left - 1) {
        const uint8_t c = s->config.model_class[__builtin_ctzll(left)];
        if (left != models && c != only)
            return BH_SCHED_NO_CLASS;
        only = c;
    }
    return only;
}

/* The catalogue's profile of an instance; NULL: not known. */
static const struct bh_mig_profile *profile_of(const struct bh_sched *s, const struct bh_request *r,
                                               const struct bh_gpu_model **ret_known)
{
    *ret_known = s->shelf.models[__builtin_ctzll(r->models)].known;
    return *ret_known && r->mig_profile < (*ret_known)->n_profiles ? &(*ret_known)->profiles[r->mig_profile]
                                                                   : NULL;
}

/*
 * GPU memory that it takes of GPUs that have so much each: what it says, else what it keeps from others. Nobody has
 * a whole GPU, an instance or a part of the time for less memory than goes with it.
 */
static uint64_t mib_of(const struct bh_sched *s, const struct bh_request *r, uint64_t mib_all)
{
    const struct bh_gpu_model *known;
    const struct bh_mig_profile *profile;
    switch ((enum bh_form)r->form) {
    case BH_FORM_WHOLE:
        return mib_all * r->n_gpus;
    case BH_FORM_SHARE:
        return (r->gpu_mib ? r->gpu_mib : mib_all * r->gpu_milli / BH_GPU_MILLI) * r->n_gpus;
    case BH_FORM_MIG:
        profile = profile_of(s, r, &known);
        return profile && known->memory_slices ? mib_all * profile->memory_slices / known->memory_slices : 0;
    case BH_FORM_CPU:
    case BH_FORMS:
        break;
    }
    return 0;
}

struct bh_resources bh_class_amount(const struct bh_sched *s, uint32_t class_, uint32_t node)
{
    const struct bh_request *r = &s->requests.at.at[class_];
    const struct bh_shelf_node *n = node == BH_NONE ? NULL : &s->shelf.nodes.at[node];
    struct bh_resources a = {{0}};
    uint64_t milli = bh_request_milli(r);
    uint8_t c = BH_SCHED_NO_CLASS;
    if (r->form == BH_FORM_MIG) {
        const struct bh_gpu_model *known;
        milli = profile_of(s, r, &known) ? bh_mig_milli(known, r->mig_profile) : 0;
    }
    if (r->form != BH_FORM_CPU)
        c = n ? s->config.model_class[n->model] : only_class(s, r->models);
    a.at[BH_RES_GPU] = milli;
    a.at[BH_RES_MIB] = mib_of(s, r, n && n->n_gpus ? s->shelf.gpus.at[n->first_gpu].mib_all : 0);
    a.at[BH_RES_CPU] = r->cpu_milli;
    a.at[BH_RES_MEM] = r->mem_mib;
    if (c < BH_RES_COUNT - BH_RES_MODEL0)
        a.at[BH_RES_MODEL0 + c] = milli;
    return a;
}

void bh_models_measure(struct bh_sched *s)
{
    memset(s->model_mib, 0xff, sizeof(s->model_mib));
    for (size_t i = 0; i < s->shelf.nodes.n; i++) {
        const struct bh_shelf_node *n = &s->shelf.nodes.at[i];
        if (n->n_gpus && s->shelf.gpus.at[n->first_gpu].mib_all < s->model_mib[n->model])
            s->model_mib[n->model] = s->shelf.gpus.at[n->first_gpu].mib_all;
    }
}

struct bh_resources bh_shape_asks(const struct bh_sched *s, const struct bh_shape *shape)
{
    struct bh_resources a = shape->least;
    a.at[BH_RES_MIB] = 0;
    for (uint32_t i = 0; i < shape->n_roles; i++) {
        const struct bh_request *r = &s->requests.at.at[shape->roles[i].class_];
        uint32_t mib = UINT32_MAX;
        for (uint32_t m = 0; m < s->shelf.n_models; m++) {
            if (bh_request_takes(r, m) && s->model_mib[m] < mib)
                mib = s->model_mib[m];
        }
        a.at[BH_RES_MIB] += mib_of(s, r, mib == UINT32_MAX ? 0 : mib) * shape->roles[i].min;
    }
    return a;
}

/* ---- shapes ---- */

static int check_role(const struct bh_gang_spec *spec, const struct bh_gang_role_spec *r, struct bh_err *err)
{
    if (!r->max || r->min > r->max || r->max > BH_MEMBERS_MAX)
        return bh_fail(err, BH_INVALID, "a role of %" PRIu32 " to %" PRIu32 " members", r->min, r->max);
    if (r->slice && (r->slice_level >= BH_LEVELS || r->min % r->slice || r->max % r->slice))
        return bh_fail(err, BH_INVALID, "%" PRIu32 " to %" PRIu32 " members in slices of %" PRIu32, r->min,
                       r->max, r->slice);
    if (r->slice && spec->within < r->slice_level)
        return bh_fail(err, BH_INVALID, "slices of a higher level than the whole");
    return 0;
}

static int check_spec(const struct bh_gang_spec *spec, struct bh_err *err)
{
    uint64_t least = 0;
    if (!spec->n_roles || spec->n_roles > BH_ROLES_MAX)
        return bh_fail(err, BH_INVALID, "a job of %u roles, not 1 to %d", spec->n_roles, BH_ROLES_MAX);
    if (spec->within > BH_LEVEL_ANY || spec->prefer > spec->within)
        return bh_fail(err, BH_INVALID, "a job within level %u that prefers level %u", spec->within,
                       spec->prefer);
    if (spec->band >= BH_N_priority ||
        spec->can > (BH_CAN_PAUSE | BH_CAN_SUSPEND | BH_CAN_REQUEUE | BH_CAN_MOVE))
        return bh_fail(err, BH_INVALID, "a job of priority %u that can %u", spec->band, spec->can);
    for (uint32_t i = 0; i < spec->n_roles; i++) {
        const int rc = check_role(spec, &spec->roles[i], err);
        if (rc < 0)
            return rc;
        least += spec->roles[i].min;
    }
    if (!least || least > BH_MEMBERS_MAX)
        return bh_fail(err, BH_INVALID, "a job of %" PRIu64 " members", least);
    return 0;
}

/* What stays of a member that is paused: its memory, and the least time that can be said. */
static bool paused_of(struct bh_request *r)
{
    r->gpu_milli = 1;
    r->cpu_milli = 0;
    return r->form == BH_FORM_SHARE;
}

/* ... that is suspended: an image of it in the node's memory, under the same rules of sharing. */
static bool suspended_of(struct bh_request *r, uint32_t image_mib)
{
    const uint64_t mib = image_mib ? image_mib : (uint64_t)r->gpu_mib * r->n_gpus;
    const bool known = r->form != BH_FORM_CPU && mib;
    r->mem_mib += mib;
    r->form = BH_FORM_CPU;
    r->n_gpus = r->mig_profile = 0;
    r->gpu_milli = 0;
    r->gpu_mib = r->cpu_milli = 0;
    return known;
}

static int parked_class(struct bh_sched *s, const struct bh_gang_spec *spec, uint32_t role, bool pause,
                        uint32_t *ret, struct bh_err *err)
{
    struct bh_request r = spec->roles[role].request;
    *ret = BH_NONE;
    if (!(spec->can & (pause ? BH_CAN_PAUSE : BH_CAN_SUSPEND)))
        return 0;
    return (pause ? paused_of(&r) : suspended_of(&r, spec->roles[role].image_mib))
               ? bh_request_intern(&s->requests, &r, ret, err)
               : 0;
}

static int fill_role(struct bh_sched *s, const struct bh_gang_spec *spec, uint32_t i, struct bh_shape *shape,
                     struct bh_err *err)
{
    const struct bh_gang_role_spec *from = &spec->roles[i];
    struct bh_gang_role *to = &shape->roles[i];
    int rc = bh_request_intern(&s->requests, &from->request, &to->class_, err);
    if (rc >= 0)
        rc = parked_class(s, spec, i, true, &to->paused, err);
    if (rc >= 0)
        rc = parked_class(s, spec, i, false, &to->suspended, err);
    if (rc < 0)
        return rc;
    to->min = from->min;
    to->max = from->max;
    to->slice = from->slice;
    to->slice_level = from->slice ? from->slice_level : 0;
    to->one = bh_class_amount(s, to->class_, BH_NONE);
    shape->members += to->min;
    shape->elastic += to->max - to->min;
    bh_resources_add(&shape->least, &to->one, to->min);
    const bool cpu = from->request.form == BH_FORM_CPU;
    shape->models |= cpu || !from->request.models ? UINT64_MAX : from->request.models;
    shape->anywhere |= cpu;
    return 0;
}

/* All of it, grown to its most: accounts add such sums up, for millions of jobs, and must not run over. */
static int check_amounts(const struct bh_shape *shape, uint32_t n_roles, struct bh_err *err)
{
    for (uint32_t r = 0; r < BH_RES_COUNT; r++) {
        uint64_t sum = 0;
        for (uint32_t i = 0; i < n_roles; i++) {
            uint64_t all;
            if (__builtin_mul_overflow(shape->roles[i].one.at[r], (uint64_t)shape->roles[i].max, &all) ||
                __builtin_add_overflow(sum, all, &sum) || sum > BH_AMOUNT_MAX >> 8)
                return bh_fail(err, BH_INVALID, "a job that needs more than 2^40 of a resource in all");
        }
    }
    return 0;
}

static uint64_t shape_hash(const struct bh_shape *shape)
{
    uint64_t words[offsetof(struct bh_shape, stuck_at) / sizeof(uint64_t)], h = 0;
    memcpy(words, shape, sizeof(words));
    for (size_t i = 0; i < BH_COUNT_OF(words); i++)
        h = bh_idmap_mix(h ^ words[i]);
    return h;
}

/* A shape like this one; where there is none, `add` will be one. */
static uint32_t shape_find(struct bh_sched *s, const struct bh_shape *shape, uint32_t add)
{
    for (uint64_t key = shape_hash(shape);; key++) { /* two shapes may have one hash */
        const uint32_t there = bh_idmap_find(&s->shape_ids, key);
        if (there == BH_IDMAP_NONE) {
            bh_idmap_add(&s->shape_ids, key, add);
            return BH_NONE;
        }
        if (!memcmp(&s->shapes.at[there], shape, offsetof(struct bh_shape, stuck_at)))
            return there;
    }
}

int bh_shape_intern(struct bh_sched *s, const struct bh_gang_spec *spec, uint32_t *ret, struct bh_err *err)
{
    struct bh_shape shape;
    int rc = check_spec(spec, err);
    memset(&shape, 0, sizeof(shape));
    for (uint32_t i = 0; rc >= 0 && i < spec->n_roles; i++)
        rc = fill_role(s, spec, i, &shape, err);
    if (rc >= 0)
        rc = check_amounts(&shape, spec->n_roles, err);
    if (rc < 0)
        return rc;
    shape.n_roles = spec->n_roles;
    shape.within = spec->within;
    shape.prefer = spec->prefer;
    shape.band = spec->band;
    shape.can = spec->can;
    shape.firm = spec->firm;
    const uint32_t there = shape_find(s, &shape, (uint32_t)s->shapes.n);
    *ret = there == BH_NONE ? (uint32_t)s->shapes.n : there;
    if (there == BH_NONE)
        memcpy(bh_vec_push(&s->shapes), &shape, sizeof(shape));
    return 0;
}

/* ---- jobs ---- */

uint32_t bh_gang_new(struct bh_sched *s, const struct bh_gang *like)
{
    uint32_t job = s->free_gang;
    if (job == BH_NONE) {
        job = (uint32_t)s->gangs.n;
        (void)bh_vec_push(&s->gangs);
    } else {
        s->free_gang = s->gangs.at[job].next;
    }
    s->gangs.at[job] = *like;
    bh_idmap_add(&s->gang_ids, like->id, job);
    return job;
}

void bh_gang_forget(struct bh_sched *s, uint32_t job)
{
    struct bh_gang *g = bh_gang_at(s, job);
    bh_idmap_remove(&s->gang_ids, g->id);
    memset(g, 0, sizeof(*g));
    g->next = s->free_gang;
    s->free_gang = job;
}

uint32_t bh_hold_milli(const struct bh_sched *s, uint32_t hold)
{
    const struct bh_request *r = &s->requests.at.at[s->shelf.holds.at[hold].class_];
    return r->form == BH_FORM_MIG ? BH_GPU_MILLI : bh_request_milli(r);
}

void bh_run_since(struct bh_sched *s, uint32_t job, uint64_t at_ms)
{
    struct bh_gang *g = bh_gang_at(s, job);
    g->since_ms = at_ms;
    s->briefs.at[g->brief_at].safe_ms =
        bh_shape_of(s, g)->firm || !g->min_run_ms ? 0 : g->since_ms + g->min_run_ms;
}

static void brief_join(struct bh_sched *s, uint32_t job)
{
    struct bh_gang *g = bh_gang_at(s, job);
    g->brief_at = (uint32_t)s->briefs.n;
    struct bh_brief *b = bh_vec_push(&s->briefs);
    *b = (struct bh_brief){.id = g->id, .job = job, .queue = g->queue, .shape = g->shape};
    for (uint32_t h = g->first_hold; h != BH_NONE; h = s->owners.at[h].next)
        b->milli += bh_hold_milli(s, h);
    bh_run_since(s, job, g->since_ms);
}

static void brief_leave(struct bh_sched *s, uint32_t job)
{
    struct bh_gang *g = bh_gang_at(s, job);
    const struct bh_brief last = s->briefs.at[--s->briefs.n];
    s->briefs.at[g->brief_at] = last;
    s->gangs.at[last.job].brief_at = g->brief_at;
    g->brief_at = BH_NONE;
}

static bool is_movable(const struct bh_shape *shape)
{
    return !shape->firm && (shape->can & BH_CAN_MOVE);
}

void bh_run_join(struct bh_sched *s, uint32_t job)
{
    struct bh_gang *g = bh_gang_at(s, job);
    struct bh_room *q = &s->rooms.at[g->queue];
    brief_join(s, job);
    s->n_movable += is_movable(bh_shape_of(s, g));
    g->prev = BH_NONE;
    g->next = q->first_run;
    if (g->next != BH_NONE)
        s->gangs.at[g->next].prev = job;
    q->first_run = job;
    if (!q->n_runs++)
        q->low = INT32_MAX;
    if (!bh_shape_of(s, g)->firm && g->priority < q->low)
        q->low = g->priority;
}

void bh_run_leave(struct bh_sched *s, uint32_t job)
{
    struct bh_gang *g = bh_gang_at(s, job);
    struct bh_room *q = &s->rooms.at[g->queue];
    brief_leave(s, job);
    s->n_movable -= is_movable(bh_shape_of(s, g));
    if (g->prev == BH_NONE)
        q->first_run = g->next;
    else
        s->gangs.at[g->prev].next = g->next;
    if (g->next != BH_NONE)
        s->gangs.at[g->next].prev = g->prev;
    q->n_runs--;
}

/* ---- deadlines ---- */

/* When it must start. */
static uint64_t start_by(const struct bh_gang *g)
{
    return g->deadline_ms > g->runtime_ms ? g->deadline_ms - g->runtime_ms : 0;
}

static bool alarm_before(const struct bh_alarm *a, const struct bh_alarm *b)
{
    return a->at_ms != b->at_ms ? a->at_ms < b->at_ms : a->id < b->id;
}

static void alarm_push(struct bh_sched *s, uint64_t at_ms, uint64_t id)
{
    const struct bh_alarm what = {at_ms, id};
    size_t i = s->alarms.n;
    (void)bh_vec_push(&s->alarms);
    for (; i && alarm_before(&what, &s->alarms.at[(i - 1) / 2]); i = (i - 1) / 2)
        s->alarms.at[i] = s->alarms.at[(i - 1) / 2];
    s->alarms.at[i] = what;
}

static void alarm_pop(struct bh_sched *s)
{
    const struct bh_alarm what = s->alarms.at[--s->alarms.n];
    size_t i = 0;
    for (size_t child; (child = 2 * i + 1) < s->alarms.n; i = child) {
        if (child + 1 < s->alarms.n && alarm_before(&s->alarms.at[child + 1], &s->alarms.at[child]))
            child++;
        if (!alarm_before(&s->alarms.at[child], &what))
            break;
        s->alarms.at[i] = s->alarms.at[child];
    }
    s->alarms.at[i] = what;
}

/* How urgent it is now, and when to look again: 0 for never. */
static uint64_t judge_urgency(const struct bh_sched *s, struct bh_gang *g)
{
    const uint64_t slack_ms = s->queues.config.slack_ms, by = start_by(g);
    g->urgent = 0;
    if (g->deadline_ms == BH_TURN_NO_DEADLINE || !slack_ms)
        return 0;
    if (by <= s->now_ms) {
        g->urgent = 2;
        return 0;
    }
    if (by - s->now_ms < slack_ms) {
        g->urgent = 1;
        return by;
    }
    return by - slack_ms + 1;
}

/* ---- lines ---- */

/* As bh_turn_compare() within one queue; the band is the same for all of a line. */
static bool line_before(const struct bh_sched *s, uint32_t x, uint32_t y)
{
    const struct bh_gang *a = &s->gangs.at[x], *b = &s->gangs.at[y];
    if (a->urgent != b->urgent)
        return a->urgent > b->urgent;
    if (a->urgent == 1 && start_by(a) != start_by(b))
        return start_by(a) < start_by(b);
    if (a->priority != b->priority)
        return a->priority > b->priority;
    if (a->user != b->user && s->ranks.at[a->user] != s->ranks.at[b->user])
        return s->ranks.at[a->user] > s->ranks.at[b->user];
    return a->submit_ms != b->submit_ms ? a->submit_ms < b->submit_ms : a->id < b->id;
}

static void line_put(struct bh_sched *s, struct bh_line *l, size_t i, uint32_t job)
{
    struct bh_gang *g = bh_gang_at(s, job);
    l->heap.at[i] = job;
    g->heap_at = (uint32_t)i;
    if (!i)
        l->turn = (struct bh_turn){.queue = l->queue,
                                   .deadline_ms = g->deadline_ms,
                                   .runtime_ms = g->runtime_ms,
                                   .priority = g->priority,
                                   .user_rank = s->ranks.at[g->user],
                                   .submit_ms = g->submit_ms,
                                   .id = g->id};
}

static void line_up(struct bh_sched *s, struct bh_line *l, size_t i)
{
    const uint32_t job = l->heap.at[i];
    for (; i && line_before(s, job, l->heap.at[(i - 1) / 2]); i = (i - 1) / 2)
        line_put(s, l, i, l->heap.at[(i - 1) / 2]);
    line_put(s, l, i, job);
}

static void line_down(struct bh_sched *s, struct bh_line *l, size_t i)
{
    const uint32_t job = l->heap.at[i];
    for (size_t child; (child = 2 * i + 1) < l->heap.n; i = child) {
        if (child + 1 < l->heap.n && line_before(s, l->heap.at[child + 1], l->heap.at[child]))
            child++;
        if (!line_before(s, l->heap.at[child], job))
            break;
        line_put(s, l, i, l->heap.at[child]);
    }
    line_put(s, l, i, job);
}

static uint32_t line_new(struct bh_sched *s, const struct bh_gang *g, uint32_t parked)
{
    uint32_t id = s->free_line;
    if (id == BH_NONE) {
        id = (uint32_t)s->lines.n;
        memset(bh_vec_push(&s->lines), 0, sizeof(struct bh_line));
    } else {
        s->free_line = s->lines.at[id].next;
    }
    struct bh_line *l = &s->lines.at[id];
    const __typeof__(l->heap) heap = l->heap;
    *l = (struct bh_line){
        .queue = g->queue, .shape = g->shape, .parked = parked, .next = s->rooms.at[g->queue].first_line};
    l->heap = heap;
    l->heap.n = 0;
    s->rooms.at[g->queue].first_line = id;
    return id;
}

static uint32_t line_of(struct bh_sched *s, const struct bh_gang *g, uint32_t job)
{
    const uint64_t key = (uint64_t)g->queue << 32 | g->shape;
    if (g->parked)
        return line_new(s, g, job);
    uint32_t id = bh_idmap_find(&s->line_ids, key);
    if (id == BH_IDMAP_NONE) {
        id = line_new(s, g, BH_NONE);
        bh_idmap_add(&s->line_ids, key, id);
    }
    return id;
}

void bh_line_prepare(struct bh_sched *s, uint32_t job)
{
    struct bh_gang g = *bh_gang_at(s, job);
    g.parked = 0; /* who was parked waits in the line of all when its place is lost */
    struct bh_line *l = &s->lines.at[line_of(s, &g, job)];
    bh_vec_room(&l->heap, l->heap.n + s->bound.n);
}

void bh_line_join(struct bh_sched *s, uint32_t job)
{
    struct bh_gang *g = bh_gang_at(s, job);
    const uint64_t look = judge_urgency(s, g);
    g->line = line_of(s, g, job);
    struct bh_line *l = &s->lines.at[g->line];
    (void)bh_vec_push(&l->heap);
    line_put(s, l, l->heap.n - 1, job);
    line_up(s, l, l->heap.n - 1);
    if (look)
        alarm_push(s, look, g->id);
    bh_shape_of(s, g)->pending += !g->parked;
    s->n_parked += g->parked != 0;
    s->stats.pending++;
}

/* A parked job's own line ends with it. */
static void line_end(struct bh_sched *s, uint32_t id)
{
    struct bh_line *l = &s->lines.at[id];
    uint32_t *link = &s->rooms.at[l->queue].first_line;
    while (*link != id)
        link = &s->lines.at[*link].next;
    *link = l->next;
    l->next = s->free_line;
    l->queue = l->shape = BH_NONE;
    s->free_line = id;
}

void bh_line_leave(struct bh_sched *s, uint32_t job)
{
    struct bh_gang *g = bh_gang_at(s, job);
    struct bh_line *l = &s->lines.at[g->line];
    const size_t i = g->heap_at;
    const uint32_t last = l->heap.at[--l->heap.n];
    if (last != job) {
        line_put(s, l, i, last);
        line_up(s, l, i);
        line_down(s, l, s->gangs.at[last].heap_at);
    }
    if (l->parked != BH_NONE)
        line_end(s, g->line);
    g->line = BH_NONE;
    bh_shape_of(s, g)->pending -= !g->parked;
    s->n_parked -= g->parked != 0;
    s->stats.pending--;
}

void bh_lines_rebuild(struct bh_sched *s)
{
    for (size_t i = 0; i < s->lines.n; i++) {
        struct bh_line *l = &s->lines.at[i];
        for (size_t k = (l->heap.n + 1) / 2; k-- > 0;) /* one alone, too: its user may have another rank */
            line_down(s, l, k);
    }
}

void bh_lines_alarm(struct bh_sched *s)
{
    while (s->alarms.n && s->alarms.at[0].at_ms <= s->now_ms) {
        const uint32_t job = bh_idmap_find(&s->gang_ids, s->alarms.at[0].id);
        alarm_pop(s);
        if (job == BH_IDMAP_NONE || s->gangs.at[job].state != BH_GANG_PENDING)
            continue;
        struct bh_gang *g = bh_gang_at(s, job);
        const uint8_t was = g->urgent;
        const uint64_t look = judge_urgency(s, g);
        if (g->urgent == was)
            continue; /* a second alarm for the same */
        line_up(s, &s->lines.at[g->line], g->heap_at);
        if (look)
            alarm_push(s, look, g->id);
    }
}

struct bh_turn bh_line_turn(const struct bh_sched *s, const struct bh_line *l)
{
    struct bh_turn turn = l->turn;
    turn.amount = &s->shapes.at[l->shape].least;
    turn.band = (enum bh_priority)l->band;
    return turn;
}

void bh_jobs_index(struct bh_sched *s)
{
    for (uint32_t i = 0; i < s->shapes.n; i++)
        (void)shape_find(s, &s->shapes.at[i], i);
    for (uint32_t i = 0; i < s->lines.n; i++) {
        const struct bh_line *l = &s->lines.at[i];
        if (l->queue != BH_NONE && l->parked == BH_NONE)
            bh_idmap_add(&s->line_ids, (uint64_t)l->queue << 32 | l->shape, i);
    }
    for (uint32_t i = 0; i < s->gangs.n; i++) {
        const struct bh_gang *g = &s->gangs.at[i];
        if (g->state == BH_GANG_FREE)
            continue;
        bh_idmap_add(&s->gang_ids, g->id, i);
        if (g->state != BH_GANG_PENDING)
            continue;
        struct bh_line *l = &s->lines.at[g->line];
        (void)bh_vec_push(&l->heap);
        line_put(s, l, l->heap.n - 1, i);
    }
    bh_lines_rebuild(s);
}
