/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ask.c - what somebody asks for, held against the policy step by step.
 *
 * Each pool that could serve is tried through one table of steps; the first pool that passes all of them gives the job.
 * Where none does, the refusal of the pool that came furthest is told: it is the one closest to a yes.
 */
#include "core/admit/ask.h"

#include "base/str.h"
#include "base/units.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

static const char *const codes[BH_ADMIT_CODES] = {
    [BH_ADMIT_OK] = "ok",
    [BH_ADMIT_NO_TENANT] = "no_tenant",
    [BH_ADMIT_NO_POOL] = "no_pool",
    [BH_ADMIT_NOT_YOURS] = "not_yours",
    [BH_ADMIT_NOT_HERE] = "not_here",
    [BH_ADMIT_RULE] = "rule",
    [BH_ADMIT_TIER] = "tier",
    [BH_ADMIT_PRIORITY] = "priority",
    [BH_ADMIT_FORM] = "form",
    [BH_ADMIT_PROFILE] = "profile",
    [BH_ADMIT_SHARE] = "share",
    [BH_ADMIT_MEMORY] = "memory",
    [BH_ADMIT_QUOTA] = "quota",
    [BH_ADMIT_SIZE] = "size",
    [BH_ADMIT_SPAN] = "span",
    [BH_ADMIT_SITE] = "site",
    [BH_ADMIT_DRIVER] = "driver",
};

const char *bh_admit_code_str(enum bh_admit_code c)
{
    return codes[c];
}

/* ---- refusing ---- */

BH_PRINTF(3, 0)
static void say(char *to, size_t size, const char *fmt, va_list ap)
{
    if (vsnprintf(to, size, fmt, ap) < 0)
        *to = '\0';
}

bool bh_no(struct bh_admit_refusal *why, enum bh_admit_code code, const char *rule, const char *fmt, ...)
{
    va_list ap;
    *why = (struct bh_admit_refusal){.code = code, .rule = rule ? bh_rule_find(rule) : NULL};
    va_start(ap, fmt);
    say(why->what, sizeof(why->what), fmt, ap);
    va_end(ap);
    return false;
}

bool bh_no_needed(struct bh_admit_refusal *why, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    say(why->needed, sizeof(why->needed), fmt, ap);
    va_end(ap);
    return false;
}

bool bh_no_there(struct bh_admit_refusal *why, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    say(why->there, sizeof(why->there), fmt, ap);
    va_end(ap);
    return false;
}

bool bh_no_next(struct bh_admit_refusal *why, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    say(why->next, sizeof(why->next), fmt, ap);
    va_end(ap);
    return false;
}

/* ---- steps: who, behind what, how urgent ---- */

static bool step_here(struct bh_asking *c, struct bh_admit_refusal *why)
{
    const struct bh_admit_config *here = &c->a->config;
    const uint8_t tier = c->grant->tier;
    if (c->ask->runs)
        return true;
    if (here->tiers && !(here->tiers >> tier & 1)) {
        bh_no(why, BH_ADMIT_NOT_HERE, NULL,
              "Pool %s runs its work behind tier %s, which cannot be set up here.", c->pool->name,
              bh_word(tier, tier));
        bh_no_needed(why, "tier %s", bh_word(tier, tier));
        return bh_no_next(why, "Use another pool, or ask the operator for a machine that has this tier.");
    }
    if (here->mechanisms && !(here->mechanisms >> c->grant->mechanism & 1)) {
        bh_no(why, BH_ADMIT_NOT_HERE, NULL, "Pool %s divides its GPUs by %s, which cannot be set up here.",
              c->pool->name, bh_word(mechanism, c->grant->mechanism));
        bh_no_needed(why, "%s", bh_word(mechanism, c->grant->mechanism));
        return bh_no_next(why, "Use another pool, or ask the operator for GPUs that can do it.");
    }
    return true;
}

/* What already stands against the pool, or against this tenant there. */
static bool step_standing(struct bh_asking *c, struct bh_admit_refusal *why)
{
    const struct bh_admit_pool *p = &c->a->pools[c->grant->pool];
    for (size_t i = 0; i < p->standing.n; i++) {
        const struct bh_standing *s = &p->standing.at[i];
        if (s->tenant == BH_NONE || s->tenant == c->grant->tenant)
            return bh_no_rule(c, why, s);
    }
    return true;
}

