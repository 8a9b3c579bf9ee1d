/* SPDX-License-Identifier: Apache-2.0 */
/*
 * form.c - how the silicon is divided for an ask: whole GPUs, an instance, a share; with the stack that holds it to that,
 * what the governor is told, and what stays shared.
 */
#include "core/admit/ask.h"

#include "base/str.h"
#include "base/units.h"
#include "core/govern/govern.h"
#include "core/sched/mig.h"

#include <inttypes.h>

enum { PPM_PER_MILLI = 1000, LONG = 1, BURSTY = 2 };

/* ---- what the pool's machines have ---- */

/* For each part that the work may use: for (p = NULL; (p = next_part(c, p)); ) */
static const struct bh_part *next_part(const struct bh_asking *c, const struct bh_part *p)
{
    const struct bh_part *end = c->a->parts.at + c->a->parts.n;
    for (p = p ? p + 1 : c->a->parts.at; p < end; p++)
        if ((p->pools & c->request->pools) && !(c->request->features & ~p->features))
            return p;
    return NULL;
}

/* A machine that is the wrong one is refused by a later step, with its reason: until then all of the pool count. */
static uint64_t largest_memory(const struct bh_asking *c)
{
    uint64_t most = 0;
    for (const struct bh_part *p = NULL; (p = next_part(c, p));) {
        if (!p->gpu_mib)
            return UINT64_MAX; /* not known: the driver will say */
        most = p->gpu_mib > most ? p->gpu_mib : most;
    }
    return most;
}

static uint32_t largest_part(const struct bh_asking *c)
{
    uint32_t most = 1;
    for (const struct bh_part *p = NULL; (p = next_part(c, p));)
        most = p->n_gpus > most ? p->n_gpus : most;
    return most;
}

static bool has_fabric(const struct bh_asking *c)
{
    for (const struct bh_part *p = NULL; (p = next_part(c, p));)
        if (p->fabric)
            return true;
    return false;
}

static uint64_t mib_of(uint64_t bytes)
{
    return bytes / BH_MIB + (bytes % BH_MIB != 0);
}

/* ---- members ---- */

/*
 * As few members as there can be of equal size: who needs several GPUs needs them close. An elastic one grows in steps of
 * a member.
 */
static bool set_members(struct bh_asking *c, uint32_t per_most, struct bh_admit_refusal *why)
{
    struct bh_gang_role_spec *role = &c->grant->job.roles[0];
    const uint32_t least = c->devices, most = c->ask->gpus_max > least ? c->ask->gpus_max : least;
    uint32_t per = per_most < least ? per_most : least;
    while (least % per || most % per)
        per--;
    role->min = least / per;
    role->max = most / per;
    if (role->max > BH_MEMBERS_MAX) {
        bh_no(why, BH_ADMIT_SIZE, NULL, "%" PRIu32 " GPUs are more than a job may have.", most);
        bh_no_needed(why, "%" PRIu32 " members", role->max);
        bh_no_there(why, "%d members at most", BH_MEMBERS_MAX);
        return bh_no_next(why, "Ask for less.");
    }
    c->request->n_gpus = (uint8_t)per;
    role->image_mib = c->a->counts_hosts ? c->ask->image_mib : 0;
    if (c->a->counts_hosts) {
        c->request->cpu_milli = (c->ask->cpu_milli + role->min - 1) / role->min;
        c->request->mem_mib = (c->ask->host_mib + role->min - 1) / role->min;
    }
    /* Who said nothing stays in one domain, where it is known what a domain is. */
    if (role->max > 1 && (c->ask->needs_nvlink || (!c->ask->allow_span && has_fabric(c))))
        c->grant->job.within = BH_LEVEL_LINK;
    return true;
}

/* ---- whom it may stand beside ---- */

/*
 * A colleague minds nobody, and is minded by those from outside. Who comes from outside and shares the kernel keeps the
 * whole machine, its fabric included; behind a VM it is the fabric where peers can reach each other, else the GPU.
 */
