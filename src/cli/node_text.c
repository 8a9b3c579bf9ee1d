/* SPDX-License-Identifier: Apache-2.0 */
/*
 * node_text.c - who holds what, what waits and why, what is wrong: on one screen.
 *
 * A long machine is cut to what fits, and the line that says so names the command that shows the rest.
 */
#include "cli/node_text.h"

#include "base/str.h"
#include "cli/work_text.h"

#include <inttypes.h>

enum { GPUS_SHOWN = 16, OWNERS_SHOWN = 4 };

/* ---- cards ---- */

static const struct bh_a_lease *lease_find(const struct bh_a_leases *leases, const char *id)
{
    for (size_t i = 0; leases && id && i < leases->leases.n; i++)
        if (bh_str_eq(leases->leases.at[i].id, id))
            return &leases->leases.at[i];
    return NULL;
}

static const char *say_owner(struct bh_arena *a, const struct bh_a_slice *s, const struct bh_a_leases *leases)
{
    const struct bh_a_lease *l = lease_find(leases, s->lease);
    const char *part = s->milli < 1000 ? bh_arena_printf(a, " %s", bh_say_gpus(a, s->milli)) : "";
    const char *state = bh_str_eq(s->state, "owned") ? "" : bh_arena_printf(a, " (%s)", s->state);
    if (l)
        return bh_arena_printf(a, "%s %s %s%s%s", l->tenant, l->user, l->job, part, state);
    if (!s->tenant && !s->lease)
        return bh_arena_printf(a, "%s%s%s", s->state, *part ? ":" : "", part);
    return bh_arena_printf(a, "%s%s%s%s%s", s->tenant ? s->tenant : "", s->tenant && s->lease ? " " : "",
                           s->lease ? s->lease : "", part, state);
}

const char *bh_say_owners(struct bh_arena *a, const struct bh_a_gpu *g, const struct bh_a_leases *leases)
{
    const char *all = NULL;
    size_t n = 0;
    for (size_t i = 0; i < g->slices.n; i++) {
        if (bh_str_eq(g->slices.at[i].state, "free") || ++n > OWNERS_SHOWN)
            continue;
        const char *one = say_owner(a, &g->slices.at[i], leases);
        all = all ? bh_arena_printf(a, "%s, %s", all, one) : one;
    }
    if (n > OWNERS_SHOWN)
        all = bh_arena_printf(a, "%s, +%zu", all, n - OWNERS_SHOWN);
    if (g->others && g->others->slices)
        all = bh_arena_printf(a, "%s%sothers %s", all ? all : "", all ? ", " : "",
                              bh_say_gpus(a, g->others->milli));
    return all ? all : bh_str_eq(g->state, "ok") ? "free" : NULL;
}

static const char *say_use(struct bh_arena *a, const struct bh_a_gpu *g)
{
    if (g->used_mib == BH_ANSWER_UNKNOWN)
        return bh_say_memory(a, g->memory_mib);
    return bh_arena_printf(a, "%s of %s", bh_say_memory(a, g->used_mib), bh_say_memory(a, g->memory_mib));
}

