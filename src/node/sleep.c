/* SPDX-License-Identifier: Apache-2.0 */
/* sleep.c - who sleeps, who wakes, and the process that moves the memory. */
#include "node/sleep.h"

#include "base/str.h"
#include "base/units.h"
#include "launch/governor.h"
#include "launch/suspend.h"
#include "node/decide.h"
#include "node/mech/clear.h"
#include "node/spec.h"

#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>

enum {
    PATIENCE_MS = 200, /* with the governor, in the loop */
};

struct order {
    char lease[24];
    bool wake;
};

struct bh_sleep_task {
    struct bh_daemon *of;
    uint64_t lease, ticket; /* ticket 0: nobody asked */
    bool wake;
    struct bh_worker worker;
    sd_event_source *source;
};

static const char *name_of(uint64_t lease, char text[24])
{
    (void)snprintf(text, 24, "L%llu", (unsigned long long)lease);
    return text;
}

static const char *note_of(uint64_t lease, char text[32])
{
    (void)snprintf(text, 32, "sleep/%llu", (unsigned long long)lease);
    return text;
}

static struct bh_sleep_idle *idle_of(struct bh_daemon *d, uint64_t lease)
{
    for (size_t i = 0; i < d->sleepers.idle.n; i++)
        if (d->sleepers.idle.at[i].lease == lease)
            return &d->sleepers.idle.at[i];
    return NULL;
}

static bool is_under_way(const struct bh_daemon *d, uint64_t lease)
{
    for (size_t i = 0; i < d->sleepers.tasks.n; i++)
        if (d->sleepers.tasks.at[i]->lease == lease)
            return true;
    return false;
}

/* ---- moving ---- */

static void move_work(const void *arg, struct bh_worker_result *ret)
{
    const struct order *o = arg;
    struct bh_err err = {0};
    ret->code = o->wake ? bh_unsuspend(o->lease, NULL, &err) : bh_suspend(o->lease, NULL, &err);
    (void)snprintf(ret->text, sizeof(ret->text), "%s", err.msg);
}

/* What was ordered is in the log already; what the daemon did by itself is written with its outcome. */
static int write_moved(struct bh_daemon *d, const struct bh_sleep_task *t, const struct bh_life *run,
                       struct bh_err *err)
{
    char id[24], note[32];
    const struct bh_audit_event e = {.event = t->wake ? BH_AUDIT_JOB_RESUME : BH_AUDIT_JOB_SUSPEND,
                                     .sub = "service:bulkheadd",
                                     .tenant = run->tenant,
                                     .object_type = "lease",
                                     .object_id = name_of(t->lease, id),
                                     .reason = t->wake ? "it is used again"
                                                       : "it was idle for the time its tenant agreed to"};
    int rc = bh_store_lease_pause(d->store, t->lease, !t->wake, err);
    if (rc == BH_OK && !t->ticket)
        rc = bh_audit_append(d->audit, &e, err);
    if (rc == BH_OK)
        rc = t->wake ? bh_store_note_remove(d->store, note_of(t->lease, note), err)
                     : bh_store_note_set_text(d->store, note_of(t->lease, note),
                                              t->ticket ? "ordered" : "idle", err);
    return rc;
}

static void moved(struct bh_daemon *d, const struct bh_sleep_task *t, const struct bh_worker_result *result)
{
    struct bh_life *run = bh_life_of_lease(d, t->lease);
    struct bh_sleep_idle *idle = idle_of(d, t->lease);
    struct bh_err err;
    int rc = result->code < 0 ? bh_fail(&err, (enum bh_code)result->code, "%s", result->text) : BH_OK;
    if (rc < 0 && !t->ticket)
        bh_daemon_say(d, "L%llu %s: %s", (unsigned long long)t->lease,
                      t->wake ? "does not wake" : "cannot sleep", err.msg);
    if (rc == BH_OK && run && run->state == BH_LEASE_ACTIVE) {
        rc = bh_life_begin(d, &err);
        if (rc == BH_OK)
            rc = bh_life_end(d, write_moved(d, t, run, &err), &err);
        if (rc < 0)
            bh_decide_later(d, &err);
        else
            bh_api_changed(d->api, BH_API_KIND_LEASE, run->lease, run->tenant,
                           t->wake ? "active" : "suspended");
    }
    if (idle) {
        idle->active_ms = bh_daemon_now(d); /* one that failed is tried again after as long a time */
        idle->woken_ms = t->wake && rc == BH_OK ? idle->active_ms : idle->woken_ms;
        idle->by_itself = rc == BH_OK ? !t->wake && !t->ticket : idle->by_itself;
        idle->moved = true;
    }
    if (t->ticket)
        bh_api_answer(d->api, t->ticket, rc, t->lease, &err);
}

