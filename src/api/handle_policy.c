/* SPDX-License-Identifier: Apache-2.0 */
/* handle_policy.c - the policy in force, what another one would change, and putting it in force. */
#include "api/handle.h"

#include "base/str.h"
#include "store/state_policy.h"

#include <stdio.h>

int bh_h_policy(struct bh_api_core *core, struct bh_api_req *q)
{
    const struct bh_q_version *in = q->in;
    char hex[2 * BH_STORE_SHA256 + 1];
    struct bh_json *j = &q->json;
    struct bh_store_policy p;
    struct bh_err err;
    const int rc = bh_store_policy_get(core->store, &q->arena, in->version, &p, &err);
    if (rc < 0)
        return bh_api_fail(q, rc, &err);
    for (size_t i = 0; i < BH_STORE_SHA256; i++)
        (void)snprintf(hex + 2 * i, 3, "%02x", p.sha256[i]);
    bh_json_open(j, '{');
    bh_json_key_u64(j, "version", p.id);
    bh_json_key_bool(j, "active", p.active);
    bh_json_key_str(j, "sha256", hex);
    bh_api_key_text(j, "who", p.who);
    bh_api_key_text(j, "why", p.why);
    bh_json_key_u64(j, "at_ms", p.at_ms);
    bh_json_key_str(j, "text", p.text);
    bh_json_close(j, '}');
    return 0;
}

static void diff_json(struct bh_json *j, const struct bh_api_diff *d)
{
    bh_json_open(j, '{');
    bh_json_key_u64(j, "version", d->version);
    bh_json_key_u64(j, "errors", d->errors);
    bh_json_key(j, "changes");
    bh_json_open(j, '[');
    for (size_t i = 0; i < d->rows.n; i++) {
        bh_json_open_flat(j, '{');
        bh_json_key_str(j, "tenant", d->rows.at[i].tenant);
        bh_json_key_str(j, "what", d->rows.at[i].what);
        bh_json_key_str(j, "before", d->rows.at[i].before);
        bh_json_key_str(j, "after", d->rows.at[i].after);
        bh_json_key_str(j, "effect", d->rows.at[i].effect);
        bh_json_close(j, '}');
    }
    bh_json_close(j, ']');
    bh_json_key(j, "findings");
    bh_json_open(j, '[');
    for (size_t i = 0; i < d->findings.n; i++)
        bh_json_str(j, d->findings.at[i]);
    bh_json_close(j, ']');
    bh_json_close(j, '}');
}

int bh_h_policy_diff(struct bh_api_core *core, struct bh_api_req *q)
{
    const struct bh_b_policy *in = q->in;
    struct bh_api_diff d = {0};
    struct bh_err err;
    const int rc = core->ops->policy_diff(core->ops->self, in->text, strlen(in->text), &q->arena, &d, &err);
    if (rc == 0)
        diff_json(&q->json, &d);
    bh_vec_fini(&d.rows);
    bh_vec_fini(&d.findings);
    return rc < 0 ? bh_api_fail(q, rc, &err) : 0;
}

int bh_h_policy_apply(struct bh_api_core *core, struct bh_api_req *q)
{
    const struct bh_b_policy *in = q->in;
    struct bh_err err;
    uint64_t version = 0;
    q->name_of_id = "version";
    const int rc = core->ops->policy_apply(core->ops->self, &q->caller, in->text, strlen(in->text),
                                           in->version, in->reason, q->ticket, &version, &err);
    return bh_api_command(q, rc, 0, version, &err);
}
