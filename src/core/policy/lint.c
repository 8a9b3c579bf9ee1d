/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lint.c - runs every rule over one policy and puts the answers in order.
 *
 * Rules run in id order; findings are then sorted by place. Waivers are applied after all
 * other rules have spoken, because the rules about waivers need to know what they matched.
 */
#include "core/policy/lint.h"

#include "base/str.h"
#include "core/policy/waiver.h"

#include <stdarg.h>
#include <stdio.h>

void bh_report_fini(struct bh_report *r)
{
    bh_vec_fini(&r->findings);
    bh_vec_fini(&r->unchecked);
    bh_arena_fini(&r->arena);
}

/* ---- speaking ---- */

struct bh_subject bh_about_tenant(const struct bh_tenant *t)
{
    return (struct bh_subject){.kind = "tenant", .name = t->name, .pos = t->pos, .object = t->object};
}

struct bh_subject bh_about_pool(const struct bh_pool *p)
{
    return (struct bh_subject){.kind = "pool", .name = p->name, .pos = p->pos, .object = p->object};
}

struct bh_subject bh_about_workload(const struct bh_workload *w)
{
    return (struct bh_subject){.kind = "workload", .name = w->name, .pos = w->pos, .object = w->object};
}

struct bh_subject bh_about_node(const struct bh_fleet_node *n)
{
    return (struct bh_subject){.kind = "node", .name = n->name, .pos = n->pos};
}

BH_PRINTF(2, 0)
static char *format(struct bh_arena *a, const char *fmt, va_list ap)
{
    char text[1024];
    int n = vsnprintf(text, sizeof(text), fmt, ap);
    if (n < 0)
        n = 0;
    return bh_arena_strn(a, text, (size_t)n < sizeof(text) ? (size_t)n : sizeof(text) - 1);
}

static void found(struct bh_lint *l, struct bh_subject s, const char *fix, const char *message)
{
    struct bh_report *r = l->out;
    struct bh_finding *f = bh_vec_push(&r->findings);
    *f = (struct bh_finding){
        .rule = l->rule,
        .subject = s.name ? bh_arena_printf(&r->arena, "%s:%s", s.kind, s.name) : s.kind,
        .pos = s.pos,
        .cause = s.cause,
        .message = message,
        .fix = fix,
        .object = s.object,
        .order = (uint32_t)(r->findings.n - 1),
    };
}

static const char *usual_fix(const struct bh_lint *l)
{
    switch (l->p->source) {
    case BH_SOURCE_KUBERNETES:
        return l->rule->fix_kubernetes;
    case BH_SOURCE_SLURM:
        return l->rule->fix_slurm;
    default:
        return l->rule->fix;
    }
}

void bh_found(struct bh_lint *l, struct bh_subject s, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    char *message = format(&l->out->arena, fmt, ap);
    va_end(ap);
    found(l, s, usual_fix(l), message);
}

void bh_found_fix(struct bh_lint *l, struct bh_subject s, const char *fix, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    char *message = format(&l->out->arena, fmt, ap);
    va_end(ap);
    found(l, s, fix, message);
}

void bh_unknown(struct bh_lint *l, const char *fmt, ...)
{
    l->n_unknown++;
    if (l->unknown)
        return;
    va_list ap;
    va_start(ap, fmt);
    l->unknown = format(&l->out->arena, fmt, ap);
    va_end(ap);
}

void bh_naming_init(struct bh_naming *n, size_t max)
{
    *n = (struct bh_naming){.max = max};
    bh_buf_init(&n->text, 700);
}

void bh_naming_add(struct bh_naming *n, const char *name)
{
    if (n->n++ >= n->max)
        return;
    if (n->n > 1)
        bh_buf_str(&n->text, ", ");
    bh_buf_str(&n->text, name);
}

const char *bh_naming_end(struct bh_lint *l, struct bh_naming *n)
{
    const char *s = n->n > n->max ? bh_arena_printf(&l->out->arena, "%s and %zu more", bh_buf_text(&n->text),
                                                    n->n - n->max)
                                  : bh_arena_str(&l->out->arena, bh_buf_text(&n->text));
    bh_buf_fini(&n->text);
    return s;
}

/* ---- order ---- */

static int cmp_u32(uint32_t a, uint32_t b)
{
    return (a > b) - (a < b);
}

static int by_place(const void *pa, const void *pb)
{
    const struct bh_finding *a = pa, *b = pb;
    int c = cmp_u32(a->pos.file, b->pos.file);
    if (!c)
        c = cmp_u32(a->pos.line, b->pos.line);
    if (!c)
        c = cmp_u32(a->pos.column, b->pos.column);
    if (!c)
        c = strcmp(a->rule->id, b->rule->id);
    return c ? c : cmp_u32(a->order, b->order);
}

static void count(struct bh_report *r)
{
    for (size_t i = 0; i < r->findings.n; i++) {
        const struct bh_finding *f = &r->findings.at[i];
        if (f->waived)
            r->n_waived++;
        else if (f->rule->severity == BH_SEV_ERROR)
            r->n_errors++;
        else if (f->rule->severity == BH_SEV_WARNING)
            r->n_warnings++;
        else
            r->n_infos++;
    }
}

/* ---- what files of this kind never say ---- */

struct silence {
    const char *rule;
    const char *kubernetes, *slurm; /* NULL: that source does say */
};

