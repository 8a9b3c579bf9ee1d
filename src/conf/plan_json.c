/* SPDX-License-Identifier: Apache-2.0 */
#include "conf/out.h"

size_t bh_plan_impossible(const struct bh_plan *p)
{
    size_t n = 0;
    for (size_t i = 0; i < p->tenants.n; i++)
        n += !p->tenants.at[i].possible;
    return n;
}

/* What a mechanism stands on: only a fractional one has something to say. */
static const char *backing_word(uint8_t backing)
{
    return backing == BH_MECH_UNSET ? NULL : bh_word(mechanism, backing);
}

static void write_choice(struct bh_json *j, const struct bh_plan_out *p, const struct bh_tenant_plan *t)
{
    bh_json_key_str(j, "mechanism", bh_word(mechanism, t->mechanism));
    bh_json_key_str(j, "backing", backing_word(t->backing));
    bh_json_key_str(j, "quota", bh_word(quota_model, t->quota_model));
    bh_json_key_str(j, "tier", bh_word(tier, t->tier));
    bh_json_key_str(j, "model", t->model ? t->model->name : NULL);
    bh_json_key_str(j, "profile", t->profile ? t->profile->name : NULL);
    bh_json_key_str(j, "pool", t->pool < p->policy->pools.n ? p->policy->pools.at[t->pool].name : NULL);
    bh_json_key_u64(j, "costPpm", t->cost_ppm);
    bh_json_key_u64(j, "units", t->units);
    bh_json_key_str(j, "why", t->why);
    bh_json_key(j, "shared");
    bh_json_open(j, '[');
    for (size_t i = 0; i < BH_PLAN_SHARED_MAX && t->shared[i]; i++)
        bh_json_str(j, t->shared[i]);
    bh_json_close(j, ']');
    bh_json_key_str(j, "boundedBy", t->bounded_by);
}

static void write_tenant(struct bh_json *j, const struct bh_plan_out *p, const struct bh_tenant_plan *t)
{
    const struct bh_tenant *tenant = &p->policy->tenants.at[t->tenant];

    bh_json_open(j, '{');
    bh_json_key_str(j, "tenant", tenant->name);
    bh_json_key_u64(j, "line", tenant->pos.line);
    bh_json_key_u64(j, "column", tenant->pos.column);
    bh_json_key_bool(j, "possible", t->possible);
    if (t->possible)
        write_choice(j, p, t);
    else
        bh_json_key_str(j, "needed", t->needed);
    bh_json_key(j, "rejected");
    bh_json_open(j, '[');
    for (size_t i = 0; i < t->rejected.n; i++) {
        const struct bh_plan_rejected *r = &t->rejected.at[i];
        bh_json_open_flat(j, '{');
        bh_json_key_str(j, "mechanism", bh_word(mechanism, r->mechanism));
        bh_json_key_str(j, "backing", backing_word(r->backing));
        bh_json_key_str(j, "tier", bh_word(tier, r->tier));
        bh_json_key_str(j, "rule", r->rule ? r->rule->id : NULL);
        bh_json_key_str(j, "reason", r->reason);
        bh_json_close(j, '}');
    }
    bh_json_close(j, ']');
    bh_json_close(j, '}');
}

void bh_plan_json(struct bh_buf *out, const struct bh_plan_out *p)
{
    struct bh_json j;
    size_t impossible = bh_plan_impossible(p->plan);

    bh_json_init(&j, out);
    bh_json_open(&j, '{');
    bh_json_key_u64(&j, "version", 1);
    bh_json_key_str(&j, "policy", p->label);
    bh_json_key_str(&j, "fleet", p->fleet);
    bh_json_key_u64(&j, "kept", p->plan->tenants.n - impossible);
    bh_json_key_u64(&j, "impossible", impossible);
    bh_json_key(&j, "tenants");
    bh_json_open(&j, '[');
    for (size_t i = 0; i < p->plan->tenants.n; i++)
        write_tenant(&j, p, &p->plan->tenants.at[i]);
    bh_json_close(&j, ']');
    bh_json_close(&j, '}');
}
