/* SPDX-License-Identifier: Apache-2.0 */
/* upgrade.c - who leaves how, the order, the gates, and what the change mends. */
#include "core/upgrade/upgrade.h"

#include "base/str.h"

#include <stdlib.h>
#include <string.h>

static const char *const ways[BH_LEAVES] = {[BH_LEAVES_IDLE] = "idle",
                                            [BH_LEAVES_REQUEUE] = "requeue",
                                            [BH_LEAVES_ENDS] = "ends",
                                            [BH_LEAVES_ASK] = "ask",
                                            [BH_LEAVES_LAST] = "last"};
static const char *const kinds[BH_STEPS] = {[BH_STEP_CORDON] = "cordon",
                                            [BH_STEP_LEAVE] = "leave",
                                            [BH_STEP_GATE] = "gate",
                                            [BH_STEP_CHANGE] = "change",
                                            [BH_STEP_RETURN] = "return"};

const char *bh_upgrade_way_str(enum bh_upgrade_way w)
{
    return ways[w];
}

const char *bh_upgrade_step_str(enum bh_upgrade_step_kind k)
{
    return kinds[k];
}

void bh_upgrade_fini(struct bh_upgrade *u)
{
    bh_vec_fini(&u->steps);
    bh_vec_fini(&u->tenants);
    bh_vec_fini(&u->fixes);
    bh_vec_fini(&u->blockers);
    bh_vec_fini(&u->notes);
    bh_arena_fini(&u->arena);
    *u = (struct bh_upgrade){0};
}

/* ---- who leaves ---- */

static bool may_begin_again(const struct bh_upgrade_lease *l)
{
    return l->can_requeue && !l->firm;
}

/* firm: the GPUs of those who must not be interrupted. */
static enum bh_upgrade_way way_of(const struct bh_upgrade_lease *l, uint64_t firm)
{
    if (!may_begin_again(l))
        return l->end_ms ? BH_LEAVES_ENDS : BH_LEAVES_ASK;
    if (l->gpus & firm)
        return BH_LEAVES_LAST;
    return l->idle ? BH_LEAVES_IDLE : BH_LEAVES_REQUEUE;
}

static uint64_t firm_gpus(const struct bh_upgrade_ask *ask)
{
    uint64_t firm = 0;
    for (size_t i = 0; i < ask->n_leases; i++)
        firm |= may_begin_again(&ask->leases[i]) ? 0 : ask->leases[i].gpus;
    return firm;
}

static bool is_touched(const struct bh_upgrade_ask *ask, const struct bh_upgrade_lease *l)
{
    return (l->gpus & ask->gpus) != 0;
}

struct leaving {
    const struct bh_upgrade_lease *lease;
    enum bh_upgrade_way way;
};

/* By how they leave; those with an end, the first to end first; else as they came. */
static int compare(const void *x, const void *y)
{
    const struct leaving *a = x, *b = y;
    if (a->way != b->way)
        return a->way < b->way ? -1 : 1;
    if (a->lease->end_ms != b->lease->end_ms && a->way == BH_LEAVES_ENDS)
        return a->lease->end_ms < b->lease->end_ms ? -1 : 1;
    return (a->lease > b->lease) - (a->lease < b->lease);
}

static void count_tenant(struct bh_upgrade *u, const struct leaving *l)
{
    size_t i = 0;
    while (i < u->tenants.n && !bh_str_eq(u->tenants.at[i].name, l->lease->tenant))
        i++;
    if (i == u->tenants.n)
        *bh_vec_push(&u->tenants) = (struct bh_upgrade_tenant){.name = l->lease->tenant};
    u->tenants.at[i].n_leases++;
    u->tenants.at[i].n_asked += l->way == BH_LEAVES_ASK;
}

static void add_step(struct bh_upgrade *u, enum bh_upgrade_step_kind kind, const char *sentence,
                     const char *command)
{
    *bh_vec_push(&u->steps) =
        (struct bh_upgrade_step){.kind = (uint8_t)kind, .sentence = sentence, .command = command};
}

static const char *drain_words(struct bh_arena *a, uint64_t gpus)
{
    const char *text = "";
    for (unsigned i = 0; i < 64; i++)
        if (gpus >> i & 1)
            text = bh_arena_printf(a, "%s%sbulkhead drain %u", text, *text ? " && " : "", i);
    return text;
}

