/* SPDX-License-Identifier: Apache-2.0 */
/* books_text.c - sums of usage, changes of a policy, tokens. */
#include "cli/books_text.h"

#include "base/str.h"

#include <inttypes.h>

#define MILLI_MS_PER_GPU_HOUR (UINT64_C(1000) * 3600 * 1000)
#define MIB_MS_PER_GIB_HOUR   (UINT64_C(1024) * 3600 * 1000)

/* ---- usage ---- */

void bh_usage_bill(const struct bh_a_usage *u, enum bh_bill_by by, struct bh_bill *ret)
{
    *ret = (struct bh_bill){.by = by, .from_ms = u->from_ms, .to_ms = u->to_ms, .prices = u->prices};
    for (size_t i = 0; i < u->usage.n; i++)
        bh_bill_add(ret, &u->usage.at[i]);
}

static void bill_row(struct bh_table *t, struct bh_arena *a, const struct bh_bill *b,
                     const struct bh_bill_line *c, const char *name)
{
    const bool together = c == &b->all;
    uint64_t gpu, memory;
    bh_table_add(t, name);
    if (b->by == BH_BILL_BY_BOTH)
        bh_table_add(t, together ? BH_BILL_ALL : c->mechanism);
    bh_table_add(t, bh_say_fixed(a, c->milli_ms, MILLI_MS_PER_GPU_HOUR));
    bh_table_add(t, bh_say_fixed(a, c->mib_ms, MIB_MS_PER_GIB_HOUR));
    bh_table_add(t, bh_say_fixed(a, c->lost_milli_ms, MILLI_MS_PER_GPU_HOUR));
    /* A lease on several GPUs counts on each of them. */
    bh_table_add(t, together && b->by == BH_BILL_BY_GPU ? NULL : bh_say_count(a, c->leases));
    if (bh_bill_cost(b, c, &gpu, &memory))
        bh_table_add(t, bh_bill_money(a, gpu + memory));
}

static void write_bill(struct bh_cli *cli, struct bh_arena *a, const struct bh_bill *b)
{
    static const char *const firsts[BH_BILL_BYS] = {[BH_BILL_BY_TENANT] = "TENANT",
                                                    [BH_BILL_BY_COST_CENTER] = "COST CENTER",
                                                    [BH_BILL_BY_GPU] = "GPU",
                                                    [BH_BILL_BY_USER] = "USER",
                                                    [BH_BILL_BY_MECHANISM] = "MECHANISM",
                                                    [BH_BILL_BY_BOTH] = "TENANT"};
    const char *heads[7];
    size_t n = 0;
    struct bh_table t;
    heads[n++] = firsts[b->by];
    if (b->by == BH_BILL_BY_BOTH)
        heads[n++] = "MECHANISM";
    heads[n++] = "GPU HOURS";
    heads[n++] = "GiB HOURS";
    heads[n++] = "LOST";
    heads[n++] = "LEASES";
    if (b->prices)
        heads[n++] = b->prices->currency ? b->prices->currency : "COST";
    bh_table_init(&t, a, heads, n);
    for (size_t i = 0; i < b->lines.n; i++)
        bill_row(&t, a, b, &b->lines.at[i], bh_bill_name(b, &b->lines.at[i], a));
    bill_row(&t, a, b, &b->all, "together");
    bh_table_write(&t, cli, 0);
    bh_table_fini(&t);
}

static void write_stranded(struct bh_cli *cli, struct bh_arena *a, const struct bh_a_usage *u)
{
    static const char *const heads[] = {"GPU", "STRANDED GPU HOURS", "STRANDED GiB HOURS"};
    struct bh_table t;
    if (!u->cards.n)
        return;
    bh_heading(cli, "Stranded: compute beside memory that is all given away, or the reverse");
    bh_table_init(&t, a, heads, BH_COUNT_OF(heads));
    for (size_t i = 0; i < u->cards.n; i++) {
        const struct bh_a_card_use *c = &u->cards.at[i];
        if (!c->stranded_milli_ms && !c->stranded_mib_ms)
            continue;
        bh_table_add(&t, bh_arena_printf(a, "%" PRIu64 " %s", c->index, c->gpu));
        bh_table_add(&t, bh_say_fixed(a, c->stranded_milli_ms, MILLI_MS_PER_GPU_HOUR));
        bh_table_add(&t, bh_say_fixed(a, c->stranded_mib_ms, MIB_MS_PER_GIB_HOUR));
    }
    if (t.cells.n)
        bh_table_write(&t, cli, 2);
    else
        bh_buf_str(&cli->out, "  nothing was\n");
    bh_table_fini(&t);
}