bool bh_no_rule(struct bh_asking *c, struct bh_admit_refusal *why, const struct bh_standing *s)
{
    bh_no(why, BH_ADMIT_RULE, s->rule->id, "%s", s->message);
    bh_no_needed(why, "rule %s kept, for tenant %s in pool %s", s->rule->id, c->tenant->name, c->pool->name);
    bh_no_there(why, "%s", s->rule->title);
    return bh_no_next(why, "%s", s->fix ? s->fix : s->rule->fix);
}

static bool step_tier(struct bh_asking *c, struct bh_admit_refusal *why)
{
    if (!c->ask->has_tier || c->ask->tier >= c->pool->tier)
        return true;
    bh_no(why, BH_ADMIT_TIER, NULL, "Tier %s is weaker than pool %s asks for.", bh_word(tier, c->ask->tier),
          c->pool->name);
    bh_no_needed(why, "tier %s or stronger", bh_word(tier, c->pool->tier));
    bh_no_there(why, "tier %s", bh_word(tier, c->ask->tier));
    return bh_no_next(why, "Ask for tier %s, or for none.", bh_word(tier, c->pool->tier));
}

static bool step_priority(struct bh_asking *c, struct bh_admit_refusal *why)
{
    const uint8_t ceiling = c->tenant->priority.ceiling;
    if (!c->ask->has_priority || c->ask->priority <= ceiling)
        return true;
    bh_no(why, BH_ADMIT_PRIORITY, NULL, "Priority %s is above the ceiling of tenant %s.",
          bh_word(priority, c->ask->priority), c->tenant->name);
    bh_no_needed(why, "a ceiling of %s", bh_word(priority, c->ask->priority));
    bh_no_there(why, "a ceiling of %s", bh_word(priority, ceiling));
    return bh_no_next(why, "Ask for priority %s, or have the ceiling raised (tenants.%s.priority).",
                      bh_word(priority, ceiling), c->tenant->name);
}

/* ---- steps: how much, and where ---- */

static bool step_quota(struct bh_asking *c, struct bh_admit_refusal *why)
{
    struct bh_unit_text asked, bound;
    uint32_t q = bh_admit_queue(c->a, c->grant->tenant);
    for (uint32_t i = q; i != BH_QUEUE_ROOT; i = c->a->rows.at[i].parent) {
        const struct bh_admit_row *r = &c->a->rows.at[i];
        const uint64_t most = bh_admit_most(&r->config), own = bh_admit_entitled(&r->config);
        const bool firm = c->grant->job.firm && own != BH_AMOUNT_ANY && c->milli > own;
        if (c->milli <= most && !firm)
            continue;
        bh_no(
            why, BH_ADMIT_QUOTA, NULL,
            firm && c->milli <= most
                ? "%s GPUs that may not be interrupted are more than %s is entitled to, and what is beyond is borrowed."
                : "%s GPUs are more than %s may ever have.",
            bh_count_format(c->milli, &asked), r->name);
        bh_no_needed(why, "%s GPUs", asked.s);
        bh_no_there(why, "%s GPUs", bh_count_format(c->milli > most ? most : own, &bound));
        return bh_no_next(
            why, "%sAsk for less, or have the quota raised (tenants.%s.quota).",
            firm && c->milli <= most ? "Say that it may be paused, suspended or requeued. " : "", r->name);
    }
    return true;
}

/* How many GPUs, or instances, of the pool it could have if it were alone. */
static uint32_t room_with(const struct bh_asking *c, uint64_t features)
{
    const struct bh_mig_profile *mig = c->request->form == BH_FORM_MIG ? c->grant->layers[0].profile : NULL;
    uint32_t n = 0;
    for (size_t i = 0; i < c->a->parts.n; i++) {
        const struct bh_part *p = &c->a->parts.at[i];
        if ((p->pools & c->request->pools) && !(features & ~p->features) &&
            bh_request_takes(c->request, p->model))
            n += p->n_gpus * (mig ? mig->max_instances : 1);
    }
    return n;
}