static void add_leave(struct bh_upgrade *u, const struct leaving *l)
{
    static const char *const how[BH_LEAVES] = {
        [BH_LEAVES_IDLE] = "has used nothing lately; ends, and its job waits to begin again",
        [BH_LEAVES_REQUEUE] = "ends, and its job waits to begin again from what it saved",
        [BH_LEAVES_LAST] =
            "ends, once those beside it have left, and its job waits to begin again: a drain ends whoever is on a GPU",
        [BH_LEAVES_ENDS] = "must not be interrupted; its end is waited for",
        [BH_LEAVES_ASK] = "must not be interrupted, and nobody knows when it ends: its owner is to be asked"};
    struct bh_arena *a = &u->arena;
    const struct bh_upgrade_lease *x = l->lease;
    *bh_vec_push(&u->steps) = (struct bh_upgrade_step){
        .kind = BH_STEP_LEAVE,
        .way = (uint8_t)l->way,
        .lease = x,
        .sentence = bh_arena_printf(a, "%s of %s (%s) %s%s", x->id, x->tenant, x->user, how[l->way],
                                    l->way == BH_LEAVES_ASK && x->can_suspend
                                        ? "; it may be suspended, but no suspension outlives this"
                                        : ""),
        .command = l->way == BH_LEAVES_ENDS || l->way == BH_LEAVES_ASK
                       ? bh_arena_printf(a, "bulkhead describe %s", x->id)
                       : drain_words(a, x->gpus)};
    if (l->way == BH_LEAVES_ENDS && x->end_ms > u->not_before_ms)
        u->not_before_ms = x->end_ms;
    if (l->way == BH_LEAVES_ASK)
        *bh_vec_push(&u->blockers) = bh_arena_printf(
            a, "%s (%s) of tenant %s must not be interrupted, and when it ends is not known: ask %s", x->id,
            x->job, x->tenant, x->user);
}

static void plan_leaving(const struct bh_upgrade_ask *ask, struct bh_upgrade *u)
{
    const uint64_t firm = firm_gpus(ask);
    BH_VEC(struct leaving) all = {0};
    for (size_t i = 0; i < ask->n_leases; i++)
        if (is_touched(ask, &ask->leases[i]))
            *bh_vec_push(&all) = (struct leaving){&ask->leases[i], way_of(&ask->leases[i], firm)};
    if (all.n)
        qsort(all.at, all.n, sizeof(all.at[0]), compare);
    for (size_t i = 0; i < all.n; i++) {
        add_leave(u, &all.at[i]);
        count_tenant(u, &all.at[i]);
    }
    bh_vec_fini(&all);
}

/* ---- which cards ---- */

static uint64_t used_gpus(const struct bh_upgrade_ask *ask)
{
    uint64_t used = 0;
    for (size_t i = 0; i < ask->n_leases; i++)
        used |= ask->leases[i].gpus;
    return used;
}

/* Those that nobody has come first: they are ready at once. */
static void plan_cordons(const struct bh_upgrade_ask *ask, struct bh_upgrade *u)
{
    const uint64_t used = used_gpus(ask);
    struct bh_arena *a = &u->arena;
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < ask->n_cards; i++) {
            const struct bh_upgrade_gpu *g = &ask->cards[i];
            const bool busy = g->index < 64 && (used >> g->index & 1);
            if (g->index >= 64 || !(ask->gpus >> g->index & 1) || busy != (pass == 1))
                continue;
            add_step(
                u, BH_STEP_CORDON,
                bh_arena_printf(a, "GPU %u takes nobody new%s", g->index, busy ? "" : "; nobody is on it"),
                bh_arena_printf(a, "bulkhead cordon %u", g->index));
            if (!bh_str_eq(g->state, "ok"))
                *bh_vec_push(&u->notes) = bh_arena_printf(a, "GPU %u is %s already%s%s", g->index, g->state,
                                                          g->reason ? ": " : "", g->reason ? g->reason : "");
        }
}

static void plan_return(const struct bh_upgrade_ask *ask, struct bh_upgrade *u)
{
    struct bh_arena *a = &u->arena;
    for (size_t i = 0; i < ask->n_cards; i++) {
        const uint32_t gpu = ask->cards[i].index;
        if (gpu >= 64 || !(ask->gpus >> gpu & 1))
            continue;
        add_step(u, BH_STEP_RETURN,
                 bh_arena_printf(
                     a,
                     "GPU %u is looked at and given away again; if it is refused, the others stay cordoned",
                     gpu),
                 bh_arena_printf(a, "bulkhead resume %u", gpu));
    }
}

/* ---- what it mends ---- */

static bool is_open(const struct bh_advisory *x, const struct bh_version *v)
{
    struct bh_version fixed, branch;
    return bh_str_eq(x->component, "nvidia-driver") && bh_version_parse(x->fixed, &fixed, NULL) == 0 &&
           (!x->branch ||
            (bh_version_parse(x->branch, &branch, NULL) == 0 && branch.field[0] == v->field[0])) &&
           bh_version_compare(v, &fixed) < 0;
}

