/* SPDX-License-Identifier: Apache-2.0 */
/* life.c - the table of leases, and the steps from granting to the end of the work. What follows is in clear.c. */
#include "node/life.h"

#include "node/decide.h"
#include "node/mech/clear.h"
#include "node/mech/mech.h"
#include "node/ops.h"
#include "node/rule.h"
#include "node/spec.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

enum { PAGE = 1000, DOUBTS = 60 /* between two words of it */ };

/* ---- the table ---- */

struct bh_life *bh_life_of_job(const struct bh_daemon *d, uint64_t job)
{
    const uint32_t at = bh_idmap_find(&d->by_job, job);
    return at == BH_IDMAP_NONE ? NULL : d->runs.at[at];
}

struct bh_life *bh_life_of_lease(const struct bh_daemon *d, uint64_t lease)
{
    const uint32_t at = bh_idmap_find(&d->by_lease, lease);
    return at == BH_IDMAP_NONE ? NULL : d->runs.at[at];
}

static void put(struct bh_daemon *d, struct bh_life *run, uint32_t at)
{
    (void)bh_idmap_remove(&d->by_job, run->job);
    (void)bh_idmap_remove(&d->by_lease, run->lease);
    (void)bh_idmap_add(&d->by_job, run->job, at);
    (void)bh_idmap_add(&d->by_lease, run->lease, at);
    d->runs.at[at] = run;
}

void bh_life_add(struct bh_daemon *d, struct bh_life *take_run)
{
    take_run->of = d;
    take_run->worker.fd = take_run->starting = -1;
    *bh_vec_push(&d->runs) = take_run;
    put(d, take_run, (uint32_t)d->runs.n - 1);
}

void bh_life_rename(struct bh_daemon *d, struct bh_life *run, uint64_t lease)
{
    const uint32_t at = bh_idmap_find(&d->by_lease, run->lease);
    (void)bh_idmap_remove(&d->by_lease, run->lease);
    run->lease = lease;
    put(d, run, at);
}

static void unhook(struct bh_life *run)
{
    run->source = sd_event_source_disable_unref(run->source);
    bh_worker_kill(&run->worker);
    if (run->starting >= 0)
        close(run->starting);
    run->starting = -1;
}

/* The last one moves into its place. */
void bh_life_forget(struct bh_daemon *d, struct bh_life *run)
{
    const uint32_t at = bh_idmap_find(&d->by_job, run->job);
    struct bh_life *last = d->runs.at[d->runs.n - 1];
    unhook(run);
    (void)bh_idmap_remove(&d->by_job, run->job);
    (void)bh_idmap_remove(&d->by_lease, run->lease);
    if (last != run)
        put(d, last, at);
    d->runs.n--;
    free(run->waits);
    free(run->held);
    free(run);
}

void bh_life_note(char **to, const char *words)
{
    const size_t n = strlen(words) + 1;
    char *mine = *words ? bh_alloc(n, 1) : NULL;
    if (mine)
        memcpy(mine, words, n);
    free(*to);
    *to = mine;
}

void bh_life_free_all(struct bh_daemon *d)
{
    while (d->runs.n)
        bh_life_forget(d, d->runs.at[d->runs.n - 1]);
    bh_vec_fini(&d->runs);
    bh_idmap_fini(&d->by_job);
    bh_idmap_fini(&d->by_lease);
}

/* ---- writing ---- */

static const char *const afters[] = {
    [BH_AFTER_ENDS] = "ends",     [BH_AFTER_WAITS] = "waits",     [BH_AFTER_CANCELLED] = "cancelled",
    [BH_AFTER_FAILED] = "failed", [BH_AFTER_SETTLED] = "settled", [BH_AFTER_NOTHING] = "nothing"};

int bh_life_begin(struct bh_daemon *d, struct bh_err *err)
{
    /* What waits for its commit is committed first: a step is durable when it says so. */
    int rc = bh_store_in_transaction(d->store) ? bh_ops_commit(d, err) : BH_OK;
    return rc == BH_OK ? bh_store_begin(d->store, err) : rc;
}

int bh_life_end(struct bh_daemon *d, int rc, struct bh_err *err)
{
    if (rc == BH_OK)
        return bh_store_commit(d->store, err);
    bh_store_rollback(d->store);
    return rc;
}

int bh_life_write_after(struct bh_daemon *d, struct bh_life *run, enum bh_after after, struct bh_err *err)
{
    run->after = after;
    return bh_store_lease_detail(d->store, run->lease, afters[after], err);
}

