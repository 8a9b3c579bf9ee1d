/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_replay.c - policies held against a trace, without a cluster.
 *
 * Two experiments: where work goes (--nodes, --pods: nothing leaves, how much finds a place), and when it runs (TRACE:
 * jobs over time, who waits and who misses a deadline). --synth draws a trace of either kind.
 */
#include "base/str.h"
#include "base/units.h"
#include "cli/cli.h"
#include "cli/save.h"
#include "conf/file.h"
#include "conf/input.h"
#include "conf/out.h"
#include "replay/chronus.h"
#include "replay/clock.h"
#include "replay/estate.h"
#include "replay/figure.h"
#include "replay/gavel.h"
#include "replay/report.h"
#include "replay/synth.h"
#include "replay/table.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum {
    OPT_POLICY,
    OPT_NODES,
    OPT_PODS,
    OPT_SEED,
    OPT_FULL_SCAN,
    OPT_GPUS,
    OPT_SHARES,
    OPT_RESTART,
    OPT_POLICY_FILE,
    OPT_FLEET,
    OPT_SYNTH,
    OPT_SAVE,
    OPT_PLOT,
    OPT_OUTPUT,
};

/* Those of bh_score_mode_names, then those of bh_timeline_policies. */
static const char *const policy_words[] = {"fgd",        "bestfit", "packing",  "dotprod",
                                           "clustering", "random",  "bulkhead", "fifo",
                                           "edf",        "srtf",    "las",      NULL};
static const char *const share_words[] = {"equal", "demand", NULL};

static const struct bh_opt opts[] = {
    [OPT_POLICY] = {"policy", 'p', BH_OPT_WORDS, "NAMES", policy_words,
                    "which, commas between (default: all that the trace is for)"},
    [OPT_NODES] = {"nodes", 0, BH_OPT_FILE, "FILE", NULL, "openb: the nodes (CSV)"},
    [OPT_PODS] = {"pods", 0, BH_OPT_FILE, "FILE", NULL, "openb: the pods (CSV)"},
    [OPT_SEED] = {"seed", 's', BH_OPT_TEXT, "NUMBERS", NULL, "openb: 42 (default), 42-51 or 1,5,9"},
    [OPT_FULL_SCAN] = {"full-scan", 0, BH_OPT_FLAG, NULL, NULL, "openb: look at every node; same decisions"},
    [OPT_GPUS] = {"gpus", 'g', BH_OPT_TEXT, "NUMBER", NULL,
                  "jobs: how many there are (default: 960 for Chronus, 500 for Gavel)"},
    [OPT_SHARES] = {"shares", 0, BH_OPT_WORD, "WORD", share_words,
                    "jobs: a tenant's fair share: equal (default), or by demand"},
    [OPT_RESTART] = {"restart", 0, BH_OPT_TEXT, "TIME", NULL,
                     "jobs: what going on after a stop costs, such as 2m (default: 0s)"},
    [OPT_POLICY_FILE] = {"policy-file", 0, BH_OPT_FILE, "FILE", NULL,
                         "jobs: tenants, quotas, pools and isolation from a policy"},
    [OPT_FLEET] = {"fleet", 0, BH_OPT_FILE, "FILE", NULL, "jobs: ... and the nodes from a fleet"},
    [OPT_SYNTH] = {"synth", 0, BH_OPT_TEXT, "SHAPE", NULL,
                   "draw a trace: openb, chronus or gavel[,nodes=200,...]"},
    [OPT_SAVE] = {"save", 0, BH_OPT_FILE, "FOLDER", NULL, "write the drawn trace there, in its own format"},
    [OPT_PLOT] = {"plot", 0, BH_OPT_FILE, "FOLDER", NULL, "write charts there (SVG)"},
    [OPT_OUTPUT] = {"output", 'o', BH_OPT_WORD, "FORMAT", bh_words_text_json, "text (default) or json"},
    {0},
};

