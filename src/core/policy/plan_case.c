/* SPDX-License-Identifier: Apache-2.0 */
#include "core/policy/plan_case.h"

#include "base/str.h"
#include "base/units.h"

enum {
    ALL_PPM = 1000000,
    MILLI = 1000,
    GFX_PROFILES_MAX = 8,
    MODELS_NAMED_MAX = 3,
    RANKS = 4, /* of preference among models */
};
/* More GPUs than there are; what is larger counts as this, so that products stay in 64 bits. */
static const uint64_t GPUS_MILLI_MAX = UINT64_C(1) << 50;

enum bh_mechanism bh_candidate_effective(const struct bh_candidate *c)
{
    return c->mechanism == BH_MECH_FRACTIONAL ? c->backing : c->mechanism;
}

static uint64_t div_up(uint64_t a, uint64_t b)
{
    return a / b + (a % b != 0);
}

static uint64_t gpus_milli(const struct bh_case *c)
{
    const struct bh_quota *q = &c->tenant->quota;
    uint64_t n = q->has_gpus ? q->gpus_milli : 0;
    return n < GPUS_MILLI_MAX ? n : GPUS_MILLI_MAX;
}

/* ---- what is asked ---- */

/* A memory guarantee is spread over the guaranteed GPUs, and at most one GPU holds one part of it. */
static uint64_t gpu_memory_mib(const struct bh_quota *q)
{
    uint64_t mib = div_up(q->memory_bytes, BH_MIB), milli = q->has_gpus ? q->gpus_milli : 0;
    if (milli <= MILLI)
        return mib;
    /* in two steps, so that nothing is multiplied past 64 bits */
    return mib < UINT64_MAX / MILLI ? div_up(mib * MILLI, milli) : mib / (milli / MILLI);
}

/* Memory that one instance must hold: said by a workload or a pool's cap, else by the guarantee. */
static uint64_t needed_mib(const struct bh_case *c)
{
    uint64_t bytes = c->asks.memory_bytes ? c->asks.memory_bytes : c->asks.cap_bytes;
    return bytes ? div_up(bytes, BH_MIB) : c->gpu_mib;
}

static const char *profile_of(const char *resource)
{
    static const char prefix[] = "nvidia.com/mig-";
    return bh_str_starts(resource, prefix) ? resource + sizeof(prefix) - 1 : NULL;
}

static const char *named_profile(const struct bh_quota *q)
{
    for (size_t i = 0; i < q->resources.n; i++) {
        const char *name = profile_of(q->resources.at[i].resource);
        if (name && q->resources.at[i].milli)
            return name;
    }
    return NULL;
}

/* ---- slices ---- */

/* The models that the tenant's own pools take are what the operator has in mind for it. */
static uint64_t meant_models(const struct bh_ground *g, uint32_t tenant)
{
    uint64_t set = 0;
    BH_EACH (pool, &g->index.tenant_pools, tenant) {
        uint64_t named = g->index.pool_models[*pool];
        set |= named ? named : UINT64_MAX;
    }
    return set;
}

static bool is_meant(const struct bh_case *c, const struct bh_gpu_model *m)
{
    return m && c->meant >> (m - bh_catalog_at(0)) & 1;
}

static uint32_t per_gpu(const struct bh_mig_profile *p)
{
    return p->max_instances ? p->max_instances : 1;
}

static uint32_t part_ppm(unsigned part, unsigned whole)
{
    return whole ? (uint32_t)((uint64_t)part * ALL_PPM / whole) : 0;
}

/* A slice costs what it keeps others from using: SMs or memory, whichever is more. */
static uint32_t slice_ppm(const struct bh_gpu_model *m, const struct bh_mig_profile *p)
{
    uint32_t memory = part_ppm(p->memory_slices, m->memory_slices);
    uint32_t compute =
        p->sm && m->total_sm ? part_ppm(p->sm, m->total_sm) : part_ppm(p->compute_slices, m->compute_slices);
    return memory > compute ? memory : compute;
}

/* Where a model has graphics profiles, only those carry a vGPU. */
static struct bh_mig_fit smallest_on(const struct bh_gpu_model *m, uint64_t need_mib, bool vgpu)
{
    const char *gfx[GFX_PROFILES_MAX];
    size_t n = 0;
    for (size_t i = 0; vgpu && i < m->n_profiles && n < GFX_PROFILES_MAX; i++) {
        if (m->profiles[i].gfx)
            gfx[n++] = m->profiles[i].name;
    }
    return bh_mig_smallest(m, need_mib, gfx, n);
}