/* Which demand leaves nothing of the pool. */
static bool no_machine(const struct bh_asking *c, struct bh_admit_refusal *why)
{
    const struct bh_tenant *t = c->tenant;
    const struct bh_fleet_node *n = &c->a->fleet->nodes.at[c->pool->gpus.at[0].node];
    for (size_t i = 0; i < c->a->features.n; i++) {
        const struct bh_feature *f = &c->a->features.at[i];
        if (!(f->bit & c->request->features) || room_with(c, f->bit))
            continue;
        if (f->site) {
            bh_no(why, BH_ADMIT_SITE, NULL, "Tenant %s must run in site %s, and pool %s has no GPU there.",
                  t->name, f->site, c->pool->name);
            bh_no_needed(why, "site %s", f->site);
            bh_no_there(why, "site %s", n->site ? n->site : "not stated");
            return bh_no_next(why, "Use a pool in site %s, or have GPUs there added to this one.", f->site);
        }
        bh_no(why, BH_ADMIT_DRIVER, f->drivers == &c->pool->drivers ? "BH-051" : "BH-050",
              "No GPU of pool %s has a driver that %s accepts.", c->pool->name,
              f->drivers == &c->pool->drivers ? "the pool" : t->name);
        bh_no_needed(why, "driver %s", f->drivers->at[0].s);
        bh_no_there(why, "driver %s", n->driver ? n->driver : "not stated");
        return bh_no_next(why, "Use a pool with driver %s, or have it qualified and the list extended.",
                          f->drivers->at[0].s);
    }
    bh_no(why, BH_ADMIT_DRIVER, "BH-050",
          "No GPU of pool %s meets the site and the drivers that %s needs at once.", c->pool->name, t->name);
    bh_no_needed(why, "a machine with all of them");
    bh_no_there(why, "machines with some");
    return bh_no_next(why, "Use another pool.");
}

/* The most GPUs of the pool that hang together. */
static uint32_t largest_link(const struct bh_asking *c)
{
    const struct bh_mig_profile *mig = c->request->form == BH_FORM_MIG ? c->grant->layers[0].profile : NULL;
    uint32_t *in = bh_alloc(c->a->n_links, sizeof(*in)), most = 0;
    for (size_t i = 0; i < c->a->parts.n; i++) {
        const struct bh_part *p = &c->a->parts.at[i];
        if (!(p->pools & c->request->pools) || (c->request->features & ~p->features) ||
            !bh_request_takes(c->request, p->model))
            continue;
        in[p->link] += p->n_gpus * (mig ? mig->max_instances : 1);
        most = in[p->link] > most ? in[p->link] : most;
    }
    free(in);
    return most;
}

static bool step_place(struct bh_asking *c, struct bh_admit_refusal *why)
{
    const uint32_t there = room_with(c, c->request->features);
    const uint32_t need = c->devices;
    const char *what = c->request->form == BH_FORM_MIG ? "instances" : "GPUs";
    if (!there)
        return no_machine(c, why);
    if (there < need) {
        bh_no(why, BH_ADMIT_SIZE, NULL, "%" PRIu32 " %s are more than pool %s has for tenant %s.", need, what,
              c->pool->name, c->tenant->name);
        bh_no_needed(why, "%" PRIu32 " %s", need, what);
        bh_no_there(why, "%" PRIu32 " %s", there, what);
        return bh_no_next(why, "Ask for %" PRIu32 " or fewer.", there);
    }
    if (c->grant->job.within == BH_LEVEL_LINK && largest_link(c) < need) {
        bh_no(why, BH_ADMIT_SPAN, "BH-040", "%" PRIu32 " %s do not stand in one fabric domain of pool %s.",
              need, what, c->pool->name);
        bh_no_needed(why, "%" PRIu32 " %s in one domain", need, what);
        bh_no_there(why, "%" PRIu32 " %s in the largest", largest_link(c), what);
        return bh_no_next(why, "%s",
                          c->ask->needs_nvlink ? "Ask for fewer, or do without NVLink."
                                               : "Ask for fewer, or allow it to span (allowSpan).");
    }
    return true;
}

static bool step_rules(struct bh_asking *c, struct bh_admit_refusal *why)
{
    struct bh_arena arena = {0};
    struct bh_standing s;
    const bool refused = bh_admit_judge(
        c->a, c->grant->tenant, c->grant->pool, c->grant->tier, c->ask,
        (uint64_t)c->devices * (c->request->gpu_milli ? c->request->gpu_milli : 1000), &arena, &s);
    if (refused)
        bh_no_rule(c, why, &s);
    bh_arena_fini(&arena);
    return !refused;
}

static bool (*const steps[])(struct bh_asking *, struct bh_admit_refusal *) = {
    step_tier, step_here, step_standing, step_priority, bh_admit_form, step_place, step_quota, step_rules,
};

/* ---- all together ---- */