static void set_trust(struct bh_asking *c)
{
    const uint32_t t = c->grant->tenant;
    const enum bh_mechanism m = (enum bh_mechanism)c->grant->mechanism;
    struct bh_request *r = c->request;
    const bool outside = c->a->trust[t] != 0;
    r->trust = c->a->trust[t];
    if (!outside)
        r->apart = BH_APART_NOTHING;
    else if (c->grant->tier < BH_TIER_VM)
        r->apart = BH_APART_LINK;
    else if (bh_mech_cuts_mig(m))
        r->apart = BH_APART_NOTHING;
    else
        r->apart = m == BH_MECH_WHOLE && has_fabric(c) ? BH_APART_LINK : BH_APART_GPU;
    /* Shares of one GPU are held by one thing: of MPS by the server of one pool, which one trust domain uses (BH-002). */
    r->mechanism = m == BH_MECH_MPS ? c->a->pools[c->grant->pool].server : (uint8_t)m;
    const uint8_t pace = c->ask->pace != BH_PACE_UNSET ? c->ask->pace : c->pool->pace;
    if (r->form == BH_FORM_SHARE && pace != BH_PACE_UNSET) {
        r->kinds = pace == BH_PACE_LONG ? LONG : BURSTY;
        r->avoid = pace == BH_PACE_LONG ? BURSTY : LONG;
    }
}

/* ---- layers ---- */

static void push_layer(struct bh_asking *c, enum bh_mechanism m, const struct bh_mig_profile *profile,
                       uint32_t milli, uint64_t memory_bytes)
{
    struct bh_admit_grant *g = c->grant;
    g->layers[g->n_layers++] = (struct bh_admit_layer){(uint8_t)m, profile, milli, memory_bytes};
}

static void add_shared(struct bh_admit_grant *g, enum bh_mechanism m)
{
    size_t n = 0;
    while (g->shared[n])
        n++;
    for (const char *const *text = bh_mech_stays_shared(m, (enum bh_tier)g->tier); *text; text++) {
        size_t i = 0;
        while (i < n && !bh_str_eq(g->shared[i], *text))
            i++;
        if (i == n && n + 1 < BH_ADMIT_SHARED_MAX)
            g->shared[n++] = *text;
    }
}

/* A server of its own, and a gate where the pool caps memory, stand on what it alone has. */
static void stack_on_own(struct bh_asking *c, enum bh_mechanism silicon, const struct bh_mig_profile *profile)
{
    push_layer(c, silicon, profile, 0, profile ? (uint64_t)profile->memory_mib * BH_MIB : 0);
    if (c->ask->own_mps)
        push_layer(c, BH_MECH_MPS, NULL, 0, 0);
    c->grant->cap_bytes = c->pool->cap_memory_bytes;
    if (c->grant->cap_bytes)
        push_layer(c, BH_MECH_GATE, NULL, 0, c->grant->cap_bytes);
}

/* What is shared is what the mechanism of the pool shares; a server of one's own adds nothing that others reach. */
static void finish(struct bh_asking *c)
{
    struct bh_admit_grant *g = c->grant;
    const bool alone = c->request->form == BH_FORM_WHOLE;
    const bool outside = c->a->trust[g->tenant] != 0;
    set_trust(c);
    add_shared(g, (enum bh_mechanism)g->mechanism);
    g->bounded_by = bh_mech_bounded_by((enum bh_mechanism)g->mechanism);
    if (outside && !alone)
        g->view = BH_ADMIT_PRIVATE;
    else
        g->view = c->request->form == BH_FORM_SHARE ? BH_ADMIT_SLICE : BH_ADMIT_CARD;
}

/* ---- whole GPUs ---- */

static bool no_part(const struct bh_asking *c, struct bh_admit_refusal *why)
{
    struct bh_unit_text t;
    bh_no(why, BH_ADMIT_FORM, NULL, "Pool %s gives whole GPUs, not parts of one.", c->pool->name);
    bh_no_needed(why, c->ask->profile ? "an instance %s" : "%s of a GPU",
                 c->ask->profile ? c->ask->profile : bh_count_format(c->ask->share_milli, &t));
    bh_no_there(why, "%s", bh_word(mechanism, c->grant->mechanism));
    return bh_no_next(why, "Ask for whole GPUs, or use a pool that divides them.");
}