/* The profile that the quota names, or the smallest that holds an instance and, cut often, a GPU's memory. */
static struct bh_mig_fit fit_on(const struct bh_case *c, const struct bh_gpu_model *m, bool vgpu)
{
    struct bh_mig_fit fit = {NULL, 0};
    if (c->profile) {
        const struct bh_mig_profile *p = bh_mig_find(m, c->profile);
        if (p && (!p->memory_mib || p->memory_mib >= c->need_mib))
            fit.profile = p;
        return fit;
    }
    for (uint64_t need = c->need_mib;; need = (uint64_t)fit.profile->memory_mib + 1) {
        fit = smallest_on(m, need, vgpu);
        if (!fit.profile || (uint64_t)fit.profile->memory_mib * per_gpu(fit.profile) >= c->gpu_mib)
            return fit;
    }
}

/* How many instances the guarantee is; other profiles that the quota names count by their part of a GPU. */
static uint64_t slice_units(const struct bh_case *c, const struct bh_gpu_model *m,
                            const struct bh_mig_profile *p)
{
    const struct bh_quota *q = &c->tenant->quota;
    uint64_t units = div_up(gpus_milli(c) * per_gpu(p), MILLI), memory_mib = div_up(q->memory_bytes, BH_MIB);

    for (size_t i = 0; !q->has_gpus && i < q->resources.n; i++) {
        const char *name = profile_of(q->resources.at[i].resource);
        const struct bh_mig_profile *other = name ? bh_mig_find(m, name) : NULL;
        uint64_t milli = q->resources.at[i].milli;
        if (other)
            units += div_up((milli < GPUS_MILLI_MAX ? milli : GPUS_MILLI_MAX) * per_gpu(p),
                            (uint64_t)MILLI * per_gpu(other));
    }
    if (p->memory_mib && memory_mib > units * p->memory_mib)
        units = div_up(memory_mib, p->memory_mib);
    return units;
}

/* Behind a wall that is no VM, GPUs are shared only with those whom the tenant trusts. */
static const char *joins(const struct bh_case *c, enum bh_mechanism m, bool vm)
{
    return !vm && (m == BH_MECH_MPS || c->tenant->trust != BH_TRUST_INTERNAL) ? c->tenant->domain : NULL;
}

static struct bh_take slice_take(const struct bh_case *c, const struct bh_gpu_model *m,
                                 const struct bh_mig_profile *p, bool vgpu)
{
    enum bh_mechanism mechanism = vgpu ? BH_MECH_MIG_VGPU : BH_MECH_MIG;
    return (struct bh_take){
        .mechanism = (uint8_t)mechanism,
        .vm = vgpu && c->vm_possible,
        .profile = p,
        .domain = joins(c, mechanism, vgpu),
        .per_gpu = per_gpu(p),
        .units = slice_units(c, m, p),
    };
}

/* Without a fleet nothing is counted. */
static uint64_t draw(const struct bh_case *c, const struct bh_at_hand *h, const struct bh_take *t,
                     uint32_t tenant)
{
    return c->ground->index.fleet ? bh_stock_draw(c->ground, c->silicon, h, t, tenant) : 0;
}

struct slice_rank {
    bool lacking, stranger;
    uint32_t cost, waste;
};

static bool is_better(const struct slice_rank *a, const struct slice_rank *b)
{
    if (a->lacking != b->lacking)
        return !a->lacking;
    if (a->stranger != b->stranger)
        return !a->stranger;
    return a->cost != b->cost ? a->cost < b->cost : a->waste < b->waste;
}

static struct bh_slice_choice find_slice(const struct bh_case *c, bool vgpu)
{
    struct bh_slice_choice best = {.hand = NULL};
    struct slice_rank best_rank = {false, false, 0, 0};

