/* SPDX-License-Identifier: Apache-2.0 */
#include "replay/report.h"

#include "base/json.h"
#include "replay/estate.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { COLUMNS_MAX = 12, CELL_BYTES = 48, PPM_DECIMALS = 4, DIGEST_BYTES = 17 };
#define NS_IN_S 1e9

/* ---- sums ---- */

uint64_t bh_run_decisions_per_s(const struct bh_run_result *r)
{
    const double n = (double)r->placed + r->failed;
    return r->decide_ns ? (uint64_t)(n * NS_IN_S / (double)r->decide_ns) : 0;
}

struct bh_run_mean bh_run_mean(const bh_run_results *runs, size_t first)
{
    struct bh_run_mean m = {.mode = runs->at[first].mode};
    double square = 0;
    for (size_t i = first; i < runs->n && runs->at[i].mode == m.mode; i++) {
        const struct bh_run_result *r = &runs->at[i];
        const double allocated = r->at[100].allocated_ppm / 1e4;
        m.n++;
        m.allocated += allocated;
        square += allocated * allocated;
        m.ratio += r->at[100].ratio_ppm / 1e4;
        m.placed += r->placed;
        m.failed += r->failed;
        m.decisions_per_s += (double)bh_run_decisions_per_s(r);
        m.p50_us += (double)r->p50_ns / 1e3;
        m.p99_us += (double)r->p99_ns / 1e3;
    }
    const double n = m.n;
    const double spread = m.n > 1 ? (square - m.allocated * m.allocated / n) / (n - 1) : 0;
    m.allocated_sd = spread > 0 ? sqrt(spread) : 0;
    m.allocated /= n;
    m.ratio /= n;
    m.placed /= n;
    m.failed /= n;
    m.decisions_per_s /= n;
    m.p50_us /= n;
    m.p99_us /= n;
    return m;
}

double bh_used_percent(const struct bh_timeline_result *r, uint32_t gpus)
{
    return r->window_s ? 100.0 * (double)r->used_gpu_s / (double)r->window_s / gpus : 0;
}

double bh_share_error(const struct bh_timeline_result *r, uint32_t gpus)
{
    double off = 0;
    for (size_t i = 0; i < r->n_tenants; i++)
        off += (double)r->tenant[i].off_gpu_s / 2; /* what one has too much another lacks */
    return r->window_s ? 100.0 * off / (double)r->window_s / gpus : 0;
}

static double short_percent(const struct bh_tenant_result *t)
{
    return t->fair_gpu_s ? 100.0 * (double)t->short_gpu_s / (double)t->fair_gpu_s : 0;
}

size_t bh_share_worst(const struct bh_timeline_result *r, double *ret_percent)
{
    size_t worst = 0;
    *ret_percent = 0;
    for (size_t i = 0; i < r->n_tenants; i++)
        if (short_percent(&r->tenant[i]) > *ret_percent) {
            *ret_percent = short_percent(&r->tenant[i]);
            worst = i;
        }
    return worst;
}

/* ---- a table ---- */

struct grid {
    size_t n_columns;
    char head[COLUMNS_MAX][CELL_BYTES];
    BH_VEC(char) cells; /* rows of n_columns cells of CELL_BYTES */
};

static void grid_init(struct grid *g, size_t n, const char *const *heads)
{
    *g = (struct grid){.n_columns = n};
    for (size_t i = 0; i < n; i++)
        (void)snprintf(g->head[i], CELL_BYTES, "%s", heads[i]);
}

static void cell(struct grid *g, const char *fmt, ...) BH_PRINTF(2, 3);
static void cell(struct grid *g, const char *fmt, ...)
{
    char text[CELL_BYTES];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    for (size_t i = 0; i < sizeof(text); i++)
        *bh_vec_push(&g->cells) = text[i];
}

/* The first column stands left, figures stand right. */
static void put_row(struct bh_buf *out, const struct grid *g, const char *row, const size_t *width)
{
    for (size_t c = 0; c < g->n_columns; c++)
        bh_buf_printf(out, "%s%*s", c ? "  " : "", (c ? 1 : -1) * (int)width[c], row + c * CELL_BYTES);
    bh_buf_str(out, "\n");
}

