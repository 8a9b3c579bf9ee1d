/* SPDX-License-Identifier: Apache-2.0 */
/* books_text.c - sums of usage, changes of a policy, tokens. */
#include "cli/books_text.h"

#include "base/str.h"

#include <inttypes.h>

#define MILLI_MS_PER_GPU_HOUR (UINT64_C(1000) * 3600 * 1000)
#define MIB_MS_PER_GIB_HOUR   (UINT64_C(1024) * 3600 * 1000)

/* ---- usage ---- */

struct sums {
    struct bh_a_usage_row *at;
    size_t n, cap;
};

static struct bh_a_usage_row *sum_of(struct sums *s, const char *tenant, const char *mechanism)
{
    for (size_t i = 0; i < s->n; i++)
        if (bh_str_eq(s->at[i].tenant, tenant) && bh_str_eq(s->at[i].mechanism, mechanism))
            return &s->at[i];
    struct bh_a_usage_row *row = bh_vec_push(s);
    *row = (struct bh_a_usage_row){.tenant = tenant, .mechanism = mechanism};
    return row;
}

/* Past what a number holds, it stays there. */
static void add_to(uint64_t *sum, uint64_t v)
{
    if (__builtin_add_overflow(*sum, v, sum))
        *sum = UINT64_MAX - 1;
}

static void add_row(struct bh_a_usage_row *row, uint64_t milli_ms, uint64_t mib_ms, uint64_t leases)
{
    add_to(&row->milli_ms, milli_ms);
    add_to(&row->mib_ms, mib_ms);
    add_to(&row->leases, leases);
}

static void sum_up(const struct bh_a_usage *u, enum bh_usage_by by, struct sums *ret)
{
    for (size_t i = 0; i < u->usage.n; i++) {
        const struct bh_a_usage_row *r = &u->usage.at[i];
        add_row(sum_of(ret, by == BH_USAGE_BY_MECHANISM ? "all" : r->tenant,
                       by == BH_USAGE_BY_TENANT ? "all" : r->mechanism),
                r->milli_ms, r->mib_ms, r->leases);
    }
    if (u->others)
        add_row(sum_of(ret, "others", "all"), u->others->milli_ms, u->others->mib_ms, u->others->leases);
}

void bh_usage_text(struct bh_cli *cli, struct bh_arena *a, const struct bh_a_usage *u, enum bh_usage_by by)
{
    static const char *const heads[] = {"TENANT", "MECHANISM", "GPU HOURS", "GiB HOURS", "LEASES"};
    struct bh_a_usage_row all = {.tenant = "together", .mechanism = "all"};
    struct sums s = {0};
    struct bh_table t;
    sum_up(u, by, &s);
    bh_buf_printf(&cli->out, "from %s to %s; what was granted, used or not\n", bh_say_time(a, u->from_ms),
                  bh_say_time(a, u->to_ms));
    bh_table_init(&t, a, heads, BH_COUNT_OF(heads));
    for (size_t i = 0; i <= s.n; i++) {
        const struct bh_a_usage_row *r = i < s.n ? &s.at[i] : &all;
        bh_table_add(&t, r->tenant);
        bh_table_add(&t, r->mechanism);
        bh_table_add(&t, bh_say_fixed(a, r->milli_ms, MILLI_MS_PER_GPU_HOUR));
        bh_table_add(&t, bh_say_fixed(a, r->mib_ms, MIB_MS_PER_GIB_HOUR));
        bh_table_add(&t, bh_say_count(a, r->leases));
        if (i < s.n)
            add_row(&all, r->milli_ms, r->mib_ms, r->leases);
    }
    bh_table_write(&t, cli, 0);
    bh_table_fini(&t);
    bh_vec_fini(&s);
}

/* A field that a spreadsheet takes for text, whatever it begins with: names of the policy need no quotes. */
static void csv_text(struct bh_buf *b, const char *s)
{
    if (s[strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789-")] == '\0' && *s != '-') {
        bh_buf_str(b, s);
        return;
    }
    bh_buf_str(b, "\"'");
    for (; *s; s++) {
        const char one[2] = {*s, '\0'};
        bh_buf_str(b, *s == '"' ? "\"" : "");
        bh_text_add(b, one);
    }
    bh_buf_str(b, "\"");
}

void bh_usage_csv(struct bh_cli *cli, struct bh_arena *a, const struct bh_a_usage *u, enum bh_usage_by by)
{
    struct sums s = {0};
    sum_up(u, by, &s);
    bh_buf_str(&cli->out, "from,to,tenant,mechanism,gpu_hours,gib_hours,leases,milli_ms,mib_ms\n");
    for (size_t i = 0; i < s.n; i++) {
        const struct bh_a_usage_row *r = &s.at[i];
        bh_buf_printf(&cli->out, "%s,%s,", bh_say_time(a, u->from_ms), bh_say_time(a, u->to_ms));
        csv_text(&cli->out, r->tenant);
        bh_buf_str(&cli->out, ",");
        csv_text(&cli->out, r->mechanism);
        bh_buf_printf(&cli->out, ",%s,%s,%" PRIu64 ",%" PRIu64 ",%" PRIu64 "\n",
                      bh_say_fixed(a, r->milli_ms, MILLI_MS_PER_GPU_HOUR),
                      bh_say_fixed(a, r->mib_ms, MIB_MS_PER_GIB_HOUR), r->leases, r->milli_ms, r->mib_ms);
    }
    bh_vec_fini(&s);
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