    for (size_t i = 0; i < c->silicon->models.n; i++) {
        const struct bh_at_hand *h = &c->silicon->models.at[i];
        if (!h->model || !bh_model_has_mig(h->model) || (vgpu && c->vm_possible && !h->for_vm))
            continue;
        struct bh_mig_fit fit = fit_on(c, h->model, vgpu);
        if (!fit.profile)
            continue;
        struct bh_take t = slice_take(c, h->model, fit.profile, vgpu);
        struct slice_rank rank = {draw(c, h, &t, BH_NONE) > 0, !is_meant(c, h->model),
                                  slice_ppm(h->model, fit.profile), fit.waste_mib};
        if (!best.hand || is_better(&rank, &best_rank)) {
            best = (struct bh_slice_choice){h, h->model, fit.profile, rank.cost};
            best_rank = rank;
        }
    }
    return best;
}

struct bh_slice_choice bh_case_slice(const struct bh_case *c, const struct bh_candidate *k)
{
    return bh_candidate_effective(k) == BH_MECH_MIG_VGPU ? c->vgpu_slice : c->slice;
}

static bool some_for_vm(const struct bh_silicon *s)
{
    for (size_t i = 0; i < s->models.n; i++) {
        if (s->models.at[i].for_vm)
            return true;
    }
    return false;
}

void bh_case_open(struct bh_case *c, struct bh_ground *g, uint32_t tenant)
{
    const struct bh_tenant *t = &g->index.p->tenants.at[tenant];
    *c = (struct bh_case){
        .ground = g,
        .tenant = t,
        .tenant_index = tenant,
        .asks = bh_ground_asks(g, tenant),
        .silicon = bh_ground_silicon(g, tenant),
        .class_ = t->class_pos.line ? t->class_ : NULL,
        .meeting = bh_ground_meeting(g, tenant),
        .meant = meant_models(g, tenant),
        .gpu_mib = gpu_memory_mib(&t->quota),
        .profile = named_profile(&t->quota),
    };
    c->need_mib = needed_mib(c);
    c->vm_possible = some_for_vm(c->silicon);
    c->slice = find_slice(c, false);
    c->vgpu_slice = find_slice(c, true);
}

/* ---- whole GPUs and shares ---- */

static bool suits(const struct bh_case *c, const struct bh_candidate *k, const struct bh_at_hand *h,
                  bool memory)
{
    uint64_t need = c->need_mib > c->gpu_mib ? c->need_mib : c->gpu_mib;
    bool vm = k->tier >= BH_TIER_VM && c->vm_possible;

    if ((vm && !h->for_vm) || (k->tier == BH_TIER_CVM && !h->confidential))
        return false;
    if (!memory || !need)
        return true;
    /* What is at hand and of unknown size is not said to be too small. */
    return h->model && h->model->memory_mib ? h->model->memory_mib >= need : c->ground->index.fleet != NULL;
}

bool bh_case_suited(const struct bh_case *c, const struct bh_candidate *k, bool memory)
{
    for (size_t i = 0; i < c->silicon->models.n; i++) {
        if (suits(c, k, &c->silicon->models.at[i], memory))
            return true;
    }
    return false;
}

/* Meant for the tenant first; shares leave the models that can be partitioned to who needs them. */
static unsigned rank_of(const struct bh_case *c, const struct bh_candidate *k, const struct bh_at_hand *h)
{
    bool shares = bh_candidate_effective(k) != BH_MECH_WHOLE;
    return (is_meant(c, h->model) ? 0U : 2U) + (shares && h->model && bh_model_has_mig(h->model) ? 1U : 0U);
}

/* The next suiting model in order of preference: *at counts ranks times models. */
static const struct bh_at_hand *next_hand(const struct bh_case *c, const struct bh_candidate *k, size_t *at)
{
    size_t n = c->silicon->models.n;
    for (; *at < n * RANKS; (*at)++) {
        const struct bh_at_hand *h = &c->silicon->models.at[*at % n];
        if (rank_of(c, k, h) == *at / n && suits(c, k, h, true)) {
            (*at)++;
            return h;
        }
    }
    return NULL;
}

static struct bh_take plain_take(const struct bh_case *c, const struct bh_candidate *k)
{
    enum bh_mechanism m = bh_candidate_effective(k);
    bool whole = m == BH_MECH_WHOLE, vm = k->tier >= BH_TIER_VM && c->vm_possible;
    return (struct bh_take){
        .mechanism = (uint8_t)m,
        .vm = vm,
        .domain = joins(c, m, vm),
        .per_gpu = whole ? 1 : MILLI,
        .units = whole ? div_up(gpus_milli(c), MILLI) : gpus_milli(c),
    };
}

