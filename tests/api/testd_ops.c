/* SPDX-License-Identifier: Apache-2.0 */
/* testd_ops.c - commands that change the test daemon's store as the node would, and touch nothing else. */
#include "testd.h"

#include "base/str.h"
#include "base/units.h"
#include "store/backup.h"
#include "store/state_token.h"

#include <stdio.h>
#include <string.h>

static int refuse_word(const char *reason, struct bh_err *err)
{
    /* Tests ask for a failure by name. */
    if (reason && bh_str_eq(reason, "please fail"))
        return bh_fail(err, BH_CONFLICT, "it was asked to fail");
    return 0;
}

/* Done now, or at the end of the turn. */
static int done(struct testd *t, int rc, uint64_t ticket, uint64_t id)
{
    if (rc < 0 || !t->is_later)
        return rc;
    *bh_vec_push(&t->later) = (struct testd_later){.ticket = ticket, .id = id};
    return BH_API_LATER;
}

/* A job of `a` waits for what `a` and `b` hold. */
static void fill_why(struct bh_api_why *ret)
{
    ret->tier = "room";
    ret->sentence = "too few GPUs are free";
    ret->need_milli = 1000;
    ret->until_ms = 0;
    *bh_vec_push(&ret->holders) = (struct bh_api_holder){1, 1000, 0, "a"};
    *bh_vec_push(&ret->holders) = (struct bh_api_holder){2, 1000, 5, "b"};
    *bh_vec_push(&ret->remedies) = (struct bh_api_remedy){"free", "J1 of a ends", "a", 1000, 0};
    *bh_vec_push(&ret->remedies) = (struct bh_api_remedy){"free", "J2 of b ends", "b", 1000, 0};
    *bh_vec_push(&ret->remedies) = (struct bh_api_remedy){"wait", "in an hour", NULL, 0, 3600000};
}

void testd_commit_later(struct testd *t)
{
    size_t kept = 0;
    for (size_t i = 0; i < t->later.n; i++) {
        const struct testd_later *l = &t->later.at[i];
        if (l->is_if && t->ponders) {
            t->later.at[kept++] = *l;
            continue;
        }
        if (!l->is_if) {
            bh_api_answer(t->api, l->ticket, 0, l->id, NULL);
            continue;
        }
        struct bh_api_why w = {.starts = l->starts};
        fill_why(&w);
        bh_api_answer_why(t->api, l->ticket, 0, &w, NULL);
        bh_vec_fini(&w.holders);
        bh_vec_fini(&w.remedies);
    }
    t->later.n = kept;
}

static int note_key(struct testd *t, const struct bh_api_caller *by, const struct bh_api_submit *what,
                    uint64_t *id, bool store, struct bh_err *err)
{
    BH_AUTO(bh_arena_fini) struct bh_arena arena = {0};
    struct bh_store_note note;
    char key[512], text[24];
    (void)snprintf(key, sizeof(key), "submit/%.100s/%.300s", by->principal, what->key);
    if (store) {
        (void)snprintf(text, sizeof(text), "%llu", (unsigned long long)*id);
        return bh_store_note_set_text(t->store, key, text, err);
    }
    const int rc = bh_store_note_get(t->store, &arena, key, &note, err);
    return rc < 0 ? rc : bh_uint_parse(note.value, INT64_MAX, id, err);
}

static int submit(void *self, const struct bh_api_caller *by, const struct bh_api_submit *what,
                  uint64_t ticket, uint64_t *ret_id, struct bh_err *err)
{
    struct testd *t = self;
    const char *argv[BH_API_ARGS_MAX + 1];
    if (what->dry_run)
        return 0;
    if (what->key && note_key(t, by, what, ret_id, false, NULL) == 0)
        return done(t, 0, ticket, *ret_id);
    memcpy(argv, what->argv.at, what->argv.n * sizeof(*argv));
    argv[what->argv.n] = NULL;
    const struct bh_store_job job = {.tenant = what->tenant,
                                     .user = by->user,
                                     .pool = what->pool ? what->pool : "shared",
                                     .name = what->name ? what->name : "",
                                     .uid = what->uid,
                                     .gid = what->gid,
                                     .gpus = what->gpus ? (uint32_t)what->gpus : 1,
                                     .milli = what->milli ? (uint32_t)what->milli : 1000,
                                     .memory_mib = (uint32_t)what->memory_mib,
                                     .profile = what->profile ? what->profile : "",
                                     .order = (int32_t)what->order,
                                     .duration_ms = what->duration_ms,
                                     .deadline_ms = what->deadline_ms,
                                     .cwd = what->cwd ? what->cwd : "/",
                                     .image = what->image ? what->image : "",
                                     .argv = argv,
                                     .submit_ms = t->view.now_ms,
                                     .why = "just came"};
    int rc = bh_store_job_add(t->store, &job, ret_id, err);
    if (rc == 0 && what->key)
        rc = note_key(t, by, what, ret_id, true, err);
    if (rc == 0)
        bh_api_changed(t->api, BH_API_KIND_JOB, *ret_id, what->tenant, "waiting");
    return done(t, rc, ticket, *ret_id);
}

