/* SPDX-License-Identifier: Apache-2.0 */
#include "core/policy/waiver.h"

#include "base/str.h"
#include "base/units.h"

bool bh_rule_is_about_waivers(const struct bh_rule *r)
{
    return strcmp(r->id, "BH-090") == 0 || strcmp(r->id, "BH-091") == 0;
}

enum bh_waiver_state bh_waiver_state(const struct bh_waiver *w, int32_t today)
{
    const struct bh_rule *rule = w->rule ? bh_rule_find(w->rule) : NULL;
    if (!rule)
        return BH_WAIVER_NO_RULE;
    if (rule->unwaivable)
        return BH_WAIVER_FORBIDDEN;
    if (!w->approver || !*w->approver)
        return BH_WAIVER_UNSIGNED;
    if (!w->scope || !*w->scope)
        return BH_WAIVER_BOUNDLESS;
    if (!w->has_expiry)
        return BH_WAIVER_ENDLESS;
    return w->expires_day < today ? BH_WAIVER_EXPIRED : BH_WAIVER_VALID;
}

/*
 * Waivers against findings. Most scopes are a subject written out and are looked up; a pattern is held
 * against every finding. Findings of one rule and subject are chained through `next`.
 */
struct waiver_index {
    struct bh_arena arena;
    struct bh_map by_subject; /* `BH-082 tenant:lab` -> finding */
    uint32_t *next;
};

static const char *place(struct bh_arena *a, const struct bh_rule *rule, const char *subject)
{
    return bh_arena_printf(a, "%s %s", rule->id, subject);
}

static void index_init(struct waiver_index *x, const struct bh_report *r)
{
    *x = (struct waiver_index){0};
    x->next = bh_alloc(r->findings.n, sizeof(*x->next));
    for (uint32_t i = 0; i < r->findings.n; i++) {
        const struct bh_finding *f = &r->findings.at[i];
        uint32_t first = bh_map_add(&x->by_subject, place(&x->arena, f->rule, f->subject), i);
        x->next[i] = first == BH_MAP_NONE ? BH_NONE : x->next[first];
        if (first != BH_MAP_NONE)
            x->next[first] = i;
    }
}

static void index_fini(struct waiver_index *x)
{
    bh_map_fini(&x->by_subject);
    bh_arena_fini(&x->arena);
    free(x->next);
}

/* Sign one finding off, unless somebody did already. */
static void sign(struct bh_finding *f, const struct bh_waiver *w)
{
    if (f->waived)
        return;
    f->waived = true;
    f->waived_by = w->approver;
}

/* Applies a waiver that is in force; false: there was nothing for it. */
static bool apply(struct bh_lint *l, struct waiver_index *x, const struct bh_waiver *w)
{
    const struct bh_rule *rule = bh_rule_find(w->rule);
    bool matched = false;
    if (!strpbrk(w->scope, "*?")) {
        uint32_t i = bh_map_find(&x->by_subject, place(&x->arena, rule, w->scope));
        for (; i != BH_NONE; i = x->next[i]) {
            sign(&l->out->findings.at[i], w);
            matched = true;
        }
        return matched;
    }
    for (size_t i = 0; i < l->out->findings.n; i++) {
        struct bh_finding *f = &l->out->findings.at[i];
        if (f->rule != rule || !bh_str_glob(w->scope, f->subject))
            continue;
        sign(f, w);
        matched = true;
    }
    return matched;
}

void bh_waivers_apply(struct bh_lint *l)
{
    struct waiver_index x;
    index_init(&x, l->out);
    l->waiver_idle = bh_alloc(l->p->waivers.n, sizeof(*l->waiver_idle));
    for (size_t i = 0; i < l->p->waivers.n; i++) {
        const struct bh_waiver *w = &l->p->waivers.at[i];
        l->waiver_idle[i] = bh_waiver_state(w, l->today) == BH_WAIVER_VALID && !apply(l, &x, w);
    }
    index_fini(&x);
}

/* `BH-039`, and from the second waiver of a rule on `BH-039@pool:dev`, so that each is a subject of its own. */
static struct bh_subject about(struct bh_lint *l, struct bh_map *seen, const struct bh_waiver *w)
{
    const char *name = w->rule ? w->rule : "?";
    if (bh_map_add(seen, name, 0) != BH_MAP_NONE)
        name = bh_arena_printf(&l->out->arena, "%s@%s", name, w->scope ? w->scope : "?");
    return (struct bh_subject){.kind = "waiver", .name = name, .pos = w->pos};
}

BH_CHECK(090)
{
    struct bh_map seen = {0};
    for (size_t i = 0; i < l->p->waivers.n; i++) {
        const struct bh_waiver *w = &l->p->waivers.at[i];
        switch (bh_waiver_state(w, l->today)) {
        case BH_WAIVER_FORBIDDEN:
            bh_found(l, about(l, &seen, w), "%s cannot be waived.", w->rule);
            break;
        case BH_WAIVER_UNSIGNED:
            bh_found(l, about(l, &seen, w), "%s cannot be waived without an approver.", w->rule);
            break;
        case BH_WAIVER_BOUNDLESS:
            bh_found(l, about(l, &seen, w), "%s cannot be waived without a scope.", w->rule);
            break;
        case BH_WAIVER_ENDLESS:
            bh_found(l, about(l, &seen, w), "%s cannot be waived without an expiry.", w->rule);
            break;
        case BH_WAIVER_VALID:
        case BH_WAIVER_EXPIRED:
        case BH_WAIVER_NO_RULE:
            break;
        }
    }
    bh_map_fini(&seen);
}

static bool was_unchecked(const struct bh_lint *l, const struct bh_rule *rule)
{
    for (size_t i = 0; i < l->out->unchecked.n; i++)
        if (l->out->unchecked.at[i].rule == rule)
            return true;
    return false;
}

BH_CHECK(091)
{
    struct bh_map seen = {0};
    struct bh_unit_text day;
    for (size_t i = 0; i < l->p->waivers.n; i++) {
        const struct bh_waiver *w = &l->p->waivers.at[i];
        switch (bh_waiver_state(w, l->today)) {
        case BH_WAIVER_NO_RULE:
            bh_found_fix(l, about(l, &seen, w), "Name a rule that exists (`bulkhead explain` lists them), or remove the waiver.",
                         "Waiver names rule %s, which does not exist.", w->rule ? w->rule : "(none)");
            break;
        case BH_WAIVER_EXPIRED:
            bh_found(l, about(l, &seen, w), "Waiver of %s for %s expired on %s.", w->rule, w->scope,
                     bh_date_format(w->expires_day, &day));
            break;
        case BH_WAIVER_VALID:
            /* what could not be checked may well be what the waiver is for */
            if (l->waiver_idle[i] && !was_unchecked(l, bh_rule_find(w->rule)))
                bh_found_fix(l, about(l, &seen, w), "Correct the scope (a finding's subject, or a pattern of it), or remove the waiver.",
                             "Waiver of %s for %s matches nothing.", w->rule, w->scope);
            break;
        case BH_WAIVER_FORBIDDEN:
        case BH_WAIVER_UNSIGNED:
        case BH_WAIVER_BOUNDLESS:
        case BH_WAIVER_ENDLESS:
            break;
        }
    }
    bh_map_fini(&seen);
}
