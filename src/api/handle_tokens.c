/* SPDX-License-Identifier: Apache-2.0 */
/*
 * handle_tokens.c - tokens: whoever has a role may make one for himself with that role or a lesser one of his own; operators
 * make them for others and for services. A token makes no tokens, so that a stolen one does not outlive its end.
 */
#include "api/handle.h"

#include "base/str.h"
#include "store/state_token.h"

enum { TOKENS_MAX = 32 }; /* of one subject, that hold */

static bool is_tenant_role(int role)
{
    return role == BH_ROLE_TENANT_ADMIN || role == BH_ROLE_TENANT_USER;
}

static bool is_operator(const struct bh_api_req *q)
{
    return bh_api_may(&q->caller, BH_ROLE_BIT(OPERATOR), NULL);
}

static void token_json(struct bh_json *j, const struct bh_store_token *t)
{
    bh_json_open_flat(j, '{');
    bh_api_key_id(j, "id", 'T', t->id);
    bh_json_key_str(j, "subject", t->subject);
    bh_json_key_str(j, "role", t->role);
    bh_api_key_text(j, "tenant", t->tenant);
    bh_json_key_u64(j, "created_ms", t->created_ms);
    bh_api_key_known(j, "expires_ms", t->expires_ms ? t->expires_ms : UINT64_MAX);
    bh_api_key_known(j, "revoked_ms", t->revoked_ms ? t->revoked_ms : UINT64_MAX);
    bh_json_close(j, '}');
}

int bh_h_tokens(struct bh_api_core *core, struct bh_api_req *q)
{
    const struct bh_store_page page = {.limit = BH_STORE_PAGE_MAX};
    bh_store_tokens tokens = {0};
    struct bh_err err;
    const int rc = bh_store_tokens_list(core->store, &q->arena, &page, &tokens, &err);
    bh_json_open(&q->json, '{');
    bh_json_key(&q->json, "tokens");
    bh_json_open(&q->json, '[');
    for (size_t i = 0; rc == 0 && i < tokens.n; i++)
        if (is_operator(q) || bh_str_eq(tokens.at[i].subject, q->caller.principal))
            token_json(&q->json, &tokens.at[i]);
    bh_json_close(&q->json, ']');
    bh_json_close(&q->json, '}');
    bh_vec_fini(&tokens);
    return rc < 0 ? bh_api_fail(q, rc, &err) : 0;
}

static int check_subject(struct bh_api_req *q, const char *subject)
{
    const char *colon = strchr(subject, ':');
    if (!colon || !colon[1] || !(bh_str_starts(subject, "user:") || bh_str_starts(subject, "service:")))
        return bh_api_refuse(&q->problem, BH_INVALID,
                             "field 'subject' is neither user:NAME nor service:NAME");
    if (is_operator(q))
        return 0;
    if (!bh_str_eq(subject, q->caller.principal)) {
        bh_api_hint(&q->problem, "operator", q->caller.principal, NULL);
        return bh_api_refuse(&q->problem, BH_DENIED, "only an operator makes tokens for others");
    }
    if (q->caller.token)
        return bh_api_refuse(&q->problem, BH_DENIED,
                             "a token makes no tokens; use the unix socket of the node");
    return 0;
}

static int check_role(struct bh_api_core *core, struct bh_api_req *q, const char *subject, int role,
                      const char *tenant)
{
    const struct bh_policy *p = core->view->policy;
    if (is_tenant_role(role) != (tenant != NULL))
        return bh_api_refuse(&q->problem, BH_INVALID,
                             tenant ? "the role '%s' is for all tenants; leave 'tenant' out"
                                    : "the role '%s' needs the field 'tenant'",
                             bh_words_role.text[role]);
    if (tenant && (!p || !bh_api_sees(q, tenant) || bh_map_find(&p->tenant_by_name, tenant) == BH_MAP_NONE))
        return bh_api_refuse(&q->problem, BH_NOT_FOUND, "there is no tenant '%s'", tenant);
    if (!is_operator(q) && !bh_api_may(&q->caller, UINT32_C(1) << role, tenant))
        return bh_api_refuse(&q->problem, BH_DENIED, "'%.80s' has not the role '%s' itself",
                             q->caller.principal, bh_words_role.text[role]);
    if (bh_str_starts(subject, "user:") && !bh_auth_policy_gives(p, subject, (uint8_t)role, tenant)) {
        bh_api_hint(&q->problem, "a binding in the policy's `roles`", "none",
                    "bind the role, or use service:NAME");
        return bh_api_refuse(&q->problem, BH_REFUSED, "the policy does not give '%.80s' the role '%s'",
                             subject, bh_words_role.text[role]);
    }
    return 0;
}

/* Whoever needs more than these has lost count of who has them. */
static int check_number(struct bh_api_core *core, struct bh_api_req *q, const char *subject)
{
    uint64_t live = 0;
    struct bh_err err;
    const int rc = bh_store_tokens_live(core->store, subject, core->view->now_ms, &live, &err);
    if (rc < 0)
        return bh_api_fail(q, rc, &err);
    if (live < TOKENS_MAX)
        return 0;
    bh_api_hint(&q->problem, NULL, NULL,
                "revoke one that is not used: bulkhead token list, bulkhead token revoke T3");
    return bh_api_refuse(&q->problem, BH_QUOTA, "'%.80s' has %llu tokens that hold, and no more than %d may",
                         subject, (unsigned long long)live, TOKENS_MAX);
}

int bh_h_token_make(struct bh_api_core *core, struct bh_api_req *q)
{
    const struct bh_b_token *in = q->in;
    const char *subject = in->subject ? in->subject : q->caller.principal;
    const int role = bh_words_find(&bh_words_role, in->role);
    const uint64_t ttl_ms = in->ttl_ms ? in->ttl_ms : UINT64_C(90) * 86400 * 1000;
    struct bh_api_token_new t = {
        .subject = subject, .role = in->role, .tenant = in->tenant ? in->tenant : ""};
    char *text = bh_arena_alloc(&q->arena, BH_TOKEN_TEXT);
    struct bh_err err;
    uint64_t id = 0;
    int rc = check_subject(q, subject);
    if (rc < 0 || (rc = check_role(core, q, subject, role, in->tenant)) < 0 ||
        (rc = check_number(core, q, subject)) < 0)
        return rc;
    t.expires_ms = core->view->wall_ms + ttl_ms;
    if ((rc = bh_token_make(text, t.sha256, &err)) < 0)
        return bh_api_fail(q, rc, &err);
    q->secret = text;
    rc = core->ops->token_add(core->ops->self, &q->caller, &t, q->ticket, &id, &err);
    return bh_api_command(q, rc, 'T', id, &err);
}

int bh_h_token_revoke(struct bh_api_core *core, struct bh_api_req *q)
{
    bh_store_tokens tokens = {0};
    struct bh_err err;
    uint64_t id;
    if (!bh_api_id_parse(q->param, 'T', &id))
        return bh_api_not_there(q, "token");
    const struct bh_store_page page = {.after = id - 1, .limit = 1};
    int rc = bh_store_tokens_list(core->store, &q->arena, &page, &tokens, &err);
    if (rc < 0)
        return bh_api_fail(q, rc, &err);
    const bool mine = tokens.n && tokens.at[0].id == id &&
                      (is_operator(q) || bh_str_eq(tokens.at[0].subject, q->caller.principal));
    bh_vec_fini(&tokens);
    if (!mine)
        return bh_api_not_there(q, "token");
    rc = core->ops->token_revoke(core->ops->self, &q->caller, id, q->ticket, &err);
    return bh_api_command(q, rc, 'T', id, &err);
}
