/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fleet.c - the shelf: nodes and GPUs, holds on them, the change log and the undo log.
 *
 * Every hold is put on and taken off by one pair of functions, put() and remove_(), and the undo log uses the
 * same pair: so what is taken back is taken back in the way it would have been given back.
 */
#include "core/sched/fleet.h"

#include "core/sched/fleet_inside.h"
#include "core/sched/mig.h"

#include <inttypes.h>

enum undo_op { UNDO_TAKE, UNDO_RELEASE, UNDO_FREE, UNDO_HEALTH };

const uint8_t bh_strict_of[BH_APARTS] = {
    [BH_APART_NODE] = BH_STRICT_GPU | BH_STRICT_NODE,
    [BH_APART_LINK] = BH_STRICT_GPU | BH_STRICT_NODE | BH_STRICT_LINK,
    [BH_APART_GPU] = BH_STRICT_GPU,
    [BH_APART_NOTHING] = 0,
};

/* ---- crowds ---- */

void bh_crowd_join(struct bh_crowd *c, uint32_t trust, bool strict)
{
    c->trust = !c->holds || c->trust == trust ? trust : BH_TRUST_MIXED;
    c->holds++;
    c->strict += strict;
}

bool bh_crowd_leave(struct bh_crowd *c, bool strict)
{
    c->holds--;
    c->strict -= strict;
    if (!c->holds)
        c->trust = 0;
    return c->trust != BH_TRUST_MIXED;
}

/* ---- building ---- */

void bh_shelf_init(struct bh_shelf *s, const struct bh_requests *requests)
{
    memset(s, 0, sizeof(*s));
    s->requests = requests;
    s->free_hold = s->first_root = BH_NONE;
}

void bh_shelf_fini(struct bh_shelf *s)
{
    bh_vec_fini(&s->nodes);
    bh_vec_fini(&s->gpus);
    bh_vec_fini(&s->domains);
    bh_vec_fini(&s->holds);
    bh_vec_fini(&s->undo);
    free(s->log);
    s->log = NULL;
}

int bh_shelf_add_model(struct bh_shelf *s, const struct bh_gpu_model *known, uint32_t *ret_model,
                       struct bh_err *err)
{
    if (s->n_models == BH_MODELS_MAX)
        return bh_fail(err, BH_TOO_LARGE, "more than %d GPU models", BH_MODELS_MAX);
    s->models[s->n_models].known = known;
    *ret_model = s->n_models++;
    return 0;
}

/* A power of two, four entries for each node: who is behind by more had better start anew. */
static void grow_log(struct bh_shelf *s)
{
    if (s->log_cap >= s->nodes.n * 4)
        return;
    const uint32_t cap = s->log_cap ? s->log_cap * 2 : 1024;
    uint32_t *log = bh_alloc(cap, sizeof(*log));
    for (uint64_t i = s->log_head > s->log_cap ? s->log_head - s->log_cap : 0; i < s->log_head; i++)
        log[i & (cap - 1)] = s->log[i & (s->log_cap - 1)];
    free(s->log);
    s->log = log;
    s->log_cap = cap;
}

void bh_shelf_touch(struct bh_shelf *s, uint32_t node)
{
    s->nodes.at[node].changed = s->log_head;
    s->log[s->log_head++ & (s->log_cap - 1)] = node;
}

static int check_spec(const struct bh_shelf *s, const struct bh_node_spec *spec, struct bh_err *err)
{
    if (s->marks)
        return bh_fail(err, BH_BUSY, "a node cannot come while something is being tried");
    if (spec->n_gpus > BH_NODE_GPUS)
        return bh_fail(err, BH_TOO_LARGE, "a node of %" PRIu32 " GPUs, more than %d", spec->n_gpus,
                       BH_NODE_GPUS);
    if (spec->n_gpus && spec->model >= s->n_models)
        return bh_fail(err, BH_INVALID, "a node of GPU model %" PRIu32 ": there is none", spec->model);
    if (spec->domain != BH_NONE && spec->domain >= s->domains.n)
        return bh_fail(err, BH_INVALID, "a node in fabric domain %" PRIu32 ": there is none", spec->domain);
    if (s->nodes.n == BH_NONE)
        return bh_fail(err, BH_TOO_LARGE, "too many nodes");
    return 0;
}

