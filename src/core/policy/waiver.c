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

/* `pool:serving` exactly, or with `*`. */
static bool covers(const struct bh_waiver *w, const struct bh_finding *f)
{
    return bh_str_glob(w->scope, f->subject);
}

void bh_waivers_apply(struct bh_lint *l)
{
    for (size_t i = 0; i < l->p->waivers.n; i++) {
        const struct bh_waiver *w = &l->p->waivers.at[i];
        if (bh_waiver_state(w, l->today) != BH_WAIVER_VALID)
            continue;
        const struct bh_rule *rule = bh_rule_find(w->rule);
        for (size_t k = 0; k < l->out->findings.n; k++) {
            struct bh_finding *f = &l->out->findings.at[k];
            if (f->rule == rule && !f->waived && covers(w, f)) {
                f->waived = true;
                f->waived_by = w->approver;
            }
        }
    }
}

/* `BH-039`, and from the second waiver of a rule on `BH-039@pool:dev`, so that each is a subject of its own. */
static struct bh_subject about(struct bh_lint *l, size_t i)
{
    const struct bh_waiver *w = &l->p->waivers.at[i];
    const char *name = w->rule ? w->rule : "?";
    for (size_t k = 0; k < i; k++)
        if (bh_str_eq(l->p->waivers.at[k].rule, w->rule)) {
            name = bh_arena_printf(&l->out->arena, "%s@%s", name, w->scope ? w->scope : "?");
            break;
        }
    return (struct bh_subject){.kind = "waiver", .name = name, .pos = w->pos};
}

BH_CHECK(090)
{
    for (size_t i = 0; i < l->p->waivers.n; i++) {
        const struct bh_waiver *w = &l->p->waivers.at[i];
        switch (bh_waiver_state(w, l->today)) {
        case BH_WAIVER_FORBIDDEN:
            bh_found(l, about(l, i), "%s cannot be waived.", w->rule);
            break;
        case BH_WAIVER_UNSIGNED:
            bh_found(l, about(l, i), "%s cannot be waived without an approver.", w->rule);
            break;
        case BH_WAIVER_BOUNDLESS:
            bh_found(l, about(l, i), "%s cannot be waived without a scope.", w->rule);
            break;
        case BH_WAIVER_ENDLESS:
            bh_found(l, about(l, i), "%s cannot be waived without an expiry.", w->rule);
            break;
        case BH_WAIVER_VALID:
        case BH_WAIVER_EXPIRED:
        case BH_WAIVER_NO_RULE:
            break;
        }
    }
}

static bool was_unchecked(const struct bh_lint *l, const struct bh_rule *rule)
{
    for (size_t i = 0; i < l->out->unchecked.n; i++)
        if (l->out->unchecked.at[i].rule == rule)
            return true;
    return false;
}

static bool matches_something(const struct bh_lint *l, const struct bh_waiver *w)
{
    const struct bh_rule *rule = bh_rule_find(w->rule);
    for (size_t k = 0; k < l->out->findings.n; k++)
        if (l->out->findings.at[k].rule == rule && covers(w, &l->out->findings.at[k]))
            return true;
    return false;
}

BH_CHECK(091)
{
    struct bh_unit_text day;
    for (size_t i = 0; i < l->p->waivers.n; i++) {
        const struct bh_waiver *w = &l->p->waivers.at[i];
        switch (bh_waiver_state(w, l->today)) {
        case BH_WAIVER_NO_RULE:
            bh_found_fix(l, about(l, i), "Name a rule that exists (`bulkhead explain` lists them), or remove the waiver.",
                         "Waiver names rule %s, which does not exist.", w->rule ? w->rule : "(none)");
            break;
        case BH_WAIVER_EXPIRED:
            bh_found(l, about(l, i), "Waiver of %s for %s expired on %s.", w->rule, w->scope,
                     bh_date_format(w->expires_day, &day));
            break;
        case BH_WAIVER_VALID:
            /* what could not be checked may well be what the waiver is for */
            if (!was_unchecked(l, bh_rule_find(w->rule)) && !matches_something(l, w))
                bh_found_fix(l, about(l, i), "Correct the scope (a finding's subject, or a pattern of it), or remove the waiver.",
                             "Waiver of %s for %s matches nothing.", w->rule, w->scope);
            break;
        case BH_WAIVER_FORBIDDEN:
        case BH_WAIVER_UNSIGNED:
        case BH_WAIVER_BOUNDLESS:
        case BH_WAIVER_ENDLESS:
            break;
        }
    }
}
