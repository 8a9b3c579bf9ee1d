/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ops.c - commands: judged, written, committed together at the end of the turn, answered then.
 *
 * Several commands of one turn share one commit, so a burst of them costs one sync. Each is a transaction of its own inside
 * that one: one that fails leaves no trace. The scheduler hears of a job when it is durable, not before.
 */
#include "node/ops.h"

#include "base/str.h"
#include "node/bill.h"
#include "node/decide.h"
#include "node/life.h"
#include "node/mech/clear.h"
#include "node/mech/mech.h"
#include "node/note.h"
#include "node/rule.h"
#include "store/backup.h"
#include "store/state_token.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { MIB_SHIFT = 20 };

/* ---- one commit for a turn ---- */

static int begin(struct bh_daemon *d, struct bh_err *err)
{
    if (!bh_store_in_transaction(d->store)) {
        const int rc = bh_store_begin(d->store, err); /* the turn's own, until bh_ops_commit */
        if (rc < 0)
            return rc;
    }
    bh_daemon_due(d);
    const int rc = bh_owed_write(&d->owed, d->audit, bh_daemon_now(d), err);
    return rc == BH_OK ? bh_store_begin(d->store, err) : rc;
}

/* rc of what was done inside: kept for the turn's commit, or undone at once. */
static int keep(struct bh_daemon *d, int rc, struct bh_err *err)
{
    if (rc == BH_OK)
        return bh_store_commit(d->store, err);
    bh_store_rollback(d->store);
    return rc;
}

static int later(struct bh_daemon *d, uint64_t ticket, uint64_t id)
{
    *bh_vec_push(&d->pending) = (struct bh_pending){.ticket = ticket, .id = id};
    return BH_API_LATER;
}

static void say_pending(struct bh_daemon *d, struct bh_pending *p, int rc, struct bh_err *err)
{
    if (p->run && rc == BH_OK) {
        struct bh_life *run = p->run;
        bh_life_add(d, run);
        rc = d->sched ? bh_decide_submit(d, run, &p->job, err) : BH_OK;
        if (rc < 0) /* it is durable; a new scheduler takes it up */
            bh_decide_later(d, err);
        rc = BH_OK;
        bh_api_changed(d->api, BH_API_KIND_JOB, run->job, run->tenant, "waiting");
    } else {
        free(p->run);
    }
    bh_api_answer(d->api, p->ticket, rc, p->id, err);
}

int bh_ops_commit(struct bh_daemon *d, struct bh_err *err)
{
    struct bh_err why = {0};
    const int rc = bh_store_in_transaction(d->store) ? bh_store_commit(d->store, &why) : BH_OK;
    const size_t n = d->pending.n;
    bh_owed_settle(&d->owed, rc == BH_OK);
    const uint64_t unsaid = rc == BH_OK && !bh_owed_any(&d->owed) ? bh_owed_unsaid(&d->owed) : 0;
    if (unsaid)
        bh_daemon_say(d, "the log takes records again: %llu more had to wait", (unsigned long long)unsaid);
    for (size_t i = 0; i < n; i++)
        say_pending(d, &d->pending.at[i], rc, &why);
    d->pending.n = 0;
    if (rc < 0) {
        bh_decide_later(d, &why);
        *err = why;
    }
    return rc;
}

int bh_ops_owe(struct bh_daemon *d, const struct bh_audit_event *e, bool at_once, struct bh_err *err)
{
    const bool kept = !e || bh_owed_add(&d->owed, e, bh_daemon_now(d));
    int rc = begin(d, err);
    if (rc == BH_OK)
        rc = keep(d, rc, err);
    if (at_once && bh_store_in_transaction(d->store))
        rc = bh_ops_commit(d, err);
    if (rc < 0 && !kept)
        bh_daemon_say(d,
                      "the log takes nothing for too long: what happens is counted, and no more than that");
    return rc;
}

