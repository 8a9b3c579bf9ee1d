/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_describe.c - all about one job, lease or GPU, with its history at the end. */
#include "base/mem.h"
#include "base/str.h"
#include "cli/describe_text.h"
#include "cli/remote.h"

enum { OPT_OUTPUT };
enum { ATTEMPTS_MAX = 16 };

static const struct bh_opt opts[] = {
    [OPT_OUTPUT] = {"output", 'o', BH_OPT_WORD, "FORMAT", bh_words_text_json, "text (default) or json"},
    {0},
};

static void print_reply(struct bh_cli *cli, const struct bh_remote *r)
{
    bh_buf_add(&cli->out, bh_buf_text(&r->reply.body), r->reply.body.n);
}

/* One that cannot be had is left out: the rest is worth showing. */
static void add_lease(struct bh_remote *r, const char *id, struct bh_a_lease_detail *at, size_t *n)
{
    char word[BH_REMOTE_ID_MAX];
    if (!bh_remote_id(id, 'L', word))
        return;
    const char *path = bh_arena_printf(&r->arena, "/v1/leases/%s", word);
    if (bh_remote_get(r, path, &bh_a_lease_detail_shape, &at[*n], NULL) == BH_OK)
        (*n)++;
}

static int of_job(struct bh_cli *cli, struct bh_remote *r, const char *id, struct bh_err *err)
{
    struct bh_a_lease_detail attempts[ATTEMPTS_MAX];
    struct bh_a_job_detail d;
    struct bh_a_why why;
    size_t n = 0;
    const char *path = bh_arena_printf(&r->arena, "/v1/jobs/%s", id);
    const int rc = bh_remote_get(r, path, &bh_a_job_detail_shape, &d, err);
    if (rc < 0 || bh_cli_wants(cli, OPT_OUTPUT, "json")) {
        if (rc == BH_OK)
            print_reply(cli, r);
        return rc;
    }
    for (size_t i = d.leases.n > ATTEMPTS_MAX ? d.leases.n - ATTEMPTS_MAX : 0; i < d.leases.n; i++)
        add_lease(r, d.leases.at[i].id, attempts, &n);
    const bool waits = bh_str_eq(d.job->state, "waiting") &&
                       bh_remote_get(r, bh_arena_printf(&r->arena, "/v1/jobs/%s/why", id), &bh_a_why_shape,
                                     &why, NULL) == BH_OK;
    bh_describe_job(cli, &r->arena, &d, waits ? &why : NULL, attempts, n, bh_now_ms());
    return BH_OK;
}

static int of_lease(struct bh_cli *cli, struct bh_remote *r, const char *id, struct bh_err *err)
{
    struct bh_a_lease_detail d;
    const int rc =
        bh_remote_get(r, bh_arena_printf(&r->arena, "/v1/leases/%s", id), &bh_a_lease_detail_shape, &d, err);
    if (rc == BH_OK && bh_cli_wants(cli, OPT_OUTPUT, "json"))
        print_reply(cli, r);
    else if (rc == BH_OK)
        bh_describe_lease(cli, &r->arena, &d, bh_now_ms());
    return rc;
}

static int of_gpu(struct bh_cli *cli, struct bh_remote *r, const char *name, struct bh_err *err)
{
    struct bh_a_lease_detail leases[ATTEMPTS_MAX];
    struct bh_a_records records;
    struct bh_a_gpu gpu;
    size_t n = 0;
    const int rc = bh_remote_gpu(r, name, &gpu, err);
    if (rc < 0 || bh_cli_wants(cli, OPT_OUTPUT, "json")) {
        if (rc == BH_OK)
            print_reply(cli, r);
        return rc;
    }
    for (size_t i = 0; i < gpu.slices.n && n < ATTEMPTS_MAX; i++)
        if (gpu.slices.at[i].lease)
            add_lease(r, gpu.slices.at[i].lease, leases, &n);
    const bool audited =
        bh_remote_get(r, "/v1/audit?newest=true&limit=1000", &bh_a_records_shape, &records, NULL) == BH_OK;
    bh_describe_gpu(cli, &r->arena, &gpu, leases, n, audited ? &records : NULL, bh_now_ms());
    return BH_OK;
}

static int run(struct bh_cli *cli)
{
    BH_AUTO(bh_remote_fini) struct bh_remote r;
    const char *word = cli->operands[0];
    char id[BH_REMOTE_ID_MAX];
    struct bh_err err;
    int rc = bh_remote_init(&r, &err);
    if (rc < 0)
        return bh_cli_fail(cli, &err);
    if ((*word == 'J' || *word == 'j') && bh_remote_id(word, 'J', id))
        rc = of_job(cli, &r, id, &err);
    else if ((*word == 'L' || *word == 'l') && bh_remote_id(word, 'L', id))
        rc = of_lease(cli, &r, id, &err);
    else
        rc = of_gpu(cli, &r, word, &err);
    return rc < 0 ? bh_cli_fail(cli, &err) : BH_EXIT_OK;
}

const struct bh_cmd bh_cmd_describe = {
    .name = "describe",
    .summary = "all about a job, a lease or a GPU, with its history",
    .operands = "JOB|LEASE|GPU",
    .min_operands = 1,
    .max_operands = 1,
    .examples = "bulkhead describe J17      a job: what it asked for, why it waits, each attempt\n"
                "bulkhead describe L17      a lease: what it was given, how it is kept apart\n"
                "bulkhead describe 3        a GPU, by index or uuid: who has which part of it\n",
    .text =
        "The history comes last: every state of each lease with its reason, every scrub with how much it\n"
        "covered; of a GPU also what the newest 1,000 records of the audit log say about it, for those who\n"
        "may read them. -o json is the object alone.\n",
    .opts = opts,
    .run = run,
};
