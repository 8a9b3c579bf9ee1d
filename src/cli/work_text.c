/* SPDX-License-Identifier: Apache-2.0 */
/* work_text.c - a line for each job or lease, with whose it is. */
#include "cli/work_text.h"

#include "base/str.h"
#include "base/units.h"

#include <inttypes.h>
#include <stdio.h>

/* ---- what changed since it was shown last ---- */

void bh_seen_fini(struct bh_seen *s)
{
    bh_vec_fini(&s->at);
}

static bool is_changed(const struct bh_seen *s, const char *id, const char *state)
{
    if (!s || !s->any)
        return false;
    for (size_t i = 0; i < s->at.n; i++)
        if (bh_str_eq(s->at.at[i].id, id))
            return strncmp(s->at.at[i].state, state, sizeof(s->at.at[i].state) - 1) != 0;
    return true;
}

static void remember(struct bh_seen *next, const char *id, const char *state)
{
    struct bh_seen_row *row = bh_vec_push(&next->at);
    (void)snprintf(row->id, sizeof(row->id), "%s", id);
    (void)snprintf(row->state, sizeof(row->state), "%s", state);
}

static void keep(struct bh_seen *seen, struct bh_seen *next)
{
    if (seen) {
        bh_seen_fini(seen);
        *seen = *next;
        seen->any = true;
    } else
        bh_seen_fini(next);
}

/* ---- words ---- */

enum bh_paint bh_state_paint(const char *state)
{
    static const char *const good[] = {"running", "active", "ok", "owned"};
    static const char *const bad[] = {"failed", "refused", "quarantined", "lost", "bad"};
    static const char *const held[] = {"waiting",   "paused", "suspended", "cordoned", "draining",
                                       "scrubbing", "dirty",  "warn",      "parking"};
    for (size_t i = 0; i < BH_COUNT_OF(good); i++)
        if (bh_str_eq(state, good[i]))
            return BH_PAINT_GREEN;
    for (size_t i = 0; i < BH_COUNT_OF(bad); i++)
        if (bh_str_eq(state, bad[i]))
            return BH_PAINT_RED;
    for (size_t i = 0; i < BH_COUNT_OF(held); i++)
        if (bh_str_eq(state, held[i]))
            return BH_PAINT_YELLOW;
    return BH_PAINT_PLAIN;
}

const char *bh_say_asked(struct bh_arena *a, const struct bh_a_job *j)
{
    const char *each = j->profile ? j->profile : bh_say_gpus(a, j->milli), *all = each;
    if (j->gpus > 1 && !j->profile && j->milli == 1000)
        all = bh_arena_printf(a, "%" PRIu64 " GPUs", j->gpus);
    else if (j->gpus > 1)
        all = bh_arena_printf(a, "%" PRIu64 " x %s", j->gpus, each);
    return j->memory_mib ? bh_arena_printf(a, "%s, %s", all, bh_say_memory(a, j->memory_mib)) : all;
}

const char *bh_say_job_state(struct bh_arena *a, const struct bh_a_job *j)
{
    if (!j->end)
        return j->state;
    if (j->status != BH_ANSWER_UNKNOWN)
        return bh_arena_printf(a, "%s %" PRIu64, j->end, j->status);
    if (j->signal != BH_ANSWER_UNKNOWN)
        return bh_arena_printf(a, "%s by %" PRIu64, j->end, j->signal);
    return j->end;
}

const char *bh_say_lease_state(const struct bh_a_lease *l)
{
    if (l->live && bh_str_eq(l->state, "active") && !bh_str_eq(l->live->state, "running"))
        return l->live->state;
    return l->paused && bh_str_eq(l->state, "active") ? "paused" : l->state;
}

const char *bh_say_isolation(struct bh_arena *a, const struct bh_a_lease *l)
{
    return bh_arena_printf(a, "%s, %s", l->stack ? l->stack : l->mechanism, l->tier);
}

static void add_state(struct bh_table *t, struct bh_seen *seen, struct bh_seen *next, const char *id,
                      const char *word, const char *paint_as)
{
    const bool changed = is_changed(seen, id, word);
    remember(next, id, word);
    bh_table_paint(t, changed ? bh_arena_printf(t->arena, "%s*", word) : word,
                   changed ? BH_PAINT_BOLD : bh_state_paint(paint_as));
}

static void write_others(struct bh_cli *cli, uint64_t others, const char *what)
{
    if (others != BH_ANSWER_UNKNOWN && others)
        bh_buf_printf(&cli->out, "others: %" PRIu64 " %s%s\n", others, what, others == 1 ? "" : "s");
}

/* ---- lists ---- */