struct id_text {
    char s[24];
};

static const char *id_text(char letter, uint64_t id, struct id_text *ret)
{
    (void)snprintf(ret->s, sizeof(ret->s), "%c%llu", letter, (unsigned long long)id);
    return ret->s;
}

/* ---- submit ---- */

static struct bh_admit_ask ask_of(const struct bh_api_submit *what)
{
    const int tier = what->tier ? bh_words_find(&bh_words_tier, what->tier) : -1;
    const int priority = what->priority ? bh_words_find(&bh_words_priority, what->priority) : -1;
    return (struct bh_admit_ask){.name = what->name,
                                 .tenant = what->tenant,
                                 .pool = what->pool,
                                 .user = what->uid,
                                 .gpus = (uint32_t)what->gpus,
                                 .share_milli = what->milli >= BH_GPU_MILLI ? 0 : (uint32_t)what->milli,
                                 .memory_bytes = what->memory_mib << MIB_SHIFT,
                                 .profile = what->profile,
                                 .has_tier = tier >= 0,
                                 .tier = (uint8_t)(tier >= 0 ? tier : 0),
                                 .has_priority = priority >= 0,
                                 .priority = (uint8_t)(priority >= 0 ? priority : 0),
                                 /* Pausing and suspending for others is not offered to the scheduler yet. */
                                 .can = what->firm          ? 0
                                        : what->can_requeue ? BH_CAN_REQUEUE
                                                            : 0,
                                 .duration_ms = what->duration_ms,
                                 .deadline_ms = what->deadline_ms,
                                 .gang = what->gpus > 1,
                                 .image = what->image};
}

static int refuse(struct bh_daemon *d, const struct bh_api_caller *by, const struct bh_api_submit *what,
                  const struct bh_admit_refusal *why, struct bh_err *err)
{
    const char *rules[] = {why->rule ? why->rule->id : NULL};
    struct bh_audit_event e = bh_note_by(by, BH_AUDIT_ALLOC_DENY);
    struct bh_err lost;
    e.outcome = BH_AUDIT_DENIED;
    e.tenant = what->tenant;
    e.reason = why->what;
    e.rule_ids = rules;
    e.n_rule_ids = why->rule ? 1 : 0;
    if (!what->dry_run && bh_ops_owe(d, &e, false, &lost) < 0)
        bh_note_not_yet(d, "a refusal", &lost);
    return bh_fail(err, BH_REFUSED, "%s%s%s%s%s%s", why->rule ? why->rule->id : "", why->rule ? ": " : "",
                   why->what, *why->next ? " " : "", why->next, "");
}