const char *bh_usage_missing(struct bh_arena *a, const struct bh_a_usage *u)
{
    if (u->complete_from_ms == BH_ANSWER_UNKNOWN || u->from_ms >= u->complete_from_ms)
        return NULL;
    return bh_arena_printf(
        a, "not whole: of jobs that were over before %s records were dropped (audit.history of the policy)",
        bh_say_time(a, u->complete_from_ms));
}

void bh_usage_text(struct bh_cli *cli, struct bh_arena *a, const struct bh_a_usage *u, enum bh_bill_by by)
{
    struct bh_bill b;
    bh_usage_bill(u, by, &b);
    bh_buf_printf(&cli->out, "from %s to %s; what was granted, used or not\n", bh_say_time(a, u->from_ms),
                  bh_say_time(a, u->to_ms));
    if (bh_usage_missing(a, u))
        bh_buf_printf(&cli->out, "%s\n", bh_usage_missing(a, u));
    write_bill(cli, a, &b);
    write_stranded(cli, a, u);
    bh_bill_fini(&b);
}

void bh_usage_hints(struct bh_cli *cli, struct bh_arena *a, const struct bh_a_usage *u,
                    const struct bh_a_quotas *q, const struct bh_a_leases *l)
{
    BH_VEC(struct bh_bill_quota) quotas = {0};
    BH_VEC(struct bh_bill_lease) leases = {0};
    bh_bill_sentences sentences = {0};
    struct bh_bill b;
    for (size_t i = 0; i < q->quotas.n; i++) {
        const struct bh_a_quota *x = &q->quotas.at[i];
        *bh_vec_push(&quotas) =
            (struct bh_bill_quota){x->tenant, x->guaranteed_milli, x->used_milli, x->waiting_jobs};
    }
    for (size_t i = 0; i < l->leases.n; i++) {
        const struct bh_a_lease *x = &l->leases.at[i];
        *bh_vec_push(&leases) =
            (struct bh_bill_lease){x->id, x->tenant, x->live ? x->live->compute_ppm : UINT64_MAX};
    }
    bh_usage_bill(u, BH_BILL_BY_TENANT, &b);
    bh_bill_hints(&b, &(struct bh_bill_facts){quotas.at, quotas.n, leases.at, leases.n}, a, &sentences);
    if (sentences.n)
        bh_heading(cli, "Look at");
    for (size_t i = 0; i < sentences.n; i++) {
        bh_buf_str(&cli->out, "  ");
        bh_text_wrap(&cli->out, sentences.at[i], 2, 4, cli->is_terminal ? cli->width : UINT16_MAX);
    }
    bh_bill_fini(&b);
    bh_vec_fini(&quotas);
    bh_vec_fini(&leases);
    bh_vec_fini(&sentences);
}

void bh_usage_raw_head(struct bh_buf *out)
{
    bh_buf_str(out,
               "seq,tenant,cost_center,user,job,lease,gpu,kind,key,mechanism,milli,mib,from_ms,to_ms,lost\n");
}

void bh_usage_raw(struct bh_buf *out, const struct bh_a_usage_records *r)
{
    for (size_t i = 0; i < r->records.n; i++) {
        const struct bh_a_usage_record *u = &r->records.at[i];
        const char *const names[] = {u->tenant, u->cost_center, u->user, u->job,      u->lease,
                                     u->gpu,    u->kind,        u->key,  u->mechanism};
        bh_buf_printf(out, "%" PRIu64, u->seq);
        for (size_t k = 0; k < BH_COUNT_OF(names); k++) {
            bh_buf_str(out, ",");
            bh_csv_text(out, names[k]);
        }
        bh_buf_printf(out, ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",", u->milli, u->mib, u->from_ms);
        if (u->to_ms != BH_ANSWER_UNKNOWN)
            bh_buf_printf(out, "%" PRIu64, u->to_ms);
        bh_buf_str(out, u->lost ? ",1\n" : ",0\n");
    }
}