enum { SEEDS_MAX = 1000, PATH_BYTES = 4096, FIGURE_BYTES = 64 << 20, TRACE_BYTES = 1 << 30 };
enum { CHRONUS_GPUS = 960, GAVEL_GPUS = 500 };
typedef BH_VEC(uint64_t) seeds_vec;

/* ---- words of the command line ---- */

static bool is_among(const char *name, const char *list)
{
    const size_t n = strlen(name);
    for (const char *s = list; s; s = strchr(s, ',') ? strchr(s, ',') + 1 : NULL)
        if (strcspn(s, ",") == n && memcmp(s, name, n) == 0)
            return true;
    return false;
}

/* A policy of the other experiment is a mistake, not something to pass over. */
static int check_policies(const struct bh_cli *cli, bool for_jobs, struct bh_err *err)
{
    const char *given = cli->value[OPT_POLICY];
    for (size_t i = 0; given && policy_words[i]; i++) {
        const bool places = i < BH_SCORE_MODES, runs_jobs = bh_timeline_find(policy_words[i]) != NULL;
        if (is_among(policy_words[i], given) && !(for_jobs ? runs_jobs : places))
            return bh_fail(err, BH_USAGE, "--policy '%s' is not for %s", policy_words[i],
                           for_jobs ? "jobs over time; those are fifo, edf, srtf, las and bulkhead"
                                    : "placing pods; see bulkhead replay --help");
    }
    return BH_OK;
}

static int parse_seeds(const char *s, seeds_vec *ret, struct bh_err *err)
{
    while (s) {
        char word[64];
        uint64_t from, to;
        const size_t n = strcspn(s, ",");
        const char *comma = s[n] ? s + n + 1 : NULL;
        (void)snprintf(word, sizeof(word), "%.*s", (int)(n < sizeof(word) ? n : sizeof(word) - 1), s);
        char *dash = strchr(word, '-');
        if (dash)
            *dash++ = '\0';
        if (bh_uint_parse(word, UINT64_MAX, &from, NULL) < 0 ||
            bh_uint_parse(dash ? dash : word, UINT64_MAX, &to, NULL) < 0 || to < from)
            return bh_fail(err, BH_USAGE, "--seed needs numbers such as 42, 42-51 or 1,5,9, not '%.40s'", s);
        if (to - from >= SEEDS_MAX - ret->n)
            return bh_fail(err, BH_USAGE, "--seed needs at most %d seeds", SEEDS_MAX);
        for (uint64_t i = 0; i <= to - from; i++)
            *bh_vec_push(ret) = from + i;
        s = comma;
    }
    return BH_OK;
}

/* Says which option it was. */
static int of_option(size_t opt, int rc, struct bh_err *err)
{
    return rc < 0 ? bh_wrap(err, rc, "--%s", opts[opt].name) : rc;
}

static int parse_setup(const struct bh_cli *cli, uint32_t gpus, struct bh_timeline_setup *ret,
                       struct bh_err *err)
{
    uint64_t n = gpus, ms = 0;
    int rc = BH_OK;
    if (cli->value[OPT_GPUS])
        rc = of_option(OPT_GPUS, bh_uint_parse(cli->value[OPT_GPUS], BH_REPLAY_GPUS_MAX, &n, err), err);
    if (rc == BH_OK && n == 0)
        rc = bh_fail(err, BH_USAGE, "--gpus needs at least 1");
    if (rc == BH_OK && cli->value[OPT_RESTART])
        rc = of_option(OPT_RESTART, bh_duration_parse(cli->value[OPT_RESTART], &ms, err), err);
    if (rc == BH_OK && ms / 1000 > BH_JOB_TIME_MAX / BH_JOBS_MAX)
        rc = bh_fail(err, BH_USAGE, "--restart needs less than nine hours");
    *ret = (struct bh_timeline_setup){
        .gpus = (uint32_t)n,
        .restart_s = ms / 1000,
        .shares_by_demand = cli->value[OPT_SHARES] && bh_str_eq(cli->value[OPT_SHARES], "demand"),
    };
    return rc;
}