static int write_job(struct bh_daemon *d, const struct bh_api_caller *by, const struct bh_api_submit *what,
                     const struct bh_admit_grant *grant, struct bh_life *run, struct bh_err *err)
{
    const struct bh_pool *pool = &d->book.policy->pools.at[grant->pool];
    const struct bh_tenant *tenant = &d->book.policy->tenants.at[grant->tenant];
    struct bh_arena arena = {0};
    struct id_text id;
    const uint64_t now = bh_daemon_now(d);
    const struct bh_store_job job = {
        .tenant = what->tenant,
        .user = by->user,
        .pool = pool->name,
        .name = what->name ? what->name : "",
        .uid = what->uid,
        .gid = what->gid,
        .gpus = what->gpus ? (uint32_t)what->gpus : 1,
        .milli = what->milli && what->milli < BH_GPU_MILLI ? (uint32_t)what->milli : BH_GPU_MILLI,
        .memory_mib = (uint32_t)what->memory_mib,
        .profile = what->profile ? what->profile : "",
        .tier = grant->tier,
        .priority = grant->job.band,
        .can = grant->job.can,
        .firm = what->firm,
        .order = (int32_t)what->order,
        .duration_ms = what->duration_ms,
        .deadline_ms = what->deadline_ms,
        .cwd = what->cwd ? what->cwd : "",
        .image = what->image ? what->image : "",
        .argv = what->argv.at,
        .env = what->env.n ? what->env.at : NULL,
        .submit_ms = now};
    int rc = bh_store_job_add(d->store, &job, &run->job, err);
    const struct bh_store_lease lease = {.job = run->job,
                                         .tenant = what->tenant,
                                         .user = by->user,
                                         .pool = pool->name,
                                         .domain = tenant->domain,
                                         .mechanism = grant->mechanism,
                                         .stack = bh_mech_stack(grant, &arena),
                                         .tier = grant->tier,
                                         .uid = what->uid,
                                         .gid = what->gid,
                                         .detail = ""};
    if (rc == BH_OK)
        rc = bh_store_lease_add(d->store, &lease, now, &run->lease, err);
    if (rc == BH_OK)
        rc = bh_store_lease_step(d->store, run->lease, BH_LEASE_REQUESTED, BH_LEASE_BY_ADMIT, now, "",
                                 &run->state, err);
    struct bh_audit_event e = bh_note_by(by, BH_AUDIT_JOB_SUBMIT);
    e.tenant = what->tenant;
    e.object_type = "job";
    e.object_id = id_text('J', run->job, &id);
    bh_arena_fini(&arena);
    return rc == BH_OK ? bh_audit_append(d->audit, &e, err) : rc;
}

/* The job of the first time, where the same caller used the key before. */
static int find_key(struct bh_daemon *d, const char *note, uint64_t *ret_id, struct bh_err *err)
{
    struct bh_arena arena = {0};
    struct bh_store_note found;
    const int rc = bh_store_note_get(d->store, &arena, note, &found, err);
    if (rc == BH_OK && found.n == sizeof(*ret_id))
        memcpy(ret_id, found.value, sizeof(*ret_id));
    bh_arena_fini(&arena);
    return rc;
}

static uint64_t bytes_of(const struct bh_api_texts *texts)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < texts->n; i++)
        sum += strlen(texts->at[i]) + 1;
    return sum;
}

/* Before it is judged: who has too much waiting is not to fill the log with refusals either. */
static int has_room(struct bh_daemon *d, const struct bh_api_caller *by, const struct bh_api_submit *what,
                    struct bh_err *err)
{
    struct bh_store_load now;
    const int rc = bh_store_load_get(d->store, what->tenant, by->user, &now, err);
    return rc < 0 ? rc
                  : bh_room_check(&d->room, &now, bytes_of(&what->argv) + bytes_of(&what->env),
                                  bh_api_may(by, UINT32_C(1) << BH_ROLE_OPERATOR, NULL), err);
}

