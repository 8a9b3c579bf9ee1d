/* SPDX-License-Identifier: Apache-2.0 */
/* promise.c - two policies compared, tenant by tenant, binding by binding, waiver by waiver. */
#include "node/promise.h"

#include "base/str.h"
#include "base/units.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct change {
    const struct bh_policy *from, *to;
    struct bh_arena *arena; /* of what is said */
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

static const char *gpus(struct bh_arena *arena, uint64_t milli)
{
    return milli % 1000 ? bh_arena_printf(arena, "%" PRIu64 ".%03u", milli / 1000, (unsigned)(milli % 1000))
                        : bh_arena_printf(arena, "%" PRIu64, milli / 1000);
}

static int by_name(const void *a, const void *b)
{
    const struct bh_amount *const *x = a, *const *y = b;
    return strcmp((*x)->resource, (*y)->resource);
}

/* `, nvidia.com/gpu 2`, for each, in the order of their names: to write them in another order changes nothing. */
static const char *resources(struct bh_arena *arena, const struct bh_quota *q)
{
    const char *text = "";
    const struct bh_amount **at = bh_arena_alloc(arena, (q->resources.n + 1) * sizeof(*at));
    for (size_t i = 0; i < q->resources.n; i++)
        at[i] = &q->resources.at[i];
    qsort(at, q->resources.n, sizeof(*at), by_name);
    for (size_t i = 0; i < q->resources.n; i++)
        text = bh_arena_printf(arena, "%s, %s %s", text, at[i]->resource, gpus(arena, at[i]->milli));
    return text;
}

/* `fairshare, 2 GPUs, at most 4, weight 200, borrows`: the same text is the same promise. */
static const char *quota(struct bh_arena *arena, const struct bh_quota *q)
{
    if (q->pos.line == 0)
        return "none";
    return bh_arena_printf(arena, "%s, %s GPUs%s%s%s%s, weight %" PRIu32 "%s", bh_word(quota_model, q->model),
                           gpus(arena, q->gpus_milli), q->has_max ? ", at most " : "",
                           q->has_max ? gpus(arena, q->max_milli) : "",
                           q->memory_bytes ? bh_arena_printf(arena, ", %" PRIu64 " bytes", q->memory_bytes)
                                           : "",
                           resources(arena, q), q->weight, q->borrow ? ", borrows" : "");
}

enum { TERMS = 9 };

static const char *bytes_or_none(struct bh_arena *arena, const char *what, uint64_t bytes)
{
    struct bh_unit_text t;
    return bh_arena_printf(arena, "%s %s", what, bytes ? bh_size_format(bytes, &t) : "none");
}