/* A step of the store's, and its mark in the log where one belongs there. */
int bh_life_write(struct bh_daemon *d, struct bh_life *run, enum bh_lease_cause cause,
                  enum bh_audit_kind event, const char *why, struct bh_err *err)
{
    enum bh_lease_state to;
    char id[24];
    int rc = bh_store_lease_step(d->store, run->lease, run->state, cause, bh_daemon_now(d), why, &to, err);
    (void)snprintf(id, sizeof(id), "L%llu", (unsigned long long)run->lease);
    const struct bh_audit_event e = {.event = event,
                                     .sub = "service:bulkheadd",
                                     .tenant = run->tenant,
                                     .object_type = "lease",
                                     .object_id = id,
                                     .before = bh_lease_state_str(run->state),
                                     .after = rc == BH_OK ? bh_lease_state_str(to) : NULL,
                                     .reason = why};
    if (rc == BH_OK && event < BH_AUDIT_EVENTS)
        rc = bh_audit_append(d->audit, &e, err);
    if (rc == BH_OK) {
        run->state = to;
        run->since_ms = d->last_ms;
    }
    return rc;
}

/* A step alone, durable when this returns true. Otherwise all is made anew from what is written, soon. */
bool bh_life_step(struct bh_daemon *d, struct bh_life *run, enum bh_lease_cause cause,
                  enum bh_audit_kind event, const char *why)
{
    struct bh_err err;
    int rc = bh_life_begin(d, &err);
    if (rc == BH_OK)
        rc = bh_life_end(d, bh_life_write(d, run, cause, event, why, &err), &err);
    if (rc < 0) {
        bh_decide_later(d, &err);
        return false;
    }
    bh_api_changed(d->api, BH_API_KIND_LEASE, run->lease, run->tenant, bh_lease_state_str(run->state));
    return true;
}

int bh_life_write_leave(struct bh_daemon *d, struct bh_life *run, enum bh_after after,
                        enum bh_lease_cause cause, enum bh_audit_kind event, const char *why,
                        struct bh_err *err)
{
    (void)snprintf(run->why, sizeof(run->why), "%s", why);
    const int rc = bh_life_write_after(d, run, after, err);
    return rc == BH_OK ? bh_life_write(d, run, cause, event, why, err) : rc;
}

bool bh_life_leave(struct bh_daemon *d, struct bh_life *run, enum bh_after after, enum bh_lease_cause cause,
                   const char *why)
{
    struct bh_err err;
    int rc = bh_life_begin(d, &err);
    if (rc == BH_OK)
        rc = bh_life_end(d, bh_life_write_leave(d, run, after, cause, BH_AUDIT_ALLOC_RECLAIM, why, &err),
                         &err);
    if (rc < 0)
        bh_decide_later(d, &err);
    return rc == BH_OK;
}

int bh_life_write_grant(struct bh_daemon *d, struct bh_life *run, const struct bh_store_grant *grants,
                        size_t n, struct bh_err *err)
{
    char id[24];
    int rc =
        bh_store_lease_grant(d->store, run->lease, BH_LEASE_BY_GRANT, grants, n, bh_daemon_now(d), "", err);
    if (rc == BH_OK)
        rc = bh_store_job_step(d->store, run->job, BH_JOB_WAITING, BH_JOB_RUNNING, d->last_ms, "", err);
    (void)snprintf(id, sizeof(id), "L%llu", (unsigned long long)run->lease);
    const struct bh_audit_event e = {.event = BH_AUDIT_ALLOC_GRANT,
                                     .sub = "service:bulkheadd",
                                     .tenant = run->tenant,
                                     .object_type = "lease",
                                     .object_id = id,
                                     .after = n ? grants[0].slice.gpu : NULL};
    if (rc == BH_OK)
        rc = bh_audit_append(d->audit, &e, err);
    if (rc == BH_OK) {
        run->state = BH_LEASE_PREPARING;
        run->granted = run->terms;
    }
    return rc;
}

int bh_life_write_evict(struct bh_daemon *d, struct bh_life *run, enum bh_after after,
                        enum bh_lease_cause cause, const char *why, struct bh_err *err)
{
    enum bh_lease_state to;
    run->leaving = true;
    /* It may be on its way out by itself. */
    if (!bh_lease_next(run->state, cause, &to))
        return BH_OK;
    return bh_life_write_leave(d, run, after, cause, BH_AUDIT_ALLOC_PREEMPT, why, err);
}