static bool no_memory(const struct bh_asking *c, uint64_t there, const char *of, const char *rule,
                      struct bh_admit_refusal *why)
{
    struct bh_unit_text need, have;
    bh_no(why, BH_ADMIT_MEMORY, rule, "%s of GPU memory are more than %s %s has.",
          bh_size_format(c->ask->memory_bytes, &need), of, c->pool->name);
    bh_no_needed(why, "%s", need.s);
    bh_no_there(why, "%s", bh_size_format(there, &have));
    return bh_no_next(why, "Ask for %s or less, or use a pool with more.", have.s);
}

static bool fits_memory(struct bh_asking *c, struct bh_admit_refusal *why)
{
    const uint64_t cap = c->pool->cap_memory_bytes, largest = largest_memory(c);
    if (cap && c->ask->memory_bytes > cap)
        return no_memory(c, cap, "one workload of pool", NULL, why);
    if (mib_of(c->ask->memory_bytes) > largest)
        return no_memory(c, largest * BH_MIB, "a GPU of pool", NULL, why);
    return true;
}

static bool form_whole(struct bh_asking *c, struct bh_admit_refusal *why)
{
    struct bh_request *r = c->request;
    if (c->ask->profile || (c->ask->share_milli && c->ask->share_milli != BH_GPU_MILLI))
        return no_part(c, why);
    if (!fits_memory(c, why))
        return false;
    r->form = BH_FORM_WHOLE;
    r->gpu_milli = BH_GPU_MILLI;
    if (!set_members(c, largest_part(c), why))
        return false;
    c->milli = (uint64_t)c->devices * BH_GPU_MILLI;
    stack_on_own(c, BH_MECH_WHOLE, NULL);
    finish(c);
    return true;
}

/* ---- instances ---- */

static bool allowed(const struct bh_pool *p, const struct bh_gpu_model *m,
                    const struct bh_mig_profile *profile)
{
    bool any = !p->profiles.n && !p->layout.n;
    for (size_t i = 0; !any && i < p->profiles.n; i++)
        any = bh_mig_find(m, p->profiles.at[i].s) == profile;
    for (size_t i = 0; !any && i < p->layout.n; i++)
        any = bh_mig_find(m, p->layout.at[i].profile) == profile;
    return any;
}

static const struct bh_mig_profile *choose_profile(const struct bh_asking *c, const struct bh_gpu_model *m)
{
    const uint64_t need = mib_of(c->ask->memory_bytes);
    const struct bh_mig_profile *named = c->ask->profile ? bh_mig_find(m, c->ask->profile) : NULL,
                                *best = NULL;
    for (uint32_t i = 0; i < m->n_profiles; i++) {
        const struct bh_mig_profile *p = &m->profiles[i];
        const bool holds = p->memory_mib >= need && allowed(c->pool, m, p);
        if (!holds || (c->ask->profile && p != named) || (!c->ask->profile && !p->memory_mib))
            continue;
        if (!best || p->memory_slices < best->memory_slices ||
            (p->memory_slices == best->memory_slices && p->compute_slices < best->compute_slices))
            best = p;
    }
    return best;
}

static bool no_profile(const struct bh_asking *c, struct bh_admit_refusal *why)
{
    struct bh_unit_text t;
    const bool named = c->ask->profile != NULL;
    bh_no(why, BH_ADMIT_PROFILE, "BH-047",
          named ? "Pool %s cuts no instance %.60s that holds what is asked."
                : "Pool %s cuts no instance of %s.",
          c->pool->name, named ? c->ask->profile : bh_size_format(c->ask->memory_bytes, &t));
    bh_no_needed(why, "%.60s", named ? c->ask->profile : t.s);
    bh_no_there(why, "%.100s",
                c->pool->profiles.n ? c->pool->profiles.at[0].s
                : c->pool->layout.n ? c->pool->layout.at[0].profile
                                    : "no profile that fits");
    return bh_no_next(why, "Ask for one of the pool's profiles, or for less memory.");
}

