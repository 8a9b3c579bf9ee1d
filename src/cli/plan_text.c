/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/plan_text.h"

#include "base/str.h"
#include "base/units.h"

#include <inttypes.h>
#include <string.h>

enum { LABEL = 16, LINE_MAX_BYTES = 8192, COMMON_MIN = 16 };

struct span {
    const char *at;
    size_t n;
};

static void row(struct bh_cli *cli, enum bh_paint color, const char *label, const char *text)
{
    bh_buf_str(&cli->out, "  ");
    bh_paint_add(&cli->out, cli->paint_out, color, label);
    bh_text_blanks(&cli->out, LABEL - 2 - bh_text_width(label));
    bh_text_wrap(&cli->out, text, LABEL, LABEL, cli->width);
}

/* What was declared: the promise that the choice has to keep. */
static void write_head(struct bh_cli *cli, const struct bh_tenant *t)
{
    struct bh_buf *b = &cli->out;
    struct bh_unit_text gpus;
    bh_buf_str(b, "tenant ");
    bh_paint_add(b, cli->paint_out, BH_PAINT_BOLD, t->name);
    bh_buf_printf(b, " (%s", bh_word(trust, t->trust));
    if (t->class_name) {
        bh_buf_str(b, ", class ");
        bh_text_add(b, t->class_name);
    }
    bh_buf_printf(b, ", SLO %s", bh_word(slo_kind, t->slo.kind));
    if (t->slo.metric && t->slo.target) {
        bh_buf_str(b, " ");
        bh_text_add(b, t->slo.metric);
        bh_buf_str(b, " ");
        bh_text_add(b, t->slo.target);
    }
    if (t->quota.has_gpus)
        bh_buf_printf(b, ", quota %s", bh_count_format(t->quota.gpus_milli, &gpus));
    bh_buf_str(b, ")\n");
}

static void add_mechanism(struct bh_buf *b, uint8_t mechanism, uint8_t backing)
{
    bh_buf_str(b, bh_word(mechanism, mechanism));
    if (mechanism == BH_MECH_FRACTIONAL && backing != BH_MECH_UNSET)
        bh_buf_printf(b, " on %s", bh_word(mechanism, backing));
}

/* What a guarantee in whole GPUs is in what the tenant gets, and what one of those takes of a GPU. */
static void add_amount(struct bh_buf *b, const struct bh_tenant *tenant, const struct bh_tenant_plan *t)
{
    bool whole = t->mechanism == BH_MECH_WHOLE;
    const char *what = t->profile ? "instance" : "workload", *more = t->units == 1 ? "" : "s";
    uint64_t milli = tenant->quota.gpus_milli;
    struct bh_unit_text gpus, part;

    if (whole && !t->units)
        bh_buf_str(b, "no GPU is guaranteed; each costs a whole one");
    else if (whole)
        bh_buf_printf(b, "the guarantee is %" PRIu64 " whole GPU%s", t->units, more);
    else if (!t->units)
        bh_buf_printf(b, "nothing is guaranteed; each %s costs %s of a GPU", what,
                      bh_share_format(t->cost_ppm, &part));
    else if (tenant->quota.has_gpus)
        bh_buf_printf(b, "%s GPU%s guaranteed = %" PRIu64 " %s%s, each %s of a GPU",
                      bh_count_format(milli, &gpus), milli == 1000 ? "" : "s", t->units, what, more,
                      bh_share_format(t->cost_ppm, &part));
    else
        bh_buf_printf(b, "the guarantee is %" PRIu64 " %s%s, each %s of a GPU", t->units, what, more,
                      bh_share_format(t->cost_ppm, &part));
}

static void write_silicon(struct bh_cli *cli, const struct bh_tenant *tenant, const struct bh_tenant_plan *t)
{
    struct bh_buf line;
    bh_buf_init(&line, LINE_MAX_BYTES);
    bh_buf_str(&line, t->model ? t->model->name : "any model at hand");
    if (t->profile)
        bh_buf_printf(&line, ", profile %s", t->profile->name);
    bh_buf_str(&line, "; ");
    add_amount(&line, tenant, t);
    row(cli, BH_PAINT_PLAIN, "silicon", bh_buf_text(&line));
    bh_buf_fini(&line);
}

static void write_shared(struct bh_cli *cli, const struct bh_tenant_plan *t)
{
    struct bh_buf line;
    bh_buf_init(&line, LINE_MAX_BYTES);
    for (size_t i = 0; i < BH_PLAN_SHARED_MAX && t->shared[i]; i++)
        bh_buf_printf(&line, "%s%s", i ? "; " : "", t->shared[i]);
    row(cli, BH_PAINT_YELLOW, "stays shared", bh_buf_text(&line));
    bh_buf_fini(&line);
}

