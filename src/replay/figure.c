/* SPDX-License-Identifier: Apache-2.0 */
#include "replay/figure.h"

#include "base/arena.h"
#include "replay/plot.h"

#include <inttypes.h>
#include <stdio.h>

enum { NEAR_FULL = 80, POINTS = BH_ARRIVE_PERCENT + 1, SHOWN_TENANTS = 11, WAIT_STEPS = 400 };
enum { LABEL_BYTES = 64 };
#define SHORTEST_WAIT_S 60.0

typedef BH_VEC(struct bh_plot_line) lines_vec;

/* ---- openb ---- */

typedef double (*value_fn)(const struct bh_run_point *p);
static double allocated(const struct bh_run_point *p)
{
    return p->allocated_ppm / 1e4;
}
static double ratio(const struct bh_run_point *p)
{
    return p->ratio_ppm / 1e4;
}

static double *room(struct bh_arena *a, size_t n)
{
    return bh_arena_alloc(a, (n + 1) * sizeof(double));
}

static void add_line(struct bh_arena *a, lines_vec *lines, const struct bh_run_result *runs, size_t n,
                     size_t from, value_fn value, struct bh_plot_line style)
{
    double *x = room(a, POINTS), *y = room(a, POINTS);
    style.n = 0;
    for (size_t p = from; p < POINTS; p++) {
        double sum = 0, count = 0;
        for (size_t i = 0; i < n; i++)
            if (runs[i].at[p].arrivals) {
                sum += value(&runs[i].at[p]);
                count += 1;
            }
        if (count == 0)
            continue;
        x[style.n] = (double)p;
        y[style.n++] = sum / count;
    }
    style.x = x;
    style.y = y;
    *bh_vec_push(lines) = style;
}

/* For each policy its seeds, faintly, and their mean, whose value at 100 % goes into the legend. */
static void add_policies(struct bh_arena *a, lines_vec *lines, const bh_run_results *runs, size_t from,
                         value_fn value)
{
    for (size_t i = 0; i < runs->n;) {
        const struct bh_run_result *first = &runs->at[i];
        const uint32_t n = bh_run_mean(runs, i).n;
        double at_100 = 0;
        for (uint32_t k = 0; k < n; k++) {
            at_100 += value(&first[k].at[100]) / n;
            if (n > 1)
                add_line(a, lines, &first[k], 1, from, value,
                         (struct bh_plot_line){.color = first->mode, .is_faint = true});
        }
        add_line(a, lines, first, n, from, value,
                 (struct bh_plot_line){
                     .label = bh_arena_printf(a, "%s: %.2f %%", bh_score_mode_names[first->mode], at_100),
                     .color = first->mode,
                 });
        i += n;
    }
}

static uint32_t seeds_of(const bh_run_results *runs)
{
    return runs->n ? bh_run_mean(runs, 0).n : 0;
}

static const char *seed_words(struct bh_arena *a, const bh_run_results *runs, const char *rest)
{
    const uint32_t n = seeds_of(runs);
    return bh_arena_printf(a, "%" PRIu32 " seed%s; in the legend: at 100 %% asked for. %s", n,
                           n == 1 ? "" : "s", rest);
}

