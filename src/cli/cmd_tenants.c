/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_tenants.c - tenants, what they were promised and what they have; or one of them. */
#include "cli/node_text.h"
#include "cli/remote.h"

enum { OPT_OUTPUT };

static const struct bh_opt opts[] = {
    [OPT_OUTPUT] = {"output", 'o', BH_OPT_WORD, "FORMAT", bh_words_text_json, "text (default) or json"},
    {0},
};

static void all_text(struct bh_cli *cli, struct bh_remote *r, const void *answer)
{
    bh_tenants_text(cli, &r->arena, answer);
}

static void one_text(struct bh_cli *cli, struct bh_remote *r, const void *answer)
{
    bh_tenant_text(cli, &r->arena, answer);
}

static int run(struct bh_cli *cli)
{
    struct bh_remote_view view = {
        .path = "/v1/tenants", .shape = &bh_a_tenants_shape, .output_opt = OPT_OUTPUT, .text = all_text};
    struct bh_buf path;
    if (!cli->n_operands)
        return bh_remote_show(cli, &view);
    bh_buf_init(&path, 1024);
    bh_buf_str(&path, "/v1/tenants/");
    bh_remote_quote(&path, cli->operands[0]);
    view = (struct bh_remote_view){
        .path = bh_buf_text(&path), .shape = &bh_a_tenant_shape, .output_opt = OPT_OUTPUT, .text = one_text};
    const int status = bh_remote_show(cli, &view);
    bh_buf_fini(&path);
    return status;
}

const struct bh_cmd bh_cmd_tenants = {
    .name = "tenants",
    .summary = "tenants, what they were promised and what they have",
    .operands = "[TENANT]",
    .max_operands = 1,
    .examples = "bulkhead tenants          a line each\n"
                "bulkhead tenants red      one of them, and the pools it may use\n",
    .text =
        "USES is what it has leases for; OWN is guaranteed to it, LIMIT the most it may have. Who sees only\n"
        "some of the tenants is told of the rest as \"others\".\n",
    .opts = opts,
    .run = run,
};