static void grid_write(struct grid *g, struct bh_buf *out)
{
    const size_t row_bytes = g->n_columns * CELL_BYTES;
    size_t width[COLUMNS_MAX];
    for (size_t c = 0; c < g->n_columns; c++) {
        width[c] = strlen(g->head[c]);
        for (size_t at = c * CELL_BYTES; at < g->cells.n; at += row_bytes)
            if (strlen(g->cells.at + at) > width[c])
                width[c] = strlen(g->cells.at + at);
    }
    put_row(out, g, g->head[0], width);
    for (size_t at = 0; at < g->cells.n; at += row_bytes)
        put_row(out, g, g->cells.at + at, width);
    bh_vec_fini(&g->cells);
}

/* 1234567 as `1,234,567`. */
static const char *grouped(uint64_t v, char ret[CELL_BYTES])
{
    char digits[24];
    const int n = snprintf(digits, sizeof(digits), "%" PRIu64, v);
    size_t at = 0;
    for (int i = 0; i < n; i++) {
        if (i && (n - i) % 3 == 0)
            ret[at++] = ',';
        ret[at++] = digits[i];
    }
    ret[at] = '\0';
    return ret;
}

static const char *span(uint64_t s, char ret[CELL_BYTES])
{
    if (s < 3600)
        (void)snprintf(ret, CELL_BYTES, "%.1f min", (double)s / 60);
    else if (s < 100 * 3600)
        (void)snprintf(ret, CELL_BYTES, "%.1f h", (double)s / 3600);
    else
        (void)snprintf(ret, CELL_BYTES, "%.1f d", (double)s / 86400);
    return ret;
}

/* ---- openb ---- */

static void say_openb(struct bh_buf *out, const struct bh_openb *o)
{
    char nodes[CELL_BYTES], gpus[CELL_BYTES], pods[CELL_BYTES];
    const double asked = (double)bh_openb_demand_milli(o) / 1000, all = (double)bh_openb_gpus(o);
    bh_buf_printf(out,
                  "%s nodes with %s GPUs; %s pods that ask for %.1f (%.1f %%), in drawn order to %d %%\n\n",
                  grouped(o->nodes.n, nodes), grouped(bh_openb_gpus(o), gpus), grouped(o->pods.n, pods),
                  asked, 100 * asked / all, BH_ARRIVE_PERCENT);
}

void bh_report_openb_text(struct bh_buf *out, const struct bh_openb *o, const bh_run_results *runs)
{
    static const char *const heads[] = {
        "POLICY", "SEEDS",  "ALLOCATED AT 100 %", "+-",     "FRAGMENTS OF IDLE",
        "PLACED", "FAILED", "DECISIONS/S",        "P50 us", "P99 us"};
    struct grid g;
    char placed[CELL_BYTES], failed[CELL_BYTES], rate[CELL_BYTES];
    say_openb(out, o);
    grid_init(&g, BH_COUNT_OF(heads), heads);
    for (size_t i = 0; i < runs->n;) {
        const struct bh_run_mean m = bh_run_mean(runs, i);
        cell(&g, "%s", bh_score_mode_names[m.mode]);
        cell(&g, "%" PRIu32, m.n);
        cell(&g, "%.2f %%", m.allocated);
        if (m.n > 1)
            cell(&g, "%.2f", m.allocated_sd);
        else
            cell(&g, "-");
        cell(&g, "%.1f %%", m.ratio);
        cell(&g, "%s", grouped((uint64_t)(m.placed + 0.5), placed));
        cell(&g, "%s", grouped((uint64_t)(m.failed + 0.5), failed));
        cell(&g, "%s", grouped((uint64_t)m.decisions_per_s, rate));
        cell(&g, "%.1f", m.p50_us);
        cell(&g, "%.1f", m.p99_us);
        i += m.n;
    }
    grid_write(&g, out);
}

static uint64_t scaled(double v, double by)
{
    return v > 0 ? (uint64_t)(v * by + 0.5) : 0;
}

static const char *hex(uint64_t v, char ret[DIGEST_BYTES])
{
    (void)snprintf(ret, DIGEST_BYTES, "%016" PRIx64, v);
    return ret;
}