/* What it agreed to besides its class and its quota. */
static void terms(struct bh_arena *arena, const struct bh_tenant *t, const char *ret[TERMS])
{
    struct bh_unit_text u;
    size_t n = 0;
    ret[n++] = bh_arena_printf(arena, "domain %s", t->domain ? t->domain : "none");
    ret[n++] = bh_arena_printf(arena, "parent %s", t->parent ? t->parent : "none");
    ret[n++] = bh_arena_printf(arena, "trust %s%s", bh_word(trust, t->trust),
                               t->operator_untrusted ? ", the operator is not trusted" : "");
    ret[n++] = bh_arena_printf(arena, "priority up to %s%s%s", bh_word(priority, t->priority.ceiling),
                               t->priority.has_budget ? ", budget " : "",
                               t->priority.has_budget ? bh_duration_format(t->priority.budget_ms, &u) : "");
    ret[n++] = bh_arena_printf(arena, "network %s, rdma %s", bh_word(net_policy, t->network.policy),
                               bh_word(rdma, t->network.rdma));
    ret[n++] = bytes_or_none(arena, "storage", t->storage.quota_bytes);
    ret[n++] =
        bh_arena_printf(arena, "sleeps after %s",
                        t->idle.sleep_after_ms ? bh_duration_format(t->idle.sleep_after_ms, &u) : "no time");
    ret[n++] = bytes_or_none(arena, "network a second", t->bandwidth.network);
    ret[n++] = bytes_or_none(arena, "disk a second", t->bandwidth.disk);
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

/* Those that are not as they were, as they were and as they are. */
static int compare_terms(const struct change *c, const struct bh_tenant *from, const struct bh_tenant *to)
{
    const char *was[TERMS], *is[TERMS], *before = NULL, *after = NULL;
    terms(c->arena, from, was);
    terms(c->arena, to, is);
    for (size_t i = 0; i < TERMS; i++)
        if (!same(was[i], is[i])) {
            before = before ? bh_arena_printf(c->arena, "%s, %s", before, was[i]) : was[i];
            after = after ? bh_arena_printf(c->arena, "%s, %s", after, is[i]) : is[i];
        }
    return before ? say_tenant(c, BH_AUDIT_POLICY_CHANGE, to->name, before, after, NULL) : BH_OK;
}

static int compare_tenant(const struct change *c, const struct bh_tenant *to)
{
    const struct bh_tenant *from = tenant_of(c->from, to->name);
    const char *after = quota(c->arena, &to->quota);
    if (!from)
        return say_tenant(c, BH_AUDIT_TENANT_CREATE, to->name, NULL, to->class_name, after);
    const char *before = quota(c->arena, &from->quota);
    int rc = BH_OK;
    if (!same(from->class_name, to->class_name))
        rc = say_tenant(c, BH_AUDIT_TENANT_CLASS, to->name, from->class_name, to->class_name, NULL);
    if (rc == BH_OK && !same(before, after))
        rc = say_tenant(c, BH_AUDIT_QUOTA_SET, to->name, before, after, NULL);
    return rc == BH_OK ? compare_terms(c, from, to) : rc;
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

/* The one that it is in the place of: of the same rule and scope, and no longer there. NULL: none. */
static const struct bh_waiver *waiver_before(const struct change *c, const struct bh_waiver *w)
{
    for (size_t i = 0; c->from && i < c->from->waivers.n; i++) {
        const struct bh_waiver *x = &c->from->waivers.at[i];
        if (same(x->rule, w->rule) && same(x->scope, w->scope) && !has_waiver(c->to, x))
            return x;
    }
    return NULL;
}

static bool is_replaced(const struct change *c, const struct bh_waiver *w)
{
    for (size_t i = 0; i < c->to->waivers.n; i++) {
        const struct bh_waiver *x = &c->to->waivers.at[i];
        if (!has_waiver(c->from, x) && waiver_before(c, x) == w)
            return true;
    }
    return false;
}

/* `eve, until 2030-01-01`. NULL: there is none. */
static const char *signed_for(const struct change *c, const struct bh_waiver *w)
{
    struct bh_unit_text day;
    if (!w)
        return NULL;
    return bh_arena_printf(c->arena, "%s, %s%s", w->approver ? w->approver : "nobody",
                           w->has_expiry ? "until " : "for ever",
                           w->has_expiry ? bh_date_format(w->expires_day, &day) : "");
}

static int say_waiver(const struct change *c, const struct bh_waiver *from, const struct bh_waiver *to)
{
    const struct bh_waiver *w = to ? to : from;
    const char *const rules[] = {w->rule};
    const struct bh_audit_event e = {.event = BH_AUDIT_POLICY_WAIVER,
                                     .object_type = "waiver",
                                     .object_id = w->scope ? w->scope : "all",
                                     .before = signed_for(c, from),
                                     .after = signed_for(c, to),
                                     .reason = w->reason,
                                     .rule_ids = rules,
                                     .n_rule_ids = w->rule ? 1 : 0};
    return c->take(c->arg, &e, c->err);
}

/* New, another, or gone. */
static int compare_waivers(const struct change *c)
{
    int rc = BH_OK;
    for (size_t i = 0; rc == BH_OK && i < c->to->waivers.n; i++) {
        const struct bh_waiver *w = &c->to->waivers.at[i];
        if (!has_waiver(c->from, w))
            rc = say_waiver(c, waiver_before(c, w), w);
    }
    for (size_t i = 0; rc == BH_OK && c->from && i < c->from->waivers.n; i++) {
        const struct bh_waiver *w = &c->from->waivers.at[i];
        if (!has_waiver(c->to, w) && !is_replaced(c, w))
            rc = say_waiver(c, w, NULL);
    }
    return rc;
}

int bh_promise_changes(const struct bh_policy *from, const struct bh_policy *to, bh_promise_fn *take,
                       void *arg, struct bh_err *err)
{
    struct bh_arena arena = {0};
    const struct change c = {from, to, &arena, take, arg, err};
    int rc = compare_tenants(&c);
    if (rc == BH_OK)
        rc = compare_roles(&c, to, from, BH_AUDIT_RBAC_GRANT);
    if (rc == BH_OK)
        rc = compare_roles(&c, from, to, BH_AUDIT_RBAC_REVOKE);
    if (rc == BH_OK)
        rc = compare_waivers(&c);
    bh_arena_fini(&arena);
    return rc;
}