static void begin(struct bh_asking *c, uint32_t pool)
{
    const struct bh_admit_ask *ask = c->ask;
    struct bh_admit_grant *g = c->grant;
    const uint32_t tenant = (uint32_t)(c->tenant - c->a->policy->tenants.at);
    c->pool = &c->a->policy->pools.at[pool];
    *g = (struct bh_admit_grant){.tenant = tenant, .pool = pool};
    g->mechanism = (uint8_t)bh_pool_effective(c->pool);
    g->tier = ask->has_tier && ask->tier > c->pool->tier ? ask->tier : c->pool->tier;
    const uint8_t normal =
        c->tenant->priority.ceiling < BH_PRIORITY_NORMAL ? c->tenant->priority.ceiling : BH_PRIORITY_NORMAL;
    g->job = (struct bh_gang_spec){.id = ask->id,
                                   .queue = bh_admit_queue(c->a, tenant),
                                   .user = ask->user,
                                   .n_roles = 1,
                                   .within = BH_LEVEL_ANY,
                                   .prefer = BH_LEVEL_LINK,
                                   .band = ask->has_priority ? ask->priority : normal,
                                   .can = ask->can,
                                   .firm = !ask->can,
                                   .submit_ms = ask->submit_ms,
                                   .deadline_ms = ask->deadline_ms ? ask->deadline_ms : BH_TURN_NO_DEADLINE,
                                   .runtime_ms = ask->duration_ms,
                                   .min_run_ms = c->a->config.min_run_ms};
    c->request = &g->job.roles[0].request;
    c->milli = 0;
    c->devices = ask->gpus ? ask->gpus : 1;
}

/* How many steps it passed; all of them: it is admitted. */
static size_t try_pool(struct bh_asking *c, uint32_t pool, struct bh_admit_refusal *why)
{
    size_t i = 0;
    begin(c, pool);
    while (i < BH_COUNT_OF(steps) && steps[i](c, why))
        i++;
    return i;
}

static bool no_tenant(const struct bh_admit *a, const struct bh_admit_ask *ask, struct bh_admit_refusal *why)
{
    (void)a;
    bh_no(why, BH_ADMIT_NO_TENANT, NULL, "The policy has no tenant '%.100s'.",
          ask->tenant ? ask->tenant : "");
    bh_no_needed(why, "a tenant");
    bh_no_there(why, "none of that name");
    return bh_no_next(why, "Have the tenant added to the policy, or name one that is in it.");
}

static bool no_pool(const struct bh_asking *c, struct bh_admit_refusal *why)
{
    const bool named = c->ask->pool != NULL;
    bh_no(why, BH_ADMIT_NO_POOL, NULL,
          named ? "The policy has no pool '%.100s'." : "Tenant %.100s is in no pool.",
          named ? c->ask->pool : c->tenant->name);
    bh_no_needed(why, "a pool");
    bh_no_there(why, "%s", named ? "none of that name" : "none");
    return bh_no_next(why, "Have tenant %s added to a pool (pools.tenants).", c->tenant->name);
}

static bool not_yours(const struct bh_asking *c, struct bh_admit_refusal *why)
{
    bh_no(why, BH_ADMIT_NOT_YOURS, NULL, "Pool %s is not open to tenant %s.", c->ask->pool, c->tenant->name);
    bh_no_needed(why, "tenant %s among the pool's", c->tenant->name);
    bh_no_there(why, "others");
    return bh_no_next(why, "Name no pool, or have the tenant added (pools.%s.tenants).", c->ask->pool);
}

bool bh_admit_job(const struct bh_admit *a, const struct bh_admit_ask *ask, struct bh_admit_grant *ret,
                  struct bh_admit_refusal *why)
{
    struct bh_admit_grant grant;
    struct bh_admit_refusal no, best;
    struct bh_asking c = {.a = a, .ask = ask, .grant = &grant};
    const uint32_t tenant = ask->tenant ? bh_map_find(&a->policy->tenant_by_name, ask->tenant) : BH_MAP_NONE;
    size_t furthest = 0;
    bool tried = false;
    if (tenant == BH_MAP_NONE)
        return no_tenant(a, ask, why);
    c.tenant = &a->policy->tenants.at[tenant];
    const uint32_t named = ask->pool ? bh_map_find(&a->policy->pool_by_name, ask->pool) : BH_MAP_NONE;
    if (ask->pool && named == BH_MAP_NONE)
        return no_pool(&c, why);
    BH_EACH (pool, &a->index.tenant_pools, tenant) {
        if (ask->pool && *pool != named)
            continue;
        const size_t passed = try_pool(&c, *pool, &no);
        if (passed == BH_COUNT_OF(steps)) {
            *ret = grant;
            return true;
        }
        if (!tried || passed > furthest)
            best = no;
        furthest = passed > furthest ? passed : furthest;
        tried = true;
    }
    if (!tried)
        return ask->pool ? not_yours(&c, why) : no_pool(&c, why);
    *why = best;
    return false;
}
