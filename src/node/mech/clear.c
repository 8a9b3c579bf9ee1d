/* SPDX-License-Identifier: Apache-2.0 */
/* clear.c - emptying, scrubbing, and what becomes of the job. */
#include "node/mech/clear.h"

#include "node/decide.h"
#include "node/mech/scrub.h"
#include "node/note.h"
#include "node/spec.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    KILL_MS = 5000,
    TRIES = 20,
    KEEPER_MS = 40000, /* a keeper that has not ended by then does not keep */
};

/* ---- nobody keeps it, and nobody will ---- */

static void tell_to_stop(struct bh_daemon *d, struct bh_life *run, const struct bh_keeper_place *at)
{
    const struct bh_keeper_order order = {
        .version = BH_KEEPER_VERSION, .op = BH_KEEPER_STOP, .grace_ms = UINT32_MAX};
    struct bh_keeper_status status;
    struct bh_err err;
    const int rc = bh_keeper_order(at, &order, &status, &err);
    run->stopping = rc == BH_OK;
    if (rc == BH_BUSY)
        bh_daemon_say(d, "L%llu does not stop yet: %s", (unsigned long long)run->lease, err.msg);
}

static bool took_too_long(struct bh_daemon *d, const struct bh_life *run)
{
    return bh_daemon_now(d) > run->since_ms + KEEPER_MS;
}

bool bh_clear_is_late(struct bh_daemon *d, const struct bh_life *run)
{
    const bool leaves = run->state == BH_LEASE_DRAINING || run->state == BH_LEASE_FAILED;
    /* What has no descriptor is its turn when nobody asks for anything; made anew, it would be behind all others again. */
    const bool keeper = sd_event_source_get_io_fd(run->source) >= 0;
    return leaves && keeper && (!run->stopping || took_too_long(d, run));
}

/* True: nobody keeps it, and nobody will. Else its keeper was told to stop and is waited for, or it is not known: the next tick asks
 * again, and nobody else is given anything of it until then. */
static bool unkept(struct bh_daemon *d, struct bh_life *run)
{
    struct bh_arena arena = {0};
    struct bh_keeper_look look;
    struct bh_err err;
    const struct bh_keeper_place at = bh_spec_place(d, &arena, run->lease);
    int rc = bh_keeper_look(&at, &look, &err);
    if (rc == BH_OK && look.found == BH_KEEPER_NEVER) {
        rc = bh_keeper_fence(&at, &err); /* one that was started a moment ago may not have its lock yet */
        if (rc == BH_OK)
            rc = bh_keeper_look(&at, &look, &err);
    }
    if (rc < 0)
        bh_life_doubt(d, run, &err);
    const bool alive = rc == BH_OK && look.found == BH_KEEPER_LIVES;
    if (alive && !run->stopping)
        tell_to_stop(d, run, &at);
    if (alive && took_too_long(d, run)) {
        bh_daemon_say(d, "L%llu: its keeper does not end, and is ended", (unsigned long long)run->lease);
        (void)syscall(SYS_pidfd_send_signal, look.pidfd, SIGKILL, NULL, 0);
    }
    if (alive)
        bh_life_watch(d, run, look.pidfd);
    bh_arena_fini(&arena);
    return !alive && (rc == BH_OK || rc == BH_INVALID); /* a record of its end that nobody can read is one */
}

/* ---- what becomes of the job ---- */

/* It does not come back, and that is not written yet. */
static bool ends(const struct bh_life *run)
{
    return run->after == BH_AFTER_ENDS || run->after == BH_AFTER_CANCELLED || run->after == BH_AFTER_FAILED;
}

/* What its keeper said at the end, before anything is written. False: it cannot be read now, and is asked again by the next tick. */
static bool read_end(struct bh_daemon *d, struct bh_life *run, struct bh_keeper_look *ret)
{
    struct bh_arena arena = {0};
    struct bh_err err;
    const struct bh_keeper_place at = bh_spec_place(d, &arena, run->lease);
    *ret = (struct bh_keeper_look){.found = BH_KEEPER_LOST, .pidfd = -1};
    const int rc = ends(run) ? bh_keeper_look(&at, ret, &err) : BH_OK;
    bh_arena_fini(&arena);
    if (rc == BH_INVALID)
        ret->found = BH_KEEPER_LOST;
    if (ret->pidfd >= 0)
        close(ret->pidfd);
    if (rc < 0)
        bh_life_doubt(d, run, &err);
    return rc == BH_OK || rc == BH_INVALID;
}

