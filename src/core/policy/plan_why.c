/* SPDX-License-Identifier: Apache-2.0 */
#include "core/policy/plan_why.h"

#include "base/units.h"
#include "core/policy/predicate.h"

/* ---- the quota model ---- */

enum bh_quota_model bh_tenant_quota(const struct bh_tenant *t)
{
    /* The surest first: capacity of its own, then an order, then a share of what is there. */
    static const enum bh_quota_model surest[] = {BH_QUOTA_HARD, BH_QUOTA_PRIORITY, BH_QUOTA_FAIRSHARE};
    /* A class that is only a default speaks where the tenant is silent. */
    uint32_t accepted = t->class_ ? t->class_->quotas : 0;
    bool written = t->class_pos.line && accepted;

    /* R080: who pays gets what was sold. A declared hard partition is the stronger promise: it stays. */
    if (t->trust == BH_TRUST_EXTERNAL || (t->quota.has_model && t->quota.model == BH_QUOTA_HARD))
        return BH_QUOTA_HARD;
    if (t->quota.has_model && (!written || accepted >> t->quota.model & 1))
        return t->quota.model;
    if (!t->quota.has_model && t->slo.kind == BH_SLO_HARD)
        return BH_QUOTA_HARD;
    for (size_t i = 0; i < BH_COUNT_OF(surest); i++) {
        if (accepted >> surest[i] & 1)
            return surest[i];
    }
    return t->trust != BH_TRUST_INTERNAL || t->slo.kind == BH_SLO_HARD ? BH_QUOTA_HARD : BH_QUOTA_FAIRSHARE;
}

static const char *quota_text(const struct bh_tenant *t)
{
    bool sold = t->trust == BH_TRUST_EXTERNAL && t->quota.has_model && t->quota.model != BH_QUOTA_HARD;
    return sold ? "; the quota is hard: capacity sold to an external tenant is not shared out (BH-026)" : "";
}

/* ---- the sentence ---- */

static const char *choice_text(struct bh_arena *a, const struct bh_tenant_plan *p)
{
    const char *on = p->profile ? bh_arena_printf(a, " (%s on %s)", p->profile->name, p->model->name) : "";
    switch (p->mechanism) {
    case BH_MECH_WHOLE:
        return "A whole GPU";
    case BH_MECH_MIG:
        return bh_arena_printf(a, "A MIG slice%s", on);
    case BH_MECH_MPS:
        return "An MPS client of its trust domain's own server";
    case BH_MECH_TIMESLICE:
        return "A time-sliced replica";
    case BH_MECH_VGPU:
        return "A time-sliced vGPU";
    case BH_MECH_MIG_VGPU:
        return bh_arena_printf(a, "A MIG-backed vGPU%s", on);
    default:
        return bh_arena_printf(a, "A fraction backed by %s%s", bh_word(mechanism, p->backing), on);
    }
}

static const char *place_text(struct bh_arena *a, const struct bh_case *c, const struct bh_tenant_plan *p)
{
    if (p->tier >= BH_TIER_VM)
        return "";
    if (c->meeting == BH_MEETS_NOBODY_HERE)
        return bh_arena_printf(a, ", on nodes that hold only trust domain %s", c->tenant->domain);
    return c->meeting == BH_MEETS_VMS ? "; whoever distrusts it is behind a VM or on other nodes" : "";
}

/* A target is said to be one, wherever a soft mechanism was chosen. */
static const char *softness_text(struct bh_arena *a, const struct bh_tenant *t, enum bh_mechanism m)
{
    struct bh_unit_text text;
    if (!bh_mech_is_soft(m))
        return "";
    if (t->share.has_target)
        return bh_arena_printf(a, "; QoS is soft: %s is a target, not a guarantee",
                               bh_share_format(t->share.target_ppm, &text));
    return "; QoS is soft, and no share is declared: "
           "a target and its behaviour under contention belong there (BH-022)";
}

static const char *silicon_text(const struct bh_case *c, enum bh_mechanism m)
{
    if (!c->ground->index.fleet)
        return "; no fleet was given, so every catalogued model counts as at hand";
    if ((m == BH_MECH_VGPU || m == BH_MECH_MIG_VGPU) && !c->silicon->vgpu_manager)
        return "; no node at hand has the vGPU manager installed yet";
    return "";
}

/* A choice outside the class's set is a warning to the linter; a class that lists it ends that. */
static const char *class_text(struct bh_arena *a, const struct bh_case *c, const struct bh_tenant_plan *p,
                              enum bh_mechanism m)
{
    const char *quota = bh_word(quota_model, p->quota_model);
    if (!c->class_ || bh_class_accepts(c->class_, p->mechanism, p->quota_model, p->tier) ||
        bh_class_accepts(c->class_, m, p->quota_model, p->tier))
        return "";
    return bh_arena_printf(a,
                           "; class %s does not list it (BH-046), `classes: [{name: %.50s-own, "
                           "mechanism: [%s], quota: %s, tier: [%s]}]` would",
                           c->class_->name, c->class_->name, bh_word(mechanism, p->mechanism), quota,
                           bh_word(tier, p->tier));
}

const char *bh_plan_why(struct bh_arena *a, const struct bh_case *c, const struct bh_tenant_plan *p)
{
    struct bh_candidate k = {p->mechanism, p->backing, p->tier};
    enum bh_mechanism m = bh_candidate_effective(&k);
    bool last_resort = m == BH_MECH_VGPU && c->tenant->trust != BH_TRUST_INTERNAL;
    struct bh_arena parts = {.head = NULL};
    const char *why = bh_arena_printf(
        a, "%s behind a %s is the cheapest choice that keeps every promise%s%s%s%s%s%s.",
        choice_text(&parts, p), bh_word(tier, p->tier), place_text(&parts, c, p),
        softness_text(&parts, c->tenant, m), quota_text(c->tenant), class_text(&parts, c, p, m),
        last_resort ? "; it shares SMs and caches in turns (BH-011), and nothing better is at hand" : "",
        silicon_text(c, m));
    bh_arena_fini(&parts);
    return why;
}

const char *bh_plan_why_driver(struct bh_arena *a, const char *why, const struct bh_tenant *other)
{
    size_t n = strlen(why);
    return bh_arena_printf(a,
                           "%.*s; tenant %s needs another driver, and one kernel loads one: "
                           "separate nodes or a VM (BH-050).",
                           (int)(n ? n - 1 : 0), why, other->name);
}