static void drop(struct bh_daemon *d, struct bh_sleep_task *t)
{
    t->source = sd_event_source_disable_unref(t->source);
    bh_worker_kill(&t->worker);
    for (size_t i = 0; i < d->sleepers.tasks.n; i++)
        if (d->sleepers.tasks.at[i] == t)
            d->sleepers.tasks.at[i--] = d->sleepers.tasks.at[--d->sleepers.tasks.n];
    free(t);
}

static int on_moved(sd_event_source *source, int fd, uint32_t events, void *arg)
{
    struct bh_sleep_task *t = arg;
    struct bh_worker_result result;
    (void)source;
    (void)fd;
    (void)events;
    t->source = sd_event_source_disable_unref(t->source); /* before its descriptor is closed (worker.h) */
    bh_worker_finish(&t->worker, &result);
    moved(t->of, t, &result);
    drop(t->of, t);
    return 0;
}

static int begin(struct bh_daemon *d, uint64_t lease, bool wake, uint64_t ticket, struct bh_err *err)
{
    struct order o = {.wake = wake};
    (void)name_of(lease, o.lease);
    struct bh_sleep_task *t = bh_alloc(1, sizeof(*t));
    *t = (struct bh_sleep_task){.of = d, .lease = lease, .ticket = ticket, .wake = wake};
    int rc = bh_worker_start(move_work, &o, &t->worker, err);
    if (rc == BH_OK && sd_event_add_io(d->loop, &t->source, t->worker.fd, EPOLLIN, on_moved, t) < 0)
        rc = bh_fail(err, BH_SYSTEM, "the loop takes no more");
    if (rc < 0) {
        bh_worker_kill(&t->worker);
        free(t);
        return rc;
    }
    bh_worker_name(&t->worker, "moves the memory of %s %s", o.lease, wake ? "back" : "to the host");
    *bh_vec_push(&d->sleepers.tasks) = t;
    return BH_OK;
}

int bh_sleep_order(struct bh_daemon *d, const struct bh_life *run, bool wake, uint64_t ticket,
                   struct bh_err *err)
{
    if (!run->terms.weight)
        return bh_fail(err, BH_REFUSED,
                       "L%llu has its GPU to itself, outside the governor: it cannot be suspended",
                       (unsigned long long)run->lease);
    if (is_under_way(d, run->lease))
        return bh_fail(err, BH_BUSY, "L%llu is on its way to or from the host's memory: try again soon",
                       (unsigned long long)run->lease);
    const int rc = begin(d, run->lease, wake, ticket, err);
    return rc == BH_OK ? BH_API_LATER : rc;
}

bool bh_sleep_is_asleep(const struct bh_life *run)
{
    struct bh_governor_all all = {0};
    struct bh_err err;
    char name[24];
    const bool found = bh_governor_find(name_of(run->lease, name), &all, &err) == BH_OK;
    const bool asleep = found && all.rows.at[0].state == BH_GOVERN_SHOWN_SUSPENDED;
    bh_governor_all_fini(&all);
    return asleep;
}

/* ---- who is idle ---- */

/* What its tenant agreed to; 0: nothing. */
static uint64_t agreed(const struct bh_daemon *d, const struct bh_life *run)
{
    const struct bh_policy *p = d->book.policy;
    if (!p || run->state != BH_LEASE_ACTIVE || !run->terms.weight)
        return 0;
    for (size_t i = 0; i < p->tenants.n; i++)
        if (bh_str_eq(p->tenants.at[i].name, run->tenant))
            return p->tenants.at[i].idle.sleep_after_ms;
    return 0;
}

struct look {
    uint64_t busy_ns, cpu_ns;
    bool suspended, paused;
    bool known; /* its sensors answer, and it has something on a card */
};

static struct look look_at(struct bh_daemon *d, const struct bh_life *run, const struct bh_governor_all *all)
{
    struct look l = {0};
    char name[24];
    struct bh_arena arena = {0};
    (void)name_of(run->lease, name);
    for (size_t i = 0; i < all->rows.n; i++) {
        const struct bh_govern_row *r = &all->rows.at[i];
        if (!bh_str_eq(r->name, name))
            continue;
        l.busy_ns += r->busy_ns;
        l.suspended = l.suspended || r->state == BH_GOVERN_SHOWN_SUSPENDED;
        l.paused = l.paused || r->state == BH_GOVERN_SHOWN_PAUSED;
        l.known = l.known || (r->gpu != UINT32_MAX && r->seen);
    }
    l.known = (l.known || l.suspended) && d->has_cgroups &&
              bh_cgroup_cpu_ns(&d->cgroups, bh_spec_cgroup(d, &arena, run->lease), &l.cpu_ns);
    bh_arena_fini(&arena);
    return l;
}