static void write_choice(struct bh_cli *cli, const struct bh_policy *policy, const struct bh_tenant_plan *t)
{
    struct bh_buf line;
    bh_buf_init(&line, LINE_MAX_BYTES);
    add_mechanism(&line, t->mechanism, t->backing);
    bh_buf_printf(&line, " x %s quota x %s tier", bh_word(quota_model, t->quota_model),
                  bh_word(tier, t->tier));
    row(cli, BH_PAINT_GREEN, "choose", bh_buf_text(&line));
    bh_buf_fini(&line);
    write_silicon(cli, &policy->tenants.at[t->tenant], t);
    if (t->pool < policy->pools.n)
        row(cli, BH_PAINT_PLAIN, "pool", policy->pools.at[t->pool].name);
    else
        row(cli, BH_PAINT_PLAIN, "pool", "none in the policy is this yet: make one");
    if (t->why)
        row(cli, BH_PAINT_PLAIN, "why", t->why);
    if (t->bounded_by)
        row(cli, BH_PAINT_PLAIN, "bounded by", t->bounded_by);
    write_shared(cli, t);
}

static bool same_ground(const struct bh_plan_rejected *a, const struct bh_plan_rejected *b)
{
    return a->rule || b->rule ? a->rule == b->rule : bh_str_eq(a->reason, b->reason);
}

/* `timeslice in container, vm; mps in container`: all that falls to the rule of the one at `first`. */
static void add_fallen(struct bh_buf *line, const struct bh_tenant_plan *t, size_t first)
{
    const struct bh_plan_rejected *at = t->rejected.at, *last = NULL;
    for (size_t i = first; i < t->rejected.n; i++) {
        if (!same_ground(&at[first], &at[i]))
            continue;
        if (last && last->mechanism == at[i].mechanism && last->backing == at[i].backing) {
            bh_buf_printf(line, ", %s", bh_word(tier, at[i].tier));
        } else {
            bh_buf_str(line, last ? "; " : "");
            add_mechanism(line, at[i].mechanism, at[i].backing);
            bh_buf_printf(line, " in %s", bh_word(tier, at[i].tier));
        }
        last = &at[i];
    }
}

/* How much of both is the same, in whole words and without what would join on more. */
static size_t common_words(const char *a, const char *b, size_t n)
{
    size_t i = 0, end;
    while (i < n && a[i] == b[i] && a[i])
        i++;
    end = i;
    if (i < n || b[i])
        while (end && !strchr(" ;,.", a[end]))
            end--;
    while (end && strchr(" ;,.", a[end - 1]))
        end--;
    return end;
}

/* What the reasons of one rule have in common, else what the rule is about. */
static struct span ground_of(const struct bh_tenant_plan *t, size_t first)
{
    const struct bh_plan_rejected *at = t->rejected.at;
    const char *text = at[first].reason;
    size_t n = common_words(text, text, strlen(text));
    for (size_t i = first; i < t->rejected.n; i++)
        if (same_ground(&at[first], &at[i]))
            n = common_words(text, at[i].reason, n);
    if (n < COMMON_MIN && at[first].rule && !bh_str_starts(text + n, "."))
        return (struct span){at[first].rule->title, strlen(at[first].rule->title)};
    return (struct span){text, n};
}

/* Dozens of cheaper choices fall to a handful of rules: a row for each rule, not for each choice. */
static void write_rejected(struct bh_cli *cli, const struct bh_tenant_plan *t)
{
    for (size_t i = 0; i < t->rejected.n; i++) {
        const struct bh_plan_rejected *r = &t->rejected.at[i];
        struct span ground = ground_of(t, i);
        size_t k = 0;
        struct bh_buf line;
        while (k < i && !same_ground(&t->rejected.at[k], r))
            k++;
        if (k < i)
            continue;
        bh_buf_init(&line, LINE_MAX_BYTES);
        bh_buf_printf(&line, "%s%s%.*s: ", r->rule ? r->rule->id : "", r->rule ? " " : "", (int)ground.n,
                      ground.at);
        add_fallen(&line, t, i);
        row(cli, BH_PAINT_DIM, i ? "" : "rejected", bh_buf_text(&line));
        bh_buf_fini(&line);
    }
}

static void write_tenant(struct bh_cli *cli, const struct bh_policy *policy, const struct bh_tenant_plan *t)
{
    write_head(cli, &policy->tenants.at[t->tenant]);
    if (t->possible) {
        write_choice(cli, policy, t);
    } else {
        row(cli, BH_PAINT_RED, "CANNOT KEEP", "nothing at hand keeps what this tenant was promised");
        row(cli, BH_PAINT_BOLD, "would keep it", t->needed ? t->needed : "a weaker promise");
    }
    write_rejected(cli, t);
    bh_buf_str(&cli->out, "\n");
}

void bh_plan_text(struct bh_cli *cli, const struct bh_plan_out *p)
{
    size_t n = p->plan->tenants.n, impossible = bh_plan_impossible(p->plan);
    if (!p->fleet)
        bh_text_wrap(&cli->out, "No fleet given: every GPU model of the catalogue counts as at hand.\n", 0, 0,
                     cli->width);
    for (size_t i = 0; i < n; i++)
        write_tenant(cli, p->policy, &p->plan->tenants.at[i]);
    bh_buf_printf(&cli->out, "%zu %s: %zu can be kept, %zu cannot, in ", n, n == 1 ? "tenant" : "tenants",
                  n - impossible, impossible);
    bh_text_add(&cli->out, p->label);
    bh_buf_str(&cli->out, "\n");
}