void bh_jobs_text(struct bh_cli *cli, struct bh_arena *a, const struct bh_a_jobs *jobs, uint64_t now_ms,
                  struct bh_seen *seen)
{
    static const char *const heads[] = {"JOB", "TENANT", "USER", "NAME", "ASKS", "STATE", "FOR", "WHY"};
    struct bh_seen next = {0};
    struct bh_table t;
    bh_table_init(&t, a, heads, BH_COUNT_OF(heads));
    for (size_t i = 0; i < jobs->jobs.n; i++) {
        const struct bh_a_job *j = &jobs->jobs.at[i];
        bh_table_add(&t, j->id);
        bh_table_add(&t, j->tenant);
        bh_table_add(&t, j->user);
        bh_table_add(&t, j->name);
        bh_table_add(&t, bh_say_asked(a, j));
        add_state(&t, seen, &next, j->id, bh_say_job_state(a, j), j->end ? j->end : j->state);
        bh_table_add(&t, bh_say_since(a, now_ms, j->state_ms));
        bh_table_add(&t, j->why);
    }
    if (jobs->jobs.n)
        bh_table_write(&t, cli, 0);
    else
        bh_buf_str(&cli->out, "no jobs\n");
    write_others(cli, jobs->others, "job");
    keep(seen, &next);
    bh_table_fini(&t);
}

static const char *say_live(struct bh_arena *a, const struct bh_a_live *l)
{
    struct bh_unit_text share;
    if (!l)
        return NULL;
    const uint32_t ppm = l->compute_ppm > 1000000 ? 1000000 : (uint32_t)l->compute_ppm;
    return bh_arena_printf(a, "%s, %s", bh_share_format(ppm, &share), bh_say_memory(a, l->memory_mib));
}

void bh_leases_text(struct bh_cli *cli, struct bh_arena *a, const struct bh_a_leases *leases, uint64_t now_ms,
                    struct bh_seen *seen)
{
    static const char *const heads[] = {"LEASE", "JOB", "TENANT",    "USER",
                                        "STATE", "FOR", "ISOLATION", "USES"};
    struct bh_seen next = {0};
    struct bh_table t;
    bh_table_init(&t, a, heads, BH_COUNT_OF(heads));
    for (size_t i = 0; i < leases->leases.n; i++) {
        const struct bh_a_lease *l = &leases->leases.at[i];
        const char *state = bh_say_lease_state(l);
        bh_table_add(&t, l->id);
        bh_table_add(&t, l->job);
        bh_table_add(&t, l->tenant);
        bh_table_add(&t, l->user);
        add_state(&t, seen, &next, l->id, state, state);
        bh_table_add(&t, bh_say_since(a, now_ms, l->state_ms));
        bh_table_add(&t, bh_say_isolation(a, l));
        bh_table_add(&t, say_live(a, l->live));
    }
    if (leases->leases.n)
        bh_table_write(&t, cli, 0);
    else
        bh_buf_str(&cli->out, "no leases\n");
    write_others(cli, leases->others, "lease");
    keep(seen, &next);
    bh_table_fini(&t);
}

/* ---- why ---- */

static void write_holders(struct bh_cli *cli, struct bh_arena *a, const struct bh_a_why *w, uint64_t now_ms)
{
    for (size_t i = 0; i < w->holders.n; i++) {
        const struct bh_a_holder *h = &w->holders.at[i];
        const char *until =
            h->end_ms == BH_ANSWER_UNKNOWN
                ? "for how long is not known"
                : bh_arena_printf(a, "%s more", bh_say_span(a, h->end_ms > now_ms ? h->end_ms - now_ms : 0));
        bh_fact(cli, i ? "" : "  held by",
                bh_arena_printf(a, "%s of %s: %s, %s", h->job, h->tenant, bh_say_gpus(a, h->milli), until));
    }
    if (w->others->jobs)
        bh_fact(cli, w->holders.n ? "" : "  held by",
                bh_arena_printf(a, "others: %" PRIu64 " job%s with %s", w->others->jobs,
                                w->others->jobs == 1 ? "" : "s", bh_say_gpus(a, w->others->milli)));
}

void bh_job_why_text(struct bh_cli *cli, struct bh_arena *a, const char *job, const struct bh_a_why *w,
                     uint64_t now_ms)
{
    bh_paint_add(&cli->out, cli->paint_out, BH_PAINT_BOLD, job);
    bh_buf_str(&cli->out, "  ");
    bh_text_add(&cli->out, w->tier ? w->tier : "not known");
    bh_buf_str(&cli->out, "\n");
    bh_fact(cli, "  why", w->sentence);
    if (w->need_milli)
        bh_fact(
            cli, "  needs",
            bh_arena_printf(a, "%s, %s free", bh_say_gpus(a, w->need_milli), bh_say_gpus(a, w->free_milli)));
    if (w->ahead)
        bh_fact(cli, "  ahead", bh_arena_printf(a, "%" PRIu64 " come before it", w->ahead));
    if (w->until_ms != BH_ANSWER_UNKNOWN)
        bh_fact(cli, "  until",
                bh_arena_printf(a, "%s, in %s", bh_say_time(a, w->until_ms),
                                bh_say_span(a, w->until_ms > now_ms ? w->until_ms - now_ms : 0)));
    write_holders(cli, a, w, now_ms);
    for (size_t i = 0; i < w->remedies.n; i++) {
        const struct bh_a_remedy *r = &w->remedies.at[i];
        const char *in = r->at_ms != BH_ANSWER_UNKNOWN && r->at_ms > now_ms
                             ? bh_arena_printf(a, " (in %s)", bh_say_span(a, r->at_ms - now_ms))
                             : "";
        bh_fact(cli, i ? "" : "  helps", bh_arena_printf(a, "%s%s", r->sentence, in));
    }
}