static void write_gpus(struct bh_cli *cli, struct bh_arena *a, const struct bh_status_parts *p)
{
    static const char *const heads[] = {"GPU", "MODEL", "STATE", "MEMORY USED", "WHO"};
    struct bh_table t;
    bh_heading(cli, "GPUs");
    bh_table_init(&t, a, heads, BH_COUNT_OF(heads));
    for (size_t i = 0; i < p->gpus->gpus.n && i < GPUS_SHOWN; i++) {
        const struct bh_a_gpu *g = &p->gpus->gpus.at[i];
        const char *why = g->reason ? g->reason : g->health;
        const char *who = bh_say_owners(a, g, p->leases);
        if (!bh_str_eq(g->state, "ok") && why)
            who = who ? bh_arena_printf(a, "%s; %s", who, why) : why;
        bh_table_add(&t, bh_say_count(a, g->index));
        bh_table_add(&t, g->model);
        bh_table_paint(&t, g->state, bh_state_paint(g->state));
        bh_table_add(&t, say_use(a, g));
        bh_table_add(&t, who);
    }
    bh_table_write(&t, cli, 2);
    bh_table_fini(&t);
    if (p->gpus->gpus.n > GPUS_SHOWN)
        bh_buf_printf(&cli->out, "  and %zu more: bulkhead gpus\n", p->gpus->gpus.n - GPUS_SHOWN);
    if (p->gpus->others != BH_ANSWER_UNKNOWN && p->gpus->others)
        bh_buf_printf(&cli->out, "  others: %" PRIu64 " GPU%s\n", p->gpus->others,
                      p->gpus->others == 1 ? "" : "s");
}

/* ---- tenants ---- */

static const char *amount(struct bh_arena *a, uint64_t milli, const char *none)
{
    return milli == BH_ANSWER_UNKNOWN ? none : bh_say_gpus(a, milli);
}

static void write_tenants(struct bh_cli *cli, struct bh_arena *a, const struct bh_a_use *at, size_t n,
                          const struct bh_a_others *others, unsigned indent)
{
    static const char *const heads[] = {"TENANT", "CLASS", "USES",    "MEMORY",
                                        "OWN",    "LIMIT", "RUNNING", "WAITING"};
    struct bh_table t;
    bh_table_init(&t, a, heads, BH_COUNT_OF(heads));
    for (size_t i = 0; i < n; i++) {
        bh_table_add(&t, at[i].tenant);
        bh_table_add(&t, at[i].class);
        bh_table_add(&t, bh_say_gpus(a, at[i].milli));
        bh_table_add(&t, bh_say_memory(a, at[i].memory_mib));
        bh_table_add(&t, amount(a, at[i].quota_milli, NULL));
        bh_table_add(&t, amount(a, at[i].max_milli, NULL));
        bh_table_add(&t, bh_say_count(a, at[i].running));
        bh_table_paint(&t, bh_say_count(a, at[i].waiting), at[i].waiting ? BH_PAINT_YELLOW : BH_PAINT_PLAIN);
    }
    if (others && others->tenants) {
        bh_table_add(&t, bh_arena_printf(a, "others (%" PRIu64 ")", others->tenants));
        bh_table_add(&t, NULL);
        bh_table_add(&t, bh_say_gpus(a, others->milli));
        bh_table_add(&t, bh_say_memory(a, others->memory_mib));
        bh_table_add(&t, NULL);
        bh_table_add(&t, NULL);
        bh_table_add(&t, bh_say_count(a, others->running));
        bh_table_add(&t, bh_say_count(a, others->waiting));
    }
    bh_table_write(&t, cli, indent);
    bh_table_fini(&t);
}

void bh_tenants_text(struct bh_cli *cli, struct bh_arena *a, const struct bh_a_tenants *t)
{
    write_tenants(cli, a, t->tenants.at, t->tenants.n, t->others, 0);
}