/* ---- a policy ---- */

static bool came_before(const struct bh_a_diff *d, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (bh_str_eq(d->changes.at[k].tenant, d->changes.at[i].tenant))
            return true;
    return false;
}

static void write_changes(struct bh_cli *cli, struct bh_arena *a, const struct bh_a_diff *d,
                          const char *tenant)
{
    static const char *const heads[] = {"WHAT", "BEFORE", "AFTER", "EFFECT"};
    struct bh_table t;
    bh_heading(cli, tenant ? tenant : "for everybody");
    bh_table_init(&t, a, heads, BH_COUNT_OF(heads));
    for (size_t i = 0; i < d->changes.n; i++) {
        const struct bh_a_change *c = &d->changes.at[i];
        if (!bh_str_eq(c->tenant, tenant))
            continue;
        bh_table_add(&t, c->what);
        bh_table_add(&t, c->before);
        bh_table_add(&t, c->after);
        bh_table_paint(&t, c->effect, c->effect ? BH_PAINT_YELLOW : BH_PAINT_PLAIN);
    }
    bh_table_write(&t, cli, 2);
    bh_table_fini(&t);
}

void bh_diff_text(struct bh_cli *cli, struct bh_arena *a, const struct bh_a_diff *d, const char *file)
{
    size_t groups = 0;
    for (size_t i = 0; i < d->changes.n; i++)
        groups += !came_before(d, i) && d->changes.at[i].tenant;
    bh_text_add(&cli->out, file);
    if (d->version)
        bh_buf_printf(&cli->out, " against version %" PRIu64, d->version);
    bh_buf_printf(&cli->out, ": %zu change%s for %zu tenant%s\n", d->changes.n, d->changes.n == 1 ? "" : "s",
                  groups, groups == 1 ? "" : "s");
    for (size_t i = 0; i < d->changes.n; i++)
        if (!came_before(d, i))
            write_changes(cli, a, d, d->changes.at[i].tenant);
    if (d->findings.n)
        bh_heading(cli, "Found");
    for (size_t i = 0; i < d->findings.n; i++) {
        bh_buf_str(&cli->out, "  ");
        bh_text_wrap(&cli->out, d->findings.at[i], 2, 4, cli->is_terminal ? cli->width : UINT16_MAX);
    }
    if (d->errors)
        bh_buf_printf(&cli->out, "%" PRIu64 " of these keep%s it from being applied\n", d->errors,
                      d->errors == 1 ? "s" : "");
}

/* ---- tokens ---- */

static const char *say_hold(struct bh_arena *a, const struct bh_a_token *t, uint64_t now_ms)
{
    if (t->revoked_ms != BH_ANSWER_UNKNOWN)
        return bh_arena_printf(a, "revoked %s", bh_say_time(a, t->revoked_ms));
    if (t->expires_ms == BH_ANSWER_UNKNOWN)
        return "holds for ever";
    if (t->expires_ms <= now_ms)
        return bh_arena_printf(a, "expired %s", bh_say_time(a, t->expires_ms));
    return bh_arena_printf(a, "holds %s", bh_say_span(a, t->expires_ms - now_ms));
}

void bh_tokens_text(struct bh_cli *cli, struct bh_arena *a, const struct bh_a_tokens *t, uint64_t now_ms)
{
    static const char *const heads[] = {"TOKEN", "SUBJECT", "ROLE", "TENANT", "CREATED", "STATE"};
    struct bh_table table;
    bh_table_init(&table, a, heads, BH_COUNT_OF(heads));
    for (size_t i = 0; i < t->tokens.n; i++) {
        const struct bh_a_token *at = &t->tokens.at[i];
        bh_table_add(&table, at->id);
        bh_table_add(&table, at->subject);
        bh_table_add(&table, at->role);
        bh_table_add(&table, at->tenant);
        bh_table_add(&table, bh_say_time(a, at->created_ms));
        bh_table_add(&table, say_hold(a, at, now_ms));
    }
    if (t->tokens.n)
        bh_table_write(&table, cli, 0);
    else
        bh_buf_str(&cli->out, "no tokens\n");
    bh_table_fini(&table);
}
