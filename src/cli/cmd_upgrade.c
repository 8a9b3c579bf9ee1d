/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_upgrade.c - whom a change of driver, firmware or kernel touches, before anybody makes it. Changes nothing. */
#include "base/str.h"
#include "base/units.h"
#include "cli/remote.h"
#include "cli/upgrade_text.h"
#include "conf/input.h"

#include <string.h>

enum { OPT_DRIVER, OPT_FIRMWARE, OPT_KERNEL, OPT_GPU, OPT_OUTPUT };
enum { LIST_MAX = 64 << 20, ROWS_MAX = 100000, DAY_MS = 86400 * 1000, GPUS = 64 };

static const struct bh_opt opts[] = {
    [OPT_DRIVER] = {"driver", 'd', BH_OPT_TEXT, "VERSION", NULL, "a driver of this version"},
    [OPT_FIRMWARE] = {"firmware", 'f', BH_OPT_TEXT, "NAME[=VERSION]", NULL,
                      "firmware: vbios, gsp, inforom, nvswitch"},
    [OPT_KERNEL] = {"kernel", 'k', BH_OPT_TEXT, "VERSION", NULL, "a kernel of this version"},
    [OPT_GPU] = {"gpu", 'g', BH_OPT_TEXT, "INDEX", NULL, "firmware of this GPU alone"},
    [OPT_OUTPUT] = {"output", 'o', BH_OPT_WORD, "FORMAT", bh_words_text_json, "text (default) or json"},
    {0},
};

/* What the daemon shows, as the planner takes it. */
struct view {
    struct bh_remote *r;
    struct bh_a_gpus gpus;
    struct bh_a_jobs jobs;
    struct bh_a_leases leases;
    struct bh_policy policy;
    bool has_policy;
    BH_VEC(struct bh_upgrade_gpu) cards;
    BH_VEC(struct bh_upgrade_lease) on;
};

static int get_list(struct bh_remote *r, const char *key, const char *path,
                    const struct bh_answer_shape *shape, void *ret, struct bh_err *err)
{
    struct bh_buf text;
    bh_buf_init(&text, LIST_MAX);
    int rc = bh_remote_list(r, key, &path, 1, ROWS_MAX, &text, err);
    if (rc == BH_OK)
        rc = bh_answer_read(&r->arena, bh_buf_text(&text), text.n, shape, ret, err);
    bh_buf_fini(&text);
    return rc;
}

/* Tenants' and pools' own words about drivers. */
static void get_policy(struct view *v)
{
    struct bh_a_policy p;
    struct bh_diags diags = {0};
    struct bh_err err;
    if (bh_remote_get(v->r, "/v1/policy", &bh_a_policy_shape, &p, &err) < 0)
        return;
    bh_policy_load_text(&v->policy, p.text, strlen(p.text), NULL, &diags);
    v->has_policy = true;
    bh_diags_fini(&diags);
}

static const struct bh_a_job *job_of(const struct view *v, const char *id)
{
    for (size_t i = 0; i < v->jobs.jobs.n; i++)
        if (bh_str_eq(v->jobs.jobs.at[i].id, id))
            return &v->jobs.jobs.at[i];
    return NULL;
}

static uint64_t gpus_of(const struct view *v, const char *lease)
{
    uint64_t bits = 0;
    for (size_t i = 0; i < v->gpus.gpus.n; i++)
        for (size_t k = 0; k < v->gpus.gpus.at[i].slices.n; k++) {
            const struct bh_a_slice *s = &v->gpus.gpus.at[i].slices.at[k];
            if (s->lease && bh_str_eq(s->lease, lease) && !bh_str_eq(s->state, "free") &&
                v->gpus.gpus.at[i].index < GPUS)
                bits |= UINT64_C(1) << v->gpus.gpus.at[i].index;
        }
    return bits;
}

static uint64_t end_of(const struct bh_a_lease *l, const struct bh_a_job *j)
{
    if (l->until_ms != BH_ANSWER_UNKNOWN)
        return l->until_ms;
    return j && j->duration_ms != BH_ANSWER_UNKNOWN && bh_str_eq(l->state, "active")
               ? l->state_ms + j->duration_ms
               : 0;
}