int bh_shelf_add_node(struct bh_shelf *s, const struct bh_node_spec *spec, uint32_t *ret_node,
                      struct bh_err *err)
{
    int rc = check_spec(s, spec, err);
    if (rc < 0)
        return rc;
    const uint32_t id = (uint32_t)s->nodes.n;
    struct bh_shelf_node *n = bh_vec_push(&s->nodes);
    *n = (struct bh_shelf_node){.cpu_free = spec->cpu_milli,
                                .n_gpus = (uint8_t)spec->n_gpus,
                                .model = (uint8_t)(spec->n_gpus ? spec->model : BH_MODELS_MAX),
                                .n_whole = (uint8_t)spec->n_gpus,
                                .mem_free = spec->mem_mib,
                                .features = spec->features,
                                .pools = spec->pools,
                                .domain = spec->domain,
                                .link = BH_NONE,
                                .first_gpu = (uint32_t)s->gpus.n,
                                .holds_max = spec->holds_max,
                                .first_hold = BH_NONE,
                                .rank = spec->rank,
                                .next = BH_NONE,
                                .cpu_all = spec->cpu_milli,
                                .mem_all = spec->mem_mib};
    if (spec->domain != BH_NONE && s->domains.at[spec->domain].level == BH_LEVEL_LINK)
        n->link = spec->domain;
    for (uint32_t i = 0; i < spec->n_gpus; i++) {
        n->open[i] = BH_GPU_MILLI;
        *bh_vec_push(&s->gpus) =
            (struct bh_shelf_gpu){.mib_all = spec->gpu_mib,
                                  .mib_free = spec->gpu_mib,
                                  .milli_free = BH_GPU_MILLI,
                                  .numa = (uint8_t)(spec->n_numa > 1 ? i * spec->n_numa / spec->n_gpus : 0)};
    }
    if (spec->n_gpus)
        s->models[spec->model].milli_all += spec->n_gpus * (uint64_t)BH_GPU_MILLI;
    s->milli_all += spec->n_gpus * (uint64_t)BH_GPU_MILLI;
    bh_shelf_domains_add(s, id);
    grow_log(s);
    bh_shelf_touch(s, id);
    s->epoch++;
    *ret_node = id;
    return 0;
}

void bh_shelf_reserve(struct bh_shelf *s, size_t holds, size_t undo)
{
    if (holds > s->holds.cap)
        s->holds.at = bh_grow_(s->holds.at, &s->holds.cap, holds, sizeof(*s->holds.at));
    if (undo > s->undo.cap)
        s->undo.at = bh_grow_(s->undo.at, &s->undo.cap, undo, sizeof(*s->undo.at));
}

/* ---- what fits ---- */

static bool gpu_takes(const struct bh_shelf *s, const struct bh_request *r, const struct bh_shelf_gpu *gpu,
                      uint32_t model)
{
    if (gpu->crowd.holds) {
        if (!bh_crowd_takes(&gpu->crowd, r->trust, bh_strict_of[r->apart] & BH_STRICT_GPU))
            return false;
        if ((r->kinds & gpu->avoid) || (r->avoid & gpu->kinds))
            return false;
        if (r->form == BH_FORM_SHARE && gpu->mechanism != r->mechanism)
            return false;
    }
    if (r->form == BH_FORM_SHARE)
        return gpu->mib_free >= r->gpu_mib;
    struct bh_mig_place place;
    const struct bh_gpu_model *known = s->models[model].known;
    return (gpu->use == BH_USE_IDLE || gpu->use == BH_USE_MIG) && gpu->health == BH_HEALTH_OK && known &&
           bh_mig_best(known, gpu, r->mig_profile, &place);
}

/* All that is asked of the node as a whole. */
static bool node_takes(const struct bh_shelf *s, const struct bh_request *r, const struct bh_shelf_node *n)
{
    if (n->cpu_free < r->cpu_milli || n->mem_free < r->mem_mib || n->health != BH_HEALTH_OK)
        return false;
    if ((r->features & ~n->features) || (r->pools && !(r->pools & n->pools)))
        return false;
    if (n->holds_max && n->crowd.holds >= n->holds_max)
        return false;
    if (r->form != BH_FORM_CPU && (n->n_gpus < r->n_gpus || !bh_request_takes(r, n->model)))
        return false;
    return bh_shelf_welcome(s, r, n) != BH_WELCOME_NO;
}

