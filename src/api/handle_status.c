/* SPDX-License-Identifier: Apache-2.0 */
/* handle_status.c - the node at a glance: status, tenants, quotas, health, the fleet file, the document. */
#include "api/handle.h"
#include "api/use.h"

#include "base/str.h"
#include "conf/fleet_write.h"

int bh_h_openapi(struct bh_api_core *core, struct bh_api_req *q)
{
    (void)core;
    bh_api_openapi(&q->out);
    return 0;
}

static void use_json(struct bh_json *j, const struct bh_use *u)
{
    bh_json_key_u64(j, "waiting", u->waiting);
    bh_json_key_u64(j, "running", u->running);
    bh_json_key_u64(j, "leases", u->leases);
    bh_json_key_u64(j, "milli", u->milli);
    bh_json_key_u64(j, "memory_mib", u->mib);
}

static void tenant_json(struct bh_json *j, const struct bh_use *u)
{
    const struct bh_tenant *t = u->in_policy;
    bh_json_open_flat(j, '{');
    bh_json_key_str(j, "tenant", u->tenant);
    bh_json_key_str(j, "class", t ? t->class_name : NULL);
    bh_api_key_known(j, "quota_milli", t && t->quota.has_gpus ? t->quota.gpus_milli : UINT64_MAX);
    bh_api_key_known(j, "max_milli", t && t->quota.has_max ? t->quota.max_milli : UINT64_MAX);
    use_json(j, u);
    bh_json_close(j, '}');
}

static void tenants_json(struct bh_json *j, const struct bh_api_req *q, const struct bh_uses *u)
{
    bh_json_key(j, "tenants");
    bh_json_open(j, '[');
    for (size_t i = 0; i < u->at.n; i++)
        tenant_json(j, &u->at.at[i]);
    bh_json_close(j, ']');
    bh_json_key(j, "others");
    if (bh_api_sees_all(q)) {
        bh_json_str(j, NULL);
        return;
    }
    bh_json_open_flat(j, '{');
    bh_json_key_u64(j, "tenants", u->n_others);
    use_json(j, &u->others);
    bh_json_close(j, '}');
}

static const struct bh_api_view *view_with_checks(const struct bh_api_core *core)
{
    if (core->ops->checks)
        core->ops->checks(core->ops->self);
    return core->view;
}

/* The worst of the checks, in one word. */
static const char *health_word(const struct bh_api_view *v)
{
    static const char *const order[] = {"bad", "warn"};
    for (size_t k = 0; k < BH_COUNT_OF(order); k++)
        for (size_t i = 0; i < v->n_checks; i++)
            if (bh_str_eq(v->checks[i].state, order[k]))
                return order[k];
    return "ok";
}

static void caller_json(struct bh_json *j, const struct bh_api_caller *c)
{
    bh_json_key(j, "you");
    bh_json_open(j, '{');
    bh_json_key_str(j, "principal", c->principal);
    bh_json_key(j, "roles");
    bh_json_open(j, '[');
    for (size_t i = 0; i < c->n_grants; i++) {
        bh_json_open_flat(j, '{');
        bh_json_key_str(j, "role", bh_words_role.text[c->grants[i].role]);
        bh_json_key_str(j, "tenant", c->grants[i].tenant);
        bh_json_close(j, '}');
    }
    bh_json_close(j, ']');
    bh_json_close(j, '}');
}

int bh_h_status(struct bh_api_core *core, struct bh_api_req *q)
{
    const struct bh_api_view *v = view_with_checks(core);
    struct bh_json *j = &q->json;
    struct bh_uses u;
    const int rc = bh_uses_read(core, q, &u);
    if (rc < 0)
        return rc;
    bh_json_open(j, '{');
    bh_json_key_str(j, "node", v->node);
    bh_json_key_str(j, "version", v->version);
    bh_json_key_str(j, "driver", v->driver);
    bh_json_key_bool(j, "simulated", v->simulated);
    bh_json_key_u64(j, "now_ms", v->now_ms);
    bh_json_key_u64(j, "started_ms", v->started_ms);
    bh_json_key_u64(j, "policy_version", v->policy_version);
    bh_json_key_str(j, "health", health_word(v));
    bh_json_key_u64(j, "gpus", v->n_gpus);
    tenants_json(j, q, &u);
    caller_json(j, &q->caller);
    bh_json_close(j, '}');
    bh_uses_fini(&u);
    return 0;
}

int bh_h_tenants(struct bh_api_core *core, struct bh_api_req *q)
{
    struct bh_uses u;
    const int rc = bh_uses_read(core, q, &u);
    if (rc < 0)
        return rc;
    bh_json_open(&q->json, '{');
    tenants_json(&q->json, q, &u);
    bh_json_close(&q->json, '}');
    bh_uses_fini(&u);
    return 0;
}