static bool bulletin_is_open(uint16_t bulletin, const struct bh_version *v, int32_t day)
{
    for (size_t i = 0; i < bh_advisory_count(); i++) {
        const struct bh_advisory *x = bh_advisory_at(i);
        if (x->bulletin == bulletin && x->published_day <= day && is_open(x, v))
            return true;
    }
    return false;
}

static void plan_fixes(const struct bh_upgrade_ask *ask, struct bh_upgrade *u)
{
    struct bh_version from, to;
    struct bh_exposure after;
    if (ask->kind != BH_UPGRADE_DRIVER || !ask->to || bh_version_parse(ask->to, &to, NULL) < 0 ||
        bh_advisory_check("nvidia-driver", ask->to, ask->day, &after, NULL) < 0)
        return;
    u->n_open_after = after.n_open;
    if (after.unpatched_branch)
        *bh_vec_push(&u->notes) = bh_arena_printf(&u->arena, "the branch of %s gets no more fixes%s%s",
                                                  ask->to, after.fix_version ? "; the next that does: " : "",
                                                  after.fix_version ? after.fix_version : "");
    if (!ask->from || bh_version_parse(ask->from, &from, NULL) < 0)
        return;
    if (bh_version_compare(&to, &from) < 0)
        *bh_vec_push(&u->notes) = bh_arena_printf(&u->arena, "%s is older than %s", ask->to, ask->from);
    for (size_t i = 0; i < bh_advisory_count(); i++) {
        const struct bh_advisory *x = bh_advisory_at(i);
        if (x->published_day <= ask->day && is_open(x, &from) &&
            !bulletin_is_open(x->bulletin, &to, ask->day))
            *bh_vec_push(&u->fixes) = (struct bh_upgrade_fix){x, ask->day - x->published_day};
    }
}

/* ---- who accepts it ---- */

static bool accepts(const bh_text_vec *drivers, const char *version)
{
    bool ok = drivers->n == 0;
    for (size_t i = 0; !ok && i < drivers->n; i++)
        ok = bh_version_accepts(drivers->at[i].s, version);
    return ok;
}

static void plan_pins(const struct bh_upgrade_ask *ask, struct bh_upgrade *u)
{
    const struct bh_policy *p = ask->policy;
    if (!p || ask->kind != BH_UPGRADE_DRIVER || !ask->to)
        return;
    for (size_t i = 0; i < p->tenants.n; i++)
        if (!accepts(&p->tenants.at[i].drivers, ask->to))
            *bh_vec_push(&u->blockers) = bh_arena_printf(
                &u->arena, "tenant %s does not accept driver %s: see its `drivers` in the policy",
                p->tenants.at[i].name, ask->to);
    for (size_t i = 0; i < p->pools.n; i++)
        if (!accepts(&p->pools.at[i].drivers, ask->to))
            *bh_vec_push(&u->blockers) = bh_arena_printf(
                &u->arena, "pool %s is not qualified for driver %s: see its `drivers` in the policy",
                p->pools.at[i].name, ask->to);
}

/* ---- all of it ---- */

static const char *change_words(struct bh_arena *a, const struct bh_upgrade_ask *ask)
{
    const char *to = ask->to ? ask->to : "the new version";
    if (ask->kind == BH_UPGRADE_DRIVER)
        return bh_arena_printf(
            a, "stop bulkheadd, unload the driver, install %s, load it; bulkheadd tests it when it starts",
            to);
    if (ask->kind == BH_UPGRADE_KERNEL)
        return bh_arena_printf(a, "boot kernel %s with the driver's modules built for it", to);
    return bh_arena_printf(a, "install %s %s as its maker says; most need a reset or a power cycle",
                           ask->what, to);
}

void bh_upgrade_plan(const struct bh_upgrade_ask *ask, struct bh_upgrade *ret)
{
    *ret = (struct bh_upgrade){0};
    plan_fixes(ask, ret);
    plan_pins(ask, ret);
    plan_cordons(ask, ret);
    plan_leaving(ask, ret);
    add_step(ret, BH_STEP_GATE, "nobody is on these GPUs, and every slice was proved clean",
             "bulkhead leases");
    add_step(ret, BH_STEP_CHANGE, change_words(&ret->arena, ask), NULL);
    add_step(
        ret, BH_STEP_GATE,
        ask->kind == BH_UPGRADE_FIRMWARE
            ? "each GPU answers, shows the new version and no error"
            : "each GPU answers, the policy holds on what is there, and the driver was seen to clear what it frees",
        "bulkhead doctor");
    plan_return(ask, ret);
}