static bool form_mig(struct bh_asking *c, struct bh_admit_refusal *why)
{
    struct bh_request *r = c->request;
    if (c->ask->share_milli) {
        bh_no(why, BH_ADMIT_FORM, NULL, "Pool %s gives instances; a share of one is not divided further.",
              c->pool->name);
        bh_no_needed(why, "a share");
        bh_no_there(why, "%s", bh_word(mechanism, c->grant->mechanism));
        return bh_no_next(why, "Ask for a profile, or for an amount of memory.");
    }
    if (c->pool->cap_memory_bytes && c->ask->memory_bytes > c->pool->cap_memory_bytes)
        return no_memory(c, c->pool->cap_memory_bytes, "one workload of pool", NULL, why);
    for (const struct bh_part *p = NULL; (p = next_part(c, p));) {
        const struct bh_gpu_model *m = c->a->models.at[p->model].known;
        const struct bh_mig_profile *profile = m && bh_model_has_mig(m) ? choose_profile(c, m) : NULL;
        if (!profile)
            continue;
        r->form = BH_FORM_MIG;
        r->mig_profile = (uint8_t)(profile - m->profiles);
        r->models = UINT64_C(1) << p->model;
        if (!set_members(c, 1, why))
            return false;
        c->milli = (uint64_t)c->devices * bh_mig_milli(m, r->mig_profile);
        stack_on_own(c, BH_MECH_MIG, profile);
        finish(c);
        return true;
    }
    return no_profile(c, why);
}

/* ---- shares ---- */

/* As asked, else what one workload gets there, else its tenant's target, else an equal part. */
static uint32_t share_of(const struct bh_asking *c)
{
    const struct bh_pool *p = c->pool;
    if (c->ask->share_milli)
        return c->ask->share_milli;
    if (p->cap_compute_ppm)
        return p->cap_compute_ppm / PPM_PER_MILLI;
    if (p->replicas)
        return BH_GPU_MILLI / p->replicas;
    return c->tenant->share.has_target ? c->tenant->share.target_ppm / PPM_PER_MILLI : 0;
}

static bool no_share(const struct bh_asking *c, uint32_t milli, uint32_t most, struct bh_admit_refusal *why)
{
    struct bh_unit_text asked, bound;
    if (!milli) {
        bh_no(why, BH_ADMIT_SHARE, "BH-035",
              "Pool %s divides GPUs and does not say how; neither does the ask.", c->pool->name);
        bh_no_needed(why, "a share");
        bh_no_there(why, "none");
        return bh_no_next(why, "Ask for a share, or have one stated (pools.%s.caps.compute).", c->pool->name);
    }
    bh_no(why, BH_ADMIT_SHARE, NULL, "%s of a GPU are more than one workload of pool %s gets.",
          bh_count_format(milli, &asked), c->pool->name);
    bh_no_needed(why, "%s of a GPU", asked.s);
    bh_no_there(why, "%s of a GPU", bh_count_format(most, &bound));
    return bh_no_next(why, "Ask for %s or less, or use a pool of whole GPUs.", bound.s);
}

static void set_governed(struct bh_asking *c, uint32_t milli)
{
    struct bh_admit_grant *g = c->grant;
    const struct bh_tenant *t = c->tenant;
    const uint32_t target = t->share.has_target ? t->share.target_ppm / PPM_PER_MILLI : 0;
    g->weight = milli;
    g->cap_permille = c->pool->cap_compute_ppm / PPM_PER_MILLI;
    g->floor_permille = t->slo.kind == BH_SLO_NONE ? 0 : target < milli ? target : milli;
    g->latency = bh_tenant_is_serving(t) ? BH_GOVERN_LATENCY : BH_GOVERN_BATCH;
}

