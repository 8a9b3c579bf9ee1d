/* SPDX-License-Identifier: Apache-2.0 */
/* describe_text.c - facts first, then what it was given, then everything that happened to it, in order. */
#include "cli/describe_text.h"

#include "base/str.h"
#include "base/units.h"
#include "cli/work_text.h"

#include <inttypes.h>

/* ---- history: of one or of several, by time ---- */

struct event {
    uint64_t at_ms;
    size_t order; /* events of one instant stay as they were told */
    const char *who, *what, *why;
};
struct history {
    struct event *at;
    size_t n, cap;
};

static int by_time(const void *x, const void *y)
{
    const struct event *p = x, *q = y;
    if (p->at_ms != q->at_ms)
        return p->at_ms < q->at_ms ? -1 : 1;
    return p->order < q->order ? -1 : p->order > q->order;
}

static void add_event(struct history *h, uint64_t at_ms, const char *who, const char *what, const char *why)
{
    const size_t order = h->n;
    *bh_vec_push(h) = (struct event){at_ms, order, who, what, why};
}

static const char *say_scrub(struct bh_arena *a, const struct bh_a_scrub *s)
{
    struct bh_unit_text probed, total;
    return bh_arena_printf(a, "%s: %s of %s probed%s%s%s%s", s->gpu, bh_size_format(s->probed_bytes, &probed),
                           bh_size_format(s->total_bytes, &total), s->method ? ", " : "",
                           s->method ? s->method : "", s->words ? "; " : "", s->words ? s->words : "");
}

static void add_lease(struct history *h, struct bh_arena *a, const struct bh_a_lease_detail *d)
{
    for (size_t i = 0; i < d->history.n; i++) {
        const struct bh_a_step *s = &d->history.at[i];
        const char *why = s->why;
        if (s->cause && !bh_str_eq(s->cause, s->to))
            why = bh_arena_printf(a, "%s%s%s", s->cause, why ? ": " : "", why ? why : "");
        add_event(h, s->at_ms, d->lease->id, s->to, why);
    }
    for (size_t i = 0; i < d->scrubs.n; i++)
        add_event(h, d->scrubs.at[i].at_ms, d->lease->id,
                  bh_arena_printf(a, "scrub %s", d->scrubs.at[i].verdict), say_scrub(a, &d->scrubs.at[i]));
}

static void write_history(struct bh_cli *cli, struct bh_arena *a, struct history *h)
{
    static const char *const heads[] = {"WHEN", "WHAT", "STATE", "WHY"};
    struct bh_table t;
    bh_heading(cli, "History");
    bh_table_init(&t, a, heads, BH_COUNT_OF(heads));
    if (h->n)
        qsort(h->at, h->n, sizeof(*h->at), by_time);
    for (size_t i = 0; i < h->n; i++) {
        bh_table_add(&t, bh_say_time(a, h->at[i].at_ms));
        bh_table_add(&t, h->at[i].who);
        bh_table_add(&t, h->at[i].what);
        bh_table_add(&t, h->at[i].why);
    }
    if (h->n)
        bh_table_write(&t, cli, 2);
    else
        bh_buf_str(&cli->out, "  nothing yet\n");
    bh_table_fini(&t);
    bh_vec_fini(h);
}

/* ---- a job ---- */

static const char *say_argv(struct bh_arena *a, const struct bh_a_job_detail *d)
{
    struct bh_buf b;
    bh_buf_init(&b, 1u << 20);
    for (size_t i = 0; i < d->argv.n; i++) {
        bh_buf_str(&b, i ? " " : "");
        bh_text_shell(&b, d->argv.at[i]);
    }
    const char *all = d->argv.n ? bh_arena_str(a, bh_buf_text(&b)) : NULL;
    bh_buf_fini(&b);
    return all;
}

static const char *say_can(struct bh_arena *a, const struct bh_a_job *j)
{
    if (j->firm)
        return "never";
    if (!j->can_pause && !j->can_suspend && !j->can_requeue)
        return "may be ended to make room; not paused, suspended or started again";
    return bh_arena_printf(
        a, "may be%s%s%s to make room", j->can_pause ? " paused" : "",
        j->can_suspend ? (j->can_pause ? ", suspended" : " suspended") : "",
        j->can_requeue ? (j->can_pause || j->can_suspend ? ", started again" : " started again") : "");
}