/* ---- files ---- */

static int read_file(const char *path, char **ret, size_t *ret_n, struct bh_err *err)
{
    return bh_file_read(path, BH_TABLE_FILE_BYTES, ret, ret_n, err);
}

static int make_folder(const char *folder, struct bh_err *err)
{
    if (mkdir(folder, 0777) == 0 || errno == EEXIST)
        return BH_OK;
    return bh_fail(err, BH_SYSTEM, "cannot make the folder '%.300s': %s", folder, strerrordesc_np(errno));
}

static int save(const char *folder, const char *name, const struct bh_buf *text, struct bh_err *err)
{
    char path[PATH_BYTES];
    if (snprintf(path, sizeof(path), "%s/%s", folder, name) >= (int)sizeof(path))
        return bh_fail(err, BH_USAGE, "'%.200s...' is too long for a folder's name", folder);
    if (text->full)
        return bh_fail(err, BH_TOO_LARGE, "'%.300s' would be too large", path);
    return bh_file_save(path, bh_buf_text(text), text->n, true, err);
}

/* ---- openb ---- */

static int load_openb(const struct bh_cli *cli, struct bh_openb *o, struct bh_err *err)
{
    BH_AUTOFREE char *nodes = NULL, *pods = NULL;
    size_t n;
    if (!cli->value[OPT_NODES] || !cli->value[OPT_PODS])
        return bh_fail(err, BH_USAGE,
                       "--nodes and --pods go together: one says what there is, the other what is asked for");
    int rc = read_file(cli->value[OPT_NODES], &nodes, &n, err);
    if (rc == BH_OK)
        rc = bh_openb_read_nodes(o, cli->value[OPT_NODES], nodes, n, err);
    if (rc == BH_OK)
        rc = read_file(cli->value[OPT_PODS], &pods, &n, err);
    if (rc == BH_OK)
        rc = bh_openb_read_pods(o, cli->value[OPT_PODS], pods, n, err);
    return rc;
}

static int save_openb(const char *folder, const struct bh_openb *o, struct bh_err *err)
{
    struct bh_buf nodes BH_AUTO(bh_buf_fini), pods BH_AUTO(bh_buf_fini);
    bh_buf_init(&nodes, TRACE_BYTES);
    bh_buf_init(&pods, TRACE_BYTES);
    bh_openb_write_nodes(o, &nodes);
    bh_openb_write_pods(o, &pods);
    int rc = make_folder(folder, err);
    if (rc == BH_OK)
        rc = save(folder, "nodes.csv", &nodes, err);
    return rc == BH_OK ? save(folder, "pods.csv", &pods, err) : rc;
}

static int plot_openb(const char *folder, const bh_run_results *runs, struct bh_err *err)
{
    struct bh_buf allocation BH_AUTO(bh_buf_fini), fragments BH_AUTO(bh_buf_fini);
    bh_buf_init(&allocation, FIGURE_BYTES);
    bh_buf_init(&fragments, FIGURE_BYTES);
    bh_figure_allocation(&allocation, runs);
    bh_figure_fragments(&fragments, runs);
    int rc = make_folder(folder, err);
    if (rc == BH_OK)
        rc = save(folder, "allocation.svg", &allocation, err);
    return rc == BH_OK ? save(folder, "fragments.svg", &fragments, err) : rc;
}

/* A table of several runs takes a while; one line each shows that it goes on. */
static void say_run(const struct bh_cli *cli, const struct bh_run_result *r, uint64_t ns)
{
    if (!bh_cli_wants(cli, OPT_OUTPUT, "json"))
        fprintf(stderr, "replay: %s, seed %" PRIu64 ": %.2f %% of the GPUs allocated at 100 %% (%.1f s)\n",
                bh_score_mode_names[r->mode], r->seed, r->at[100].allocated_ppm / 1e4, (double)ns / 1e9);
}