static struct bh_sleep_idle *meet(struct bh_daemon *d, const struct bh_life *run, const struct look *l)
{
    struct bh_sleep_idle *idle = idle_of(d, run->lease);
    struct bh_arena arena = {0};
    struct bh_store_note note;
    struct bh_err err;
    char key[32];
    if (idle)
        return idle;
    idle = bh_vec_push(&d->sleepers.idle);
    *idle = (struct bh_sleep_idle){.lease = run->lease,
                                   .busy_ns = l->busy_ns,
                                   .cpu_ns = l->cpu_ns,
                                   .seen_ms = bh_daemon_now(d),
                                   .active_ms = d->last_ms};
    if (bh_store_note_get(d->store, &arena, note_of(run->lease, key), &note, &err) == BH_OK)
        idle->by_itself = bh_str_eq(note.value, "idle"); /* an earlier daemon put it to sleep */
    bh_arena_fini(&arena);
    return idle;
}

static void judge(struct bh_daemon *d, const struct bh_life *run, uint64_t agreed_ms, const struct look *l)
{
    struct bh_sleep_idle *idle = meet(d, run, l);
    struct bh_err err;
    const uint64_t now = bh_daemon_now(d);
    const struct bh_admit_use use = {.span_ms = now > idle->seen_ms ? now - idle->seen_ms : 0,
                                     .cpu_ns = l->cpu_ns > idle->cpu_ns ? l->cpu_ns - idle->cpu_ns : 0,
                                     .moved = idle->moved};
    const enum bh_awake used = bh_admit_awake(&use);
    const bool works = used == BH_AWAKE_WORKS;
    if (used == BH_AWAKE_UNTOLD)
        return;
    if (works || l->busy_ns != idle->busy_ns || l->paused)
        idle->active_ms = now;
    idle->busy_ns = l->busy_ns;
    idle->cpu_ns = l->cpu_ns;
    idle->seen_ms = now;
    idle->moved = false;
    if (is_under_way(d, run->lease))
        return;
    const struct bh_admit_idle ask = {.now_ms = now,
                                      .active_ms = idle->active_ms,
                                      .woken_ms = idle->woken_ms,
                                      .agreed_ms = agreed_ms,
                                      .can = BH_CAN_SUSPEND,
                                      .wanted = true};
    uint64_t at;
    const bool sleeps = !l->suspended && bh_admit_sleep(&ask, &at) == BH_SLEEP_NOW;
    const bool wakes = l->suspended && idle->by_itself && works;
    if ((sleeps || wakes) && begin(d, run->lease, wakes, 0, &err) < 0)
        bh_daemon_say(d, "L%llu: %s", (unsigned long long)run->lease, err.msg);
}

/* Notes of leases that are over. */
static void sweep(struct bh_daemon *d)
{
    struct bh_arena arena = {0};
    bh_store_notes notes = {0};
    struct bh_err err;
    int rc = bh_store_notes_list(d->store, &arena, "sleep/", &notes, &err);
    for (size_t i = 0; rc == BH_OK && i < notes.n; i++) {
        uint64_t lease;
        if (bh_uint_parse(notes.at[i].key + strlen("sleep/"), UINT64_MAX, &lease, NULL) < 0 ||
            !bh_life_of_lease(d, lease))
            rc = bh_store_note_remove(d->store, notes.at[i].key, &err);
    }
    d->sleepers.swept = rc == BH_OK;
    bh_vec_fini(&notes);
    bh_arena_fini(&arena);
}

void bh_sleep_tick(struct bh_daemon *d)
{
    struct bh_governor_all all = {0};
    struct bh_err err;
    bool any = false;
    for (size_t i = d->sleepers.idle.n; i-- > 0;)
        if (!bh_life_of_lease(d, d->sleepers.idle.at[i].lease)) {
            d->sleepers.idle.at[i] = d->sleepers.idle.at[--d->sleepers.idle.n];
            d->sleepers.swept = false;
        }
    for (size_t i = 0; !any && i < d->runs.n; i++)
        any = agreed(d, d->runs.at[i]) != 0;
    if (d->broken_until_ms || bh_store_in_transaction(d->store))
        return;
    if (!d->sleepers.swept)
        sweep(d);
    if (any && bh_governor_list(&all, PATIENCE_MS, &err) == BH_OK)
        for (size_t i = 0; i < d->runs.n; i++) {
            const uint64_t agreed_ms = agreed(d, d->runs.at[i]);
            const struct look l = agreed_ms ? look_at(d, d->runs.at[i], &all) : (struct look){0};
            if (l.known)
                judge(d, d->runs.at[i], agreed_ms, &l);
        }
    bh_governor_all_fini(&all);
}

void bh_sleep_fini(struct bh_daemon *d)
{
    while (d->sleepers.tasks.n)
        drop(d, d->sleepers.tasks.at[0]);
    bh_vec_fini(&d->sleepers.tasks);
    bh_vec_fini(&d->sleepers.idle);
}