static int op_submit(void *self, const struct bh_api_caller *by, const struct bh_api_submit *what,
                     uint64_t ticket, uint64_t *ret_id, struct bh_err *err)
{
    struct bh_daemon *d = self;
    struct bh_arena arena = {0};
    struct bh_admit_grant grant;
    struct bh_admit_refusal why;
    struct bh_pending p = {.ticket = ticket};
    struct bh_terms terms;
    if (!d->book.admit)
        return bh_fail(err, BH_REFUSED, "no policy is in force: bulkhead policy apply FILE");
    if (what->uid == BH_API_NO_UID)
        return bh_fail(err, BH_REFUSED, "%s has no account on this machine, so nothing can run as them",
                       by->principal);
    const char *note = what->key ? bh_arena_printf(&arena, "key/%s/%s", by->principal, what->key) : NULL;
    int rc = note ? find_key(d, note, ret_id, err) : BH_NOT_FOUND;
    if (rc != BH_NOT_FOUND) {
        bh_arena_fini(&arena);
        /* It may have been asked for in this very turn. */
        return rc == BH_OK && bh_store_in_transaction(d->store) ? later(d, ticket, *ret_id) : rc;
    }
    if ((rc = has_room(d, by, what, err)) < 0) {
        bh_arena_fini(&arena);
        return rc;
    }
    const struct bh_admit_ask ask = ask_of(what);
    if (!bh_rule_judge(&d->book, &ask, &p.job, &terms, &grant, &why)) {
        bh_arena_fini(&arena);
        return refuse(d, by, what, &why, err);
    }
    if (bh_str_eq(what->image, BH_TIER_EXTERNAL_IMAGE) &&
        (grant.tier != BH_TIER_CONTAINER || !(terms.cap_bytes || terms.weight))) {
        bh_arena_fini(&arena);
        return bh_fail(
            err, BH_REFUSED,
            "a lease for another container engine (image: cdi) is of tier container, and of a pool that the "
            "gate holds: a card of its own has no profile that an engine could be given");
    }
    if (what->dry_run) {
        bh_arena_fini(&arena);
        *ret_id = 0;
        return BH_OK;
    }
    p.run = bh_alloc(1, sizeof(*p.run));
    p.run->terms = terms;
    (void)snprintf(p.run->tenant, sizeof(p.run->tenant), "%s", what->tenant);
    rc = begin(d, err);
    if (rc == BH_OK) {
        rc = write_job(d, by, what, &grant, p.run, err);
        if (rc == BH_OK && note)
            rc = bh_store_note_set(d->store, note, &p.run->job, sizeof(p.run->job), err);
        rc = keep(d, rc, err);
    }
    bh_arena_fini(&arena);
    if (rc < 0) {
        free(p.run);
        return rc;
    }
    p.id = *ret_id = p.job.id = p.run->job;
    p.job.submit_ms = d->last_ms;
    *bh_vec_push(&d->pending) = p;
    return BH_API_LATER;
}

/* ---- ending things ---- */

static int record(struct bh_daemon *d, struct bh_audit_event *e, struct bh_err *err)
{
    const int rc = begin(d, err);
    return rc < 0 ? rc : keep(d, bh_audit_append(d->audit, e, err), err);
}

/* What the lease has left to do, it does; its job does not come back. */
static int write_cancel(struct bh_daemon *d, struct bh_life *run, const char *why, struct bh_err *err)
{
    enum bh_lease_state to;
    if (bh_life_waits(run))
        return bh_clear_write_refuse(d, run, BH_LEASE_BY_CANCEL, BH_JOB_END_CANCELLED, why, err);
    if (bh_lease_next(run->state, BH_LEASE_BY_CANCEL, &to))
        return bh_life_write_leave(d, run, BH_AFTER_CANCELLED, BH_LEASE_BY_CANCEL, BH_AUDIT_EVENTS, why, err);
    return run->after == BH_AFTER_WAITS ? bh_life_write_after(d, run, BH_AFTER_CANCELLED, err) : BH_OK;
}

/* Whoever may do that to others' work is seen to have done it. e: what was done, and to what. */
static int append_override(struct bh_daemon *d, const struct bh_api_caller *by, uint64_t job,
                           const struct bh_audit_event *e, struct bh_err *err)
{
    struct bh_audit_event o = *e;
    o.event = BH_AUDIT_OVERRIDE_WORK;
    o.after = bh_audit_names[e->event];
    return bh_note_is_anothers(d, by, job) ? bh_audit_append(d->audit, &o, err) : BH_OK;
}