static int run_openb(struct bh_cli *cli, const struct bh_openb *o, const seeds_vec *seeds,
                     bh_run_results *runs, struct bh_err *err)
{
    const char *given = cli->value[OPT_POLICY];
    for (int mode = 0; mode < BH_SCORE_MODES; mode++) {
        for (size_t i = 0; i < seeds->n && (!given || is_among(bh_score_mode_names[mode], given)); i++) {
            const struct bh_run_setup setup = {(enum bh_score_mode)mode, seeds->at[i],
                                               cli->value[OPT_FULL_SCAN] != NULL};
            const uint64_t began = bh_clock_ns();
            struct bh_run_result r;
            int rc = bh_run_openb(o, &setup, &r, err);
            if (rc < 0)
                return rc;
            say_run(cli, &r, bh_clock_ns() - began);
            *bh_vec_push(runs) = r;
        }
    }
    return BH_OK;
}

static int do_openb(struct bh_cli *cli, struct bh_openb *o, struct bh_err *err)
{
    seeds_vec seeds = {0};
    bh_run_results runs = {0};
    int rc = check_policies(cli, false, err);
    if (rc == BH_OK)
        rc = parse_seeds(cli->value[OPT_SEED] ? cli->value[OPT_SEED] : "42", &seeds, err);
    if (rc == BH_OK && !cli->value[OPT_SYNTH])
        rc = load_openb(cli, o, err);
    if (rc == BH_OK && cli->value[OPT_SAVE])
        rc = save_openb(cli->value[OPT_SAVE], o, err);
    if (rc == BH_OK)
        rc = run_openb(cli, o, &seeds, &runs, err);
    if (rc == BH_OK && cli->value[OPT_PLOT])
        rc = plot_openb(cli->value[OPT_PLOT], &runs, err);
    if (rc == BH_OK && bh_cli_wants(cli, OPT_OUTPUT, "json"))
        bh_report_openb_json(&cli->out, o, &runs);
    else if (rc == BH_OK)
        bh_report_openb_text(&cli->out, o, &runs);
    bh_vec_fini(&runs);
    bh_vec_fini(&seeds);
    return rc;
}

/* ---- a policy and a fleet ---- */

/* What they say is borrowed until the end. */
struct premises {
    struct bh_input input;
    struct bh_estate estate;
};

static int check_premises(const struct bh_cli *cli, struct bh_err *err)
{
    static const uint8_t instead[] = {OPT_GPUS, OPT_SHARES};
    if (!cli->value[OPT_POLICY_FILE] || !cli->value[OPT_FLEET])
        return bh_fail(
            err, BH_USAGE,
            "--policy-file and --fleet go together: one says who may have how much, the other of what");
    for (size_t i = 0; i < BH_COUNT_OF(instead); i++)
        if (cli->value[instead[i]])
            return bh_fail(err, BH_USAGE, "--%s is not for a policy and a fleet, which say it",
                           opts[instead[i]].name);
    return BH_OK;
}

static int load_premises(const struct bh_cli *cli, struct premises *p, struct bh_err *err)
{
    const char *path = cli->value[OPT_POLICY_FILE];
    int rc = check_premises(cli, err);
    if (rc == BH_OK)
        rc = bh_input_load(&p->input, &path, 1, cli->value[OPT_FLEET], err);
    for (size_t i = 0; rc == BH_OK && i < p->input.diags.at.n; i++) {
        const struct bh_diag *d = &p->input.diags.at.at[i];
        if (d->is_error)
            return bh_fail(err, BH_INVALID, "%.200s:%" PRIu32 ":%" PRIu32 ": %.240s",
                           bh_input_file(&p->input, d->pos.file), d->pos.line, d->pos.column, d->message);
    }
    if (rc == BH_OK && (p->input.units.n != 1 || p->input.units.at[0]->policy.source != BH_SOURCE_POLICY))
        return bh_fail(err, BH_INVALID, "'%.200s' is no policy file", path);
    if (rc == BH_OK)
        rc = bh_estate_make(&p->estate, &p->input.units.at[0]->policy, &p->input.fleet, err);
    return rc;
}