static void quota_json(struct bh_json *j, const struct bh_use *u)
{
    const struct bh_tenant *t = u->in_policy;
    const uint64_t own = t && t->quota.has_gpus ? t->quota.gpus_milli : 0;
    bh_json_open(j, '{');
    bh_json_key_str(j, "tenant", u->tenant);
    bh_json_key_str(j, "model", t && t->quota.has_model ? bh_word(quota_model, t->quota.model) : NULL);
    bh_api_key_known(j, "guaranteed_milli", t && t->quota.has_gpus ? own : UINT64_MAX);
    bh_api_key_known(j, "max_milli", t && t->quota.has_max ? t->quota.max_milli : UINT64_MAX);
    bh_json_key_u64(j, "weight", t ? t->quota.weight : 0);
    bh_json_key_bool(j, "may_borrow", t && t->quota.borrow);
    bh_json_key_u64(j, "used_milli", u->milli);
    bh_json_key_u64(j, "borrowed_milli", u->milli > own ? u->milli - own : 0);
    bh_json_key_u64(j, "waiting_jobs", u->waiting);
    bh_json_close(j, '}');
}

int bh_h_quota(struct bh_api_core *core, struct bh_api_req *q)
{
    struct bh_json *j = &q->json;
    struct bh_uses u;
    const int rc = bh_uses_read(core, q, &u);
    if (rc < 0)
        return rc;
    bh_json_open(j, '{');
    bh_json_key(j, "quotas");
    bh_json_open(j, '[');
    for (size_t i = 0; i < u.at.n; i++)
        quota_json(j, &u.at.at[i]);
    bh_json_close(j, ']');
    bh_json_close(j, '}');
    bh_uses_fini(&u);
    return 0;
}

static void pools_json(struct bh_api_req *q, const struct bh_policy *p, const char *tenant)
{
    struct bh_json *j = &q->json;
    bh_json_key(j, "pools");
    bh_json_open(j, '[');
    for (size_t i = 0; i < p->pools.n; i++) {
        const struct bh_pool *pool = &p->pools.at[i];
        bool in = pool->any_tenant;
        for (size_t k = 0; !in && k < pool->tenants.n; k++)
            in = bh_str_eq(p->tenants.at[pool->tenants.at[k]].name, tenant);
        if (!in)
            continue;
        bh_json_open_flat(j, '{');
        bh_json_key_str(j, "pool", pool->name);
        bh_json_key_str(j, "mechanism", bh_word(mechanism, pool->mechanism));
        bh_json_key_str(j, "tier", bh_word(tier, pool->tier));
        bh_json_key_bool(j, "shared", bh_pool_is_shared(pool));
        bh_json_key_str(j, "stays_shared",
                        bh_h_stays_shared(&q->arena, (uint8_t)bh_pool_effective(pool), pool->tier));
        bh_json_close(j, '}');
    }
    bh_json_close(j, ']');
}

int bh_h_tenant(struct bh_api_core *core, struct bh_api_req *q)
{
    struct bh_json *j = &q->json;
    const struct bh_use *found = NULL;
    struct bh_uses u;
    const int rc = bh_uses_read(core, q, &u);
    if (rc < 0)
        return rc;
    for (size_t i = 0; i < u.at.n && !found; i++)
        if (u.at.at[i].in_policy && bh_str_eq(u.at.at[i].tenant, q->param))
            found = &u.at.at[i];
    if (found) {
        bh_json_open(j, '{');
        bh_json_key(j, "use");
        tenant_json(j, found);
        bh_json_key(j, "quota");
        quota_json(j, found);
        bh_json_key_str(j, "trust", bh_word(trust, found->in_policy->trust));
        bh_json_key_str(j, "domain", found->in_policy->domain);
        bh_json_key_str(j, "cost_center", found->in_policy->cost_center);
        pools_json(q, core->view->policy, found->tenant);
        bh_json_close(j, '}');
    }
    bh_uses_fini(&u);
    return found ? 0 : bh_api_not_there(q, "tenant");
}

int bh_h_health(struct bh_api_core *core, struct bh_api_req *q)
{
    bh_json_open_flat(&q->json, '{');
    bh_json_key_str(&q->json, "health", health_word(view_with_checks(core)));
    bh_json_close(&q->json, '}');
    return 0;
}

int bh_h_doctor(struct bh_api_core *core, struct bh_api_req *q)
{
    const struct bh_api_view *v = view_with_checks(core);
    struct bh_json *j = &q->json;
    bh_json_open(j, '{');
    bh_json_key_str(j, "health", health_word(v));
    bh_json_key(j, "checks");
    bh_json_open(j, '[');
    for (size_t i = 0; i < v->n_checks; i++) {
        bh_json_open(j, '{');
        bh_json_key_str(j, "layer", v->checks[i].layer);
        bh_json_key_str(j, "state", v->checks[i].state);
        bh_json_key_str(j, "sentence", v->checks[i].sentence);
        bh_json_key_str(j, "mend", v->checks[i].mend);
        bh_json_close(j, '}');
    }
    bh_json_close(j, ']');
    bh_json_close(j, '}');
    return 0;
}

int bh_h_fleet(struct bh_api_core *core, struct bh_api_req *q)
{
    if (!core->view->fleet)
        return bh_api_refuse(&q->problem, BH_NOT_FOUND, "the fleet of this node is not known yet");
    bh_fleet_write(&q->out, core->view->fleet, NULL, NULL);
    return 0;
}

int bh_h_events(struct bh_api_core *core, struct bh_api_req *q)
{
    (void)core;
    q->follow = BH_FOLLOW_EVENTS;
    return 0;
}