void bh_figure_allocation(struct bh_buf *out, const bh_run_results *runs)
{
    static const double ideal_x[] = {NEAR_FULL, 100, BH_ARRIVE_PERCENT}, ideal_y[] = {NEAR_FULL, 100, 100};
    struct bh_arena a = {0};
    lines_vec lines = {0};
    double lowest = 100;
    *bh_vec_push(&lines) = (struct bh_plot_line){
        .label = "all that is asked for", .is_dashed = true, .n = 3, .x = ideal_x, .y = ideal_y};
    add_policies(&a, &lines, runs, NEAR_FULL, allocated);
    for (size_t i = 0; i < lines.n; i++)
        for (size_t k = 0; k < lines.at[i].n; k++)
            lowest = lines.at[i].y[k] < lowest ? lines.at[i].y[k] : lowest;
    bh_plot_svg(
        &(struct bh_plot){
            .title = "GPUs in use as more and more is asked for",
            .subtitle = seed_words(&a, runs, "Nothing leaves, what does not fit is dropped."),
            .x_label = "GPUs asked for so far, % of all GPUs",
            .y_label = "GPUs allocated, % of all GPUs",
            .x_axis = BH_AXIS_PERCENT,
            .y_axis = BH_AXIS_PERCENT,
            .x_min = NEAR_FULL,
            .x_max = BH_ARRIVE_PERCENT,
            .y_min = lowest - 1,
            .y_max = 100,
            .lines = lines.at,
            .n_lines = lines.n,
        },
        out);
    bh_vec_fini(&lines);
    bh_arena_fini(&a);
}

void bh_figure_fragments(struct bh_buf *out, const bh_run_results *runs)
{
    struct bh_arena a = {0};
    lines_vec lines = {0};
    add_policies(&a, &lines, runs, 0, ratio);
    bh_plot_svg(
        &(struct bh_plot){
            .title = "Idle GPUs that typical work cannot use",
            .subtitle = seed_words(&a, runs, "Typical: the most frequent 95 % of the list."),
            .x_label = "GPUs asked for so far, % of all GPUs",
            .y_label = "fragments, % of idle GPUs",
            .x_axis = BH_AXIS_PERCENT,
            .y_axis = BH_AXIS_PERCENT,
            .x_max = BH_ARRIVE_PERCENT,
            .y_max = 100,
            .lines = lines.at,
            .n_lines = lines.n,
        },
        out);
    bh_vec_fini(&lines);
    bh_arena_fini(&a);
}

/* ---- jobs ---- */

/* Tenants by what they ask for, the most first: the same order, and so the same colours, under every policy. */
static void rank_tenants(const struct bh_jobs *jobs, size_t *ret)
{
    double asked[BH_JOB_TENANTS] = {0};
    for (size_t i = 0; i < jobs->at.n; i++)
        asked[jobs->at.at[i].tenant] += (double)jobs->at.at[i].gpus * (double)jobs->at.at[i].duration_s;
    for (size_t i = 0; i < jobs->tenants.n; i++) {
        size_t at = i;
        for (; at && asked[ret[at - 1]] < asked[i]; at--)
            ret[at] = ret[at - 1];
        ret[at] = i;
    }
}

/* The GPUs in use by tenants[from .. to) in each bucket, on average. */
static double *used_by(struct bh_arena *a, const struct bh_timeline_result *r, const size_t *tenants,
                       size_t from, size_t to)
{
    double *y = room(a, BH_TIMELINE_BUCKETS);
    for (size_t b = 0; b < BH_TIMELINE_BUCKETS; b++)
        for (size_t k = from; k < to; k++)
            y[b] += (double)r->used[b * r->n_tenants + tenants[k]] / (double)r->bucket_s;
    return y;
}