void bh_tenant_text(struct bh_cli *cli, struct bh_arena *a, const struct bh_a_tenant *t)
{
    static const char *const heads[] = {"POOL", "MECHANISM", "TIER", "WITH OTHERS"};
    const struct bh_a_use *u = t->use;
    struct bh_table pools;
    bh_fact(cli, "tenant", u->tenant);
    bh_fact(cli, "class", u->class);
    bh_fact(cli, "trust", t->trust);
    bh_fact(cli, "domain", t->domain);
    bh_fact(cli, "costs to", t->cost_center);
    bh_fact(cli, "uses",
            bh_arena_printf(a, "%s, %s, in %" PRIu64 " lease%s", bh_say_gpus(a, u->milli),
                            bh_say_memory(a, u->memory_mib), u->leases, u->leases == 1 ? "" : "s"));
    bh_fact(cli, "guaranteed", amount(a, u->quota_milli, "nothing"));
    bh_fact(cli, "limit", amount(a, u->max_milli, "none"));
    bh_fact(cli, "borrowed", bh_say_gpus(a, t->quota->borrowed_milli));
    bh_fact(cli, "jobs",
            bh_arena_printf(a, "%" PRIu64 " running, %" PRIu64 " waiting", u->running, u->waiting));
    bh_heading(cli, "Pools");
    bh_table_init(&pools, a, heads, BH_COUNT_OF(heads));
    for (size_t i = 0; i < t->pools.n; i++) {
        bh_table_add(&pools, t->pools.at[i].pool);
        bh_table_add(&pools, t->pools.at[i].mechanism);
        bh_table_add(&pools, t->pools.at[i].tier);
        bh_table_add(&pools, t->pools.at[i].shared ? "yes" : "no");
    }
    bh_table_write(&pools, cli, 2);
    bh_table_fini(&pools);
}

bool bh_quotas_text(struct bh_cli *cli, struct bh_arena *a, const struct bh_a_quotas *q, const char *only)
{
    static const char *const heads[] = {"TENANT",   "GUARANTEED", "USED",   "BORROWED",
                                        "FREE OWN", "LIMIT",      "WEIGHT", "WAITING"};
    struct bh_table t;
    bool any = false;
    bh_table_init(&t, a, heads, BH_COUNT_OF(heads));
    for (size_t i = 0; i < q->quotas.n; i++) {
        const struct bh_a_quota *at = &q->quotas.at[i];
        const uint64_t own = at->guaranteed_milli == BH_ANSWER_UNKNOWN ? 0 : at->guaranteed_milli;
        if (only && !bh_str_eq(only, at->tenant))
            continue;
        any = true;
        bh_table_add(&t, at->tenant);
        bh_table_add(&t, amount(a, at->guaranteed_milli, "nothing"));
        bh_table_add(&t, bh_say_gpus(a, at->used_milli));
        bh_table_paint(&t, bh_say_gpus(a, at->borrowed_milli),
                       at->borrowed_milli ? BH_PAINT_YELLOW : BH_PAINT_PLAIN);
        bh_table_add(&t, bh_say_gpus(a, own > at->used_milli ? own - at->used_milli : 0));
        bh_table_add(&t, amount(a, at->max_milli, at->may_borrow ? "none" : "guaranteed"));
        bh_table_add(&t, bh_say_count(a, at->weight));
        bh_table_add(
            &t, bh_arena_printf(a, "%" PRIu64 " job%s", at->waiting_jobs, at->waiting_jobs == 1 ? "" : "s"));
    }
    if (any || !only)
        bh_table_write(&t, cli, 0);
    bh_table_fini(&t);
    return any || !only;
}

/* ---- the screen ---- */

/* Root is an operator by itself, and often by the policy too: that is said once. */
static bool is_said(const struct bh_a_you *you, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (bh_str_eq(you->roles.at[k].role, you->roles.at[i].role) &&
            bh_str_eq(you->roles.at[k].tenant, you->roles.at[i].tenant))
            return true;
    return false;
}

static const char *say_roles(struct bh_arena *a, const struct bh_a_you *you)
{
    const char *all = NULL;
    for (size_t i = 0; i < you->roles.n; i++) {
        const struct bh_a_grant *g = &you->roles.at[i];
        if (!is_said(you, i))
            all = bh_arena_printf(a, "%s%s%s%s%s", all ? all : "", all ? ", " : "", g->role,
                                  g->tenant ? " of " : "", g->tenant ? g->tenant : "");
    }
    return all ? all : "no role";
}