static int write_job_end(struct bh_daemon *d, struct bh_life *run, const struct bh_keeper_look *look,
                         struct bh_err *err)
{
    enum bh_job_end how = BH_JOB_END_LOST;
    const char *why = *run->why ? run->why : "what ran it is gone without a word";
    if (look->found == BH_KEEPER_ENDED) {
        how = look->end.how == BH_KEEPER_EXITED   ? BH_JOB_END_EXITED
              : look->end.how == BH_KEEPER_KILLED ? BH_JOB_END_KILLED
                                                  : BH_JOB_END_FAILED;
        why = *run->why ? run->why : look->end.why;
    }
    if (run->after == BH_AFTER_CANCELLED)
        how = BH_JOB_END_CANCELLED;
    else if (run->after == BH_AFTER_FAILED &&
             (look->end.stopped || (how != BH_JOB_END_EXITED && how != BH_JOB_END_KILLED)))
        how = BH_JOB_END_FAILED;
    const bool exited = how == BH_JOB_END_EXITED, killed = how == BH_JOB_END_KILLED;
    const int rc = bh_store_job_end(d->store, run->job, how, exited ? (int32_t)look->end.status : 0,
                                    killed ? (int32_t)look->end.signal : 0, d->last_ms, why, err);
    return rc == BH_OK
               ? bh_note_job(d, BH_AUDIT_JOB_END, run->job, run->tenant, bh_job_end_str(how), why, err)
               : rc;
}

/* ---- nobody is left ---- */

struct emptying {
    bool has_cgroups;
    char cgroup[BH_CGROUP_NAME_MAX];
    struct bh_tier_rest container;
};

static void empty_work(const void *arg, struct bh_worker_result *ret)
{
    const struct emptying *e = arg;
    struct bh_cgroups groups;
    struct bh_err err = {0};
    if (e->has_cgroups) {
        ret->code = bh_cgroups_open("", &groups, &err); /* the daemon's own are closed here */
        if (ret->code == BH_OK)
            ret->code = bh_cgroup_kill(&groups, e->cgroup, KILL_MS, &err);
        if (ret->code == BH_OK)
            ret->code = bh_tier_clean(&e->container, &err);
        if (ret->code == BH_OK)
            ret->code = bh_cgroup_remove(&groups, e->cgroup, &err);
    }
    (void)snprintf(ret->text, sizeof(ret->text), "%s", err.msg);
}

static bool work(struct bh_daemon *d, struct bh_life *run, bh_work *what, const void *arg,
                 sd_event_io_handler_t then)
{
    struct bh_err err;
    int rc = bh_worker_start(what, arg, &run->worker, &err);
    if (rc == BH_OK && sd_event_add_io(d->loop, &run->source, run->worker.fd, EPOLLIN, then, run) < 0) {
        bh_worker_kill(&run->worker);
        rc = bh_fail(&err, BH_SYSTEM, "the loop takes no more");
    }
    if (rc == BH_OK)
        bh_worker_name(&run->worker, "L%llu is %s", (unsigned long long)run->lease,
                       bh_lease_state_str(run->state));
    else
        bh_daemon_say(d, "L%llu: %s; tried again soon", (unsigned long long)run->lease, err.msg);
    return rc == BH_OK;
}

static void over(struct bh_daemon *d, struct bh_life *run, enum bh_lease_cause cause, const char *why);
static int write_over(struct bh_daemon *d, struct bh_life *run, enum bh_lease_cause cause, const char *why,
                      const struct bh_keeper_look *end, uint64_t *ret_next, struct bh_err *err);
static void went(struct bh_daemon *d, struct bh_life *run, enum bh_lease_cause cause, uint64_t next);

/* Nobody is left: the work is over, and so is its job unless it comes back. What it had is cleared after that. */
static int write_empty(struct bh_daemon *d, struct bh_life *run, const struct bh_keeper_look *end,
                       struct bh_err *err)
{
    int rc = bh_life_write(d, run, BH_LEASE_BY_EMPTY, BH_AUDIT_EVENTS, "", err);
    if (rc < 0 || !ends(run))
        return rc;
    rc = write_job_end(d, run, end, err);
    return rc == BH_OK ? bh_life_write_after(d, run, BH_AFTER_SETTLED, err) : rc;
}