uint32_t bh_shelf_usable(const struct bh_shelf *s, const struct bh_request *r, uint32_t node)
{
    const struct bh_shelf_node *n = &s->nodes.at[node];
    if (!node_takes(s, r, n))
        return 0;
    if (r->form == BH_FORM_CPU)
        return UINT32_MAX;
    uint32_t mask = 0;
    for (uint32_t i = 0; i < n->n_gpus; i++) {
        const struct bh_shelf_gpu *gpu = &s->gpus.at[n->first_gpu + i];
        if (n->open[i] < r->gpu_milli)
            continue;
        if (r->form == BH_FORM_WHOLE || gpu_takes(s, r, gpu, n->model))
            mask |= 1u << i;
    }
    return bh_bits(mask) >= r->n_gpus ? mask : 0;
}

bool bh_shelf_fits(const struct bh_shelf *s, const struct bh_request *r, const struct bh_spot *spot)
{
    if (spot->node >= s->nodes.n)
        return false;
    const uint32_t usable = bh_shelf_usable(s, r, spot->node);
    if (!usable || bh_bits(spot->gpus) != r->n_gpus || (spot->gpus & ~usable))
        return false;
    if (r->form != BH_FORM_MIG)
        return true;
    const struct bh_shelf_node *n = &s->nodes.at[spot->node];
    return bh_mig_room(s->models[n->model].known,
                       &s->gpus.at[n->first_gpu + (uint32_t)__builtin_ctz(spot->gpus)], r->mig_profile,
                       spot->mig_start);
}

/* ---- one hold on, one hold off ---- */

/* What can be given of a GPU, and with it the node's counts of whole ones. */
static void gpu_refresh(struct bh_shelf *s, uint32_t node, uint32_t i)
{
    struct bh_shelf_node *n = &s->nodes.at[node];
    const struct bh_shelf_gpu *gpu = &s->gpus.at[n->first_gpu + i];
    const bool sound = n->health == BH_HEALTH_OK && gpu->health == BH_HEALTH_OK;
    n->open[i] = sound && (gpu->use == BH_USE_IDLE || gpu->use == BH_USE_SHARES) ? gpu->milli_free : 0;
}

/* GPUs with none but releasing holds. */
static uint32_t count_gone(const struct bh_shelf *s, const struct bh_shelf_node *n)
{
    uint32_t gone = 0;
    for (uint32_t i = 0; i < n->n_gpus && n->health == BH_HEALTH_OK; i++) {
        const struct bh_shelf_gpu *gpu = &s->gpus.at[n->first_gpu + i];
        gone += gpu->gone && gpu->gone == gpu->crowd.holds && gpu->health == BH_HEALTH_OK;
    }
    return gone;
}

static void node_refresh(struct bh_shelf *s, uint32_t node, uint32_t gpus)
{
    struct bh_shelf_node *n = &s->nodes.at[node];
    const uint32_t old_whole = n->n_whole, old_gone = n->n_gone;
    for (uint32_t left = gpus; left; left &= left - 1)
        gpu_refresh(s, node, (uint32_t)__builtin_ctz(left));
    if (gpus) {
        uint32_t whole = 0;
        for (uint32_t i = 0; i < n->n_gpus; i++)
            whole += n->open[i] == BH_GPU_MILLI;
        n->n_whole = (uint8_t)whole;
        n->n_gone = n->milli_gone ? count_gone(s, n) : 0;
        bh_shelf_domains_count(s, node, old_whole, old_gone);
    }
    bh_shelf_touch(s, node);
}

static uint32_t milli_of(const struct bh_shelf *s, const struct bh_request *r, uint32_t node)
{
    return r->form == BH_FORM_MIG ? bh_mig_milli(s->models[s->nodes.at[node].model].known, r->mig_profile)
                                  : bh_request_milli(r);
}

static void gpu_put(const struct bh_gpu_model *known, struct bh_shelf_gpu *gpu, const struct bh_request *r,
                    struct bh_hold *h)
{
    static const uint8_t uses[BH_FORMS] = {
        [BH_FORM_WHOLE] = BH_USE_WHOLE, [BH_FORM_SHARE] = BH_USE_SHARES, [BH_FORM_MIG] = BH_USE_MIG};
    bh_crowd_join(&gpu->crowd, r->trust, bh_strict_of[r->apart] & BH_STRICT_GPU);
    gpu->use = uses[r->form];
    gpu->kinds |= r->kinds;
    gpu->avoid |= r->avoid;
    gpu->mechanism = r->mechanism;
    if (h->state == BH_HOLD_RELEASING)
        gpu->gone++;
    if (r->form == BH_FORM_MIG) {
        const struct bh_mig_profile *p = &known->profiles[r->mig_profile];
        h->mig_recut = bh_mig_cut(known, gpu, r->mig_profile, h->mig_start) || h->mig_recut;
        gpu->mig_held |= bh_mig_mask(p, h->mig_start);
        gpu->mig_compute = (uint8_t)(gpu->mig_compute + p->compute_slices);
        gpu->milli_free = 0;
    } else {
        gpu->mig_stale = 1;
        gpu->milli_free = (uint16_t)(gpu->milli_free - r->gpu_milli);
        gpu->mib_free -= r->gpu_mib;
    }
}

