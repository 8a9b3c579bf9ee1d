/* SPDX-License-Identifier: Apache-2.0 */
/* owed.c - what is kept until it is in the log. */
#include "node/owed.h"

#include <inttypes.h>

void bh_owed_fini(struct bh_owed *o)
{
    for (size_t i = 0; i < o->rows.n; i++)
        bh_arena_fini(&o->rows.at[i].arena);
    bh_vec_fini(&o->rows);
    *o = (struct bh_owed){0};
}

static void copy(struct bh_arena *arena, const char **text)
{
    *text = *text ? bh_arena_str(arena, *text) : NULL;
}

bool bh_owed_add(struct bh_owed *o, const struct bh_audit_event *e, uint64_t now_ms)
{
    if (!bh_owed_has_room(o)) {
        o->past++;
        return false;
    }
    struct bh_owed_row *r = bh_vec_push(&o->rows);
    *r = (struct bh_owed_row){.e = *e, .at_ms = now_ms};
    const char **const texts[] = {
        &r->e.sub,    &r->e.idp,         &r->e.authn,          &r->e.session, &r->e.tenant,
        &r->e.action, &r->e.object_type, &r->e.object_id,      &r->e.before,  &r->e.after,
        &r->e.reason, &r->e.request_id,  &r->e.policy_version, &r->e.src_addr};
    for (size_t i = 0; i < BH_COUNT_OF(texts); i++)
        copy(&r->arena, texts[i]);
    const char **rules = bh_arena_alloc(&r->arena, (e->n_rule_ids + 1) * sizeof(*rules));
    for (size_t i = 0; i < e->n_rule_ids; i++)
        rules[i] = bh_arena_str(&r->arena, e->rule_ids[i]);
    r->e.rule_ids = rules;
    return true;
}

bool bh_owed_any(const struct bh_owed *o)
{
    return o->rows.n || o->past;
}

bool bh_owed_has_room(const struct bh_owed *o)
{
    return o->rows.n < BH_OWED_MOST;
}

bool bh_owed_meets(const struct bh_owed *o, struct bh_idmap *met, uint64_t key)
{
    enum { RECORDED, COUNTED };
    const uint32_t was = bh_idmap_find(met, key);
    const bool room = bh_owed_has_room(o);
    if (was == RECORDED || (was == COUNTED && !room))
        return false;
    (void)bh_idmap_remove(met, key);
    return bh_idmap_add(met, key, room ? RECORDED : COUNTED);
}

bool bh_owed_is_to_say(struct bh_owed *o)
{
    const bool first = !o->said;
    o->said = true;
    o->unsaid += !first;
    return first;
}

uint64_t bh_owed_unsaid(struct bh_owed *o)
{
    const uint64_t n = o->unsaid;
    o->said = false;
    o->unsaid = 0;
    return n;
}

static int write_row(struct bh_owed_row *r, struct bh_audit *audit, uint64_t now_ms, struct bh_err *err)
{
    struct bh_arena arena = {0};
    struct bh_audit_event e = r->e;
    const uint64_t since_ms = now_ms > r->at_ms ? now_ms - r->at_ms : 0;
    if (since_ms >= BH_OWED_LATE_MS)
        e.reason =
            bh_arena_printf(&arena, "%s%s%" PRIu64 " ms before this record: the log could not be written",
                            e.reason ? e.reason : "", e.reason ? "; " : "", since_ms);
    const int rc = bh_audit_append(audit, &e, err);
    bh_arena_fini(&arena);
    r->written = rc == BH_OK;
    return rc;
}

static int write_past(struct bh_owed *o, struct bh_audit *audit, struct bh_err *err)
{
    struct bh_arena arena = {0};
    const struct bh_audit_event e = {
        .event = BH_AUDIT_AUDIT_SINK_FAIL,
        .outcome = BH_AUDIT_FAILURE,
        .sub = "service:bulkheadd",
        .reason = bh_arena_printf(&arena,
                                  "%" PRIu64
                                  " more sign-ins and refusals than could be kept while the log could not be "
                                  "written",
                                  o->past - o->past_written)};
    const int rc = bh_audit_append(audit, &e, err);
    bh_arena_fini(&arena);
    o->past_written = rc == BH_OK ? o->past : o->past_written;
    return rc;
}

int bh_owed_write(struct bh_owed *o, struct bh_audit *audit, uint64_t now_ms, struct bh_err *err)
{
    int rc = BH_OK;
    for (size_t i = 0; rc == BH_OK && i < o->rows.n; i++)
        if (!o->rows.at[i].written)
            rc = write_row(&o->rows.at[i], audit, now_ms, err);
    if (rc == BH_OK && o->past > o->past_written)
        rc = write_past(o, audit, err);
    return rc;
}

void bh_owed_settle(struct bh_owed *o, bool committed)
{
    size_t left = 0;
    for (size_t i = 0; i < o->rows.n; i++) {
        struct bh_owed_row *r = &o->rows.at[i];
        if (r->written && committed) {
            bh_arena_fini(&r->arena);
            continue;
        }
        r->written = false;
        o->rows.at[left++] = *r;
    }
    o->rows.n = left;
    o->past -= committed ? o->past_written : 0;
    o->past_written = 0;
}