static void take(struct view *v)
{
    for (size_t i = 0; i < v->gpus.gpus.n; i++)
        *bh_vec_push(&v->cards) = (struct bh_upgrade_gpu){
            (uint32_t)v->gpus.gpus.at[i].index, v->gpus.gpus.at[i].state, v->gpus.gpus.at[i].reason};
    for (size_t i = 0; i < v->leases.leases.n; i++) {
        const struct bh_a_lease *l = &v->leases.leases.at[i];
        const struct bh_a_job *j = job_of(v, l->job);
        const struct bh_upgrade_lease one = {.id = l->id,
                                             .job = l->job,
                                             .tenant = l->tenant,
                                             .user = l->user,
                                             .gpus = gpus_of(v, l->id),
                                             .end_ms = end_of(l, j),
                                             .can_requeue = j && j->can_requeue,
                                             .can_suspend = j && j->can_suspend,
                                             .firm = j && j->firm,
                                             .idle = l->live && l->live->compute_ppm == 0};
        if (one.gpus && !bh_str_eq(l->state, "quarantined")) /* nobody is on what is quarantined */
            *bh_vec_push(&v->on) = one;
    }
}

static int look(struct view *v, struct bh_a_status *status, struct bh_err *err)
{
    int rc = bh_remote_get(v->r, "/v1/status", &bh_a_status_shape, status, err);
    if (rc == BH_OK)
        rc = bh_remote_get(v->r, "/v1/gpus", &bh_a_gpus_shape, &v->gpus, err);
    if (rc == BH_OK && v->gpus.others != BH_ANSWER_UNKNOWN && v->gpus.others)
        return bh_fail(err, BH_DENIED, "a plan names all who are touched: it is for operators and auditors");
    if (rc == BH_OK)
        rc = get_list(v->r, "leases", "/v1/leases?state=live", &bh_a_leases_shape, &v->leases, err);
    if (rc == BH_OK)
        rc = get_list(v->r, "jobs", "/v1/jobs?state=running", &bh_a_jobs_shape, &v->jobs, err);
    if (rc == BH_OK) {
        get_policy(v);
        take(v);
    }
    return rc;
}

/* ---- what was asked ---- */

static int read_firmware(struct bh_arena *a, const char *word, struct bh_upgrade_ask *ask, struct bh_err *err)
{
    static const char *const known[] = {"vbios", "gsp", "inforom", "nvswitch"};
    const size_t n = strcspn(word, "=");
    ask->kind = BH_UPGRADE_FIRMWARE;
    ask->what = bh_arena_printf(a, "%.*s", (int)n, word);
    ask->to = word[n] && word[n + 1] ? word + n + 1 : NULL;
    for (size_t i = 0; i < BH_COUNT_OF(known); i++)
        if (bh_str_eq(ask->what, known[i]))
            return BH_OK;
    return bh_fail(err, BH_USAGE, "no firmware is called '%.60s'; there are vbios, gsp, inforom, nvswitch",
                   ask->what);
}

static int read_words(const struct bh_cli *cli, struct bh_arena *a, struct bh_upgrade_ask *ask,
                      struct bh_err *err)
{
    struct bh_version v;
    uint64_t gpu = 0;
    if (!bh_str_eq(cli->operands[0], "plan"))
        return bh_fail(err, BH_USAGE, "no 'upgrade %.60s'; there is: bulkhead upgrade plan",
                       cli->operands[0]);
    if (!cli->value[OPT_DRIVER] + !cli->value[OPT_FIRMWARE] + !cli->value[OPT_KERNEL] != 2)
        return bh_fail(err, BH_USAGE,
                       "name what is to be changed: --driver, --firmware or --kernel, one of them");
    *ask = (struct bh_upgrade_ask){.kind = cli->value[OPT_DRIVER] ? BH_UPGRADE_DRIVER : BH_UPGRADE_KERNEL,
                                   .to = cli->value[OPT_DRIVER] ? cli->value[OPT_DRIVER]
                                                                : cli->value[OPT_KERNEL],
                                   .gpus = UINT64_MAX,
                                   .now_ms = bh_now_ms()};
    ask->day = (int32_t)(ask->now_ms / DAY_MS);
    if (cli->value[OPT_DRIVER] && bh_version_parse(ask->to, &v, err) < 0)
        return BH_USAGE;
    if (cli->value[OPT_FIRMWARE] && read_firmware(a, cli->value[OPT_FIRMWARE], ask, err) < 0)
        return BH_USAGE;
    if (!cli->value[OPT_GPU])
        return BH_OK;
    if (ask->kind != BH_UPGRADE_FIRMWARE || bh_str_eq(ask->what, "nvswitch"))
        return bh_fail(err, BH_USAGE, "--gpu goes with firmware of one GPU: this is all GPUs' of the node");
    if (bh_uint_parse(cli->value[OPT_GPU], GPUS - 1, &gpu, err) < 0)
        return bh_wrap(err, BH_USAGE, "--gpu");
    ask->gpus = UINT64_C(1) << gpu;
    return BH_OK;
}