static bool form_share(struct bh_asking *c, struct bh_admit_refusal *why)
{
    const enum bh_mechanism m = (enum bh_mechanism)c->grant->mechanism;
    const uint32_t milli = share_of(c);
    const uint32_t cap = c->pool->cap_compute_ppm / PPM_PER_MILLI,
                   most = cap && cap < BH_GPU_MILLI ? cap : BH_GPU_MILLI - 1;
    struct bh_request *r = c->request;
    if (c->ask->profile) {
        bh_no(why, BH_ADMIT_FORM, NULL, "Pool %s cuts no instances.", c->pool->name);
        bh_no_needed(why, "an instance %.60s", c->ask->profile);
        bh_no_there(why, "%s", bh_word(mechanism, m));
        return bh_no_next(why, "Ask for a share, or use a pool that cuts instances.");
    }
    if (!milli || milli > most)
        return no_share(c, milli, most, why);
    if (!fits_memory(c, why))
        return false;
    const uint64_t largest = largest_memory(c);
    uint64_t bytes = c->ask->memory_bytes ? c->ask->memory_bytes : c->pool->cap_memory_bytes;
    if (!bytes && largest != UINT64_MAX)
        bytes = largest * milli / BH_GPU_MILLI * BH_MIB;
    if (!bytes || mib_of(bytes) > UINT32_MAX) {
        bh_no(why, BH_ADMIT_MEMORY, "BH-034", "Nobody says how much memory work of pool %s may take.",
              c->pool->name);
        bh_no_needed(why, "a cap");
        bh_no_there(why, "none");
        return bh_no_next(why, "Ask for an amount, or have one stated (pools.%s.caps.memory).",
                          c->pool->name);
    }
    r->form = BH_FORM_SHARE;
    r->gpu_milli = (uint16_t)milli;
    r->gpu_mib = c->pool->oversubscribe || largest == UINT64_MAX ? 0 : (uint32_t)mib_of(bytes);
    if (!set_members(c, largest_part(c), why))
        return false;
    c->milli = (uint64_t)c->devices * milli;
    push_layer(c, m, NULL, milli, m == BH_MECH_MPS || m == BH_MECH_GATE ? bytes : 0);
    if (m == BH_MECH_TIMESLICE)
        push_layer(c, BH_MECH_GATE, NULL, 0, bytes);
    if (m == BH_MECH_TIMESLICE || m == BH_MECH_GATE) {
        c->grant->cap_bytes = bytes;
        set_governed(c, milli);
    }
    finish(c);
    return true;
}

static bool form_none(struct bh_asking *c, struct bh_admit_refusal *why)
{
    bh_no(why, BH_ADMIT_FORM, "BH-004", "Pool %s does not say what divides its GPUs.", c->pool->name);
    bh_no_needed(why, "a backing");
    bh_no_there(why, "none");
    return bh_no_next(why, "Have it stated (pools.%s.backing).", c->pool->name);
}

/* Who asks for GPUs, and neither for a part of one nor for a pool, is not given parts of GPUs instead. */
static bool means_whole(const struct bh_admit_ask *ask)
{
    return ask->gpus && !ask->pool && !ask->share_milli && !ask->profile;
}

bool bh_admit_form(struct bh_asking *c, struct bh_admit_refusal *why)
{
    static bool (*const forms[BH_N_mechanism])(struct bh_asking *, struct bh_admit_refusal *) = {
        [BH_MECH_UNSET] = form_none,   [BH_MECH_WHOLE] = form_whole,     [BH_MECH_MIG] = form_mig,
        [BH_MECH_MPS] = form_share,    [BH_MECH_TIMESLICE] = form_share, [BH_MECH_VGPU] = form_share,
        [BH_MECH_MIG_VGPU] = form_mig, [BH_MECH_FRACTIONAL] = form_none, [BH_MECH_GATE] = form_share,
    };
    const struct bh_admit_pool *pool = &c->a->pools[c->grant->pool];
    if (!pool->bit) {
        bh_no(why, BH_ADMIT_SIZE, NULL, "Pool %s has no GPU.", c->pool->name);
        bh_no_needed(why, "%" PRIu32 " GPUs", c->devices);
        bh_no_there(why, "0 GPUs");
        return bh_no_next(why, "Use another pool, or have GPUs added (pools.%s.match).", c->pool->name);
    }
    if (means_whole(c->ask) && c->grant->mechanism != BH_MECH_WHOLE) {
        bh_no(why, BH_ADMIT_FORM, NULL, "Pool %s gives parts of GPUs, and whole ones were asked for.",
              c->pool->name);
        bh_no_needed(why, "%" PRIu32 " whole GPUs", c->devices);
        bh_no_there(why, "%s", bh_word(mechanism, c->grant->mechanism));
        return bh_no_next(why, "Ask for a share or a profile, or name the pool.");
    }
    c->request->pools = pool->bit;
    c->request->features = pool->features | c->a->needs[c->grant->tenant];
    return forms[c->grant->mechanism](c, why);
}