/* One model for all of it where one has enough, else from several in order of preference. */
static struct bh_allotment draw_plain(const struct bh_case *c, const struct bh_candidate *k, bool take)
{
    struct bh_take t = plain_take(c, k);
    struct bh_allotment out = {.gpus = div_up(t.units, t.per_gpu)};
    uint32_t tenant = take ? c->tenant_index : BH_NONE;
    size_t at = 0, n = 0;

    for (const struct bh_at_hand *h; (h = next_hand(c, k, &at)); n++) {
        if (!draw(c, h, &t, BH_NONE)) {
            (void)draw(c, h, &t, tenant);
            /* Any model will do where none is counted and none was too small. */
            out.hand = c->ground->index.fleet || c->need_mib || k->tier == BH_TIER_CVM ? h : NULL;
            return out;
        }
    }
    at = 0;
    for (const struct bh_at_hand *h; t.units && (h = next_hand(c, k, &at));) {
        if (n == 1)
            out.hand = h;
        t.units = draw(c, h, &t, tenant);
    }
    out.lacking = div_up(t.units, t.per_gpu);
    return out;
}

static uint32_t share_ppm(const struct bh_case *c, const struct bh_at_hand *h)
{
    uint64_t size = h && h->model ? h->model->memory_mib : 0;
    uint64_t memory = size && c->need_mib <= size ? c->need_mib * ALL_PPM / size : 0;
    return memory > c->asks.share_ppm ? (uint32_t)memory : c->asks.share_ppm;
}

struct bh_allotment bh_case_allot(const struct bh_case *c, const struct bh_candidate *k, bool take)
{
    enum bh_mechanism m = bh_candidate_effective(k);
    if (!bh_mech_cuts_mig(m)) {
        struct bh_allotment out = draw_plain(c, k, take);
        out.cost_ppm = m == BH_MECH_WHOLE ? ALL_PPM : share_ppm(c, out.hand);
        out.units = m == BH_MECH_WHOLE ? out.gpus : gpus_milli(c) * MILLI / out.cost_ppm;
        if (gpus_milli(c) && !out.units)
            out.units = 1;
        return out;
    }
    struct bh_slice_choice s = bh_case_slice(c, k);
    struct bh_take t = slice_take(c, s.hand->model, s.profile, m == BH_MECH_MIG_VGPU);
    return (struct bh_allotment){
        .hand = s.hand,
        .units = t.units,
        .gpus = div_up(t.units, t.per_gpu),
        .lacking = div_up(draw(c, s.hand, &t, take ? c->tenant_index : BH_NONE), t.per_gpu),
        .cost_ppm = s.cost_ppm,
    };
}

/* ---- what there is ---- */

static bool draws_from(const struct bh_case *c, const struct bh_candidate *k, const struct bh_at_hand *h)
{
    if (bh_mech_cuts_mig(bh_candidate_effective(k)))
        return bh_case_slice(c, k).hand == h;
    return suits(c, k, h, true);
}

struct bh_holding bh_case_stock(const struct bh_case *c, const struct bh_candidate *k)
{
    struct bh_holding sum = {.gpus = 0};
    bool vm = k->tier >= BH_TIER_VM && c->vm_possible;
    for (size_t i = 0; i < c->silicon->models.n; i++) {
        if (draws_from(c, k, &c->silicon->models.at[i]))
            bh_stock_count(c->ground, c->silicon, &c->silicon->models.at[i], vm, &sum);
    }
    return sum;
}

const char *bh_case_models(struct bh_arena *a, const struct bh_case *c, const struct bh_candidate *k)
{
    const char *text = "";
    size_t n = 0;
    for (size_t i = 0; i < c->silicon->models.n; i++) {
        const struct bh_at_hand *h = &c->silicon->models.at[i];
        if (!draws_from(c, k, h) || ++n > MODELS_NAMED_MAX)
            continue;
        text = bh_arena_printf(a, "%s%s%s", text, *text ? " or " : "",
                               h->model ? h->model->name : "uncatalogued");
    }
    return n > MODELS_NAMED_MAX ? bh_arena_printf(a, "%s or other", text) : text;
}