/* Put a hold on its node. Its id is linked in front, or back to where it was when it is put back. */
static void put(struct bh_shelf *s, uint32_t id, const struct bh_hold *what, bool back)
{
    struct bh_hold *h = &s->holds.at[id];
    struct bh_shelf_node *n = &s->nodes.at[what->node];
    const struct bh_request *r = &s->requests->at.at[what->class_];
    *h = *what;
    if (!back) {
        h->prev = BH_NONE;
        h->next = n->first_hold;
    }
    if (h->prev == BH_NONE)
        n->first_hold = id;
    else
        s->holds.at[h->prev].next = id;
    if (h->next != BH_NONE)
        s->holds.at[h->next].prev = id;
    n->cpu_free -= r->cpu_milli;
    n->mem_free -= r->mem_mib;
    bh_crowd_join(&n->crowd, r->trust, bh_strict_of[r->apart] & BH_STRICT_NODE);
    for (uint32_t left = h->gpus; left; left &= left - 1)
        gpu_put(s->models[n->model].known, &s->gpus.at[n->first_gpu + (uint32_t)__builtin_ctz(left)], r, h);
    s->n_taken++;
    if (r->form != BH_FORM_CPU) {
        const uint32_t milli = milli_of(s, r, h->node);
        n->sizes[r->form == BH_FORM_WHOLE ? r->n_gpus : 0]++;
        n->milli_gone += h->state == BH_HOLD_RELEASING ? milli : 0;
        s->milli_used += milli;
        s->models[n->model].milli_used += milli;
        bh_shelf_domains_crowd(s, h->node, r, true);
    }
    node_refresh(s, h->node, h->gpus);
}

/* Kinds, avoid and trust of those who stay on a GPU. The one that leaves is off the list already. */
static void gpu_look_again(const struct bh_shelf *s, struct bh_shelf_gpu *gpu, uint32_t first_hold,
                           uint32_t bit)
{
    bool first = true;
    gpu->kinds = gpu->avoid = 0;
    for (uint32_t i = first_hold; i != BH_NONE; i = s->holds.at[i].next) {
        const struct bh_request *r = &s->requests->at.at[s->holds.at[i].class_];
        if (!(s->holds.at[i].gpus >> bit & 1))
            continue;
        gpu->kinds |= r->kinds;
        gpu->avoid |= r->avoid;
        gpu->crowd.trust = first || gpu->crowd.trust == r->trust ? r->trust : BH_TRUST_MIXED;
        first = false;
    }
}

static void gpu_remove(const struct bh_shelf *s, const struct bh_shelf_node *n, uint32_t bit,
                       const struct bh_request *r, const struct bh_hold *h)
{
    struct bh_shelf_gpu *gpu = &s->gpus.at[n->first_gpu + bit];
    const bool known = bh_crowd_leave(&gpu->crowd, bh_strict_of[r->apart] & BH_STRICT_GPU);
    if (h->state == BH_HOLD_RELEASING)
        gpu->gone--;
    if (r->form == BH_FORM_MIG) {
        const struct bh_mig_profile *p = &s->models[n->model].known->profiles[r->mig_profile];
        gpu->mig_held &= (uint16_t)~bh_mig_mask(p, h->mig_start);
        gpu->mig_compute = (uint8_t)(gpu->mig_compute - p->compute_slices);
    } else {
        gpu->milli_free = (uint16_t)(gpu->milli_free + r->gpu_milli);
        gpu->mib_free += r->gpu_mib;
    }
    if (!gpu->crowd.holds) {
        gpu->use = BH_USE_IDLE;
        gpu->kinds = gpu->avoid = gpu->mechanism = 0;
        gpu->milli_free = BH_GPU_MILLI;
    } else if (!known || r->kinds || r->avoid) {
        gpu_look_again(s, gpu, n->first_hold, bit);
    }
}

static void node_look_again(const struct bh_shelf *s, struct bh_shelf_node *n)
{
    bool first = true;
    for (uint32_t i = n->first_hold; i != BH_NONE; i = s->holds.at[i].next) {
        const uint32_t trust = s->requests->at.at[s->holds.at[i].class_].trust;
        n->crowd.trust = first || n->crowd.trust == trust ? trust : BH_TRUST_MIXED;
        first = false;
    }
}