static int cancel(void *self, const struct bh_api_caller *by, uint64_t job, const char *reason,
                  uint64_t ticket, struct bh_err *err)
{
    struct testd *t = self;
    int rc = refuse_word(reason, err);
    (void)by;
    if (rc == 0)
        rc = bh_store_job_end(t->store, job, BH_JOB_END_CANCELLED, 0, 0, t->view.now_ms, "cancelled", err);
    return done(t, rc, ticket, 0);
}

static int lease(void *self, const struct bh_api_caller *by, enum bh_api_lease_order order, uint64_t id,
                 const char *reason, uint64_t ticket, struct bh_err *err)
{
    struct testd *t = self;
    int rc = refuse_word(reason, err);
    (void)by;
    if (rc == 0 && order <= BH_API_LEASE_RESUME)
        rc = bh_store_lease_pause(t->store, id, order == BH_API_LEASE_PAUSE, err);
    return done(t, rc, ticket, 0);
}

static int gpu(void *self, const struct bh_api_caller *by, enum bh_api_gpu_order order, const char *uuid,
               const char *reason, uint64_t ticket, struct bh_err *err)
{
    struct testd *t = self;
    int rc = refuse_word(reason, err);
    if (rc == 0)
        rc = order == BH_API_GPU_UNCORDON ? bh_store_card_uncordon(t->store, uuid, err)
                                          : bh_store_card_cordon(t->store, uuid, t->view.now_ms,
                                                                 by->principal, reason ? reason : "", err);
    return done(t, rc, ticket, 0);
}

static int why(void *self, const struct bh_api_caller *by, uint64_t job, uint64_t ticket,
               struct bh_arena *arena, struct bh_api_why *ret, struct bh_err *err)
{
    (void)self;
    (void)by;
    (void)job;
    (void)ticket;
    (void)arena;
    (void)err;
    fill_why(ret);
    return 0;
}

/* One that waits has a sentence of its own; what the store says stays for the others. */
static const char *waits(void *self, uint64_t job)
{
    (void)self;
    return job == 3 ? "1 come before it" : NULL;
}

static int what_if(void *self, const struct bh_api_caller *by, const struct bh_api_whatif *what,
                   uint64_t ticket, struct bh_err *err)
{
    struct testd *t = self;
    (void)by;
    (void)err;
    *bh_vec_push(&t->later) =
        (struct testd_later){.ticket = ticket, .is_if = true, .starts = what->n_changes > 0};
    if (t->ponders) {
        puts("asked");
        (void)fflush(stdout);
    }
    return BH_API_LATER;
}

static int policy_diff(void *self, const char *text, size_t n, struct bh_arena *arena,
                       struct bh_api_diff *ret, struct bh_err *err)
{
    (void)self;
    (void)arena;
    if (n > 5 && memcmp(text, "wrong", 5) == 0)
        return bh_fail(err, BH_INVALID, "the policy cannot be read");
    ret->version = 1;
    *bh_vec_push(&ret->rows) = (struct bh_api_diff_row){"a", "quota.gpus", "2", "4", NULL};
    *bh_vec_push(&ret->findings) = "BH-001: something";
    return 0;
}

static int policy_apply(void *self, const struct bh_api_caller *by, const char *text, size_t n,
                        uint64_t version, const char *reason, uint64_t ticket, uint64_t *ret_version,
                        struct bh_err *err)
{
    struct testd *t = self;
    const struct bh_store_policy p = {
        .text = text, .n = n, .who = by->principal, .why = reason ? reason : "", .at_ms = t->view.now_ms};
    if (version && version != t->view.policy_version)
        return bh_fail(err, BH_CONFLICT, "version %llu is in force",
                       (unsigned long long)t->view.policy_version);
    const int rc = bh_store_policy_apply(t->store, &p, ret_version, err);
    if (rc == 0) {
        t->view.policy_version = *ret_version;
        bh_api_changed(t->api, BH_API_KIND_POLICY, *ret_version, NULL, NULL);
    }
    return done(t, rc, ticket, *ret_version);
}

