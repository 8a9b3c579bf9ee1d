/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_token.c - tokens for programs that come over HTTPS. */
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/units.h"
#include "cli/books_text.h"
#include "cli/remote.h"

#include <stdio.h>

enum { OPT_ROLE, OPT_TENANT, OPT_SUBJECT, OPT_TTL, OPT_OUTPUT };

static const char *const roles[] = {"operator", "tenant-admin", "tenant-user", "auditor", "viewer", NULL};

static const struct bh_opt opts[] = {
    [OPT_ROLE] = {"role", 'r', BH_OPT_WORD, "ROLE", roles, "create: what it may do"},
    [OPT_TENANT] = {"tenant", 't', BH_OPT_TEXT, "TENANT", NULL, "create: of a tenant's role"},
    [OPT_SUBJECT] = {"subject", 's', BH_OPT_TEXT, "WHO", NULL,
                     "create: user:NAME or service:NAME (default: who asks)"},
    [OPT_TTL] = {"ttl", 0, BH_OPT_TEXT, "TIME", NULL, "create: how long it holds: 30d (default: 90d)"},
    [OPT_OUTPUT] = {"output", 'o', BH_OPT_WORD, "FORMAT", bh_words_text_json, "text (default) or json"},
    {0},
};

static int make_body(const struct bh_cli *cli, struct bh_buf *b, struct bh_err *err)
{
    uint64_t ttl_ms = 0;
    struct bh_json j;
    if (!cli->value[OPT_ROLE])
        return bh_fail(err, BH_USAGE, "token create needs --role ROLE");
    if (cli->value[OPT_TTL] && bh_duration_parse(cli->value[OPT_TTL], &ttl_ms, err) < 0)
        return bh_wrap(err, BH_USAGE, "--ttl");
    bh_json_init(&j, b);
    bh_json_open_flat(&j, '{');
    bh_json_key_str(&j, "role", cli->value[OPT_ROLE]);
    if (cli->value[OPT_TENANT])
        bh_json_key_str(&j, "tenant", cli->value[OPT_TENANT]);
    if (cli->value[OPT_SUBJECT])
        bh_json_key_str(&j, "subject", cli->value[OPT_SUBJECT]);
    if (ttl_ms)
        bh_json_key_u64(&j, "ttl_ms", ttl_ms);
    bh_json_close(&j, '}');
    return BH_OK;
}

/* The token alone goes to standard output: it is shown this once, and often straight into a file. */
static int create(struct bh_cli *cli, struct bh_remote *r, struct bh_err *err)
{
    struct bh_a_token_made made;
    char id[BH_REMOTE_ID_MAX];
    struct bh_buf body;
    bh_buf_init(&body, 4096);
    int rc = make_body(cli, &body, err);
    if (rc == BH_OK)
        rc = bh_remote_ask(r, "POST", "/v1/tokens", bh_buf_text(&body), err);
    bh_buf_fini(&body);
    if (rc == BH_OK)
        rc = bh_remote_read(r, &bh_a_token_made_shape, &made, err);
    if (rc != BH_OK)
        return rc;
    if (!bh_remote_id(made.id, 'T', id))
        return bh_fail(err, BH_SYSTEM, "the daemon's answer is not understood: no token's id");
    if (bh_cli_wants(cli, OPT_OUTPUT, "json")) {
        bh_buf_add(&cli->out, bh_buf_text(&r->reply.body), r->reply.body.n);
        return BH_OK;
    }
    bh_text_add(&cli->out, made.token);
    bh_buf_str(&cli->out, "\n");
    bh_buf_printf(&cli->hint, "bulkhead: this is %s; it is shown this once and kept nowhere\n", id);
    bh_cli_next(cli, "bulkhead token revoke %s", id);
    return BH_OK;
}

static int list(struct bh_cli *cli, struct bh_remote *r, struct bh_err *err)
{
    struct bh_a_tokens t;
    const int rc = bh_remote_get(r, "/v1/tokens", &bh_a_tokens_shape, &t, err);
    if (rc == BH_OK && bh_cli_wants(cli, OPT_OUTPUT, "json"))
        bh_buf_add(&cli->out, bh_buf_text(&r->reply.body), r->reply.body.n);
    else if (rc == BH_OK)
        bh_tokens_text(cli, &r->arena, &t, bh_now_ms());
    return rc;
}

static int revoke(struct bh_cli *cli, struct bh_remote *r, struct bh_err *err)
{
    char id[BH_REMOTE_ID_MAX], path[64];
    if (cli->n_operands < 2 || !bh_remote_id(cli->operands[1], 'T', id))
        return bh_fail(err, BH_USAGE,
                       "token revoke needs the id of a token, such as T3; next: bulkhead token list");
    (void)snprintf(path, sizeof(path), "/v1/tokens/%s", id);
    const int rc = bh_remote_ask(r, "DELETE", path, NULL, err);
    if (rc == BH_OK && bh_cli_wants(cli, OPT_OUTPUT, "json"))
        bh_buf_add(&cli->out, bh_buf_text(&r->reply.body), r->reply.body.n);
    else if (rc == BH_OK)
        bh_buf_printf(&cli->out, "%s is revoked\n", id);
    return rc;
}

static int run(struct bh_cli *cli)
{
    static const struct {
        const char *word;
        int (*fn)(struct bh_cli *cli, struct bh_remote *r, struct bh_err *err);
    } words[] = {{"create", create}, {"list", list}, {"revoke", revoke}};
    BH_AUTO(bh_remote_fini) struct bh_remote r;
    struct bh_err err;
    size_t i = 0;
    int rc = bh_remote_init(&r, &err);
    while (i < BH_COUNT_OF(words) && !bh_str_eq(words[i].word, cli->operands[0]))
        i++;
    if (rc == BH_OK)
        rc = i < BH_COUNT_OF(words)
                 ? words[i].fn(cli, &r, &err)
                 : bh_fail(&err, BH_USAGE, "token needs create, list or revoke, not '%.40s'",
                           cli->operands[0]);
    return rc < 0 ? bh_cli_fail(cli, &err) : BH_EXIT_OK;
}

const struct bh_cmd bh_cmd_token = {
    .name = "token",
    .summary = "tokens for programs: create, list, revoke",
    .operands = "create|list|revoke [TOKEN]",
    .min_operands = 1,
    .max_operands = 2,
    .examples = "bulkhead token create --role viewer --subject service:grafana > token\n"
                "bulkhead token create --role tenant-user --tenant red --ttl 30d    for oneself\n"
                "bulkhead token list\n"
                "bulkhead token revoke T3\n",
    .text =
        "A token of user:NAME holds as long as the policy gives NAME the role; one of service:NAME as it\n"
        "stands. Only operators make tokens for others and for services. A token is for HTTPS; over the\n"
        "unix socket the kernel says who asks.\n",
    .opts = opts,
    .run = run,
};