/*
 * Of shares nothing is done to the card: what proves them clean is known already. So their verdicts, and the end of a lease that had
 * nothing else, are written with the step before. *ret_over: it is.
 */
static int write_shares(struct bh_daemon *d, struct bh_life *run, const struct bh_keeper_look *end,
                        bool *ret_over, uint64_t *ret_next, struct bh_err *err)
{
    struct bh_scrub_order order;
    int rc;
    while ((rc = bh_scrub_next(d, run, &order, err)) == BH_OK) {
        struct bh_worker_result result = {0};
        if (order.kind != BH_SLICE_SHARE || !*order.canary)
            return BH_OK; /* a worker sees to it */
        bh_scrub_work(&order, &result);
        rc = bh_scrub_record(d, run, &result, err);
        if (rc < 0)
            return rc;
    }
    if (rc == BH_REFUSED)
        return BH_OK;
    if (rc != BH_NOT_FOUND)
        return rc;
    *ret_over = true;
    return write_over(d, run, BH_LEASE_BY_CLEAN, "", end, ret_next, err);
}

/* A keeper that was killed left its socket. */
static void vanish(const struct bh_daemon *d, const struct bh_life *run)
{
    struct bh_arena arena = {0};
    const struct bh_keeper_place at = bh_spec_place(d, &arena, run->lease);
    bh_keeper_vanish(&at);
    bh_arena_fini(&arena);
}

static void emptied(struct bh_daemon *d, struct bh_life *run)
{
    struct bh_err err;
    const bool job_ends = ends(run);
    struct bh_keeper_look end;
    bool is_over = false;
    uint64_t next = 0;
    vanish(d, run);
    if (!read_end(d, run, &end))
        return;
    int rc = bh_life_begin(d, &err);
    if (rc == BH_OK) {
        rc = write_empty(d, run, &end, &err);
        if (rc == BH_OK && !run->server) /* one of MPS may have to go first */
            rc = write_shares(d, run, &end, &is_over, &next, &err);
        rc = bh_life_end(d, rc, &err);
    }
    if (rc < 0) {
        bh_decide_later(d, &err);
        return;
    }
    bh_api_changed(d->api, BH_API_KIND_LEASE, run->lease, run->tenant,
                   bh_lease_state_str(BH_LEASE_SCRUBBING));
    if (job_ends)
        bh_api_changed(d->api, BH_API_KIND_JOB, run->job, run->tenant, "ended");
    if (is_over)
        went(d, run, BH_LEASE_BY_CLEAN, next);
    else
        bh_clear_begin(d, run);
}

static int on_empty(sd_event_source *source, int fd, uint32_t events, void *arg)
{
    struct bh_life *run = arg;
    struct bh_daemon *d = run->of;
    struct bh_worker_result result;
    (void)source;
    (void)fd;
    (void)events;
    bh_life_take_result(run, &result);
    if (result.code == BH_OK) {
        emptied(d, run);
    } else if (++run->tries >= TRIES) {
        bh_daemon_say(d, "L%llu cannot be emptied: %s", (unsigned long long)run->lease, result.text);
        over(d, run, BH_LEASE_BY_STUCK, result.text);
    }
    return 0; /* else the next tick tries again */
}

/* A keeper that came to its end has emptied it all itself. */
static bool nothing_left(const struct bh_daemon *d, const struct emptying *e)
{
    struct bh_err err;
    return e->has_cgroups && !bh_tier_left_container(&e->container) &&
           bh_cgroup_is_gone(&d->cgroups, e->cgroup) && bh_tier_clean(&e->container, &err) == BH_OK;
}

static int on_nothing_left(sd_event_source *source, void *arg)
{
    struct bh_life *run = arg;
    (void)source;
    bh_daemon_had_turn(run->of);
    run->source = sd_event_source_disable_unref(run->source);
    emptied(run->of, run);
    return 0;
}

static void empty(struct bh_daemon *d, struct bh_life *run)
{
    struct bh_arena arena = {0};
    struct emptying e = {.has_cgroups = d->has_cgroups};
    (void)snprintf(e.cgroup, sizeof(e.cgroup), "%s", bh_spec_cgroup(d, &arena, run->lease));
    bh_arena_fini(&arena);
    bh_tier_rest(d, run, &e.container);
    /* No process for that: to start one takes longer than all the rest. But after whoever called, which may go on with this lease. */
    if (!nothing_left(d, &e) || bh_daemon_idle(d, &run->source, on_nothing_left, run) < 0)
        (void)work(d, run, empty_work, &e, on_empty);
}