static void run_members(struct bh_json *j, const struct bh_run_result *r)
{
    char digest[DIGEST_BYTES];
    bh_json_key_str(j, "policy", bh_score_mode_names[r->mode]);
    bh_json_key_u64(j, "seed", r->seed);
    bh_json_key_fixed(j, "allocated_pct_at_100", r->at[100].allocated_ppm, PPM_DECIMALS);
    bh_json_key_fixed(j, "fragment_ratio_at_100", r->at[100].ratio_ppm, PPM_DECIMALS);
    bh_json_key_fixed(j, "fragment_pct_at_100", r->at[100].fragment_ppm, PPM_DECIMALS);
    bh_json_key_u64(j, "placed", r->placed);
    bh_json_key_u64(j, "failed", r->failed);
    bh_json_key_u64(j, "decisions_per_s", bh_run_decisions_per_s(r));
    bh_json_key_fixed(j, "p50_us", r->p50_ns, 3);
    bh_json_key_fixed(j, "p99_us", r->p99_ns, 3);
    bh_json_key_fixed(j, "max_us", r->max_ns, 3);
    bh_json_key_fixed(j, "prepare_ms", r->prepare_ns, 6);
    bh_json_key_str(j, "digest", hex(r->digest, digest));
}

static void mean_members(struct bh_json *j, const struct bh_run_mean *m)
{
    bh_json_key_str(j, "policy", bh_score_mode_names[m->mode]);
    bh_json_key_u64(j, "seeds", m->n);
    bh_json_key_fixed(j, "allocated_pct_at_100", scaled(m->allocated, 1e4), 4);
    bh_json_key_fixed(j, "allocated_sd", scaled(m->allocated_sd, 1e4), 4);
    bh_json_key_fixed(j, "fragment_ratio_at_100", scaled(m->ratio, 1e4), 4);
    bh_json_key_fixed(j, "placed", scaled(m->placed, 10), 1);
    bh_json_key_fixed(j, "failed", scaled(m->failed, 10), 1);
    bh_json_key_u64(j, "decisions_per_s", scaled(m->decisions_per_s, 1));
    bh_json_key_fixed(j, "p50_us", scaled(m->p50_us, 1e3), 3);
    bh_json_key_fixed(j, "p99_us", scaled(m->p99_us, 1e3), 3);
}

void bh_report_openb_json(struct bh_buf *out, const struct bh_openb *o, const bh_run_results *runs)
{
    struct bh_json j;
    bh_json_init(&j, out);
    bh_json_open(&j, '{');
    bh_json_key_u64(&j, "version", 1);
    bh_json_key_u64(&j, "nodes", o->nodes.n);
    bh_json_key_u64(&j, "gpus", bh_openb_gpus(o));
    bh_json_key_u64(&j, "pods", o->pods.n);
    if (runs->n == 1) {
        run_members(&j, &runs->at[0]);
        bh_json_close(&j, '}');
        return;
    }
    bh_json_key(&j, "runs");
    bh_json_open(&j, '[');
    for (size_t i = 0; i < runs->n; i++) {
        bh_json_open_flat(&j, '{');
        run_members(&j, &runs->at[i]);
        bh_json_close(&j, '}');
    }
    bh_json_close(&j, ']');
    bh_json_key(&j, "means");
    bh_json_open(&j, '[');
    for (size_t i = 0; i < runs->n;) {
        const struct bh_run_mean m = bh_run_mean(runs, i);
        bh_json_open_flat(&j, '{');
        mean_members(&j, &m);
        bh_json_close(&j, '}');
        i += m.n;
    }
    bh_json_close(&j, ']');
    bh_json_close(&j, '}');
}

/* ---- jobs ---- */

static void say_jobs(struct bh_buf *out, const struct bh_jobs *jobs, const struct bh_timeline_setup *setup,
                     const struct bh_timeline_result *r)
{
    char n[CELL_BYTES], gpus[CELL_BYTES], window[CELL_BYTES];
    double asked = 0;
    for (size_t i = 0; i < jobs->at.n; i++)
        asked += (double)jobs->at.at[i].gpus * (double)jobs->at.at[i].duration_s;
    bh_buf_printf(out, "%s jobs of %zu tenants arrive in %s and ask for %.0f GPU hours",
                  grouped(jobs->at.n, n), jobs->tenants.n, span(r->window_s, window), asked / 3600);
    if (r->window_s)
        bh_buf_printf(out, ", %.0f %% of %s GPUs", 100 * asked / (double)r->window_s / setup->gpus,
                      grouped(setup->gpus, gpus));
    bh_buf_str(out, "\n");
    if (jobs->n_without_gpu)
        bh_buf_printf(out, "%zu more ask for no GPU and are left out\n", jobs->n_without_gpu);
    if (r->too_large)
        bh_buf_printf(out, "%" PRIu32 " of them ask for more GPUs than %s and are left out\n", r->too_large,
                      setup->estate ? "their tenant could ever have" : "there are");
    if (setup->estate && setup->estate->left_out)
        bh_buf_printf(out, "%" PRIu32 " GPUs of the fleet are in no tenant's pool\n",
                      setup->estate->left_out);
    bh_buf_str(out, "\n");
}