#define NO_TRUST_K8S   "no namespace says whom it trusts (label bulkhead.dev/trust)"
#define NO_TRUST_SLURM "Slurm configuration does not say who trusts whom"
static const struct silence silences[] = {
    {"BH-001", NO_TRUST_K8S, NO_TRUST_SLURM},
    {"BH-002", NO_TRUST_K8S, NO_TRUST_SLURM},
    {"BH-003", NO_TRUST_K8S, NO_TRUST_SLURM},
    {"BH-006", "manifests do not say whether the operator is trusted", "Slurm configuration does not say it"},
    {"BH-008", "manifests do not say which tenants are regulated", "Slurm configuration does not say it"},
    {"BH-010", "manifests do not state a tenant class", "Slurm configuration does not state a tenant class"},
    {"BH-011", NO_TRUST_K8S, NO_TRUST_SLURM},
    {"BH-020", "manifests do not state SLOs", "Slurm configuration does not state SLOs"},
    {"BH-022", "manifests do not state SLOs", "Slurm configuration does not state SLOs"},
    {"BH-023", "manifests do not state SLOs", "Slurm configuration does not state SLOs"},
    {"BH-025", "manifests do not say what may borrow", "Slurm configuration does not say what may borrow"},
    {"BH-026", NO_TRUST_K8S, NO_TRUST_SLURM},
    {"BH-040", "manifests do not name the GPUs a workload runs on", "Slurm configuration does not name them"},
    {"BH-041", "manifests do not describe the fabric", "Slurm configuration does not describe the fabric"},
    {"BH-044", "manifests do not say which work is bursty",
     "Slurm configuration does not say which work is bursty"},
    {"BH-073", NULL, "Slurm configuration does not describe networks"},
    {"BH-074", "manifests given do not describe storage quotas",
     "Slurm configuration does not describe storage"},
    {"BH-075", "manifests given do not describe roles", "Slurm configuration does not describe roles"},
    {"BH-076", "manifests do not describe the audit trail",
     "Slurm configuration does not describe the audit trail"},
    {"BH-077", "manifests do not describe the audit trail",
     "Slurm configuration does not describe the audit trail"},
    {"BH-081", "manifests do not say which images are approved", "Slurm configuration does not name images"},
    {"BH-082", "no namespace names a cost centre (label bulkhead.dev/cost-center)",
     "Slurm configuration does not name cost centres"},
};

/* A silence that the source broke after all: some namespace does carry the label. */
static bool spoken(const struct bh_lint *l, const char *reason)
{
    for (size_t i = 0; i < l->p->tenants.n; i++) {
        const struct bh_tenant *t = &l->p->tenants.at[i];
        if (strcmp(reason, NO_TRUST_K8S) == 0 &&
            (t->trust != BH_TRUST_INTERNAL || !bh_str_eq(t->domain, "internal")))
            return true;
        if (strstr(reason, "cost centre") && t->cost_center)
            return true;
    }
    return false;
}

static const char *source_silent(const struct bh_lint *l)
{
    if (l->p->source == BH_SOURCE_POLICY)
        return NULL;
    for (size_t i = 0; i < BH_COUNT_OF(silences); i++) {
        if (strcmp(silences[i].rule, l->rule->id) != 0)
            continue;
        const char *reason =
            l->p->source == BH_SOURCE_KUBERNETES ? silences[i].kubernetes : silences[i].slurm;
        return reason && !spoken(l, reason) ? reason : NULL;
    }
    return NULL;
}

static void unchecked(struct bh_lint *l, const char *reason)
{
    *bh_vec_push(&l->out->unchecked) = (struct bh_unchecked){l->rule, reason};
}

static void run_rule(struct bh_lint *l, const struct bh_rule *rule)
{
    l->rule = rule;
    l->unknown = NULL;
    l->n_unknown = 0;
    if (l->too_large) {
        unchecked(l, l->too_large);
        return;
    }
    l->names_left = BH_NAMES_MAX;
    if (!rule->check || (rule->needs == BH_NEEDS_FLEET && !l->fleet)) {
        unchecked(l, rule->unchecked);
        return;
    }
    const char *silent = source_silent(l);
    if (silent) {
        unchecked(l, silent);
        return;
    }
    rule->check(l);
    if (l->n_unknown > 1)
        unchecked(l,
                  bh_arena_printf(&l->out->arena, "%s (and %zu more like it)", l->unknown, l->n_unknown - 1));
    else if (l->unknown)
        unchecked(l, l->unknown);
}

void bh_lint(const struct bh_policy *p, const struct bh_fleet *fleet, int32_t today, struct bh_report *ret)
{
    struct bh_lint l = {.p = p, .fleet = fleet, .today = today, .out = ret};
    bh_lint_index(&l);
    for (size_t i = 0; i < bh_rule_count(); i++)
        if (!bh_rule_is_about_waivers(bh_rule_at(i)))
            run_rule(&l, bh_rule_at(i));
    bh_waivers_apply(&l);
    for (size_t i = 0; i < bh_rule_count(); i++)
        if (bh_rule_is_about_waivers(bh_rule_at(i)))
            run_rule(&l, bh_rule_at(i));
    bh_lint_unindex(&l);
    if (ret->findings.n)
        qsort(ret->findings.at, ret->findings.n, sizeof(*ret->findings.at), by_place);
    count(ret);
}