/* ---- the end ---- */

/* The job waits again, under a new lease. */
static int write_again(struct bh_daemon *d, struct bh_life *run, uint64_t *ret_lease, struct bh_err *err)
{
    struct bh_arena arena = {0};
    struct bh_store_lease row;
    int rc = bh_store_lease_get(d->store, &arena, run->lease, &row, err);
    if (rc == BH_OK)
        rc = bh_store_job_step(d->store, run->job, BH_JOB_RUNNING, BH_JOB_WAITING, d->last_ms,
                               "it had to make room, or its place failed", err);
    row.detail = "";
    if (rc == BH_OK)
        rc = bh_store_lease_add(d->store, &row, d->last_ms, ret_lease, err);
    if (rc == BH_OK)
        rc = bh_store_lease_step(d->store, *ret_lease, BH_LEASE_REQUESTED, BH_LEASE_BY_ADMIT, d->last_ms, "",
                                 NULL, err);
    bh_arena_fini(&arena);
    return rc;
}

static int write_over(struct bh_daemon *d, struct bh_life *run, enum bh_lease_cause cause, const char *why,
                      const struct bh_keeper_look *end, uint64_t *ret_next, struct bh_err *err)
{
    const enum bh_audit_kind event = cause != BH_LEASE_BY_CLEAN       ? BH_AUDIT_QUARANTINE_SET
                                     : run->after == BH_AFTER_NOTHING ? BH_AUDIT_QUARANTINE_CLEAR
                                                                      : BH_AUDIT_ALLOC_RELEASE;
    const int rc = bh_life_write(d, run, cause, event, why, err);
    if (rc == BH_OK && run->after == BH_AFTER_WAITS)
        return write_again(d, run, ret_next, err);
    return rc == BH_OK && ends(run) ? write_job_end(d, run, end, err) : rc;
}

/* That is durable. next: the lease under which its job waits again. */
static void went(struct bh_daemon *d, struct bh_life *run, enum bh_lease_cause cause, uint64_t next)
{
    const uint64_t lease = run->lease;
    const bool apart =
        !run->known || cause != BH_LEASE_BY_CLEAN; /* its cards are not the scheduler's to give */
    bh_api_changed(d->api, BH_API_KIND_LEASE, lease, run->tenant, bh_lease_state_str(run->state));
    bh_decide_tell(d, next ? BH_SCHED_GONE : BH_SCHED_FINISH, run);
    if (next && run->moved) /* the scheduler had another place for it, where it never was */
        bh_decide_tell(d, BH_SCHED_GONE, run);
    if (next) {
        bh_life_rename(d, run, next);
        run->state = BH_LEASE_ADMITTED;
        run->after = BH_AFTER_ENDS;
        run->leaving = run->stopping = run->moved = false;
        run->tries = 0;
        *run->why = '\0';
        bh_api_changed(d->api, BH_API_KIND_JOB, run->job, run->tenant, "waiting");
        if (!run->known)
            bh_decide_take_up(d, run);
    } else {
        if (ends(run))
            bh_api_changed(d->api, BH_API_KIND_JOB, run->job, run->tenant, "ended");
        bh_life_forget(d, run);
    }
    if (apart)
        bh_decide_cards(d, lease);
}

/* The last step of a lease and its job's next, together. */
static void over(struct bh_daemon *d, struct bh_life *run, enum bh_lease_cause cause, const char *why)
{
    struct bh_err err;
    struct bh_keeper_look end;
    uint64_t next = 0;
    if (!read_end(d, run, &end))
        return;
    int rc = bh_life_begin(d, &err);
    if (rc == BH_OK)
        rc = bh_life_end(d, write_over(d, run, cause, why, &end, &next, &err), &err);
    if (rc < 0)
        bh_decide_later(d, &err);
    else
        went(d, run, cause, next);
}

/* ---- nothing is left ---- */

static int on_scrubbed(sd_event_source *source, int fd, uint32_t events, void *arg)
{
    struct bh_life *run = arg;
    struct bh_daemon *d = run->of;
    struct bh_worker_result result;
    struct bh_err err;
    (void)source;
    (void)fd;
    (void)events;
    bh_life_take_result(run, &result);
    int rc = bh_scrub_record(d, run, &result, &err);
    if (rc < 0)
        bh_decide_later(d, &err);
    else
        bh_clear_begin(d, run);
    return 0;
}