static void adopt_jobs(const struct bh_cli *cli, const struct bh_estate *g, struct bh_jobs *jobs)
{
    const size_t foreign = bh_estate_adopt(g, jobs);
    if (foreign && !bh_cli_wants(cli, OPT_OUTPUT, "json"))
        fprintf(
            stderr,
            "replay: %zu tenants of the trace are not in the policy; their jobs go to its tenants by turns\n",
            foreign);
}

/* ---- jobs over time ---- */

static int load_jobs(const struct bh_cli *cli, struct bh_jobs *jobs, uint32_t *ret_gpus, struct bh_err *err)
{
    int rc = BH_OK;
    for (size_t i = 0; i < cli->n_operands && rc == BH_OK; i++) {
        BH_AUTOFREE char *text = NULL;
        size_t n;
        rc = read_file(cli->operands[i], &text, &n, err);
        if (rc < 0)
            return rc;
        const enum bh_jobs_format format = bh_jobs_detect(text, n);
        *ret_gpus = format == BH_JOBS_GAVEL ? GAVEL_GPUS : CHRONUS_GPUS;
        rc = bh_jobs_read(jobs, format, cli->operands[i], text, n, err);
    }
    bh_jobs_order(jobs);
    if (rc == BH_OK && jobs->at.n == 0)
        return bh_fail(err, BH_INVALID, "'%.200s' needs a job that asks for a GPU, has none",
                       cli->operands[0]);
    return rc;
}

static int save_jobs(const char *folder, const struct bh_jobs *jobs, bool as_chronus, struct bh_err *err)
{
    int rc = make_folder(folder, err);
    for (uint32_t t = 0; t < (as_chronus ? 1 : jobs->tenants.n) && rc == BH_OK; t++) {
        struct bh_buf text BH_AUTO(bh_buf_fini);
        char name[BH_TABLE_CELL_BYTES + 16];
        bh_buf_init(&text, TRACE_BYTES);
        if (as_chronus)
            bh_chronus_write(jobs, &text);
        else
            bh_gavel_write(jobs, t, &text);
        (void)snprintf(name, sizeof(name), "%s%s", as_chronus ? "jobs" : jobs->tenants.at[t],
                       as_chronus ? ".csv" : ".trace");
        rc = save(folder, name, &text, err);
    }
    return rc;
}

static int plot_jobs(const char *folder, const struct bh_jobs *jobs, const struct bh_timeline_setup *setup,
                     const bh_jobs_runs *runs, struct bh_err *err)
{
    struct bh_buf waits BH_AUTO(bh_buf_fini);
    bh_buf_init(&waits, FIGURE_BYTES);
    bh_figure_waits(&waits, runs);
    int rc = make_folder(folder, err);
    if (rc == BH_OK)
        rc = save(folder, "waits.svg", &waits, err);
    for (size_t i = 0; i < runs->n && rc == BH_OK; i++) {
        struct bh_buf shares BH_AUTO(bh_buf_fini);
        char name[64];
        bh_buf_init(&shares, FIGURE_BYTES);
        bh_figure_shares(&shares, jobs, setup, &runs->at[i]);
        (void)snprintf(name, sizeof(name), "shares-%s.svg", runs->at[i].policy->name);
        rc = save(folder, name, &shares, err);
    }
    return rc;
}

