/* SPDX-License-Identifier: Apache-2.0 */
/* note.c - records that stand for themselves. */
#include "node/note.h"

#include "base/str.h"
#include "conf/input.h"
#include "node/ops.h"
#include "node/promise.h"
#include "node/watch/canary.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char node_itself[] = "service:bulkheadd";
#define OF_UNIX (UINT64_C(1) << 63) /* a number of a user, not of a token */

void bh_note_not_yet(struct bh_daemon *d, const char *what, const struct bh_err *why)
{
    if (bh_owed_is_to_say(&d->owed))
        bh_daemon_say(d, "%s is not recorded yet: %s", what, why->msg);
}

void bh_note_node(struct bh_daemon *d, bool starts)
{
    char words[240], boot[64];
    struct bh_err err;
    bh_canary_boot(boot);
    (void)snprintf(words, sizeof(words), "driver %.60s, %zu GPUs%s, boot %.40s",
                   d->view.driver ? d->view.driver : "unknown", d->view.n_gpus,
                   d->view.simulated ? " (simulated)" : "", boot);
    const struct bh_audit_event e = {.event = starts ? BH_AUDIT_NODE_START : BH_AUDIT_NODE_STOP,
                                     .sub = node_itself,
                                     .object_type = "node",
                                     .object_id = d->node,
                                     .after = BH_VERSION,
                                     .reason = words};
    if (bh_ops_owe(d, &e, true, &err) < 0)
        bh_note_not_yet(d, starts ? "the start" : "the stop", &err);
}

int bh_note_mig(struct bh_daemon *d, enum bh_audit_kind event, const char *gpu, const char *key,
                const char *why, struct bh_err *err)
{
    const struct bh_audit_event e = {.event = event,
                                     .sub = node_itself,
                                     .object_type = "gpu",
                                     .object_id = gpu,
                                     .before = event == BH_AUDIT_MIG_DESTROY ? key : NULL,
                                     .after = event == BH_AUDIT_MIG_DESTROY ? NULL : key,
                                     .reason = why};
    return bh_audit_append(d->audit, &e, err);
}

int bh_note_mps(struct bh_daemon *d, enum bh_audit_kind event, uint64_t number, const char *gpus,
                struct bh_err *err)
{
    char id[24];
    (void)snprintf(id, sizeof(id), "M%llu", (unsigned long long)number);
    const struct bh_audit_event e = {
        .event = event, .sub = node_itself, .object_type = "mps", .object_id = id, .reason = gpus};
    return bh_audit_append(d->audit, &e, err);
}

int bh_note_job(struct bh_daemon *d, enum bh_audit_kind event, uint64_t job, const char *tenant,
                const char *after, const char *why, struct bh_err *err)
{
    char id[24];
    (void)snprintf(id, sizeof(id), "J%llu", (unsigned long long)job);
    const struct bh_audit_event e = {.event = event,
                                     .sub = node_itself,
                                     .tenant = tenant,
                                     .object_type = "job",
                                     .object_id = id,
                                     .after = after,
                                     .reason = why};
    return bh_audit_append(d->audit, &e, err);
}

/* ---- policies ---- */

struct appending {
    struct bh_daemon *d;
    const char *who;
};

static int append(void *arg, const struct bh_audit_event *e, struct bh_err *err)
{
    const struct appending *to = arg;
    struct bh_audit_event mine = *e;
    mine.sub = to->who;
    return bh_audit_append(to->d->audit, &mine, err);
}

static void load(struct bh_daemon *d, struct bh_policy *ret, const char *text, size_t n)
{
    struct bh_diags diags = {
        0}; /* of the one before: it may not fit this machine any more, and says the same */
    bh_policy_load_text(ret, text, n, bh_silicon_fleet(&d->silicon), &diags);
    bh_diags_fini(&diags);
}

int bh_note_policy(struct bh_daemon *d, const char *who, const struct bh_store_policy *before,
                   const char *text, size_t n, struct bh_err *err)
{
    struct appending to = {d, who};
    struct bh_policy old, new;
    load(d, &new, text, n);
    if (before)
        load(d, &old, before->text, before->n);
    const int rc = bh_promise_changes(before ? &old : NULL, &new, append, &to, err);
    if (before)
        bh_policy_fini(&old);
    bh_policy_fini(&new);
    return rc;
}

/* ---- people ---- */

struct bh_audit_event bh_note_by(const struct bh_api_caller *by, enum bh_audit_kind kind)
{
    return (struct bh_audit_event){.event = kind,
                                   .sub = by->principal,
                                   .idp = by->token ? "token" : "unix",
                                   .authn = by->token ? "bearer" : "peercred",
                                   .has_uid = by->uid != BH_API_NO_UID,
                                   .uid = by->uid,
                                   .src_addr = by->from};
}

void bh_note_came_in(void *self, const struct bh_api_caller *by)
{
    struct bh_daemon *d = self;
    struct bh_err err;
    char id[24];
    const uint64_t key = by->token ? by->token : OF_UNIX | by->uid;
    if ((!by->token && by->uid == BH_API_NO_UID) || !bh_owed_meets(&d->owed, &d->came_in, key))
        return;
    struct bh_audit_event e = bh_note_by(by, BH_AUDIT_AUTH_SUCCESS);
    (void)snprintf(id, sizeof(id), "T%llu", (unsigned long long)by->token);
    e.object_type = by->token ? "token" : NULL;
    e.object_id = by->token ? id : NULL;
    /* At once: an answer goes out before the end of this turn. */
    if (bh_ops_owe(d, &e, true, &err) < 0)
        bh_note_not_yet(d, "a sign-in", &err);
}

void bh_note_auth_failed(void *self, const char *from, bool locked_out, const char *why)
{
    struct bh_daemon *d = self;
    struct bh_err err;
    const struct bh_audit_event e = {.event = locked_out ? BH_AUDIT_AUTH_LOCKOUT : BH_AUDIT_AUTH_FAILURE,
                                     .outcome = BH_AUDIT_DENIED,
                                     .src_addr = from,
                                     .reason = why};
    if (bh_ops_owe(d, &e, false, &err) < 0)
        bh_note_not_yet(d, "a failed sign-in", &err);
}

bool bh_note_is_anothers(struct bh_daemon *d, const struct bh_api_caller *by, uint64_t job)
{
    struct bh_arena arena = {0};
    struct bh_store_job row;
    struct bh_err err;
    const bool is =
        bh_store_job_get(d->store, &arena, job, &row, &err) == BH_OK && !bh_str_eq(row.user, by->user);
    bh_arena_fini(&arena);
    return is;
}