static void scrub(struct bh_daemon *d, struct bh_life *run)
{
    struct bh_scrub_order order;
    struct bh_err err;
    if (!bh_mech_gone(d, run))
        return; /* the next tick asks again */
    const int rc = bh_scrub_next(d, run, &order, &err);
    if (rc == BH_NOT_FOUND)
        over(d, run, BH_LEASE_BY_CLEAN, "");
    else if (rc == BH_REFUSED)
        over(d, run, BH_LEASE_BY_DIRTY, err.msg);
    else if (rc < 0)
        bh_decide_later(d, &err);
    else
        (void)work(d, run, bh_scrub_work, &order, on_scrubbed);
}

void bh_clear_begin(struct bh_daemon *d, struct bh_life *run)
{
    if (run->worker.pid > 0)
        return; /* its end leads back here */
    run->source = sd_event_source_disable_unref(run->source);
    if (run->starting >= 0)
        close(run->starting);
    run->starting = -1;
    if (run->state == BH_LEASE_DRAINING || run->state == BH_LEASE_FAILED) {
        if (unkept(d, run))
            empty(d, run);
    } else if (run->state == BH_LEASE_SCRUBBING) {
        scrub(d, run);
    }
}

/* ---- one that was given nothing ---- */

int bh_clear_write_refuse(struct bh_daemon *d, struct bh_life *run, enum bh_lease_cause cause,
                          enum bh_job_end how, const char *why, struct bh_err *err)
{
    const int rc = bh_life_write(
        d, run, cause, cause == BH_LEASE_BY_REFUSE ? BH_AUDIT_ALLOC_DENY : BH_AUDIT_EVENTS, why, err);
    return rc == BH_OK ? bh_store_job_end(d->store, run->job, how, 0, 0, d->last_ms, why, err) : rc;
}

void bh_clear_refused(struct bh_daemon *d, struct bh_life *run)
{
    bh_decide_tell(d, BH_SCHED_CANCEL, run);
    bh_api_changed(d->api, BH_API_KIND_JOB, run->job, run->tenant, "ended");
    bh_life_forget(d, run);
}

void bh_clear_refuse(struct bh_daemon *d, struct bh_life *run, const char *why)
{
    struct bh_err err;
    int rc = bh_life_begin(d, &err);
    if (rc == BH_OK)
        rc = bh_life_end(d, bh_clear_write_refuse(d, run, BH_LEASE_BY_REFUSE, BH_JOB_END_REFUSED, why, &err),
                         &err);
    if (rc == BH_OK)
        bh_clear_refused(d, run);
    else
        bh_decide_later(d, &err);
}

/* ---- once more ---- */

static int write_retry(struct bh_daemon *d, uint64_t lease, struct bh_err *err)
{
    struct bh_arena arena = {0};
    struct bh_store_lease row;
    struct bh_life *run = NULL;
    int rc = bh_store_lease_get(d->store, &arena, lease, &row, err);
    if (rc == BH_OK && row.state == BH_LEASE_QUARANTINED) {
        run = bh_alloc(1, sizeof(*run));
        *run = (struct bh_life){.job = bh_life_no_job(lease), .lease = lease, .state = row.state};
        (void)snprintf(run->tenant, sizeof(run->tenant), "%s", row.tenant);
        bh_life_add(d, run); /* a caller that cannot commit loads all anew */
        rc = bh_life_write_after(d, run, BH_AFTER_NOTHING, err);
        if (rc == BH_OK)
            rc =
                bh_life_write(d, run, BH_LEASE_BY_RETRY, BH_AUDIT_EVENTS, "it is to be looked at again", err);
    }
    bh_arena_fini(&arena);
    return rc;
}

int bh_clear_write_retry(struct bh_daemon *d, const char *gpu, uint32_t *ret_n, struct bh_err *err)
{
    struct bh_arena arena = {0};
    bh_store_slices slices = {0};
    *ret_n = 0;
    int rc = bh_store_slices_list(d->store, &arena, gpu, 0, &slices, err);
    for (size_t i = 0; rc == BH_OK && i < slices.n; i++)
        if (slices.at[i].state == BH_SLICE_QUARANTINED && slices.at[i].lease) {
            rc = write_retry(d, slices.at[i].lease, err);
            ++*ret_n;
        }
    bh_vec_fini(&slices);
    bh_arena_fini(&arena);
    return rc;
}