static int run_jobs(struct bh_cli *cli, const struct bh_jobs *jobs, const struct bh_timeline_setup *setup,
                    bh_jobs_runs *runs, struct bh_err *err)
{
    for (size_t i = 0; bh_timeline_policies[i]; i++) {
        struct bh_jobs_run run = {.policy = bh_timeline_policies[i]};
        if (cli->value[OPT_POLICY] && !is_among(run.policy->name, cli->value[OPT_POLICY]))
            continue;
        const uint64_t began = bh_clock_ns();
        int rc = bh_timeline_run(jobs, setup, run.policy, &run.result, err);
        if (rc < 0)
            return rc;
        if (!bh_cli_wants(cli, OPT_OUTPUT, "json"))
            fprintf(stderr, "replay: %s: %" PRIu32 " jobs, %" PRIu64 " starts (%.1f s)\n", run.policy->name,
                    run.result.jobs, run.result.starts, (double)(bh_clock_ns() - began) / 1e9);
        *bh_vec_push(runs) = run;
    }
    return BH_OK;
}

static int do_jobs(struct bh_cli *cli, struct bh_jobs *jobs, const struct bh_synth *synth,
                   const struct bh_estate *estate, struct bh_err *err)
{
    struct bh_timeline_setup setup;
    bh_jobs_runs runs = {0};
    uint32_t gpus = synth ? synth->gpus : CHRONUS_GPUS;
    int rc = check_policies(cli, true, err);
    if (rc == BH_OK && !synth)
        rc = load_jobs(cli, jobs, &gpus, err);
    if (rc == BH_OK)
        rc = parse_setup(cli, estate ? estate->gpus : gpus, &setup, err);
    if (rc == BH_OK && cli->value[OPT_SAVE])
        rc = save_jobs(cli->value[OPT_SAVE], jobs, synth->shape == BH_SYNTH_CHRONUS, err);
    if (rc == BH_OK && estate) {
        adopt_jobs(cli, estate, jobs);
        setup.estate = estate;
    }
    if (rc == BH_OK)
        rc = run_jobs(cli, jobs, &setup, &runs, err);
    if (rc == BH_OK && cli->value[OPT_PLOT])
        rc = plot_jobs(cli->value[OPT_PLOT], jobs, &setup, &runs, err);
    if (rc == BH_OK && bh_cli_wants(cli, OPT_OUTPUT, "json"))
        bh_report_jobs_json(&cli->out, jobs, &setup, &runs);
    else if (rc == BH_OK)
        bh_report_jobs_text(&cli->out, jobs, &setup, &runs);
    for (size_t i = 0; i < runs.n; i++)
        bh_timeline_result_fini(&runs.at[i].result);
    bh_vec_fini(&runs);
    return rc;
}

/* ---- which of them ---- */

/* Options of the other experiment would silently do nothing. */
static int check_options(const struct bh_cli *cli, bool for_jobs, struct bh_err *err)
{
    static const uint8_t of_openb[] = {OPT_NODES, OPT_PODS, OPT_SEED, OPT_FULL_SCAN};
    static const uint8_t of_jobs[] = {OPT_GPUS, OPT_SHARES, OPT_RESTART, OPT_POLICY_FILE, OPT_FLEET};
    const uint8_t *others = for_jobs ? of_openb : of_jobs;
    const size_t n = for_jobs ? BH_COUNT_OF(of_openb) : BH_COUNT_OF(of_jobs);
    for (size_t i = 0; i < n; i++)
        if (cli->value[others[i]])
            return bh_fail(err, BH_USAGE, "--%s is not for %s", opts[others[i]].name,
                           for_jobs ? "jobs over time" : "placing pods");
    return BH_OK;
}

