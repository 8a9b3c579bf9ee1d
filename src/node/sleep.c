/* SPDX-License-Identifier: Apache-2.0 */
/* sleep.c - who sleeps, who wakes, who is held, and the process that asks the governor for it. */
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
    PATIENCE_MS = 200,     /* with the governor, in the loop */
    UNKNOWN_MS = 30000,    /* a governor that began anew may not know a lease for so long */
    HELD_MS = 5000,        /* between two looks whether those who are held are */
    AGAIN_MS = 2000,       /* before what failed is tried again by itself; twice as long each time ... */
    AGAIN_MOST_MS = 300000 /* ... and at most this */
};

#define NOTE_ASLEEP \
    "sleep/" /* its memory may be off the card: written before it goes, and gone when it is back */
#define NOTE_ORDER "order/"
#define BY_ITSELF  " idle" /* behind the word of what nobody ordered */

static const struct {
    const char *word; /* of its note */
    enum bh_audit_kind event;
    bool off;   /* it is not on the card's time afterwards */
    bool moves; /* its memory goes */
    const char *in_vain, *now;
} whats[] = {[BH_SLEEP_PAUSE] = {"pause", BH_AUDIT_JOB_PAUSE, true, false, "cannot be paused", "paused"},
             [BH_SLEEP_RESUME] = {"resume", BH_AUDIT_JOB_RESUME, false, false, "cannot be resumed", "active"},
             [BH_SLEEP_SUSPEND] = {"suspend", BH_AUDIT_JOB_SUSPEND, true, true, "cannot sleep", "suspended"},
             [BH_SLEEP_WAKE] = {"wake", BH_AUDIT_JOB_RESUME, false, true, "does not wake", "active"}};

struct order {
    char lease[24];
    enum bh_sleep_what what;
};

struct bh_sleep_task {
    struct bh_daemon *of;
    uint64_t lease, ticket; /* ticket 0: nobody waits for an answer */
    enum bh_sleep_what what;
    bool ordered; /* by somebody; else the daemon does it by itself */
    bool again;   /* it was begun before: the note of it is from then */
    struct bh_worker worker;
    sd_event_source *source;
};

static const char *name_of(uint64_t lease, char text[24])
{
    (void)snprintf(text, 24, "L%llu", (unsigned long long)lease);
    return text;
}