static int token_add(void *self, const struct bh_api_caller *by, const struct bh_api_token_new *what,
                     uint64_t ticket, uint64_t *ret_id, struct bh_err *err)
{
    struct testd *t = self;
    struct bh_store_token token = {.subject = what->subject,
                                   .role = what->role,
                                   .tenant = what->tenant,
                                   .created_ms = t->view.now_ms,
                                   .expires_ms = what->expires_ms};
    (void)by;
    memcpy(token.sha256, what->sha256, sizeof(token.sha256));
    return done(t, bh_store_token_add(t->store, &token, ret_id, err), ticket, *ret_id);
}

static int token_revoke(void *self, const struct bh_api_caller *by, uint64_t token, uint64_t ticket,
                        struct bh_err *err)
{
    struct testd *t = self;
    (void)by;
    return done(t, bh_store_token_revoke(t->store, token, t->view.now_ms, err), ticket, 0);
}

static int rotate(void *self, const struct bh_api_caller *by, const char *reason, uint64_t ticket,
                  uint32_t *ret_key, struct bh_err *err)
{
    struct testd *t = self;
    const struct bh_audit_event who = {.sub = by->principal, .reason = reason};
    (void)ticket;
    int rc = refuse_word(reason, err);
    if (rc == 0)
        rc = bh_audit_rotate(t->audit, &who, err);
    *ret_key = bh_audit_current_key(t->audit)->id;
    return rc;
}

static int checkpoint(void *self, const struct bh_api_caller *by, uint64_t ticket, uint64_t *ret_size,
                      struct bh_err *err)
{
    struct testd *t = self;
    (void)by;
    *ret_size = 1;
    return done(t, bh_audit_checkpoint(t->audit, err), ticket, *ret_size);
}

static int backup(void *self, const struct bh_api_caller *by, const char *name, uint64_t ticket,
                  struct bh_err *err)
{
    struct testd *t = self;
    char path[512];
    (void)by;
    (void)snprintf(path, sizeof(path), "%s/backups/%s", t->folder, name);
    return done(t, bh_store_backup(t->store, path, err), ticket, 0);
}

static void auth_failed(void *self, const char *from, bool locked_out, const char *reason)
{
    struct testd *t = self;
    const struct bh_audit_event e = {.event = locked_out ? BH_AUDIT_AUTH_LOCKOUT : BH_AUDIT_AUTH_FAILURE,
                                     .outcome = BH_AUDIT_DENIED,
                                     .src_addr = from,
                                     .reason = reason};
    struct bh_err err;
    if (bh_store_begin(t->store, &err) < 0 || bh_audit_append(t->audit, &e, &err) < 0 ||
        bh_store_commit(t->store, &err) < 0)
        die("audit", &err);
}

void testd_end_job(struct testd *t, uint64_t job)
{
    struct bh_err err;
    if (bh_store_job_end(t->store, job, BH_JOB_END_EXITED, 3, 0, t->view.now_ms, "ended", &err) < 0)
        die("end", &err);
    bh_api_changed(t->api, BH_API_KIND_JOB, job, "a", "ended");
}

/* One of each scope. */
static void metrics(void *self, struct bh_metrics *ret)
{
    static const char *const tenants[] = {"a", "b"};
    (void)self;
    bh_metrics_add(ret, BH_METRIC_BUILD, NULL, 1, BH_LABELS("0", NULL, "testd", "true"));
    bh_metrics_add(ret, BH_METRIC_SHARING, NULL, 1, BH_NO_LABELS);
    for (int i = 0; i < 2; i++) {
        bh_metrics_add(ret, BH_METRIC_T_LEASES, tenants[i], i + 1, BH_LABELS(tenants[i]));
        bh_metrics_add(ret, BH_METRIC_L_MEMORY_LIMIT, tenants[i], 7, BH_LABELS(i ? "L2" : "L1", tenants[i]));
    }
}

void testd_ops_init(struct testd *t)
{
    t->ops = (struct bh_api_ops){.self = t,
                                 .submit = submit,
                                 .cancel = cancel,
                                 .lease = lease,
                                 .gpu = gpu,
                                 .why = why,
                                 .waits = waits,
                                 .what_if = what_if,
                                 .policy_diff = policy_diff,
                                 .policy_apply = policy_apply,
                                 .token_add = token_add,
                                 .token_revoke = token_revoke,
                                 .checkpoint = checkpoint,
                                 .rotate = rotate,
                                 .backup = backup,
                                 .metrics = metrics,
                                 .auth_failed = auth_failed};
}