/* Where all the switches agree. */
static const char *now_of_switches(const struct view *v)
{
    const char *found = NULL;
    for (size_t i = 0; i < v->gpus.switches.n; i++) {
        const char *mine = v->gpus.switches.at[i].firmware;
        if (!mine || (found && !bh_str_eq(found, mine)))
            return NULL;
        found = mine;
    }
    return found;
}

/* What it is now; of firmware where all the GPUs agree. */
static const char *now_of(const struct view *v, const struct bh_a_status *status,
                          const struct bh_upgrade_ask *ask)
{
    const char *found = NULL;
    if (ask->kind == BH_UPGRADE_DRIVER)
        return status->driver;
    if (ask->what && bh_str_eq(ask->what, "nvswitch"))
        return now_of_switches(v);
    for (size_t i = 0; ask->what && i < v->gpus.gpus.n; i++) {
        const struct bh_a_gpu *g = &v->gpus.gpus.at[i];
        const char *mine = bh_str_eq(ask->what, "vbios")     ? g->vbios
                           : bh_str_eq(ask->what, "gsp")     ? g->gsp
                           : bh_str_eq(ask->what, "inforom") ? g->inforom
                                                             : NULL;
        if (g->index >= GPUS || !(ask->gpus >> g->index & 1))
            continue;
        if (!mine || (found && !bh_str_eq(found, mine)))
            return NULL;
        found = mine;
    }
    return found;
}

static int show(struct bh_cli *cli, struct view *v, struct bh_upgrade_ask *ask, struct bh_err *err)
{
    struct bh_a_status status;
    struct bh_upgrade u;
    const int rc = look(v, &status, err);
    if (rc < 0)
        return rc;
    ask->from = now_of(v, &status, ask);
    ask->policy = v->has_policy ? &v->policy : NULL;
    ask->cards = v->cards.at;
    ask->n_cards = v->cards.n;
    ask->leases = v->on.at;
    ask->n_leases = v->on.n;
    bh_upgrade_plan(ask, &u);
    if (bh_cli_wants(cli, OPT_OUTPUT, "json"))
        bh_upgrade_json(&cli->out, ask, &u);
    else
        bh_upgrade_text(cli, &v->r->arena, ask, &u);
    const bool stuck = u.blockers.n != 0;
    bh_upgrade_fini(&u);
    return stuck ? BH_EXIT_FOUND : BH_EXIT_OK;
}

static int run(struct bh_cli *cli)
{
    BH_AUTO(bh_remote_fini) struct bh_remote r;
    struct view v = {.r = &r};
    struct bh_upgrade_ask ask;
    struct bh_err err;
    int rc = bh_remote_init(&r, &err);
    if (rc == BH_OK)
        rc = read_words(cli, &r.arena, &ask, &err);
    if (rc == BH_OK)
        rc = show(cli, &v, &ask, &err);
    bh_vec_fini(&v.cards);
    bh_vec_fini(&v.on);
    if (v.has_policy)
        bh_policy_fini(&v.policy);
    return rc < 0 ? bh_cli_fail(cli, &err) : rc;
}

const struct bh_cmd bh_cmd_upgrade = {
    .name = "upgrade",
    .summary = "whom a change of driver, firmware or kernel touches",
    .operands = "plan",
    .min_operands = 1,
    .max_operands = 1,
    .examples = "bulkhead upgrade plan --driver 580.159.03        who leaves how, the gates, what it mends\n"
                "bulkhead upgrade plan --firmware vbios --gpu 3   of one GPU\n"
                "bulkhead upgrade plan --kernel 6.12.48 -o json\n",
    .text =
        "Changes nothing. Who may begin again is drained, whose end is known is waited for; whoever must not\n"
        "be interrupted and has no known end stands in the way, and is named. The steps are to be done in\n"
        "their order; what is called a gate must hold before the next one.\n"
        "\n"
        "Exit status: 0 nobody stands in the way, 1 somebody does, 3 not for this user, 4 no daemon.\n",
    .opts = opts,
    .run = run,
};