static const char *note_of(const char *kind, uint64_t lease, char text[32])
{
    (void)snprintf(text, 32, "%s%llu", kind, (unsigned long long)lease);
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

static int find_asleep(const char *lease, bool *ret, struct bh_err *err)
{
    struct bh_governor_all all = {0};
    const int rc = bh_governor_find(lease, &all, err);
    *ret = rc == BH_OK && all.rows.at[0].state == BH_GOVERN_SHOWN_SUSPENDED;
    bh_governor_all_fini(&all);
    return rc;
}

/* One whose memory is away is never only let run: somebody may have suspended it without this daemon. */
static int resume(const char *lease, struct bh_err *err)
{
    bool asleep;
    const int rc = find_asleep(lease, &asleep, err);
    if (rc < 0)
        return rc;
    return asleep ? bh_unsuspend(lease, NULL, err) : bh_governor_order_by(lease, BH_GOVERN_RESUME, err);
}

static void move_work(const void *arg, struct bh_worker_result *ret)
{
    const struct order *o = arg;
    struct bh_err err = {0};
    switch (o->what) {
    case BH_SLEEP_PAUSE:
        ret->code = bh_governor_order_by(o->lease, BH_GOVERN_PAUSE, &err);
        break;
    case BH_SLEEP_RESUME:
        ret->code = resume(o->lease, &err);
        break;
    case BH_SLEEP_SUSPEND:
        /* Also where the governor says that it sleeps: it says so while somebody who died is being put back. */
        ret->code = bh_suspend(o->lease, NULL, &err);
        break;
    default:
        ret->code = bh_unsuspend(o->lease, NULL, &err);
    }
    (void)snprintf(ret->text, sizeof(ret->text), "%s", err.msg);
}

static struct bh_audit_event record_of(const struct bh_sleep_task *t, const struct bh_life *run, char id[24])
{
    return (struct bh_audit_event){.event = whats[t->what].event,
                                   .sub = "service:bulkheadd",
                                   .tenant = run ? run->tenant : NULL,
                                   .object_type = "lease",
                                   .object_id = name_of(t->lease, id)};
}

static bool is_active(const struct bh_life *run)
{
    return run && run->state == BH_LEASE_ACTIVE;
}

/* ret "": there is no such note. */
static int read_note(struct bh_daemon *d, const char *kind, uint64_t lease, char ret[32], struct bh_err *err)
{
    struct bh_arena arena = {0};
    struct bh_store_note note;
    char key[32];
    const int rc = bh_store_note_get(d->store, &arena, note_of(kind, lease, key), &note, err);
    (void)snprintf(ret, 32, "%s", rc == BH_OK ? bh_arena_strn(&arena, note.value, note.n) : "");
    bh_arena_fini(&arena);
    return rc == BH_NOT_FOUND ? BH_OK : rc;
}

/* That it may sleep from now on, and for whom. A note that is there stays until it is done: it may sleep already. */
static int write_may_sleep(struct bh_daemon *d, uint64_t lease, bool ordered, struct bh_err *err)
{
    char there[32], note[32];
    const int rc = read_note(d, NOTE_ASLEEP, lease, there, err);
    return rc < 0 || *there ? rc
                            : bh_store_note_set_text(d->store, note_of(NOTE_ASLEEP, lease, note),
                                                     ordered ? "ordered" : "idle", err);
}

/* What is about to be done, in the caller's transaction. */
static int write_note(struct bh_daemon *d, const struct bh_sleep_task *t, struct bh_err *err)
{
    char note[32], text[32];
    (void)snprintf(text, sizeof(text), "%s%s", whats[t->what].word, t->ordered ? "" : BY_ITSELF);
    const int rc = bh_store_note_set_text(d->store, note_of(NOTE_ORDER, t->lease, note), text, err);
    return rc == BH_OK && t->what == BH_SLEEP_SUSPEND ? write_may_sleep(d, t->lease, t->ordered, err) : rc;
}

/* That it was begun, and by whom, is in the log already. */
static int write_moved(struct bh_daemon *d, const struct bh_sleep_task *t, struct bh_err *err)
{
    char note[32], there[32] = "";
    int rc = bh_store_lease_pause(d->store, t->lease, whats[t->what].off, err);
    if (rc == BH_OK && !whats[t->what].off)
        return bh_store_note_remove(d->store, note_of(NOTE_ASLEEP, t->lease, note), err);
    /* Of one that is paused as well, or was to sleep in vain: whom somebody holds does not wake by being used. */
    if (rc == BH_OK && t->what == BH_SLEEP_PAUSE)
        rc = read_note(d, NOTE_ASLEEP, t->lease, there, err);
    return rc == BH_OK && (*there || t->what == BH_SLEEP_SUSPEND)
               ? bh_store_note_set_text(d->store, note_of(NOTE_ASLEEP, t->lease, note),
                                        t->ordered ? "ordered" : "idle", err)
               : rc;
}

static int write_failed(struct bh_daemon *d, const struct bh_sleep_task *t, const struct bh_life *run,
                        const struct bh_err *why, struct bh_err *err)
{
    char id[24];
    struct bh_audit_event e = record_of(t, run, id);
    e.outcome = BH_AUDIT_FAILURE;
    e.reason = why->msg;
    return bh_audit_append(d->audit, &e, err);
}

/* What came of it; why NULL: what it was to. stands: nobody knows whether it was done, and the note of it stays. */
static int write_outcome(struct bh_daemon *d, const struct bh_sleep_task *t, const struct bh_err *why,
                         bool stands, struct bh_err *err)
{
    const struct bh_life *run = bh_life_of_lease(d, t->lease);
    char note[32];
    int rc = BH_OK;
    if (why)
        rc = write_failed(d, t, run, why, err);
    else if (is_active(run))
        rc = write_moved(d, t, err);
    return rc == BH_OK && !stands ? bh_store_note_remove(d->store, note_of(NOTE_ORDER, t->lease, note), err)
                                  : rc;
}

/* The same, durable. Where it cannot be written the order is carried out again. */
static int settle(struct bh_daemon *d, const struct bh_sleep_task *t, const struct bh_err *why, bool stands,
                  struct bh_err *err)
{
    int rc = bh_life_begin(d, err);
    if (rc == BH_OK)
        rc = bh_life_end(d, write_outcome(d, t, why, stands, err), err);
    if (rc < 0) {
        d->sleepers.repeated = false;
        bh_decide_later(d, err);
    }
    return rc;
}

static uint64_t again_after(uint32_t failed)
{
    const uint64_t ms = (uint64_t)AGAIN_MS << (failed < 16 ? failed : 16);
    return ms < AGAIN_MOST_MS ? ms : AGAIN_MOST_MS;
}

static void show_moved(struct bh_daemon *d, const struct bh_sleep_task *t, bool done)
{
    struct bh_life *run = bh_life_of_lease(d, t->lease);
    struct bh_sleep_idle *idle = idle_of(d, t->lease);
    if (done && is_active(run)) {
        run->held_off = whats[t->what].off;
        bh_api_changed(d->api, BH_API_KIND_LEASE, run->lease, run->tenant, whats[t->what].now);
    }
    if (idle && done)
        idle->by_itself = t->what == BH_SLEEP_SUSPEND && !t->ordered;
    if (!idle || !whats[t->what].moves)
        return;
    idle->active_ms = bh_daemon_now(d); /* one that failed is tried again after as long a time ... */
    idle->failed = done ? 0 : idle->failed + 1;
    idle->again_ms =
        done ? 0 : idle->active_ms + again_after(idle->failed); /* ... and more: each is a record */
    idle->woken_ms = t->what == BH_SLEEP_WAKE && done ? idle->active_ms : idle->woken_ms;
    idle->moved = true;
}

static bool forget_unknown(struct bh_daemon *d, uint64_t lease, uint64_t *ret_since_ms)
{
    for (size_t i = 0; i < d->sleepers.unknown.n; i++)
        if (d->sleepers.unknown.at[i].lease == lease) {
            *ret_since_ms = d->sleepers.unknown.at[i].since_ms;
            d->sleepers.unknown.at[i] = d->sleepers.unknown.at[--d->sleepers.unknown.n];
            return true;
        }
    return false;
}

/* Of an order that stood already: the governor does not know the lease, and will, for its warden looks for the governor; or
 * what was begun before is put back meanwhile. */
static bool will_be_known(struct bh_daemon *d, const struct bh_sleep_task *t, int rc)
{
    const struct bh_life *run = bh_life_of_lease(d, t->lease);
    const uint64_t now = bh_daemon_now(d);
    uint64_t since = now;
    (void)forget_unknown(d, t->lease, &since);
    const bool yet = (rc == BH_NOT_FOUND || rc == BH_CONFLICT) && t->again && is_active(run) &&
                     run->terms.weight && now - since < UNKNOWN_MS;
    if (yet)
        *bh_vec_push(&d->sleepers.unknown) = (struct bh_sleep_unknown){.lease = t->lease, .since_ms = since};
    return yet;
}

static void moved(struct bh_daemon *d, const struct bh_sleep_task *t, const struct bh_worker_result *result)
{
    struct bh_err err, lost;
    int rc = result->code < 0 ? bh_fail(&err, (enum bh_code)result->code, "%s", result->text) : BH_OK;
    /* A move that somebody waits for is either done or not; where the governor did not answer, nobody knows that. */
    const bool waits = t->ordered ? !whats[t->what].moves || !t->ticket : t->again;
    const bool stands = will_be_known(d, t, rc) || (rc == BH_BUSY && waits);
    if (stands) {
        d->sleepers.repeated = false;
        rc = bh_fail(&err, BH_BUSY, "%.400s; the order stands, and is carried out when it can be",
                     result->text);
    }
    if (rc < 0 && !t->ticket && !stands)
        bh_daemon_say(d, "L%llu %s: %s", (unsigned long long)t->lease, whats[t->what].in_vain, err.msg);
    if (rc == BH_OK)
        rc = settle(d, t, NULL, false, &err);
    else if (t->ticket || !stands) /* that it is tried again is in the log once */
        (void)settle(d, t, &err, stands, &lost);
    show_moved(d, t, rc == BH_OK);
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

static int begin(struct bh_daemon *d, const struct bh_sleep_task *what, struct bh_err *err)
{
    struct order o = {.what = what->what};
    (void)name_of(what->lease, o.lease);
    struct bh_sleep_task *t = bh_alloc(1, sizeof(*t));
    *t = *what;
    t->of = d;
    int rc = bh_worker_start(move_work, &o, &t->worker, err);
    if (rc == BH_OK && sd_event_add_io(d->loop, &t->source, t->worker.fd, EPOLLIN, on_moved, t) < 0)
        rc = bh_fail(err, BH_SYSTEM, "the loop takes no more");
    if (rc < 0) {
        bh_worker_kill(&t->worker);
        free(t);
        return rc;
    }
    bh_worker_name(&t->worker, "has %s told to %s", o.lease, whats[t->what].word);
    *bh_vec_push(&d->sleepers.tasks) = t;
    return BH_OK;
}

/* ---- orders ---- */

int bh_sleep_check(const struct bh_daemon *d, const struct bh_life *run, enum bh_sleep_what what,
                   struct bh_err *err)
{
    if (!run->terms.weight)
        return bh_fail(err, BH_REFUSED,
                       whats[what].moves
                           ? "L%llu has its GPU to itself, outside the governor: it cannot be suspended"
                           : "L%llu has its GPU to itself: nobody waits for it, and it cannot be paused",
                       (unsigned long long)run->lease);
    if (is_under_way(d, run->lease))
        return bh_fail(err, BH_BUSY, "an order for L%llu is being carried out: try again soon",
                       (unsigned long long)run->lease);
    return BH_OK;
}

int bh_sleep_write(struct bh_daemon *d, const struct bh_life *run, enum bh_sleep_what what,
                   struct bh_err *err)
{
    const struct bh_sleep_task t = {.lease = run->lease, .what = what, .ordered = true};
    return write_note(d, &t, err);
}

int bh_sleep_order(struct bh_daemon *d, const struct bh_life *run, enum bh_sleep_what what, uint64_t ticket,
                   struct bh_err *err)
{
    const struct bh_sleep_task t = {.lease = run->lease, .ticket = ticket, .what = what, .ordered = true};
    struct bh_err lost;
    const int rc = begin(d, &t, err);
    if (rc < 0)
        (void)settle(d, &t, err, false, &lost);
    return rc == BH_OK ? BH_API_LATER : rc;
}

/* By itself. The record and the note of it are durable before it begins, as those of an order are. */
static void begin_alone(struct bh_daemon *d, const struct bh_life *run, enum bh_sleep_what what)
{
    const struct bh_sleep_task t = {.lease = run->lease, .what = what};
    struct bh_err err, lost;
    char id[24];
    struct bh_audit_event e = record_of(&t, run, id);
    e.reason = whats[what].off ? "it was idle for the time its tenant agreed to" : "it is used again";
    int rc = bh_life_begin(d, &err);
    if (rc == BH_OK) {
        rc = bh_audit_append(d->audit, &e, &err);
        if (rc == BH_OK)
            rc = write_note(d, &t, &err);
        rc = bh_life_end(d, rc, &err);
    }
    if (rc < 0) {
        bh_decide_later(d, &err);
        return;
    }
    rc = begin(d, &t, &err);
    if (rc < 0) {
        bh_daemon_say(d, "L%llu: %s", (unsigned long long)run->lease, err.msg);
        (void)settle(d, &t, &err, false, &lost);
        show_moved(d, &t, false);
    }
}

/* The words of a note. Of none, or of words that nobody knows: BH_SLEEP_WHATS. */
static enum bh_sleep_what what_is(const char *text, bool *ret_ordered)
{
    for (unsigned k = 0; k < BH_SLEEP_WHATS; k++) {
        const char *more = bh_str_starts(text, whats[k].word) ? text + strlen(whats[k].word) : NULL;
        if (!more || (*more && !bh_str_eq(more, BY_ITSELF)))
            continue;
        *ret_ordered = !*more;
        return (enum bh_sleep_what)k;
    }
    return BH_SLEEP_WHATS;
}

int bh_sleep_what_resumes(struct bh_daemon *d, const struct bh_life *run, enum bh_sleep_what *ret,
                          struct bh_err *err)
{
    char asleep[32], order[32];
    bool ordered;
    int rc = read_note(d, NOTE_ASLEEP, run->lease, asleep, err);
    if (rc == BH_OK)
        rc = read_note(d, NOTE_ORDER, run->lease, order, err);
    if (rc < 0)
        return rc;
    const enum bh_sleep_what last = what_is(order, &ordered);
    *ret = *asleep || (last < BH_SLEEP_WHATS && whats[last].moves) ? BH_SLEEP_WAKE : BH_SLEEP_RESUME;
    return BH_OK;
}

/* Of an earlier daemon, or of this one where the governor did not answer. */
static void repeat(struct bh_daemon *d)
{
    struct bh_arena arena = {0};
    bh_store_notes notes = {0};
    struct bh_err err;
    const int rc = bh_store_notes_list(d->store, &arena, NOTE_ORDER, &notes, &err);
    d->sleepers.repeated = rc == BH_OK;
    for (size_t i = 0; rc == BH_OK && i < notes.n; i++) {
        struct bh_sleep_task t = {.ordered = true, .again = true};
        t.what = what_is(bh_arena_strn(&arena, notes.at[i].value, notes.at[i].n), &t.ordered);
        const struct bh_life *run =
            bh_uint_parse(notes.at[i].key + strlen(NOTE_ORDER), UINT64_MAX, &t.lease, NULL) < 0
                ? NULL
                : bh_life_of_lease(d, t.lease);
        if (!is_active(run) || t.what == BH_SLEEP_WHATS) {
            (void)!bh_store_note_remove(d->store, notes.at[i].key, &err); /* or at the next start */
            continue;
        }
        if (is_under_way(d, t.lease))
            continue;
        if (begin(d, &t, &err) < 0)
            d->sleepers.repeated = false;
    }
    bh_vec_fini(&notes);
    bh_arena_fini(&arena);
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

/* Somebody did: most policies have nobody who did, and then no lease is looked at. */
static bool anybody_agreed(const struct bh_daemon *d)
{
    const struct bh_policy *p = d->book.policy;
    for (size_t i = 0; p && i < p->tenants.n; i++)
        if (p->tenants.at[i].idle.sleep_after_ms)
            return true;
    return false;
}

struct look {
    uint64_t busy_ns, cpu_ns;
    bool there; /* the governor knows it */
    bool suspended, paused;
    bool known; /* its sensors answer, and it has something on a card */
};

/* By itself, as the books say: a governor that began anew has forgotten it. */
static bool sleeps_alone(struct bh_daemon *d, uint64_t lease)
{
    const struct bh_sleep_idle *idle = idle_of(d, lease);
    struct bh_err err;
    char note[32];
    if (idle)
        return idle->by_itself;
    return read_note(d, NOTE_ASLEEP, lease, note, &err) == BH_OK && bh_str_eq(note, "idle");
}

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
        l.there = true;
        l.busy_ns += r->busy_ns;
        l.suspended = l.suspended || r->state == BH_GOVERN_SHOWN_SUSPENDED;
        l.paused = l.paused || r->state == BH_GOVERN_SHOWN_PAUSED;
        l.known = l.known || (r->gpu != UINT32_MAX && r->seen);
    }
    l.known = (l.known || l.suspended || (l.there && sleeps_alone(d, run->lease))) && d->has_cgroups &&
              bh_cgroup_cpu_ns(&d->cgroups, bh_spec_cgroup(d, &arena, run->lease), &l.cpu_ns);
    bh_arena_fini(&arena);
    return l;
}

static struct bh_sleep_idle *meet(struct bh_daemon *d, const struct bh_life *run, const struct look *l)
{
    struct bh_sleep_idle *idle = idle_of(d, run->lease);
    if (idle)
        return idle;
    const bool by_itself = sleeps_alone(d, run->lease); /* an earlier daemon put it to sleep */
    idle = bh_vec_push(&d->sleepers.idle);
    *idle = (struct bh_sleep_idle){.lease = run->lease,
                                   .busy_ns = l->busy_ns,
                                   .cpu_ns = l->cpu_ns,
                                   .seen_ms = bh_daemon_now(d),
                                   .active_ms = d->last_ms,
                                   .by_itself = by_itself};
    return idle;
}

static void judge(struct bh_daemon *d, const struct bh_life *run, uint64_t agreed_ms, const struct look *l)
{
    struct bh_sleep_idle *idle = meet(d, run, l);
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
    if (is_under_way(d, run->lease) || now < idle->again_ms)
        return;
    const struct bh_admit_idle ask = {.now_ms = now,
                                      .active_ms = idle->active_ms,
                                      .woken_ms = idle->woken_ms,
                                      .agreed_ms = agreed_ms,
                                      .can = BH_CAN_SUSPEND,
                                      .wanted = true};
    uint64_t at;
    const bool sleeps = !l->suspended && bh_admit_sleep(&ask, &at) == BH_SLEEP_NOW;
    const bool wakes = idle->by_itself && works; /* whatever the governor remembers */
    if (sleeps || wakes)
        begin_alone(d, run, wakes ? BH_SLEEP_WAKE : BH_SLEEP_SUSPEND);
}

/* ---- who is held ---- */

/* A governor that began anew has forgotten whom somebody paused; the books have not. One whose memory is away does nothing anyway. */
static void hold(struct bh_daemon *d, const struct bh_life *run, const struct look *l)
{
    const struct bh_sleep_task t = {
        .lease = run->lease, .what = BH_SLEEP_PAUSE, .ordered = true, .again = true};
    struct bh_err err;
    char asleep[32];
    if (!l->there || l->paused || l->suspended || is_under_way(d, run->lease) ||
        read_note(d, NOTE_ASLEEP, run->lease, asleep, &err) < 0 || *asleep)
        return;
    if (begin(d, &t, &err) < 0)
        bh_daemon_say(d, "L%llu cannot be paused: %s", (unsigned long long)run->lease, err.msg);
}

/* Notes of leases that are over. */
static int sweep_kind(struct bh_daemon *d, const char *kind, struct bh_err *err)
{
    struct bh_arena arena = {0};
    bh_store_notes notes = {0};
    int rc = bh_store_notes_list(d->store, &arena, kind, &notes, err);
    for (size_t i = 0; rc == BH_OK && i < notes.n; i++) {
        uint64_t lease;
        if (bh_uint_parse(notes.at[i].key + strlen(kind), UINT64_MAX, &lease, NULL) < 0 ||
            !bh_life_of_lease(d, lease))
            rc = bh_store_note_remove(d->store, notes.at[i].key, err);
    }
    bh_vec_fini(&notes);
    bh_arena_fini(&arena);
    return rc;
}

static void sweep(struct bh_daemon *d)
{
    struct bh_err err;
    d->sleepers.swept = sweep_kind(d, NOTE_ASLEEP, &err) == BH_OK && sweep_kind(d, NOTE_ORDER, &err) == BH_OK;
}

/* held: it is time to look at those who are held, too. */
static void look_at_all(struct bh_daemon *d, bool held)
{
    struct bh_governor_all all = {0};
    struct bh_err err;
    if (bh_governor_list(&all, PATIENCE_MS, &err) == BH_OK)
        for (size_t i = 0; i < d->runs.n && !d->broken_until_ms; i++) {
            const struct bh_life *run = d->runs.at[i];
            const uint64_t agreed_ms = agreed(d, run);
            const bool is_held = held && run->held_off && is_active(run);
            const struct look l = agreed_ms || is_held ? look_at(d, run, &all) : (struct look){0};
            if (l.known && agreed_ms)
                judge(d, run, agreed_ms, &l);
            if (is_held)
                hold(d, run, &l);
        }
    bh_governor_all_fini(&all);
}

void bh_sleep_tick(struct bh_daemon *d)
{
    const bool some_agreed = anybody_agreed(d), look_held = bh_daemon_now(d) >= d->sleepers.held_ms;
    bool any = false, held = false;
    for (size_t i = d->sleepers.idle.n; i-- > 0;)
        if (!bh_life_of_lease(d, d->sleepers.idle.at[i].lease)) {
            d->sleepers.idle.at[i] = d->sleepers.idle.at[--d->sleepers.idle.n];
            d->sleepers.swept = false;
        }
    for (size_t i = 0; i < d->runs.n && (some_agreed || look_held) && !(any && held); i++) {
        any = any || (some_agreed && agreed(d, d->runs.at[i]) != 0);
        held = held || (look_held && d->runs.at[i]->held_off && is_active(d->runs.at[i]));
    }
    if (d->broken_until_ms || bh_store_in_transaction(d->store))
        return;
    if (!d->sleepers.swept)
        sweep(d);
    if (!d->sleepers.repeated)
        repeat(d);
    if (any || held)
        look_at_all(d, held);
    if (look_held)
        d->sleepers.held_ms = d->last_ms + HELD_MS;
}

void bh_sleep_fini(struct bh_daemon *d)
{
    while (d->sleepers.tasks.n)
        drop(d, d->sleepers.tasks.at[0]);
    bh_vec_fini(&d->sleepers.tasks);
    bh_vec_fini(&d->sleepers.idle);
    bh_vec_fini(&d->sleepers.unknown);
}