/* Who had how much and waited how long, tenant by tenant. */
static void say_tenants(struct bh_buf *out, const struct bh_estate *estate, const bh_jobs_runs *runs)
{
    static const char *const heads[] = {"TENANT", "POLICY", "PROMISED", "MAY USE", "LARGEST JOB",
                                        "JOBS",   "SHARE",  "FAIR",     "SHORT",   "MEAN WAIT"};
    struct grid g;
    char a[CELL_BYTES];
    bh_buf_str(out, "\n");
    grid_init(&g, BH_COUNT_OF(heads), heads);
    for (size_t i = 0; i < estate->tenants.n; i++) {
        const struct bh_estate_tenant *tenant = &estate->tenants.at[i];
        for (size_t k = 0; k < runs->n; k++) {
            const struct bh_timeline_result *r = &runs->at[k].result;
            const struct bh_tenant_result *t = &r->tenant[i];
            const double all = (double)r->window_s * estate->gpus;
            cell(&g, "%.40s", tenant->name);
            cell(&g, "%s", runs->at[k].policy->name);
            cell(&g, "%g", (double)tenant->promised_milli / BH_GPU_MILLI);
            cell(&g, "%s", grouped(tenant->gpus, a));
            cell(&g, "%s", grouped(tenant->most, a));
            cell(&g, "%s", grouped(t->jobs, a));
            cell(&g, "%.1f %%", all > 0 ? 100 * (double)t->used_gpu_s / all : 0);
            cell(&g, "%.1f %%", all > 0 ? 100 * (double)t->fair_gpu_s / all : 0);
            cell(&g, "%.0f %%", short_percent(t));
            cell(&g, "%s", span(t->jobs ? t->wait_s / t->jobs : 0, a));
        }
    }
    grid_write(&g, out);
}

void bh_report_jobs_text(struct bh_buf *out, const struct bh_jobs *jobs,
                         const struct bh_timeline_setup *setup, const bh_jobs_runs *runs)
{
    static const char *const heads[] = {
        "POLICY", "MISSED DEADLINES", "SHARE ERROR", "WORST OFF", "MEAN WAIT", "P50", "P99", "USED",
        "STOPS",  "LAST END"};
    struct grid g;
    char a[CELL_BYTES];
    say_jobs(out, jobs, setup, &runs->at[0].result);
    grid_init(&g, BH_COUNT_OF(heads), heads);
    for (size_t i = 0; i < runs->n; i++) {
        const struct bh_timeline_result *r = &runs->at[i].result;
        double shortest;
        const size_t worst = bh_share_worst(r, &shortest);
        cell(&g, "%s", runs->at[i].policy->name);
        if (r->deadlines)
            cell(&g, "%s (%.1f %%)", grouped(r->missed, a), 100.0 * r->missed / r->deadlines);
        else
            cell(&g, "-");
        cell(&g, "%.1f %%", bh_share_error(r, setup->gpus));
        if (shortest > 0)
            cell(&g, "%.20s -%.0f %%", jobs->tenants.at[worst], shortest);
        else
            cell(&g, "-");
        cell(&g, "%s", span(r->wait_mean_s, a));
        cell(&g, "%s", span(r->wait_p50_s, a));
        cell(&g, "%s", span(r->wait_p99_s, a));
        cell(&g, "%.1f %%", bh_used_percent(r, setup->gpus));
        cell(&g, "%s", grouped(r->stops, a));
        cell(&g, "%s", span(r->makespan_s, a));
    }
    grid_write(&g, out);
    if (setup->estate)
        say_tenants(out, setup->estate, runs);
}

static void estate_members(struct bh_json *j, const struct bh_estate_tenant *t)
{
    bh_json_key_fixed(j, "promised_gpus", t->promised_milli, 3);
    bh_json_key_u64(j, "usable_gpus", t->gpus);
    bh_json_key_u64(j, "largest_job", t->most);
}