/* Take a hold off its node. The hold's own record stays as it was. */
static void remove_(struct bh_shelf *s, uint32_t id)
{
    const struct bh_hold *h = &s->holds.at[id];
    struct bh_shelf_node *n = &s->nodes.at[h->node];
    const struct bh_request *r = &s->requests->at.at[h->class_];
    if (h->prev == BH_NONE)
        n->first_hold = h->next;
    else
        s->holds.at[h->prev].next = h->next;
    if (h->next != BH_NONE)
        s->holds.at[h->next].prev = h->prev;
    n->cpu_free += r->cpu_milli;
    n->mem_free += r->mem_mib;
    if (!bh_crowd_leave(&n->crowd, bh_strict_of[r->apart] & BH_STRICT_NODE))
        node_look_again(s, n);
    for (uint32_t left = h->gpus; left; left &= left - 1)
        gpu_remove(s, n, (uint32_t)__builtin_ctz(left), r, h);
    s->n_taken--;
    if (r->form != BH_FORM_CPU) {
        const uint32_t milli = milli_of(s, r, h->node);
        n->sizes[r->form == BH_FORM_WHOLE ? r->n_gpus : 0]--;
        n->milli_gone -= h->state == BH_HOLD_RELEASING ? milli : 0;
        s->milli_used -= milli;
        s->models[n->model].milli_used -= milli;
        bh_shelf_domains_crowd(s, h->node, r, false);
    }
    node_refresh(s, h->node, h->gpus);
}

/* ---- holds ---- */

static struct bh_shelf_undo *remember(struct bh_shelf *s, enum undo_op op, uint32_t id)
{
    struct bh_shelf_undo *u = bh_vec_push(&s->undo);
    *u = (struct bh_shelf_undo){.op = (uint8_t)op, .id = id};
    return u;
}

static uint32_t hold_id(struct bh_shelf *s)
{
    const uint32_t id = s->free_hold;
    if (id == BH_NONE) {
        *bh_vec_push(&s->holds) = (struct bh_hold){.state = BH_HOLD_FREE};
        return (uint32_t)s->holds.n - 1;
    }
    s->free_hold = s->holds.at[id].next;
    return id;
}

static void hold_id_back(struct bh_shelf *s, uint32_t id)
{
    s->holds.at[id] = (struct bh_hold){.state = BH_HOLD_FREE, .node = BH_NONE, .next = s->free_hold};
    s->free_hold = id;
}

int bh_shelf_take(struct bh_shelf *s, uint32_t class_, const struct bh_spot *spot, uint32_t *ret_hold,
                  struct bh_err *err)
{
    const struct bh_request *r = &s->requests->at.at[class_];
    if (!bh_shelf_fits(s, r, spot))
        return bh_fail(err, BH_CONFLICT, "a request of class %" PRIu32 " does not fit on node %" PRIu32,
                       class_, spot->node);
    const struct bh_hold what = {.node = spot->node,
                                 .class_ = class_,
                                 .gpus = spot->gpus,
                                 .state = BH_HOLD_TAKEN,
                                 .mig_start = r->form == BH_FORM_MIG ? spot->mig_start : 0};
    const uint32_t id = hold_id(s);
    if (s->marks) {
        struct bh_shelf_undo *u = remember(s, UNDO_TAKE, id);
        for (uint32_t left = spot->gpus; left; left &= left - 1) {
            const uint32_t bit = (uint32_t)__builtin_ctz(left);
            const struct bh_shelf_gpu *gpu = &s->gpus.at[s->nodes.at[spot->node].first_gpu + bit];
            u->stale |= (uint16_t)((uint32_t)gpu->mig_stale << bit);
            memcpy(u->mig_at, gpu->mig_at, sizeof(u->mig_at));
        }
    }
    put(s, id, &what, false);
    *ret_hold = id;
    return 0;
}

