/* SPDX-License-Identifier: Apache-2.0 */
/* handle_books.c - what was done by whom, signed checkpoints of that, and backups of it all. */
#include "api/handle.h"

#include "base/str.h"
#include "store/audit_rows.h"

#include <stdio.h>

/* ---- audit ---- */

struct showing {
    struct bh_api_req *q;
    uint64_t left, last;
    bool more;
};

static void hash_json(struct bh_json *j, const struct bh_hash *h)
{
    char hex[2 * sizeof(h->at) + 1];
    for (size_t i = 0; i < sizeof(h->at); i++)
        (void)snprintf(hex + 2 * i, 3, "%02x", h->at[i]);
    bh_json_key_str(j, "hash", hex);
}

static void record_json(struct bh_json *j, const struct bh_audit_row *row, const struct bh_audit_record *r,
                        const char *body)
{
    const struct bh_audit_event *e = &r->is;
    bh_json_open(j, '{');
    bh_json_key_u64(j, "seq", row->seq);
    bh_json_key_i64(j, "at_ms", row->at_ms);
    bh_json_key_str(j, "event", row->event);
    bh_json_key_str(j, "outcome", bh_audit_outcomes[e->outcome]);
    bh_json_key_str(j, "who", e->sub);
    bh_json_key_str(j, "tenant", row->tenant);
    bh_json_key_str(j, "action", e->action);
    bh_json_key_str(j, "object_type", e->object_type);
    bh_json_key_str(j, "object_id", e->object_id);
    bh_json_key_str(j, "before", e->before);
    bh_json_key_str(j, "after", e->after);
    bh_json_key_str(j, "reason", e->reason);
    bh_json_key(j, "rules");
    bh_json_open_flat(j, '[');
    for (size_t i = 0; i < e->n_rule_ids; i++)
        bh_json_str(j, e->rule_ids[i]);
    bh_json_close(j, ']');
    hash_json(j, &row->hash);
    if (body)
        bh_json_key_str(j, "body", body);
    bh_json_close(j, '}');
}

static int show_row(void *arg, const struct bh_audit_row *row, struct bh_err *err)
{
    struct showing *s = arg;
    struct bh_audit_record r;
    /* What is of no tenant is for those who see all of them. */
    if (!bh_api_sees(s->q, row->tenant && *row->tenant ? row->tenant : NULL))
        return 0;
    if (!s->left) {
        s->more = true;
        return 1; /* enough */
    }
    const int rc = bh_audit_decode(row->body, row->n_body, &s->q->arena, &r, err);
    if (rc < 0)
        return bh_wrap(err, rc, "record %llu of the audit log", (unsigned long long)row->seq);
    const struct bh_q_audit *in = s->q->in;
    record_json(&s->q->json, row, &r,
                in->bodies ? bh_arena_strn(&s->q->arena, row->body, row->n_body) : NULL);
    s->left--;
    s->last = row->seq;
    return 0;
}

int bh_h_audit(struct bh_api_core *core, struct bh_api_req *q)
{
    const struct bh_q_audit *in = q->in;
    struct bh_audit_range range = {.after = in->newest ? 0 : in->after,
                                   .last = in->newest && in->after ? in->after - 1 : INT64_MAX,
                                   .tenant = in->tenant ? in->tenant : bh_api_only_tenant(q),
                                   .newest = in->newest};
    struct showing s = {.q = q, .left = in->limit ? in->limit : BH_STORE_PAGE};
    struct bh_err err;
    if (in->tenant && !bh_api_sees(q, in->tenant))
        return bh_api_refuse(&q->problem, BH_NOT_FOUND, "there is no tenant '%s'", in->tenant);
    /* The text has what a listing leaves out: from where somebody else came, and with which session. */
    if (in->bodies && !bh_api_sees_all(q)) {
        bh_api_hint(&q->problem, "operator or auditor of all tenants", NULL, "ask without `bodies`");
        return bh_api_refuse(
            &q->problem, BH_DENIED,
            "the text of records is for who may see the whole log: it says more than they show");
    }
    bh_json_open(&q->json, '{');
    bh_json_key(&q->json, "records");
    bh_json_open(&q->json, '[');
    const int rc = bh_audit_rows(core->store, &range, show_row, &s, &err);
    if (rc < 0)
        return bh_api_fail(q, rc, &err);
    bh_json_close(&q->json, ']');
    bh_api_key_known(&q->json, "next", s.more ? s.last : UINT64_MAX);
    bh_json_close(&q->json, '}');
    return 0;
}

int bh_h_checkpoint(struct bh_api_core *core, struct bh_api_req *q)
{
    const char *note;
    struct bh_err err;
    uint64_t size;
    const int rc = bh_audit_checkpoint_find(core->store, INT64_MAX, true, &q->arena, &size, &note, &err);
    if (rc < 0)
        return bh_api_fail(q, rc, &err);
    bh_json_open(&q->json, '{');
    bh_json_key_u64(&q->json, "size", size);
    bh_json_key_str(&q->json, "note", note);
    bh_json_close(&q->json, '}');
    return 0;
}

int bh_h_checkpoint_make(struct bh_api_core *core, struct bh_api_req *q)
{
    struct bh_err err;
    uint64_t size = 0;
    q->name_of_id = "size";
    const int rc = core->ops->checkpoint(core->ops->self, &q->caller, q->ticket, &size, &err);
    return bh_api_command(q, rc, 0, size, &err);
}

int bh_h_rotate(struct bh_api_core *core, struct bh_api_req *q)
{
    const struct bh_b_reason *in = q->in;
    struct bh_err err;
    uint32_t key = 0;
    const int rc = core->ops->rotate(core->ops->self, &q->caller, in->reason, q->ticket, &key, &err);
    q->param = bh_arena_printf(&q->arena, "%08x", key); /* what the answer names */
    return bh_api_command(q, rc, 0, 0, &err);
}

int bh_h_backup(struct bh_api_core *core, struct bh_api_req *q)
{
    const struct bh_b_backup *in = q->in;
    struct bh_err err;
    q->param = in->name; /* what the answer names */
    return bh_api_command(q, core->ops->backup(core->ops->self, &q->caller, in->name, q->ticket, &err), 0, 0,
                          &err);
}