bool bh_life_may_return(struct bh_daemon *d, const struct bh_life *run)
{
    struct bh_arena arena = {0};
    struct bh_store_job job;
    struct bh_err err;
    const bool may =
        bh_store_job_get(d->store, &arena, run->job, &job, &err) == BH_OK && (job.can & BH_CAN_REQUEUE);
    bh_arena_fini(&arena);
    return may;
}

void bh_life_evict(struct bh_daemon *d, struct bh_life *run, enum bh_after after, const char *why)
{
    enum bh_lease_state to;
    if (bh_lease_next(run->state, BH_LEASE_BY_EVICT, &to) &&
        bh_life_leave(d, run, after, BH_LEASE_BY_EVICT, why))
        bh_clear_begin(d, run);
}

/* ---- a keeper that starts ---- */

static void broke(struct bh_daemon *d, struct bh_life *run, enum bh_after after, const char *why)
{
    bh_daemon_say(d, "L%llu could not be set up: %s", (unsigned long long)run->lease, why);
    if (bh_life_leave(d, run, after, BH_LEASE_BY_BREAK, why))
        bh_clear_begin(d, run);
}

static int on_end(sd_event_source *source, int fd, uint32_t events, void *arg);

void bh_life_watch(struct bh_daemon *d, struct bh_life *run, int pidfd)
{
    run->source = sd_event_source_disable_unref(run->source);
    if (sd_event_add_io(d->loop, &run->source, pidfd, EPOLLIN, on_end, run) < 0 ||
        sd_event_source_set_io_fd_own(run->source, 1) < 0)
        close(pidfd);
}

void bh_life_doubt(struct bh_daemon *d, struct bh_life *run, const struct bh_err *why)
{
    if (run->doubts++ % DOUBTS == 0)
        bh_daemon_say(d, "L%llu: it is not known whether it is kept, and asked again: %s",
                      (unsigned long long)run->lease, why->msg);
}

static int on_started(sd_event_source *source, int fd, uint32_t events, void *arg)
{
    struct bh_life *run = arg;
    struct bh_daemon *d = run->of;
    struct bh_err err;
    (void)source;
    (void)events;
    run->source = sd_event_source_disable_unref(run->source);
    run->starting = -1;
    const int rc = bh_keeper_started(fd, &err);
    if (run->state == BH_LEASE_PREPARING && rc < 0 && rc != BH_CONFLICT) {
        broke(d, run, BH_AFTER_FAILED, err.msg);
        return 0;
    }
    bh_life_go_on(d, run); /* looks at what is there */
    return 0;
}

static void start_keeper(struct bh_daemon *d, struct bh_life *run)
{
    struct bh_arena arena = {0};
    struct bh_keeper_spec spec;
    struct bh_err err;
    const struct bh_keeper_place at = bh_spec_place(d, &arena, run->lease);
    int rc = bh_spec_make(d, run, &arena, &spec, &err);
    if (rc == BH_OK)
        rc = bh_keeper_prepare(&at, &spec, &err);
    if (rc == BH_OK)
        rc = bh_keeper_start(d->keeper, &at, &run->starting, &err);
    if (rc == BH_OK) {
        run->source = sd_event_source_disable_unref(run->source);
        if (sd_event_add_io(d->loop, &run->source, run->starting, EPOLLIN, on_started, run) < 0)
            rc = bh_fail(&err, BH_SYSTEM, "the loop takes no more");
    }
    bh_arena_fini(&arena);
    if (rc < 0)
        broke(d, run, BH_AFTER_FAILED, err.msg);
}

/* ---- what divides the silicon comes first ---- */

static void set_up(struct bh_daemon *d, struct bh_life *run);

void bh_life_take_result(struct bh_life *run, struct bh_worker_result *ret)
{
    run->source = sd_event_source_disable_unref(run->source);
    bh_worker_finish(&run->worker, ret);
}

static int on_made(sd_event_source *source, int fd, uint32_t events, void *arg)
{
    struct bh_life *run = arg;
    struct bh_daemon *d = run->of;
    struct bh_worker_result result;
    struct bh_err err;
    (void)source;
    (void)fd;
    (void)events;
    bh_life_take_result(run, &result);
    const int rc = bh_mech_made(d, run, &result, &err);
    if (run->state != BH_LEASE_PREPARING)
        bh_life_go_on(d, run); /* it was told to go meanwhile */
    else if (rc < 0)
        broke(d, run, BH_AFTER_FAILED, err.msg);
    else
        set_up(d, run);
    return 0;
}