static void job_facts(struct bh_cli *cli, struct bh_arena *a, const struct bh_a_job_detail *d,
                      uint64_t now_ms)
{
    const struct bh_a_job *j = d->job;
    bh_fact(cli, "job", bh_arena_printf(a, "%s%s%s", j->id, j->name ? "  " : "", j->name ? j->name : ""));
    bh_fact(cli, "of", bh_arena_printf(a, "%s, user %s", j->tenant, j->user));
    bh_fact(cli, "state",
            bh_arena_printf(a, "%s for %s%s%s", bh_say_job_state(a, j), bh_say_since(a, now_ms, j->state_ms),
                            j->why ? ": " : "", j->why ? j->why : ""));
    bh_fact(cli, "asks", bh_say_asked(a, j));
    bh_fact(cli, "pool", j->pool);
    bh_fact(cli, "tier", j->tier);
    bh_fact(cli, "priority", j->priority);
    bh_fact(cli, "interrupt", say_can(a, j));
    bh_fact(cli, "takes",
            j->duration_ms == BH_ANSWER_UNKNOWN
                ? NULL
                : bh_arena_printf(a, "at most %s", bh_say_span(a, j->duration_ms)));
    bh_fact(cli, "deadline", bh_say_time(a, j->deadline_ms));
    bh_fact(cli, "command", say_argv(a, d));
    bh_fact(cli, "in", d->cwd);
    bh_fact(cli, "image", d->image);
    bh_fact(cli, "submitted", bh_say_time(a, j->submit_ms));
}

void bh_describe_job(struct bh_cli *cli, struct bh_arena *a, const struct bh_a_job_detail *d,
                     const struct bh_a_why *why, const struct bh_a_lease_detail *attempts, size_t n_attempts,
                     uint64_t now_ms)
{
    struct history h = {0};
    job_facts(cli, a, d, now_ms);
    if (why) {
        bh_heading(cli, "Why it waits");
        bh_job_why_text(cli, a, d->job->id, why, now_ms);
    }
    if (d->leases.n) {
        const struct bh_a_leases leases = {.leases = {d->leases.at, d->leases.n},
                                           .others = BH_ANSWER_UNKNOWN};
        bh_heading(cli, "Leases");
        bh_leases_text(cli, a, &leases, now_ms, NULL);
    }
    add_event(&h, d->job->submit_ms, d->job->id, "submitted", NULL);
    for (size_t i = 0; i < n_attempts; i++)
        add_lease(&h, a, &attempts[i]);
    if (d->job->end)
        add_event(&h, d->job->state_ms, d->job->id, bh_say_job_state(a, d->job), d->job->why);
    write_history(cli, a, &h);
}

/* ---- a lease ---- */

static void write_granted(struct bh_cli *cli, struct bh_arena *a, const struct bh_a_lease_detail *d)
{
    static const char *const heads[] = {"GPU", "SLICE", "TIME", "MEMORY", "PROVED CLEAN"};
    struct bh_table t;
    bh_heading(cli, "Given");
    bh_table_init(&t, a, heads, BH_COUNT_OF(heads));
    for (size_t i = 0; i < d->slices.n; i++) {
        const struct bh_a_granted *g = &d->slices.at[i];
        bh_table_add(&t, g->gpu);
        bh_table_add(&t, g->key ? bh_arena_printf(a, "%s %s", g->kind, g->key) : g->kind);
        bh_table_add(&t, bh_say_gpus(a, g->milli));
        bh_table_add(&t, bh_say_memory(a, g->memory_mib));
        bh_table_add(&t, g->proved_clean ? "yes" : "not yet");
    }
    if (d->slices.n)
        bh_table_write(&t, cli, 2);
    else
        bh_buf_str(&cli->out, "  nothing\n");
    bh_table_fini(&t);
}

/* One part a line: whoever has it reads them all. */
static void write_shared(struct bh_cli *cli, const char *text)
{
    if (!text)
        return;
    bh_heading(cli, "Stays shared with others");
    while (*text) {
        const char *end = strstr(text, "; ");
        const size_t n = end ? (size_t)(end - text) : strlen(text);
        bh_buf_printf(&cli->out, "  %.*s\n", (int)n, text);
        text += n + (end ? 2 : 0);
    }
}

void bh_describe_lease(struct bh_cli *cli, struct bh_arena *a, const struct bh_a_lease_detail *d,
                       uint64_t now_ms)
{
    const struct bh_a_lease *l = d->lease;
    struct history h = {0};
    bh_fact(cli, "lease", bh_arena_printf(a, "%s, of job %s", l->id, l->job));
    bh_fact(cli, "of", bh_arena_printf(a, "%s, user %s", l->tenant, l->user));
    bh_fact(cli, "state",
            bh_arena_printf(a, "%s for %s%s%s", bh_say_lease_state(l), bh_say_since(a, now_ms, l->state_ms),
                            l->why ? ": " : "", l->why ? l->why : ""));
    bh_fact(cli, "pool", l->pool);
    bh_fact(cli, "isolation", bh_say_isolation(a, l));
    bh_fact(cli, "until", bh_say_time(a, l->until_ms));
    if (l->live) {
        struct bh_unit_text share;
        const uint32_t ppm = l->live->compute_ppm > 1000000 ? 1000000 : (uint32_t)l->live->compute_ppm;
        bh_fact(cli, "uses now",
                bh_arena_printf(a, "%s of the time, %s of memory; %" PRIu64 " allocation%s refused",
                                bh_share_format(ppm, &share), bh_say_memory(a, l->live->memory_mib),
                                l->live->refused, l->live->refused == 1 ? "" : "s"));
    }
    write_granted(cli, a, d);
    write_shared(cli, d->stays_shared);
    add_lease(&h, a, d);
    write_history(cli, a, &h);
}