static int end_run(struct bh_daemon *d, const struct bh_api_caller *by, struct bh_life *run,
                   const char *reason, struct bh_err *err)
{
    struct id_text id;
    const bool waits = bh_life_waits(run);
    struct bh_audit_event e = bh_note_by(by, BH_AUDIT_JOB_CANCEL);
    e.tenant = run->tenant;
    e.object_type = "job";
    e.object_id = id_text('J', run->job, &id);
    e.reason = reason;
    int rc = begin(d, err);
    if (rc < 0)
        return rc;
    rc = bh_audit_append(d->audit, &e, err);
    if (rc == BH_OK)
        rc = append_override(d, by, run->job, &e, err);
    if (rc == BH_OK)
        rc = write_cancel(d, run, reason ? reason : "cancelled", err);
    rc = keep(d, rc, err);
    if (rc < 0) {
        bh_decide_later(d, err); /* what it is believed to be may not be so */
        return rc;
    }
    rc = bh_ops_commit(d, err);
    if (rc < 0)
        return rc;
    if (waits)
        bh_clear_refused(d, run);
    else if (run->worker.pid <= 0)
        bh_life_go_on(d, run);
    return BH_OK;
}

static int op_cancel(void *self, const struct bh_api_caller *by, uint64_t job, const char *reason,
                     uint64_t ticket, struct bh_err *err)
{
    struct bh_daemon *d = self;
    struct bh_life *run = bh_life_of_job(d, job);
    (void)ticket;
    if (!run || run->after == BH_AFTER_SETTLED)
        return bh_fail(err, BH_CONFLICT, "J%llu has ended already", (unsigned long long)job);
    return end_run(d, by, run, reason, err);
}

/* Whether it can be ordered, and what that is. Nobody is asked: the governor may take its time, and all others would wait. */
static int what_of(struct bh_daemon *d, enum bh_api_lease_order order, const struct bh_life *run,
                   enum bh_sleep_what *ret, struct bh_err *err)
{
    *ret = order == BH_API_LEASE_PAUSE    ? BH_SLEEP_PAUSE
           : order == BH_API_LEASE_RESUME ? BH_SLEEP_RESUME
                                          : BH_SLEEP_SUSPEND;
    const int rc = bh_sleep_check(d, run, *ret, err);
    return rc == BH_OK && order == BH_API_LEASE_RESUME ? bh_sleep_what_resumes(d, run, ret, err) : rc;
}

/* Written, and durable, before the governor hears of it. */
static int write_order(struct bh_daemon *d, const struct bh_api_caller *by, const struct bh_life *run,
                       enum bh_sleep_what what, const struct bh_audit_event *e, struct bh_err *err)
{
    int rc = begin(d, err);
    if (rc < 0)
        return rc;
    rc = bh_audit_append(d->audit, e, err);
    if (rc == BH_OK)
        rc = append_override(d, by, run->job, e, err);
    if (rc == BH_OK)
        rc = bh_sleep_write(d, run, what, err);
    rc = keep(d, rc, err);
    return rc == BH_OK ? bh_ops_commit(d, err) : rc;
}

static int op_lease(void *self, const struct bh_api_caller *by, enum bh_api_lease_order order, uint64_t lease,
                    const char *reason, uint64_t ticket, struct bh_err *err)
{
    static const enum bh_audit_kind events[] = {[BH_API_LEASE_PAUSE] = BH_AUDIT_JOB_PAUSE,
                                                [BH_API_LEASE_RESUME] = BH_AUDIT_JOB_RESUME,
                                                [BH_API_LEASE_SUSPEND] = BH_AUDIT_JOB_SUSPEND,
                                                [BH_API_LEASE_END] = BH_AUDIT_JOB_CANCEL};
    struct bh_daemon *d = self;
    struct bh_life *run = bh_life_of_lease(d, lease);
    struct id_text id;
    if (!run || run->after == BH_AFTER_NOTHING || run->after == BH_AFTER_SETTLED)
        return bh_fail(err, BH_CONFLICT, "L%llu is over", (unsigned long long)lease);
    if (order == BH_API_LEASE_END)
        return end_run(d, by, run, reason, err);
    if (run->state != BH_LEASE_ACTIVE)
        return bh_fail(err, BH_CONFLICT, "L%llu does not run: it is %s", (unsigned long long)lease,
                       bh_lease_state_str(run->state));
    enum bh_sleep_what what;
    int rc = what_of(d, order, run, &what, err);
    if (rc < 0)
        return rc;
    struct bh_audit_event e = bh_note_by(by, events[order]);
    e.tenant = run->tenant;
    e.object_type = "lease";
    e.object_id = id_text('L', lease, &id);
    e.reason = reason;
    rc = write_order(d, by, run, what, &e, err);
    return rc == BH_OK ? bh_sleep_order(d, run, what, ticket, err) : rc;
}