static int replay(struct bh_cli *cli, struct bh_openb *o, struct bh_jobs *jobs, struct premises *p,
                  struct bh_err *err)
{
    const bool has_estate = cli->value[OPT_POLICY_FILE] || cli->value[OPT_FLEET];
    const bool has_pods = cli->value[OPT_NODES] || cli->value[OPT_PODS],
               has_synth = cli->value[OPT_SYNTH] != NULL;
    struct bh_synth synth = {0};
    int rc = BH_OK;
    if (has_pods + has_synth + (cli->n_operands > 0) != 1)
        return bh_fail(
            err, BH_USAGE,
            "needs one of --nodes with --pods, TRACE files, or --synth; see bulkhead replay --help");
    if (cli->value[OPT_SAVE] && !has_synth)
        return bh_fail(err, BH_USAGE, "--save is for a trace that --synth draws");
    if (has_synth)
        rc = of_option(OPT_SYNTH, bh_synth_parse(cli->value[OPT_SYNTH], &synth, err), err);
    const bool for_jobs = cli->n_operands || (has_synth && synth.shape != BH_SYNTH_OPENB);
    if (rc == BH_OK)
        rc = check_options(cli, for_jobs, err);
    if (rc == BH_OK && has_estate)
        rc = load_premises(cli, p, err);
    if (rc < 0)
        return rc;
    if (has_synth && for_jobs)
        bh_synth_jobs(&synth, jobs);
    else if (has_synth)
        bh_synth_openb(&synth, o);
    return for_jobs ? do_jobs(cli, jobs, has_synth ? &synth : NULL, has_estate ? &p->estate : NULL, err)
                    : do_openb(cli, o, err);
}

static int run(struct bh_cli *cli)
{
    struct bh_openb o = {0};
    struct bh_jobs jobs = {0};
    struct premises premises = {0};
    struct bh_err err;
    int rc = replay(cli, &o, &jobs, &premises, &err);
    bh_openb_fini(&o);
    bh_jobs_fini(&jobs);
    bh_estate_fini(&premises.estate);
    bh_input_fini(&premises.input);
    if (rc < 0)
        return bh_cli_fail(cli, &err);
    if (cli->value[OPT_PLOT] && !bh_cli_wants(cli, OPT_OUTPUT, "json")) {
        bh_buf_str(&cli->hint, "charts are in ");
        bh_text_add(&cli->hint, cli->value[OPT_PLOT]);
        bh_buf_str(&cli->hint, "\n");
    }
    return BH_EXIT_OK;
}

const struct bh_cmd bh_cmd_replay = {
    .name = "replay",
    .summary = "hold scheduling policies against a trace",
    .operands = "[TRACE...]",
    .operand_kind = BH_OPERAND_FILE,
    .max_operands = BH_CLI_OPERANDS_ANY,
    .examples =
        "bulkhead replay --synth openb                         every policy on a drawn fleet\n"
        "bulkhead replay --nodes n.csv --pods p.csv -s 42-51   the openb experiment, ten seeds\n"
        "bulkhead replay -p fgd -s 42 --nodes n.csv --pods p.csv -o json\n"
        "bulkhead replay trace_job_Philly_SLO.csv --plot out   jobs over time, with charts\n"
        "bulkhead replay -g 500 gavel/*.trace                  a file for each tenant\n"
        "bulkhead replay --policy-file p.yaml --fleet f.yaml --synth chronus   what a policy does to work\n",
    .text = "Pods (fgd, bestfit, packing, dotprod, clustering, random, bulkhead): they arrive in a drawn\n"
            "order until they ask for 130 % of the GPUs and never leave; how much found a place?\n"
            "Jobs (fifo, edf, srtf, las, bulkhead): they arrive, run, are perhaps stopped, and end; who\n"
            "waits, who misses a deadline, who has more than a fair share?\n"
            "With --policy-file and --fleet jobs belong to the policy's tenants (by name, the others by\n"
            "turns) and bulkhead holds its quotas, pools, driver pins, sites and trust domains; the other\n"
            "four know none of that and show what the same jobs do on one pool of as many GPUs.\n"
            "Formats: openb, Chronus, Gavel.\n"
            "\n"
            "Exit status: 0; 2 a file could not be read or parsed, 4 there is none, 70 not written.\n",
    .opts = opts,
    .run = run,
};