/* ---- a GPU ---- */

static void write_slices(struct bh_cli *cli, struct bh_arena *a, const struct bh_a_gpu *g, uint64_t now_ms)
{
    static const char *const heads[] = {"SLICE", "STATE", "TIME", "MEMORY", "TENANT", "LEASE", "FOR", "WHY"};
    struct bh_table t;
    bh_heading(cli, "Slices");
    bh_table_init(&t, a, heads, BH_COUNT_OF(heads));
    for (size_t i = 0; i < g->slices.n; i++) {
        const struct bh_a_slice *s = &g->slices.at[i];
        bh_table_add(&t, s->key ? bh_arena_printf(a, "%s %s", s->kind, s->key) : s->kind);
        bh_table_paint(&t, s->state, bh_state_paint(s->state));
        bh_table_add(&t, bh_say_gpus(a, s->milli));
        bh_table_add(&t, bh_say_memory(a, s->memory_mib));
        bh_table_add(&t, s->tenant);
        bh_table_add(&t, s->lease);
        bh_table_add(&t, bh_say_since(a, now_ms, s->since_ms));
        bh_table_add(&t, s->why);
    }
    if (g->slices.n)
        bh_table_write(&t, cli, 2);
    else
        bh_buf_str(&cli->out, "  none\n");
    if (g->others && g->others->slices)
        bh_buf_printf(&cli->out, "  others: %s, %s\n", bh_say_gpus(a, g->others->milli),
                      bh_say_memory(a, g->others->memory_mib));
    bh_table_fini(&t);
}

static void gpu_facts(struct bh_cli *cli, struct bh_arena *a, const struct bh_a_gpu *g)
{
    bh_fact(cli, "GPU", bh_arena_printf(a, "%" PRIu64 "  %s", g->index, g->uuid ? g->uuid : ""));
    bh_fact(cli, "model", g->model);
    bh_fact(cli, "PCI", g->pci);
    bh_fact(cli, "pool", g->pool ? g->pool : "in none");
    bh_fact(cli, "state",
            bh_arena_printf(a, "%s%s%s", g->state, g->reason ? ": " : "", g->reason ? g->reason : ""));
    bh_fact(cli, "health", g->health);
    bh_fact(cli, "layout", g->layout);
    if (g->vbios || g->gsp || g->inforom)
        bh_fact(cli, "firmware",
                bh_arena_printf(a, "VBIOS %s, GSP %s, InfoROM %s", g->vbios ? g->vbios : "unknown",
                                g->gsp ? g->gsp : "unknown", g->inforom ? g->inforom : "unknown"));
    bh_fact(cli, "memory",
            g->used_mib == BH_ANSWER_UNKNOWN
                ? bh_say_memory(a, g->memory_mib)
                : bh_arena_printf(a, "%s used of %s", bh_say_memory(a, g->used_mib),
                                  bh_say_memory(a, g->memory_mib)));
    if (g->util_percent != BH_ANSWER_UNKNOWN)
        bh_fact(cli, "busy",
                bh_arena_printf(a, "%" PRIu64 "%% of the time with a kernel on it", g->util_percent));
    if (g->temperature_c != BH_ANSWER_UNKNOWN)
        bh_fact(cli, "warm", bh_arena_printf(a, "%" PRIu64 " C", g->temperature_c));
    if (g->power_mw != BH_ANSWER_UNKNOWN)
        bh_fact(cli, "power", bh_arena_printf(a, "%" PRIu64 " W", g->power_mw / 1000));
}

void bh_describe_gpu(struct bh_cli *cli, struct bh_arena *a, const struct bh_a_gpu *g,
                     const struct bh_a_lease_detail *leases, size_t n_leases,
                     const struct bh_a_records *records, uint64_t now_ms)
{
    struct history h = {0};
    gpu_facts(cli, a, g);
    write_slices(cli, a, g, now_ms);
    for (size_t i = 0; i < n_leases; i++)
        add_lease(&h, a, &leases[i]);
    for (size_t i = 0; records && i < records->records.n; i++) {
        const struct bh_a_record *r = &records->records.at[i];
        if (bh_str_eq(r->object_id, g->uuid))
            add_event(&h, r->at_ms, r->who, r->event, r->reason);
    }
    write_history(cli, a, &h);
}
