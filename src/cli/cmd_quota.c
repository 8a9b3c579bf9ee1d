/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_quota.c - what each tenant is guaranteed, uses, borrows and may have at most. */
#include "cli/node_text.h"
#include "cli/remote.h"

enum { OPT_OUTPUT };

static const struct bh_opt opts[] = {
    [OPT_OUTPUT] = {"output", 'o', BH_OPT_WORD, "FORMAT", bh_words_text_json, "text (default) or json"},
    {0},
};

static int show(struct bh_cli *cli, struct bh_remote *r, struct bh_err *err)
{
    const char *only = cli->n_operands ? cli->operands[0] : NULL;
    struct bh_a_quotas q;
    int rc = bh_remote_get(r, "/v1/quota", &bh_a_quotas_shape, &q, err);
    if (rc < 0)
        return rc;
    if (bh_cli_wants(cli, OPT_OUTPUT, "json"))
        bh_buf_add(&cli->out, bh_buf_text(&r->reply.body), r->reply.body.n);
    else if (!bh_quotas_text(cli, &r->arena, &q, only))
        rc = bh_fail(err, BH_NOT_FOUND, "there is no tenant '%.60s'; next: bulkhead tenants", only);
    return rc;
}

static int run(struct bh_cli *cli)
{
    BH_AUTO(bh_remote_fini) struct bh_remote r;
    struct bh_err err;
    int rc = bh_remote_init(&r, &err);
    if (rc == BH_OK)
        rc = show(cli, &r, &err);
    return rc < 0 ? bh_cli_fail(cli, &err) : BH_EXIT_OK;
}

const struct bh_cmd bh_cmd_quota = {
    .name = "quota",
    .summary = "what a tenant is guaranteed, uses, borrows and may have",
    .operands = "[TENANT]",
    .max_operands = 1,
    .examples = "bulkhead quota            a line for each tenant\n"
                "bulkhead quota red        one of them\n",
    .text =
        "BORROWED is what it uses beyond what it is guaranteed, and has to give back when it is wanted.\n"
        "FREE OWN is what is guaranteed to it and not used by it: it starts there at once, or as soon as\n"
        "others gave it back. WAITING are its jobs that wait; bulkhead why JOB says for what.\n",
    .opts = opts,
    .run = run,
};