/* ---- cards ---- */

static bool is_on(struct bh_daemon *d, const struct bh_life *run, const char *uuid)
{
    struct bh_arena arena = {0};
    bh_store_grants grants = {0};
    struct bh_err err;
    bool here = false;
    if (bh_store_lease_grants(d->store, &arena, run->lease, &grants, &err) < 0)
        bh_decide_later(d, &err);
    for (size_t k = 0; k < grants.n; k++)
        here = here || bh_str_eq(grants.at[k].slice.gpu, uuid);
    bh_vec_fini(&grants);
    bh_arena_fini(&arena);
    return here;
}

static void drain(struct bh_daemon *d, const char *uuid)
{
    for (size_t i = d->runs.n; i-- > 0;) {
        struct bh_life *run = d->runs.at[i];
        if ((run->state == BH_LEASE_ACTIVE || run->state == BH_LEASE_PREPARING) && is_on(d, run, uuid))
            bh_life_evict(d, run, bh_life_may_return(d, run) ? BH_AFTER_WAITS : BH_AFTER_ENDS,
                          "its GPU is being drained");
    }
}

/* Whoever asks next sees it, and whoever listens hears of it. */
static void show_card(struct bh_daemon *d, const char *uuid)
{
    bh_daemon_show(d);
    for (size_t i = 0; i < d->view.n_gpus; i++)
        if (bh_str_eq(d->view.gpus[i].uuid, uuid))
            bh_api_changed(d->api, BH_API_KIND_GPU, d->view.gpus[i].index, NULL, d->view.gpus[i].state);
}

static int op_gpu(void *self, const struct bh_api_caller *by, enum bh_api_gpu_order order, const char *uuid,
                  const char *reason, uint64_t ticket, struct bh_err *err)
{
    static const enum bh_audit_kind events[] = {[BH_API_GPU_CORDON] = BH_AUDIT_GPU_CORDON,
                                                [BH_API_GPU_UNCORDON] = BH_AUDIT_GPU_UNCORDON,
                                                [BH_API_GPU_DRAIN] = BH_AUDIT_GPU_DRAIN};
    struct bh_daemon *d = self;
    struct bh_audit_event e = bh_note_by(by, events[order]);
    (void)ticket;
    e.object_type = "gpu";
    e.object_id = uuid;
    e.reason = reason;
    int rc = begin(d, err);
    if (rc < 0)
        return rc;
    uint32_t again = 0;
    rc = order == BH_API_GPU_UNCORDON ? bh_health_write_well(d, uuid, err) : BH_OK;
    if (rc == BH_OK)
        rc = order == BH_API_GPU_UNCORDON ? bh_store_card_uncordon(d->store, uuid, err)
                                          : bh_store_card_cordon(d->store, uuid, bh_daemon_now(d),
                                                                 by->principal, reason ? reason : "", err);
    if (rc == BH_OK && order == BH_API_GPU_UNCORDON)
        rc = bh_clear_write_retry(d, uuid, &again, err);
    if (rc == BH_OK)
        rc = bh_audit_append(d->audit, &e, err);
    e.event = BH_AUDIT_OVERRIDE_QUARANTINE;
    if (rc == BH_OK && again)
        rc = bh_audit_append(d->audit, &e, err);
    rc = keep(d, rc, err);
    if (rc < 0 && again)
        bh_decide_later(d, err);
    if (rc == BH_OK)
        rc = bh_ops_commit(d, err);
    if (rc < 0)
        return rc;
    bh_decide_health(d, uuid);
    bh_checks_stale(d);
    if (order == BH_API_GPU_DRAIN)
        drain(d, uuid);
    show_card(d, uuid);
    return d->broken_until_ms ? bh_fail(err, BH_SYSTEM, "not all of it could be written down; try again")
                              : BH_OK;
}