static void set_state(struct bh_shelf *s, uint32_t id, enum bh_hold_state state)
{
    struct bh_hold *h = &s->holds.at[id];
    struct bh_shelf_node *n = &s->nodes.at[h->node];
    const struct bh_request *r = &s->requests->at.at[h->class_];
    const bool gone = state == BH_HOLD_RELEASING;
    const uint32_t milli = milli_of(s, r, h->node);
    h->state = (uint8_t)state;
    n->milli_gone = gone ? n->milli_gone + milli : n->milli_gone - milli;
    for (uint32_t left = h->gpus; left; left &= left - 1) {
        struct bh_shelf_gpu *gpu = &s->gpus.at[n->first_gpu + (uint32_t)__builtin_ctz(left)];
        gpu->gone = (uint16_t)(gone ? gpu->gone + 1 : gpu->gone - 1);
    }
    node_refresh(s, h->node, h->gpus);
}

void bh_shelf_release(struct bh_shelf *s, uint32_t hold)
{
    if (s->holds.at[hold].state != BH_HOLD_TAKEN)
        return;
    if (s->marks)
        remember(s, UNDO_RELEASE, hold);
    set_state(s, hold, BH_HOLD_RELEASING);
}

void bh_shelf_free(struct bh_shelf *s, uint32_t hold)
{
    if (s->holds.at[hold].state == BH_HOLD_FREE)
        return;
    if (s->marks)
        remember(s, UNDO_FREE, hold)->hold = s->holds.at[hold];
    remove_(s, hold);
    hold_id_back(s, hold);
}

static void change_health(struct bh_shelf *s, uint32_t node, uint32_t gpu, uint8_t health)
{
    struct bh_shelf_node *n = &s->nodes.at[node];
    if (gpu == BH_NONE)
        n->health = health;
    else
        s->gpus.at[n->first_gpu + gpu].health = health;
    node_refresh(s, node, gpu == BH_NONE ? (1u << n->n_gpus) - 1 : 1u << gpu);
}

void bh_shelf_set_health(struct bh_shelf *s, uint32_t node, uint32_t gpu, enum bh_health health)
{
    const struct bh_shelf_node *n = &s->nodes.at[node];
    if (gpu != BH_NONE && gpu >= n->n_gpus)
        return;
    const uint8_t old = gpu == BH_NONE ? n->health : s->gpus.at[n->first_gpu + gpu].health;
    if (old == health)
        return;
    if (s->marks) {
        struct bh_shelf_undo *u = remember(s, UNDO_HEALTH, node);
        u->gpu = gpu;
        u->health = old;
    }
    change_health(s, node, gpu, (uint8_t)health);
}

/* ---- trying ---- */

static void undo_take(struct bh_shelf *s, const struct bh_shelf_undo *u)
{
    const struct bh_hold was = s->holds.at[u->id];
    const struct bh_request *r = &s->requests->at.at[was.class_];
    remove_(s, u->id);
    hold_id_back(s, u->id);
    for (uint32_t left = was.gpus; left; left &= left - 1) {
        const uint32_t bit = (uint32_t)__builtin_ctz(left);
        struct bh_shelf_gpu *gpu = &s->gpus.at[s->nodes.at[was.node].first_gpu + bit];
        gpu->mig_stale = u->stale >> bit & 1;
        if (r->form == BH_FORM_MIG)
            memcpy(gpu->mig_at, u->mig_at, sizeof(gpu->mig_at));
    }
}

static void undo_free(struct bh_shelf *s, const struct bh_shelf_undo *u)
{
    s->free_hold = s->holds.at[u->id].next; /* what was given back last is first */
    put(s, u->id, &u->hold, true);
}

static void undo_release(struct bh_shelf *s, const struct bh_shelf_undo *u)
{
    set_state(s, u->id, BH_HOLD_TAKEN);
}

static void undo_health(struct bh_shelf *s, const struct bh_shelf_undo *u)
{
    change_health(s, u->id, u->gpu, u->health);
}

static void (*const undoes[])(struct bh_shelf *s,
                              const struct bh_shelf_undo *u) = {[UNDO_TAKE] = undo_take,
                                                                [UNDO_RELEASE] = undo_release,
                                                                [UNDO_FREE] = undo_free,
                                                                [UNDO_HEALTH] = undo_health};

struct bh_mark bh_shelf_mark(struct bh_shelf *s)
{
    return (struct bh_mark){.undo = s->undo.n, .depth = s->marks++};
}

void bh_shelf_rollback(struct bh_shelf *s, struct bh_mark mark)
{
    while (s->undo.n > mark.undo) {
        const struct bh_shelf_undo u = s->undo.at[--s->undo.n];
        undoes[u.op](s, &u);
    }
    s->marks = mark.depth;
}

void bh_shelf_commit(struct bh_shelf *s, struct bh_mark mark)
{
    s->marks = mark.depth;
    if (!s->marks)
        s->undo.n = 0;
}
