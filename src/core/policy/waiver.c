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
 * Waivers against findings, which are sorted by rule and subject for it: a scope is a stretch of them, and
 * even a pattern is held only against those that begin as it does.
 */
static int by_rule_and_subject(const void *pa, const void *pb)
{
    const struct bh_finding *a = *(struct bh_finding *const *)pa, *b = *(struct bh_finding *const *)pb;
    int c = strcmp(a->rule->id, b->rule->id);
    return c ? c : strcmp(a->subject, b->subject);
}

/* Does the finding stand before those of this rule whose subjects begin with the first n bytes of scope? */
static bool stands_before(const struct bh_finding *f, const struct bh_rule *rule, const char *scope, size_t n)
{
    int c = strcmp(f->rule->id, rule->id);
    return c ? c < 0 : strncmp(f->subject, scope, n) < 0;
}

/* Applies a waiver that is in force; false: there was nothing for it. */
static bool apply(struct bh_finding **sorted, size_t n_sorted, const struct bh_waiver *w)
{
    const struct bh_rule *rule = bh_rule_find(w->rule);
    size_t fixed = strcspn(w->scope, "*?"), lo = 0, hi = n_sorted;
    bool matched = false;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (stands_before(sorted[mid], rule, w->scope, fixed))
            lo = mid + 1;
        else
            hi = mid;
    }
    for (; lo < n_sorted; lo++) {
        struct bh_finding *f = sorted[lo];
        if (f->rule != rule || strncmp(f->subject, w->scope, fixed) != 0)
            break;
        if (!bh_str_glob(w->scope, f->subject))
            continue;
        matched = true;
        if (!f->waived) {
            f->waived = true;
            f->waived_by = w->approver;
        }
    }
    return matched;
}

void bh_waivers_apply(struct bh_lint *l)
{
    size_t n = l->out->findings.n;
    struct bh_finding **sorted = bh_alloc(n, sizeof(*sorted));
    for (size_t i = 0; i < n; i++)
        sorted[i] = &l->out->findings.at[i];
    qsort(sorted, n, sizeof(*sorted), by_rule_and_subject);
    l->waiver_idle = bh_alloc(l->p->waivers.n, sizeof(*l->waiver_idle));
    for (size_t i = 0; i < l->p->waivers.n; i++) {
        const struct bh_waiver *w = &l->p->waivers.at[i];
        l->waiver_idle[i] = bh_waiver_state(w, l->today) == BH_WAIVER_VALID && !apply(sorted, n, w);
    }
    free(sorted);
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
            bh_found_fix(l, about(l, &seen, w),
                         "Name a rule that exists (`bulkhead explain` lists them), or remove the waiver.",
                         "Waiver names rule %s, which does not exist.", w->rule ? w->rule : "(none)");
            break;
        case BH_WAIVER_EXPIRED:
            bh_found(l, about(l, &seen, w), "Waiver of %s for %s expired on %s.", w->rule, w->scope,
                     bh_date_format(w->expires_day, &day));
            break;
        case BH_WAIVER_VALID:
            /* what could not be checked may well be what the waiver is for */
            if (l->waiver_idle[i] && !was_unchecked(l, bh_rule_find(w->rule)))
                bh_found_fix(
                    l, about(l, &seen, w),
                    "Correct the scope (a finding's subject, or a pattern of it), or remove the waiver.",
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