static void set_up(struct bh_daemon *d, struct bh_life *run)
{
    struct bh_mech_step step;
    struct bh_err err;
    /* What it holds was given for other terms: by these it would have more or less than that, or no gate at all. */
    if (!bh_terms_same(&run->granted, &run->terms)) {
        broke(d, run, BH_AFTER_WAITS, "the policy changed before it began");
        return;
    }
    int rc = bh_mech_next(d, run, &step, &err);
    if (rc == BH_NOT_FOUND) {
        start_keeper(d, run);
        return;
    }
    if (rc == BH_OK)
        rc = bh_worker_start(bh_mech_work, &step, &run->worker, &err);
    if (rc == BH_OK)
        bh_worker_name(&run->worker, "L%llu is being set up", (unsigned long long)run->lease);
    if (rc == BH_OK && sd_event_add_io(d->loop, &run->source, run->worker.fd, EPOLLIN, on_made, run) < 0) {
        bh_worker_kill(&run->worker);
        rc = bh_fail(&err, BH_SYSTEM, "the loop takes no more");
    }
    if (rc < 0)
        broke(d, run, BH_AFTER_FAILED, err.msg);
}

static int on_soon(sd_event_source *source, void *arg)
{
    struct bh_life *run = arg;
    struct bh_daemon *d = run->of;
    (void)source;
    bh_daemon_had_turn(d);
    run->source = sd_event_source_disable_unref(run->source);
    if (run->state == BH_LEASE_PREPARING)
        set_up(d, run);
    else
        bh_clear_begin(d, run);
    return 0;
}

/*
 * What follows a step that was just made durable: files and processes, which take as long again. So not at once: who asked for something
 * meanwhile is answered in between. Whatever else becomes of the lease before that takes its source away.
 */
static void soon(struct bh_daemon *d, struct bh_life *run)
{
    run->source = sd_event_source_disable_unref(run->source);
    if (bh_daemon_idle(d, &run->source, on_soon, run) < 0)
        (void)on_soon(NULL, run);
}

void bh_life_prepare(struct bh_daemon *d, struct bh_life *run)
{
    bh_api_changed(d->api, BH_API_KIND_LEASE, run->lease, run->tenant, bh_lease_state_str(run->state));
    soon(d, run);
}

/* ---- a keeper that keeps, has ended, or is gone ---- */

static void ended(struct bh_daemon *d, struct bh_life *run, const struct bh_keeper_look *look)
{
    char why[BH_KEEPER_TEXT];
    const bool lost = look->found == BH_KEEPER_LOST;
    const struct bh_keeper_end *end = &look->end;
    if (!lost)
        bh_meter_ended(d, run, end);
    if (lost)
        (void)snprintf(why, sizeof(why), "its keeper is gone without a word");
    else if (end->how == BH_KEEPER_NOT_BEGUN)
        (void)snprintf(why, sizeof(why), "%s", end->why);
    else if (end->how == BH_KEEPER_KILLED)
        (void)snprintf(why, sizeof(why), "ended by signal %u", end->signal);
    else
        (void)snprintf(why, sizeof(why), "ended with status %u", end->status);
    const enum bh_after after = lost && bh_life_may_return(d, run) ? BH_AFTER_WAITS : BH_AFTER_ENDS;
    if (run->state == BH_LEASE_PREPARING) {
        if (end->how == BH_KEEPER_NOT_BEGUN || lost) {
            broke(d, run, lost ? after : BH_AFTER_FAILED, why);
            return;
        }
        /* It ran for a moment: that is paid for, and what it left is taken back in the same way. */
        if (!bh_life_step(d, run, BH_LEASE_BY_READY, BH_AUDIT_EVENTS, ""))
            return;
        bh_decide_tell(d, BH_SCHED_STARTED, run);
    }
    if (lost ? bh_life_leave(d, run, after, BH_LEASE_BY_LOSE, why)
             : bh_life_step(d, run, BH_LEASE_BY_END, BH_AUDIT_EVENTS, why))
        soon(d, run);
}

static void lives(struct bh_daemon *d, struct bh_life *run, int pidfd)
{
    bh_life_watch(d, run, pidfd);
    if (run->state == BH_LEASE_PREPARING && bh_life_step(d, run, BH_LEASE_BY_READY, BH_AUDIT_EVENTS, ""))
        bh_decide_tell(d, BH_SCHED_STARTED, run);
}