static void write_head(struct bh_cli *cli, struct bh_arena *a, const struct bh_a_status *s)
{
    bh_fact(cli, "node",
            bh_arena_printf(a, "%s, %" PRIu64 " GPU%s%s%s%s", s->node, s->gpus, s->gpus == 1 ? "" : "s",
                            s->simulated ? ", simulated" : "", s->driver ? ", driver " : "",
                            s->driver ? s->driver : ""));
    bh_fact(cli, "daemon",
            bh_arena_printf(a, "%s, up %s, policy %" PRIu64, s->version,
                            bh_say_since(a, s->now_ms, s->started_ms), s->policy_version));
    bh_paint_add(&cli->out, cli->paint_out, BH_PAINT_DIM, "health");
    bh_buf_str(&cli->out, "     ");
    bh_paint_add(&cli->out, cli->paint_out, bh_state_paint(s->health), s->health);
    bh_buf_str(&cli->out, "\n");
    bh_fact(cli, "you", bh_arena_printf(a, "%s: %s", s->you->principal, say_roles(a, s->you)));
}

static uint64_t count_waiting(const struct bh_a_status *s)
{
    uint64_t n = 0;
    for (size_t i = 0; i < s->tenants.n; i++)
        n += s->tenants.at[i].waiting;
    return n;
}

static void write_waits(struct bh_cli *cli, struct bh_arena *a, const struct bh_status_parts *p)
{
    static const char *const heads[] = {"JOB", "TENANT", "USER", "ASKS", "FOR", "WHY"};
    const uint64_t all = count_waiting(p->status);
    struct bh_table t;
    if (!p->waits || !p->waits->jobs.n)
        return;
    bh_heading(cli, "Waiting");
    bh_table_init(&t, a, heads, BH_COUNT_OF(heads));
    for (size_t i = 0; i < p->waits->jobs.n; i++) {
        const struct bh_a_job *j = &p->waits->jobs.at[i];
        bh_table_add(&t, j->id);
        bh_table_add(&t, j->tenant);
        bh_table_add(&t, j->user);
        bh_table_add(&t, bh_say_asked(a, j));
        bh_table_add(&t, bh_say_since(a, p->status->now_ms, j->submit_ms));
        bh_table_add(&t, j->why);
    }
    bh_table_write(&t, cli, 2);
    bh_table_fini(&t);
    if (all > p->waits->jobs.n)
        bh_buf_printf(&cli->out, "  and %" PRIu64 " more: bulkhead ps --state waiting\n",
                      all - p->waits->jobs.n);
}

static void write_wrong(struct bh_cli *cli, struct bh_arena *a, const struct bh_a_doctor *d)
{
    bool any = false;
    for (size_t i = 0; d && i < d->checks.n; i++) {
        const struct bh_a_check *c = &d->checks.at[i];
        if (bh_str_eq(c->state, "ok"))
            continue;
        if (!any)
            bh_heading(cli, "Wrong");
        any = true;
        bh_buf_str(&cli->out, "  ");
        bh_paint_add(&cli->out, cli->paint_out, bh_state_paint(c->state), c->state);
        bh_text_blanks(&cli->out, bh_text_width(c->state) < 6 ? 6 - bh_text_width(c->state) : 1);
        const char *line = bh_arena_printf(a, "%s: %s%s%s", c->layer, c->sentence, c->mend ? "; mend: " : "",
                                           c->mend ? c->mend : "");
        bh_text_wrap(&cli->out, line, 8, 8, cli->is_terminal ? cli->width : UINT16_MAX);
    }
}

void bh_status_text(struct bh_cli *cli, struct bh_arena *a, const struct bh_status_parts *p)
{
    const struct bh_a_status *s = p->status;
    write_head(cli, a, s);
    if (p->gpus)
        write_gpus(cli, a, p);
    bh_heading(cli, "Tenants");
    write_tenants(cli, a, s->tenants.at, s->tenants.n, s->others, 2);
    write_waits(cli, a, p);
    write_wrong(cli, a, p->doctor);
}