/* ---- the policy ---- */

static int op_policy_diff(void *self, const char *text, size_t n, struct bh_arena *arena,
                          struct bh_api_diff *ret, struct bh_err *err)
{
    struct bh_daemon *d = self;
    struct bh_rule_book book;
    int rc = bh_rule_read(d, text, n, arena, &book, ret, err);
    if (rc == BH_REFUSED && ret->errors) {
        ret->version = d->book.version;
        return BH_OK; /* the findings are the answer */
    }
    if (rc < 0)
        return rc;
    rc = bh_rule_diff(d, &book, arena, ret, err);
    bh_rule_fini(&book);
    return rc;
}

static void note_refused_policy(struct bh_daemon *d, const struct bh_api_caller *by, const char *why)
{
    struct bh_audit_event e = bh_note_by(by, BH_AUDIT_POLICY_LINT_FAIL);
    struct bh_err err;
    e.outcome = BH_AUDIT_DENIED;
    e.object_type = "policy";
    e.reason = why;
    if (bh_ops_owe(d, &e, false, &err) < 0)
        bh_note_not_yet(d, "a refusal", &err);
}

static int op_policy_apply(void *self, const struct bh_api_caller *by, const char *text, size_t n,
                           uint64_t version, const char *reason, uint64_t ticket, uint64_t *ret_version,
                           struct bh_err *err)
{
    struct bh_daemon *d = self;
    struct bh_arena arena = {0};
    struct bh_rule_book book;
    struct bh_api_diff findings = {0};
    (void)ticket;
    if (version && version != d->book.version)
        return bh_fail(err, BH_CONFLICT,
                       "version %llu is in force, not %llu: look again at what would change",
                       (unsigned long long)d->book.version, (unsigned long long)version);
    int rc = bh_rule_read(d, text, n, &arena, &book, &findings, err);
    bh_vec_fini(&findings.findings);
    bh_vec_fini(&findings.rows);
    bh_arena_fini(&arena);
    if (rc == BH_REFUSED)
        note_refused_policy(d, by, err->msg);
    if (rc < 0)
        return rc;
    bh_rule_fini(&book);
    rc = begin(d, err);
    if (rc == BH_OK)
        rc = keep(d, bh_rule_store(d, by->principal, reason, text, n, ret_version, err), err);
    if (rc == BH_OK)
        rc = bh_ops_commit(d, err);
    return rc == BH_OK ? bh_daemon_take_policy(d, err) : rc;
}

/* ---- tokens, the log, backups ---- */

static int op_token_add(void *self, const struct bh_api_caller *by, const struct bh_api_token_new *what,
                        uint64_t ticket, uint64_t *ret_id, struct bh_err *err)
{
    struct bh_daemon *d = self;
    struct bh_store_token token = {.subject = what->subject,
                                   .role = what->role,
                                   .tenant = what->tenant,
                                   .created_ms = d->view.wall_ms,
                                   .expires_ms = what->expires_ms};
    struct bh_audit_event e = bh_note_by(by, BH_AUDIT_TOKEN_CREATE);
    memcpy(token.sha256, what->sha256, sizeof(token.sha256));
    e.object_type = "token";
    e.object_id = what->subject;
    e.after = what->role;
    int rc = begin(d, err);
    if (rc < 0)
        return rc;
    rc = bh_store_token_add(d->store, &token, ret_id, err);
    if (rc == BH_OK)
        rc = bh_audit_append(d->audit, &e, err);
    rc = keep(d, rc, err);
    return rc == BH_OK ? later(d, ticket, *ret_id) : rc;
}

