/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_version.c - which release this is, and how much it knows. */
#include "base/json.h"
#include "cli/cli.h"
#include "core/model/catalog.h"
#include "core/policy/rule.h"

enum { OPT_OUTPUT };

static const struct bh_opt opts[] = {
    [OPT_OUTPUT] = {"output", 'o', BH_OPT_WORD, "FORMAT", bh_words_text_json, "text (default) or json"},
    {0},
};

static int run(struct bh_cli *cli)
{
    if (!bh_cli_wants(cli, OPT_OUTPUT, "json")) {
        bh_buf_printf(&cli->out, "bulkhead %s\n%zu rules, %zu GPU models\n", BH_VERSION, bh_rule_count(),
                      bh_catalog_count());
        return BH_EXIT_OK;
    }
    struct bh_json j;
    bh_json_init(&j, &cli->out);
    bh_json_open(&j, '{');
    bh_json_key_u64(&j, "version", 1);
    bh_json_key_str(&j, "bulkhead", BH_VERSION);
    bh_json_key_u64(&j, "rules", bh_rule_count());
    bh_json_key_u64(&j, "models", bh_catalog_count());
    bh_json_close(&j, '}');
    return BH_EXIT_OK;
}

const struct bh_cmd bh_cmd_version = {
    .name = "version",
    .summary = "which release this is",
    .operands = "",
    .examples = "bulkhead version            the release, and how many rules and GPU models it knows\n"
                "bulkhead version -o json    the same for a program\n",
    .text = "",
    .opts = opts,
    .run = run,
};