static void tenant_members(struct bh_json *j, const char *name, const struct bh_tenant_result *t)
{
    const double off = t->fair_gpu_s ? 100.0 * (double)t->off_gpu_s / (double)t->fair_gpu_s : 0;
    bh_json_key_str(j, "tenant", name);
    bh_json_key_u64(j, "jobs", t->jobs);
    bh_json_key_u64(j, "deadlines", t->deadlines);
    bh_json_key_u64(j, "missed", t->missed);
    bh_json_key_fixed(j, "used_gpu_h", scaled((double)t->used_gpu_s / 3600, 10), 1);
    bh_json_key_fixed(j, "fair_gpu_h", scaled((double)t->fair_gpu_s / 3600, 10), 1);
    bh_json_key_fixed(j, "share_error_pct", scaled(off, 1e3), 3);
    bh_json_key_fixed(j, "short_pct", scaled(short_percent(t), 1e3), 3);
    bh_json_key_u64(j, "wait_mean_s", t->jobs ? t->wait_s / t->jobs : 0);
}

static void jobs_members(struct bh_json *j, const struct bh_timeline_result *r, const char *policy,
                         uint32_t gpus)
{
    char digest[DIGEST_BYTES];
    bh_json_key_str(j, "policy", policy);
    bh_json_key_u64(j, "jobs", r->jobs);
    bh_json_key_u64(j, "too_large", r->too_large);
    bh_json_key_u64(j, "deadlines", r->deadlines);
    bh_json_key_u64(j, "missed", r->missed);
    bh_json_key_fixed(j, "missed_pct", r->deadlines ? scaled(100.0 * r->missed / r->deadlines, 1e3) : 0, 3);
    bh_json_key_fixed(j, "share_error_pct", scaled(bh_share_error(r, gpus), 1e3), 3);
    bh_json_key_u64(j, "wait_mean_s", r->wait_mean_s);
    bh_json_key_u64(j, "wait_p50_s", r->wait_p50_s);
    bh_json_key_u64(j, "wait_p99_s", r->wait_p99_s);
    bh_json_key_u64(j, "wait_max_s", r->wait_max_s);
    bh_json_key_fixed(j, "utilisation_pct", scaled(bh_used_percent(r, gpus), 1e3), 3);
    bh_json_key_u64(j, "makespan_s", r->makespan_s);
    bh_json_key_u64(j, "starts", r->starts);
    bh_json_key_u64(j, "stops", r->stops);
    bh_json_key_fixed(j, "restart_gpu_h", scaled((double)r->restart_gpu_s / 3600, 10), 1);
    bh_json_key_u64(j, "decides", r->decides);
    bh_json_key_fixed(j, "p50_us", r->decide_p50_ns, 3);
    bh_json_key_fixed(j, "p99_us", r->decide_p99_ns, 3);
    bh_json_key_str(j, "digest", hex(r->digest, digest));
}

void bh_report_jobs_json(struct bh_buf *out, const struct bh_jobs *jobs,
                         const struct bh_timeline_setup *setup, const bh_jobs_runs *runs)
{
    struct bh_json j;
    bh_json_init(&j, out);
    bh_json_open(&j, '{');
    bh_json_key_u64(&j, "version", 1);
    bh_json_key_u64(&j, "gpus", setup->gpus);
    bh_json_key_u64(&j, "jobs", jobs->at.n);
    bh_json_key_u64(&j, "without_gpu", jobs->n_without_gpu);
    bh_json_key_u64(&j, "restart_s", setup->restart_s);
    bh_json_key_str(&j, "shares", setup->estate ? "policy" : setup->shares_by_demand ? "demand" : "equal");
    bh_json_key(&j, "runs");
    bh_json_open(&j, '[');
    for (size_t i = 0; i < runs->n; i++) {
        const struct bh_timeline_result *r = &runs->at[i].result;
        bh_json_open(&j, '{');
        jobs_members(&j, r, runs->at[i].policy->name, setup->gpus);
        bh_json_key(&j, "tenants");
        bh_json_open(&j, '[');
        for (size_t t = 0; t < r->n_tenants; t++) {
            bh_json_open_flat(&j, '{');
            tenant_members(&j, jobs->tenants.at[t], &r->tenant[t]);
            if (setup->estate)
                estate_members(&j, &setup->estate->tenants.at[t]);
            bh_json_close(&j, '}');
        }
        bh_json_close(&j, ']');
        bh_json_close(&j, '}');
    }
    bh_json_close(&j, ']');
    bh_json_close(&j, '}');
}