/* Of a lease that is preparing or active. */
static void look_at_keeper(struct bh_daemon *d, struct bh_life *run)
{
    struct bh_arena arena = {0};
    struct bh_keeper_look look;
    struct bh_err err;
    const struct bh_keeper_place at = bh_spec_place(d, &arena, run->lease);
    const int rc = bh_keeper_look(&at, &look, &err);
    bh_arena_fini(&arena);
    if (rc < 0)
        bh_life_doubt(d, run, &err);
    if (rc == BH_INVALID) /* it has ended, and nobody can say how */
        look = (struct bh_keeper_look){.found = BH_KEEPER_LOST, .pidfd = -1};
    else if (rc < 0)
        return; /* the next tick asks again */
    if (look.found == BH_KEEPER_LIVES)
        lives(d, run, look.pidfd);
    else if (look.found == BH_KEEPER_NEVER && run->state == BH_LEASE_PREPARING)
        broke(d, run, BH_AFTER_WAITS,
              "the daemon restarted before it began"); /* starts over, under a new lease */
    else if (look.found == BH_KEEPER_NEVER) {
        look.found = BH_KEEPER_LOST;
        ended(d, run, &look);
    } else
        ended(d, run, &look);
}

static int on_end(sd_event_source *source, int fd, uint32_t events, void *arg)
{
    struct bh_life *run = arg;
    struct bh_daemon *d = run->of;
    (void)source;
    (void)fd;
    (void)events;
    run->source = sd_event_source_disable_unref(run->source);
    bh_life_go_on(d, run);
    return 0;
}

void bh_life_go_on(struct bh_daemon *d, struct bh_life *run)
{
    if (run->state == BH_LEASE_PREPARING || run->state == BH_LEASE_ACTIVE)
        look_at_keeper(d, run);
    else
        bh_clear_begin(d, run);
}

void bh_life_disallow(struct bh_daemon *d, struct bh_life *run, const char *why)
{
    if (!bh_life_waits(run))
        bh_life_evict(d, run, BH_AFTER_ENDS, why);
    else
        bh_clear_refuse(d, run, why);
}

/* ---- from the store ---- */

static struct bh_life *run_of_row(const struct bh_store_lease *row)
{
    struct bh_life *run = bh_alloc(1, sizeof(*run));
    *run = (struct bh_life){.job = row->job,
                            .lease = row->id,
                            .state = row->state,
                            .held_off = row->paused,
                            .since_ms = row->state_ms};
    (void)snprintf(run->tenant, sizeof(run->tenant), "%s", row->tenant);
    (void)snprintf(run->why, sizeof(run->why), "%s", row->why);
    for (unsigned i = 0; i < BH_COUNT_OF(afters); i++)
        if (strcmp(row->detail, afters[i]) == 0)
            run->after = (enum bh_after)i;
    if (run->after == BH_AFTER_NOTHING)
        run->job = bh_life_no_job(row->id);
    return run;
}

int bh_life_load(struct bh_daemon *d, struct bh_err *err)
{
    const struct bh_store_lease_filter filter = {.states = bh_store_lease_live() | 1u << BH_LEASE_REQUESTED |
                                                           1u << BH_LEASE_ADMITTED};
    struct bh_store_page page = {.limit = PAGE};
    int rc;
    bh_life_free_all(d);
    for (;;) {
        struct bh_arena arena = {0};
        bh_store_leases rows = {0};
        rc = bh_store_leases_list(d->store, &arena, &filter, &page, &rows, err);
        for (size_t i = 0; rc == BH_OK && i < rows.n; i++) {
            /* Time goes on where it stood, also where the clock was set back while nobody looked. */
            d->last_ms = rows.at[i].state_ms > d->last_ms ? rows.at[i].state_ms : d->last_ms;
            if (rows.at[i].state != BH_LEASE_QUARANTINED) /* that is a person's to go on with */
                bh_life_add(d, run_of_row(&rows.at[i]));
        }
        const size_t n = rows.n;
        page.after = n ? rows.at[n - 1].id : page.after;
        bh_vec_fini(&rows);
        bh_arena_fini(&arena);
        if (rc < 0 || n < PAGE)
            break;
    }
    return rc;
}

void bh_life_take_up(struct bh_daemon *d)
{
    for (size_t i = d->runs.n; i-- > 0;) /* one that is over leaves its place to the last */
        if (!bh_life_waits(d->runs.at[i]))
            bh_life_go_on(d, d->runs.at[i]);
}

void bh_life_tick(struct bh_daemon *d)
{
    /* What is believed may not be so where a commit failed: it is loaded again first. */
    for (size_t i = d->broken_until_ms ? 0 : d->runs.n; i-- > 0;) {
        struct bh_life *run = d->runs.at[i];
        if (bh_life_waits(run) || run->worker.pid > 0 || (run->source && !bh_clear_is_late(d, run)))
            continue;
        bh_life_go_on(d, run); /* something could not be done at its time, or takes too long */
    }
}