static int op_token_revoke(void *self, const struct bh_api_caller *by, uint64_t token, uint64_t ticket,
                           struct bh_err *err)
{
    struct bh_daemon *d = self;
    struct id_text id;
    struct bh_audit_event e = bh_note_by(by, BH_AUDIT_TOKEN_REVOKE);
    e.object_type = "token";
    e.object_id = id_text('T', token, &id);
    int rc = begin(d, err);
    if (rc < 0)
        return rc;
    rc = bh_store_token_revoke(d->store, token, bh_daemon_now(d), err);
    if (rc == BH_OK)
        rc = bh_audit_append(d->audit, &e, err);
    rc = keep(d, rc, err);
    return rc == BH_OK ? later(d, ticket, token) : rc;
}

static int op_checkpoint(void *self, const struct bh_api_caller *by, uint64_t ticket, uint64_t *ret_size,
                         struct bh_err *err)
{
    struct bh_daemon *d = self;
    (void)by;
    (void)ticket;
    *ret_size = 0;
    const int rc = bh_ops_commit(d, err);
    return rc == BH_OK ? bh_audit_checkpoint(d->audit, err) : rc;
}

static int op_rotate(void *self, const struct bh_api_caller *by, const char *reason, uint64_t ticket,
                     uint32_t *ret_key, struct bh_err *err)
{
    struct bh_daemon *d = self;
    struct bh_audit_event e = bh_note_by(by, BH_AUDIT_AUDIT_KEY_CHANGE);
    (void)ticket;
    e.reason = reason;
    int rc = bh_ops_commit(d, err); /* it needs a transaction of its own */
    if (rc == BH_OK)
        rc = bh_audit_rotate(d->audit, &e, err);
    *ret_key = bh_audit_current_key(d->audit)->id;
    return rc;
}

static int op_backup(void *self, const struct bh_api_caller *by, const char *name, uint64_t ticket,
                     struct bh_err *err)
{
    struct bh_daemon *d = self;
    struct bh_arena arena = {0};
    struct bh_audit_event e = bh_note_by(by, BH_AUDIT_BACKUP_CREATE);
    (void)ticket;
    e.object_type = "backup";
    e.object_id = name;
    int rc = record(d, &e, err);
    if (rc == BH_OK)
        rc = bh_ops_commit(d, err);
    if (rc < 0)
        return rc;
    const char *folder = bh_arena_printf(&arena, "%s/backups", d->opt.state_dir);
    if (mkdir(folder, 0700) < 0 && errno != EEXIST)
        rc = bh_fail(err, BH_SYSTEM, "%s: %s", folder, strerror(errno));
    else
        rc = bh_store_backup(d->store, bh_arena_printf(&arena, "%s/%s", folder, name), err);
    bh_arena_fini(&arena);
    return rc;
}

void bh_ops_init(struct bh_daemon *d)
{
    d->room = bh_room_as_told();
    d->ops = (struct bh_api_ops){.self = d,
                                 .submit = op_submit,
                                 .cancel = op_cancel,
                                 .lease = op_lease,
                                 .gpu = op_gpu,
                                 .why = bh_ops_why,
                                 .waits = bh_ops_waits,
                                 .what_if = bh_ops_what_if,
                                 .bill = bh_ops_bill,
                                 .bill_gone = bh_ops_bill_gone,
                                 .policy_diff = op_policy_diff,
                                 .policy_apply = op_policy_apply,
                                 .token_add = op_token_add,
                                 .token_revoke = op_token_revoke,
                                 .checkpoint = op_checkpoint,
                                 .rotate = op_rotate,
                                 .backup = op_backup,
                                 .checks = bh_checks_fresh,
                                 .metrics = bh_node_metrics,
                                 .auth_failed = bh_note_auth_failed,
                                 .came_in = bh_note_came_in};
}