void bh_figure_shares(struct bh_buf *out, const struct bh_jobs *jobs, const struct bh_timeline_setup *setup,
                      const struct bh_jobs_run *run)
{
    const struct bh_timeline_result *r = &run->result;
    const size_t shown = r->n_tenants > SHOWN_TENANTS + 1 ? SHOWN_TENANTS : r->n_tenants;
    const size_t buckets = r->window_s / r->bucket_s; /* a last, cut one would look like a fall */
    struct bh_arena a = {0};
    lines_vec lines = {0};
    size_t ranks[BH_JOB_TENANTS];
    double *x = room(&a, BH_TIMELINE_BUCKETS), *all_x = room(&a, 2), *all_y = room(&a, 2);
    rank_tenants(jobs, ranks);
    for (size_t b = 0; b < BH_TIMELINE_BUCKETS; b++)
        x[b] = ((double)b + 0.5) * (double)r->bucket_s / 86400;
    for (size_t k = 0; k < shown; k++)
        *bh_vec_push(&lines) = (struct bh_plot_line){.label = jobs->tenants.at[ranks[k]],
                                                     .color = (uint32_t)k,
                                                     .n = buckets,
                                                     .x = x,
                                                     .y = used_by(&a, r, ranks, k, k + 1)};
    if (shown < r->n_tenants)
        *bh_vec_push(&lines) =
            (struct bh_plot_line){.label = bh_arena_printf(&a, "%zu others", r->n_tenants - shown),
                                  .color = SHOWN_TENANTS,
                                  .n = buckets,
                                  .x = x,
                                  .y = used_by(&a, r, ranks, shown, r->n_tenants)};
    all_x[1] = (double)r->window_s / 86400;
    all_y[0] = all_y[1] = setup->gpus;
    *bh_vec_push(&lines) =
        (struct bh_plot_line){.label = "all GPUs", .is_dashed = true, .n = 2, .x = all_x, .y = all_y};
    bh_plot_svg(
        &(struct bh_plot){
            .title = bh_arena_printf(&a, "Who uses the GPUs under %s", run->policy->name),
            .subtitle = bh_arena_printf(
                &a, "%" PRIu32 " GPUs, %.1f %% in use; %.1f %% in other hands than a fair division has them",
                setup->gpus, bh_used_percent(r, setup->gpus), bh_share_error(r, setup->gpus)),
            .x_label = "days since the first arrival",
            .y_label = "GPUs in use",
            .kind = BH_PLOT_STACK,
            .x_max = r->window_s ? (double)r->window_s / 86400 : 1,
            .y_max = setup->gpus * 1.03,
            .lines = lines.at,
            .n_lines = lines.n,
        },
        out);
    bh_vec_fini(&lines);
    bh_arena_fini(&a);
}

/* Steps through the waits in order: enough of them to look smooth. */
static struct bh_plot_line wait_line(struct bh_arena *a, const struct bh_jobs_run *run, uint32_t color)
{
    const size_t n = run->result.jobs, steps = n < WAIT_STEPS ? n : WAIT_STEPS;
    double *x = room(a, steps + 1), *y = room(a, steps + 1);
    size_t used = 0;
    for (size_t i = 0; i < steps; i++) {
        const size_t job = (i + 1) * n / steps - 1;
        if (used && (double)run->result.waits[job] <= SHORTEST_WAIT_S)
            used--; /* all of these are one point at the left edge */
        x[used] = (double)run->result.waits[job];
        y[used++] = 100.0 * (double)(job + 1) / (double)n;
    }
    return (struct bh_plot_line){
        .label =
            bh_arena_printf(a, "%s: mean %.1f h", run->policy->name, (double)run->result.wait_mean_s / 3600),
        .color = color,
        .n = used,
        .x = x,
        .y = y,
    };
}

void bh_figure_waits(struct bh_buf *out, const bh_jobs_runs *runs)
{
    struct bh_arena a = {0};
    lines_vec lines = {0};
    double longest = 2 * SHORTEST_WAIT_S;
    for (size_t i = 0; i < runs->n; i++) {
        *bh_vec_push(&lines) = wait_line(&a, &runs->at[i], (uint32_t)i);
        longest =
            (double)runs->at[i].result.wait_max_s > longest ? (double)runs->at[i].result.wait_max_s : longest;
    }
    bh_plot_svg(
        &(struct bh_plot){
            .title = "How long jobs wait",
            .subtitle =
                "All the time a job was there and did not run, stops included; under a minute counts as one.",
            .x_label = "wait, at most (each step a multiple)",
            .y_label = "jobs, % of all",
            .x_axis = BH_AXIS_SPAN,
            .y_axis = BH_AXIS_PERCENT,
            .x_min = SHORTEST_WAIT_S,
            .x_max = longest,
            .y_max = 100,
            .lines = lines.at,
            .n_lines = lines.n,
        },
        out);
    bh_vec_fini(&lines);
    bh_arena_fini(&a);
}
