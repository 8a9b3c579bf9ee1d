/* SPDX-License-Identifier: Apache-2.0 */
/* sleep.c - orders, by somebody or by the daemon itself: written, carried out by a process that asks the governor, and settled. */
#include "node/sleep_inside.h"

#include "base/str.h"
#include "base/units.h"
#include "launch/governor.h"
#include "launch/suspend.h"
#include "node/decide.h"
#include "node/life.h"

#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>

enum {
    UNKNOWN_MS = 30000,    /* a governor that began anew may not know a lease for so long */
    AGAIN_MS = 2000,       /* before what failed is tried again by itself; twice as long each time ... */
    AGAIN_MOST_MS = 300000 /* ... and at most this */
};

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

const char *bh_sleep_name(uint64_t lease, char text[24])
{
    (void)snprintf(text, 24, "L%llu", (unsigned long long)lease);
    return text;
}

static const char *note_of(const char *kind, uint64_t lease, char text[32])
{
    (void)snprintf(text, 32, "%s%llu", kind, (unsigned long long)lease);
    return text;
}

struct bh_sleep_idle *bh_sleep_idle_of(struct bh_daemon *d, uint64_t lease)
{
    for (size_t i = 0; i < d->sleepers.idle.n; i++)
        if (d->sleepers.idle.at[i].lease == lease)
            return &d->sleepers.idle.at[i];
    return NULL;
}

bool bh_sleep_is_under_way(const struct bh_daemon *d, uint64_t lease)
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
                                   .object_id = bh_sleep_name(t->lease, id)};
}

bool bh_sleep_is_active(const struct bh_life *run)
{
    return run && run->state == BH_LEASE_ACTIVE;
}

/* ret "": there is no such note. */
int bh_sleep_read_note(struct bh_daemon *d, const char *kind, uint64_t lease, char ret[32],
                       struct bh_err *err)
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
    const int rc = bh_sleep_read_note(d, BH_SLEEP_NOTE, lease, there, err);
    return rc < 0 || *there ? rc
                            : bh_store_note_set_text(d->store, note_of(BH_SLEEP_NOTE, lease, note),
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
        return bh_store_note_remove(d->store, note_of(BH_SLEEP_NOTE, t->lease, note), err);
    /* Of one that is paused as well, or was to sleep in vain: whom somebody holds does not wake by being used. */
    if (rc == BH_OK && t->what == BH_SLEEP_PAUSE)
        rc = bh_sleep_read_note(d, BH_SLEEP_NOTE, t->lease, there, err);
    return rc == BH_OK && (*there || t->what == BH_SLEEP_SUSPEND)
               ? bh_store_note_set_text(d->store, note_of(BH_SLEEP_NOTE, t->lease, note),
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
    else if (bh_sleep_is_active(run))
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
    struct bh_sleep_idle *idle = bh_sleep_idle_of(d, t->lease);
    if (done && bh_sleep_is_active(run)) {
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
    const bool yet = (rc == BH_NOT_FOUND || rc == BH_CONFLICT) && t->again && bh_sleep_is_active(run) &&
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

int bh_sleep_begin(struct bh_daemon *d, const struct bh_sleep_task *what, struct bh_err *err)
{
    struct order o = {.what = what->what};
    (void)bh_sleep_name(what->lease, o.lease);
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
    if (bh_sleep_is_under_way(d, run->lease))
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
    const int rc = bh_sleep_begin(d, &t, err);
    if (rc < 0)
        (void)settle(d, &t, err, false, &lost);
    return rc == BH_OK ? BH_API_LATER : rc;
}

/* By itself. The record and the note of it are durable before it begins, as those of an order are. */
void bh_sleep_begin_alone(struct bh_daemon *d, const struct bh_life *run, enum bh_sleep_what what)
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
    rc = bh_sleep_begin(d, &t, &err);
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
    int rc = bh_sleep_read_note(d, BH_SLEEP_NOTE, run->lease, asleep, err);
    if (rc == BH_OK)
        rc = bh_sleep_read_note(d, NOTE_ORDER, run->lease, order, err);
    if (rc < 0)
        return rc;
    const enum bh_sleep_what last = what_is(order, &ordered);
    *ret = *asleep || (last < BH_SLEEP_WHATS && whats[last].moves) ? BH_SLEEP_WAKE : BH_SLEEP_RESUME;
    return BH_OK;
}

/* Of an earlier daemon, or of this one where the governor did not answer. */
void bh_sleep_repeat(struct bh_daemon *d)
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
        if (!bh_sleep_is_active(run) || t.what == BH_SLEEP_WHATS) {
            (void)!bh_store_note_remove(d->store, notes.at[i].key, &err); /* or at the next start */
            continue;
        }
        if (bh_sleep_is_under_way(d, t.lease))
            continue;
        if (bh_sleep_begin(d, &t, &err) < 0)
            d->sleepers.repeated = false;
    }
    bh_vec_fini(&notes);
    bh_arena_fini(&arena);
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

void bh_sleep_sweep(struct bh_daemon *d)
{
    struct bh_err err;
    d->sleepers.swept =
        sweep_kind(d, BH_SLEEP_NOTE, &err) == BH_OK && sweep_kind(d, NOTE_ORDER, &err) == BH_OK;
}

void bh_sleep_fini(struct bh_daemon *d)
{
    while (d->sleepers.tasks.n)
        drop(d, d->sleepers.tasks.at[0]);
    bh_vec_fini(&d->sleepers.tasks);
    bh_vec_fini(&d->sleepers.idle);
    bh_vec_fini(&d->sleepers.unknown);
}
