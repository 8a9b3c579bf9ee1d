/* SPDX-License-Identifier: Apache-2.0 */
/* promise.c - two policies compared, tenant by tenant, binding by binding, waiver by waiver. */
#include "node/promise.h"

#include "base/str.h"

#include <inttypes.h>
#include <stdio.h>

enum { QUOTA_TEXT = 200 };

struct change {
    const struct bh_policy *from, *to;
    bh_promise_fn *take;
    void *arg;
    struct bh_err *err;
};

static bool same(const char *a, const char *b)
{
    return a && b ? bh_str_eq(a, b) : a == b;
}

/* ---- tenants ---- */

static const struct bh_tenant *tenant_of(const struct bh_policy *p, const char *name)
{
    for (size_t i = 0; p && i < p->tenants.n; i++)
        if (same(p->tenants.at[i].name, name))
            return &p->tenants.at[i];
    return NULL;
}

static const char *gpus(uint64_t milli, char ret[32])
{
    if (milli % 1000)
        (void)snprintf(ret, 32, "%" PRIu64 ".%03u", milli / 1000, (unsigned)(milli % 1000));
    else
        (void)snprintf(ret, 32, "%" PRIu64, milli / 1000);
    return ret;
}

/* `fairshare, 2 GPUs, at most 4, weight 200, borrows`: the same text is the same promise. */
static const char *quota(const struct bh_quota *q, char ret[QUOTA_TEXT])
{
    char some[32], most[32], memory[48] = "";
    if (q->pos.line == 0)
        return "none";
    if (q->memory_bytes)
        (void)snprintf(memory, sizeof(memory), ", %" PRIu64 " bytes", q->memory_bytes);
    (void)snprintf(ret, QUOTA_TEXT, "%s, %s GPUs%s%s%s, weight %" PRIu32 "%s", bh_word(quota_model, q->model),
                   gpus(q->gpus_milli, some), q->has_max ? ", at most " : "",
                   q->has_max ? gpus(q->max_milli, most) : "", memory, q->weight,
                   q->borrow ? ", borrows" : "");
    return ret;
}

static int say_tenant(const struct change *c, enum bh_audit_kind kind, const char *name, const char *before,
                      const char *after, const char *reason)
{
    const struct bh_audit_event e = {.event = kind,
                                     .tenant = name,
                                     .object_type = "tenant",
                                     .object_id = name,
                                     .before = before,
                                     .after = after,
                                     .reason = reason};
    return c->take(c->arg, &e, c->err);
}

static int compare_tenant(const struct change *c, const struct bh_tenant *to)
{
    const struct bh_tenant *from = tenant_of(c->from, to->name);
    char was[QUOTA_TEXT], is[QUOTA_TEXT];
    const char *after = quota(&to->quota, is);
    if (!from)
        return say_tenant(c, BH_AUDIT_TENANT_CREATE, to->name, NULL, to->class_name, after);
    const char *before = quota(&from->quota, was);
    int rc = BH_OK;
    if (!same(from->class_name, to->class_name))
        rc = say_tenant(c, BH_AUDIT_TENANT_CLASS, to->name, from->class_name, to->class_name, NULL);
    if (rc == BH_OK && !same(before, after))
        rc = say_tenant(c, BH_AUDIT_QUOTA_SET, to->name, before, after, NULL);
    return rc;
}

static int compare_tenants(const struct change *c)
{
    int rc = BH_OK;
    for (size_t i = 0; rc == BH_OK && i < c->to->tenants.n; i++)
        rc = compare_tenant(c, &c->to->tenants.at[i]);
    for (size_t i = 0; rc == BH_OK && c->from && i < c->from->tenants.n; i++) {
        const struct bh_tenant *t = &c->from->tenants.at[i];
        if (!tenant_of(c->to, t->name))
            rc = say_tenant(c, BH_AUDIT_TENANT_DELETE, t->name, t->class_name, NULL, NULL);
    }
    return rc;
}

/* ---- roles ---- */

static bool has_role(const struct bh_policy *p, const struct bh_role_binding *b)
{
    for (size_t i = 0; p && i < p->roles.n; i++) {
        const struct bh_role_binding *x = &p->roles.at[i];
        if (x->role == b->role && same(x->subject, b->subject) && same(x->tenant.s, b->tenant.s))
            return true;
    }
    return false;
}

/* Those of one that the other has not. */
static int compare_roles(const struct change *c, const struct bh_policy *one, const struct bh_policy *other,
                         enum bh_audit_kind kind)
{
    int rc = BH_OK;
    for (size_t i = 0; rc == BH_OK && one && i < one->roles.n; i++) {
        const struct bh_role_binding *b = &one->roles.at[i];
        const char *role = bh_word(role, b->role);
        const struct bh_audit_event e = {.event = kind,
                                         .tenant = b->tenant.s,
                                         .object_type = "subject",
                                         .object_id = b->subject,
                                         .before = kind == BH_AUDIT_RBAC_REVOKE ? role : NULL,
                                         .after = kind == BH_AUDIT_RBAC_GRANT ? role : NULL};
        if (!has_role(other, b))
            rc = c->take(c->arg, &e, c->err);
    }
    return rc;
}

/* ---- waivers ---- */

static bool has_waiver(const struct bh_policy *p, const struct bh_waiver *w)
{
    for (size_t i = 0; p && i < p->waivers.n; i++) {
        const struct bh_waiver *x = &p->waivers.at[i];
        if (same(x->rule, w->rule) && same(x->scope, w->scope) && same(x->approver, w->approver) &&
            same(x->reason, w->reason) && x->has_expiry == w->has_expiry && x->expires_day == w->expires_day)
            return true;
    }
    return false;
}

static int compare_waivers(const struct change *c)
{
    int rc = BH_OK;
    for (size_t i = 0; rc == BH_OK && i < c->to->waivers.n; i++) {
        const struct bh_waiver *w = &c->to->waivers.at[i];
        const char *const rules[] = {w->rule};
        const struct bh_audit_event e = {.event = BH_AUDIT_POLICY_WAIVER,
                                         .object_type = "waiver",
                                         .object_id = w->scope ? w->scope : "all",
                                         .after = w->approver,
                                         .reason = w->reason,
                                         .rule_ids = rules,
                                         .n_rule_ids = w->rule ? 1 : 0};
        if (!has_waiver(c->from, w))
            rc = c->take(c->arg, &e, c->err);
    }
    return rc;
}

int bh_promise_changes(const struct bh_policy *from, const struct bh_policy *to, bh_promise_fn *take,
                       void *arg, struct bh_err *err)
{
    const struct change c = {from, to, take, arg, err};
    int rc = compare_tenants(&c);
    if (rc == BH_OK)
        rc = compare_roles(&c, to, from, BH_AUDIT_RBAC_GRANT);
    if (rc == BH_OK)
        rc = compare_roles(&c, from, to, BH_AUDIT_RBAC_REVOKE);
    return rc == BH_OK ? compare_waivers(&c) : rc;
}
