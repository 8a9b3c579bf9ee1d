/* SPDX-License-Identifier: Apache-2.0 */
/* decide.c - events in, decisions out and into the store. */
#include "node/decide.h"

#include "base/str.h"
#include "node/life.h"
#include "node/mech/mech.h"
#include "node/note.h"
#include "node/rule.h"

#include <stdio.h>
#include <time.h>

enum { STEPS = 2000000, BROKEN_MS = 1000, HOLD_MS = 30000, PAGE = 1000 };

static int apply(void *context, const struct bh_sched_event *e, struct bh_err *err)
{
    struct bh_daemon *d = context;
    return bh_sched_apply(d->sched, e, err);
}

/* ---- what is there already ---- */

/* The places that the grants of a lease are: for each member the GPUs of one part. */
static int places_of(struct bh_daemon *d, const struct bh_life *run, struct bh_arena *arena,
                     struct bh_spot *ret, struct bh_err *err)
{
    bh_store_grants grants = {0};
    const uint32_t each = run->terms.request.n_gpus ? run->terms.request.n_gpus : 1;
    int rc = bh_store_lease_grants(d->store, arena, run->lease, &grants, err);
    if (rc == BH_OK && grants.n < (size_t)run->terms.members * each)
        rc = bh_fail(err, BH_CONFLICT, "L%llu has %zu slices, and its job asks for %u",
                     (unsigned long long)run->lease, grants.n, run->terms.members * each);
    for (size_t i = 0; rc == BH_OK && i < (size_t)run->terms.members * each; i++) {
        struct bh_gpu_ref ref;
        struct bh_spot *spot = &ret[i / each];
        uint32_t gpu;
        if (!bh_silicon_ref(&d->silicon, grants.at[i].slice.gpu, &ref) ||
            !bh_admit_locate(d->book.admit, ref, &spot->node, &gpu))
            rc = bh_fail(err, BH_NOT_FOUND, "L%llu has a slice of %s, which no pool has any more",
                         (unsigned long long)run->lease, grants.at[i].slice.gpu);
        else
            spot->gpus |= (uint16_t)(1u << gpu);
        (void)bh_mech_start_of(grants.at[i].slice.key, &spot->mig_start);
    }
    bh_vec_fini(&grants);
    return rc;
}

static int say_found(struct bh_daemon *d, struct bh_life *run, const struct bh_gang_spec *job,
                     struct bh_err *err)
{
    struct bh_arena arena = {0};
    struct bh_spot *places = bh_arena_alloc(&arena, run->terms.members * sizeof(*places));
    int rc = places_of(d, run, &arena, places, err);
    const struct bh_sched_event e = {.kind = BH_SCHED_FOUND,
                                     .at_ms = d->last_ms,
                                     .id = run->job,
                                     .job = job,
                                     .places = places,
                                     .n_places = run->terms.members};
    if (rc == BH_OK)
        rc = bh_sched_apply(d->sched, &e, err);
    bh_arena_fini(&arena);
    return rc;
}

int bh_decide_submit(struct bh_daemon *d, struct bh_life *run, const struct bh_gang_spec *job,
                     struct bh_err *err)
{
    const struct bh_sched_event e = {
        .kind = BH_SCHED_SUBMIT, .at_ms = bh_daemon_now(d), .id = run->job, .job = job};
    const int rc = bh_sched_apply(d->sched, &e, err);
    run->known = rc == BH_OK;
    return rc;
}

static bool is_held_for(const struct bh_life *run, const char *words)
{
    return run->held && strcmp(run->held, words) == 0;
}

/* As if the scheduler did not know it, for a while. */
static void hold(struct bh_daemon *d, struct bh_life *run, const char *words)
{
    if (!is_held_for(run, words))
        bh_daemon_say(d, "J%llu: %s", (unsigned long long)run->job, words);
    run->held_ms = bh_daemon_now(d) + HOLD_MS;
    d->any_held = true;
    bh_life_note(&run->held, words);
}

static bool is_to_be_known(const struct bh_daemon *d, const struct bh_life *run)
{
    return d->sched && run->after != BH_AFTER_NOTHING && !run->held_ms;
}

/* row: its job. It may be gone from the table afterwards. */
static void take_up_as(struct bh_daemon *d, struct bh_life *run, const struct bh_store_job *row)
{
    struct bh_gang_spec job;
    struct bh_admit_grant grant;
    struct bh_admit_refusal why;
    struct bh_err err;
    int rc = BH_OK;
    const uint64_t id = run->job;
    const struct bh_admit_ask ask = bh_rule_ask(row);
    if (!bh_rule_judge(&d->book, &ask, &job, &run->terms, &grant, &why)) {
        if (why.code == BH_ADMIT_NOT_HERE)
            hold(d, run, why.what); /* a tool that is missing today may be there tomorrow */
        else
            bh_life_disallow(d, run, why.what);
    } else if (!bh_life_waits(run)) {
        rc = say_found(d, run, &job, &err);
        run->known = rc == BH_OK;
    } else {
        rc = bh_decide_submit(d, run, &job, &err);
    }
    if (rc < 0)
        bh_daemon_say(d, "J%llu is not scheduled: %s", (unsigned long long)id, err.msg);
}

void bh_decide_take_up(struct bh_daemon *d, struct bh_life *run)
{
    struct bh_arena arena = {0};
    struct bh_store_job row;
    struct bh_err err;
    run->known = false;
    if (!is_to_be_known(d, run))
        return;
    const int rc = bh_store_job_get(d->store, &arena, run->job, &row, &err);
    if (rc < 0)
        bh_decide_later(d, &err);
    else
        take_up_as(d, run, &row);
    bh_arena_fini(&arena);
}

/*
 * All of them, by pages of jobs that have not ended: one question for each of ten thousand would be most of a start. What is
 * left is about jobs that have ended and are being cleared.
 */
static void take_up_all(struct bh_daemon *d)
{
    const struct bh_store_job_filter live = {.states = 1u << BH_JOB_WAITING | 1u << BH_JOB_RUNNING,
                                             .brief = true};
    struct bh_store_page page = {.limit = PAGE};
    bool more = true;
    for (size_t i = 0; i < d->runs.n; i++)
        d->runs.at[i]->known = d->runs.at[i]->taken = false;
    while (more) {
        struct bh_arena arena = {0};
        bh_store_jobs rows = {0};
        struct bh_err err;
        const int rc = bh_store_jobs_list(d->store, &arena, &live, &page, &rows, &err);
        if (rc < 0)
            bh_decide_later(d, &err);
        for (size_t i = 0; rc == BH_OK && i < rows.n; i++) {
            struct bh_life *run = bh_life_of_job(d, rows.at[i].id);
            page.after = rows.at[i].id;
            if (!run || run->taken)
                continue;
            run->taken = true;
            if (is_to_be_known(d, run))
                take_up_as(d, run, &rows.at[i]);
        }
        more = rc == BH_OK && rows.n == page.limit;
        bh_vec_fini(&rows);
        bh_arena_fini(&arena);
    }
    for (size_t i = d->runs.n; i-- > 0;) /* one that is refused leaves its place to the last */
        if (!d->runs.at[i]->taken)
            bh_decide_take_up(d, d->runs.at[i]);
}

/* What is there of somebody whom the scheduler knows nothing of cannot be given away by it. */
static enum bh_health health_with(struct bh_daemon *d, const struct bh_store_slice *slice)
{
    if (slice->state == BH_SLICE_QUARANTINED && slice->name.kind != BH_SLICE_SHARE)
        return BH_HEALTH_QUARANTINED;
    const struct bh_life *run = slice->lease ? bh_life_of_lease(d, slice->lease) : NULL;
    return slice->state == BH_SLICE_FREE || (run && run->known) ? BH_HEALTH_OK : BH_HEALTH_CORDON;
}

static enum bh_health health_of(struct bh_daemon *d, const char *uuid)
{
    struct bh_arena arena = {0};
    struct bh_store_card card;
    bh_store_slices slices = {0};
    struct bh_err err;
    enum bh_health health = BH_HEALTH_OK;
    if (bh_store_card_get(d->store, &arena, uuid, &card, &err) < 0 ||
        bh_store_slices_list(d->store, &arena, uuid, 0, &slices, &err) < 0) {
        bh_daemon_say(d, "%s: %s", uuid, err.msg);
        health = BH_HEALTH_CORDON; /* not known to be well */
    } else {
        if (card.cordoned_ms || card.health == BH_CARD_SUSPECT)
            health = BH_HEALTH_CORDON;
        if (card.health == BH_CARD_BAD)
            health = BH_HEALTH_QUARANTINED; /* who was on it was ended with the same step (health.c) */
        for (size_t i = 0; i < slices.n; i++) {
            const enum bh_health so = health_with(d, &slices.at[i]);
            health = so == BH_HEALTH_OK || health == BH_HEALTH_QUARANTINED ? health : so;
        }
    }
    bh_vec_fini(&slices);
    bh_arena_fini(&arena);
    return health;
}

void bh_decide_health(struct bh_daemon *d, const char *uuid)
{
    struct bh_gpu_ref ref;
    uint32_t node, gpu;
    struct bh_err err;
    if (!d->sched || !bh_silicon_ref(&d->silicon, uuid, &ref) ||
        !bh_admit_locate(d->book.admit, ref, &node, &gpu))
        return;
    const struct bh_sched_event e = {.kind = BH_SCHED_HEALTH,
                                     .at_ms = bh_daemon_now(d),
                                     .id = node,
                                     .gpu = gpu,
                                     .health = health_of(d, uuid)};
    if (bh_sched_apply(d->sched, &e, &err) < 0)
        bh_daemon_say(d, "health of %s: %s", uuid, err.msg);
    bh_daemon_due(d);
}

void bh_decide_cards(struct bh_daemon *d, uint64_t lease)
{
    struct bh_arena arena = {0};
    bh_store_grants grants = {0};
    struct bh_err err;
    if (bh_store_lease_grants(d->store, &arena, lease, &grants, &err) < 0)
        bh_decide_later(d, &err);
    for (size_t i = 0; i < grants.n; i++)
        bh_decide_health(d, grants.at[i].slice.gpu);
    bh_vec_fini(&grants);
    bh_arena_fini(&arena);
}

static void take_refusals(struct bh_daemon *d)
{
    size_t n;
    const struct bh_sched_refusal *at = bh_sched_refusals(d->sched, &n);
    for (size_t i = 0; i < n; i++) {
        struct bh_life *run = bh_life_of_job(d, at[i].id);
        if (run && (at[i].kind == BH_SCHED_FOUND || at[i].kind == BH_SCHED_SUBMIT))
            run->known = false;
        bh_daemon_say(d, "the scheduler took no event %d of %llu: %s", (int)at[i].kind,
                      (unsigned long long)at[i].id, at[i].why.msg);
    }
}

int bh_decide_anew(struct bh_daemon *d, struct bh_err *err)
{
    struct bh_sched_config config;
    bh_sched_free(d->sched);
    d->sched = NULL;
    if (!d->book.admit)
        return BH_OK;
    (void)bh_daemon_now(d);
    bh_sched_config_init(&config);
    d->sched = bh_sched_new(&config);
    int rc = bh_admit_fleet(d->book.admit, NULL, d->last_ms, apply, d, err);
    if (rc < 0)
        return rc;
    take_up_all(d);
    bh_sched_settle(d->sched);
    take_refusals(d);
    const struct bh_fleet *f = bh_silicon_fleet(&d->silicon);
    for (size_t i = 0; f && i < f->nodes.at[0].gpus.n; i++)
        if (f->nodes.at[0].gpus.at[i].uuid)
            bh_decide_health(d, f->nodes.at[0].gpus.at[i].uuid);
    bh_daemon_due(d);
    return BH_OK;
}

void bh_decide_tell(struct bh_daemon *d, enum bh_sched_event_kind kind, struct bh_life *run)
{
    struct bh_err err;
    const struct bh_sched_event e = {.kind = kind, .at_ms = bh_daemon_now(d), .id = run->job};
    if (!d->sched || !run->known)
        return;
    if (bh_sched_apply(d->sched, &e, &err) < 0)
        bh_daemon_say(d, "J%llu: %s", (unsigned long long)run->job, err.msg);
    bh_daemon_due(d);
}

/* ---- decisions ---- */

static const char *rung_words(const struct bh_decision *dec)
{
    static const char *const words[] = {[BH_RUNG_NARROW] = "made narrower",
                                        [BH_RUNG_PAUSE] = "paused",
                                        [BH_RUNG_SUSPEND] = "suspended",
                                        [BH_RUNG_REQUEUE] = "requeued",
                                        [BH_RUNG_KILL] = "ended"};
    return dec->rung < BH_COUNT_OF(words) ? words[dec->rung] : "ended";
}

static int write_start(struct bh_daemon *d, struct bh_life *run, const struct bh_decision *dec,
                       struct bh_err *err)
{
    const struct bh_place *places = bh_sched_places(d->sched, dec);
    BH_VEC(struct bh_store_grant) grants = {0};
    struct bh_arena arena = {0};
    int rc = BH_OK;
    for (uint32_t i = 0; rc == BH_OK && i < dec->n_places; i++) {
        struct bh_admit_slice slices[BH_NODE_GPUS];
        const size_t n = bh_admit_slices(d->book.admit, &run->terms.request, &places[i].spot, slices);
        for (size_t k = 0; rc == BH_OK && k < n; k++) {
            const bool whole = slices[k].kind == BH_SLICE_WHOLE;
            struct bh_slice_name name;
            rc = bh_mech_name(d, &slices[k], &arena, &name, err);
            *bh_vec_push(&grants) = (struct bh_store_grant){
                .slice = name, .milli = whole ? BH_GPU_MILLI : slices[k].milli, .mib = slices[k].mib};
        }
    }
    if (rc == BH_OK)
        rc = bh_life_write_grant(d, run, grants.at, grants.n, err);
    bh_vec_fini(&grants);
    bh_arena_fini(&arena);
    return rc;
}

static int write_evict(struct bh_daemon *d, struct bh_life *run, const struct bh_decision *dec,
                       struct bh_err *err)
{
    char why[160] = "its place is needed no more";
    if (dec->kind == BH_DECIDE_MOVE)
        (void)snprintf(why, sizeof(why), "a GPU of it failed");
    else if (dec->why == BH_FOR_JOB)
        (void)snprintf(why, sizeof(why), "%s for J%llu, which comes before it", rung_words(dec),
                       (unsigned long long)dec->other);
    else if (dec->why == BH_FOR_BROKEN)
        (void)snprintf(why, sizeof(why), "a part of it was lost");
    run->moved = dec->kind == BH_DECIDE_MOVE;
    const bool back = dec->kind == BH_DECIDE_MOVE || dec->rung != BH_RUNG_KILL || dec->why == BH_FOR_BROKEN;
    return bh_life_write_evict(d, run,
                               run->after == BH_AFTER_CANCELLED ? BH_AFTER_CANCELLED
                               : back                           ? BH_AFTER_WAITS
                                                                : BH_AFTER_ENDS,
                               dec->kind == BH_DECIDE_MOVE ? BH_LEASE_BY_FAULT : BH_LEASE_BY_EVICT, why, err);
}

static bool is_start(const struct bh_decision *dec)
{
    return dec->kind == BH_DECIDE_START || dec->kind == BH_DECIDE_RESUME;
}

static int write_one(struct bh_daemon *d, const struct bh_decision *dec, struct bh_err *err)
{
    struct bh_life *run = bh_life_of_job(d, dec->job);
    if (!run)
        return bh_fail(err, BH_CONFLICT, "the scheduler speaks of J%llu, which nobody knows",
                       (unsigned long long)dec->job);
    return is_start(dec) ? write_start(d, run, dec, err) : write_evict(d, run, dec, err);
}

/* All of it or nothing: one that cannot be written leaves the others as they are. */
static int write_alone(struct bh_daemon *d, const struct bh_decision *dec, struct bh_err *err)
{
    struct bh_life *run = bh_life_of_job(d, dec->job);
    const struct bh_life before = run ? *run : (struct bh_life){0};
    int rc = bh_store_begin(d->store, err);
    if (rc < 0)
        return rc;
    rc = write_one(d, dec, err);
    if (rc == BH_OK)
        rc = bh_store_commit(d->store, err);
    else
        bh_store_rollback(d->store);
    if (rc < 0 && run)
        *run = before;
    return rc;
}

/*
 * Its job is set aside for a while, as if the scheduler did not know it: else the same would be decided again at once, for
 * ever, and nothing else. In the log once for each reason. Fails where it was the disk that failed.
 */
static int set_aside(struct bh_daemon *d, const struct bh_decision *dec, const char *why, struct bh_err *err)
{
    struct bh_life *run = bh_life_of_job(d, dec->job);
    char words[240];
    (void)snprintf(words, sizeof(words), "set aside for a while, for %s could not be written down: %.120s",
                   is_start(dec) ? "its start" : "that it has to go", why);
    const bool is_new = !run || !is_held_for(run, words);
    const int rc = is_new ? bh_note_job(d, BH_AUDIT_ALLOC_DENY, dec->job, run ? run->tenant : NULL,
                                        "set aside", words, err)
                          : BH_OK;
    if (rc < 0)
        return rc;
    if (run)
        hold(d, run, words);
    return BH_OK;
}

/* Durable when it returns BH_OK. refused[i]: the i-th is not, and is set aside. */
static int write_all(struct bh_daemon *d, const struct bh_decision *at, size_t n, bool *refused,
                     struct bh_err *err)
{
    int rc = bh_store_begin(d->store, err);
    if (rc < 0)
        return rc;
    for (size_t i = 0; rc == BH_OK && i < n; i++) {
        struct bh_err why;
        refused[i] = write_alone(d, &at[i], &why) < 0;
        if (refused[i])
            rc = set_aside(d, &at[i], why.msg, err);
    }
    if (rc == BH_OK)
        return bh_store_commit(d->store, err);
    bh_store_rollback(d->store);
    return rc;
}

static void act(struct bh_daemon *d, const struct bh_decision *dec)
{
    struct bh_life *run = bh_life_of_job(d, dec->job);
    if (is_start(dec))
        bh_life_prepare(d, run);
    else
        bh_life_go_on(d, run);
}

/* The scheduler forgets what it decided. False: it cannot be told, and is to be made anew. */
static bool withdrawn(struct bh_daemon *d, const struct bh_decision *dec)
{
    struct bh_life *run = bh_life_of_job(d, dec->job);
    if (!run || !is_start(dec))
        return false;
    bh_decide_tell(d, BH_SCHED_FINISH, run);
    run->known = false;
    return true;
}

void bh_decide_later(struct bh_daemon *d, const struct bh_err *why)
{
    bh_daemon_say(d, "nothing is decided for a moment: %s", why->msg);
    d->meter.store_failures++;
    (void)snprintf(d->checks.store, sizeof(d->checks.store), "%.190s", why->msg);
    if (!d->broken_until_ms) /* what fails meanwhile does not put it off */
        d->broken_until_ms = bh_daemon_now(d) + BROKEN_MS;
    d->due = true;
}

/* What was believed is forgotten, what is written is true. */
static bool recovered(struct bh_daemon *d)
{
    struct bh_err err;
    if (!d->broken_until_ms)
        return true;
    if (bh_daemon_now(d) < d->broken_until_ms)
        return false;
    d->broken_until_ms = 0;
    int rc = bh_life_load(d, &err);
    if (rc == BH_OK)
        rc = bh_decide_anew(d, &err);
    if (rc == BH_OK)
        bh_life_take_up(d);
    if (rc < 0)
        bh_decide_later(d, &err);
    return !d->broken_until_ms;
}

static void decide(struct bh_daemon *d)
{
    struct bh_err err;
    size_t n = 0;
    d->due = false;
    if (!recovered(d) || !d->sched || d->stopping)
        return;
    const struct bh_decision *at = bh_sched_decide(d->sched, bh_daemon_now(d), STEPS, &n);
    take_refusals(d);
    BH_AUTOFREE bool *refused = bh_alloc(n + 1, sizeof(*refused));
    if (n && write_all(d, at, n, refused, &err) < 0) {
        bh_decide_later(d, &err);
        return;
    }
    const bool more = bh_sched_stats(d->sched).more;
    /* what is done may be told to the scheduler at once, which forgets its answer then */
    BH_AUTOFREE struct bh_decision *mine = bh_alloc(n, sizeof(*mine));
    if (n)
        memcpy(mine, at, n * sizeof(*mine));
    bool again = false;
    for (size_t i = 0; i < n; i++)
        if (refused[i])
            again |= !withdrawn(d, &mine[i]);
        else
            act(d, &mine[i]);
    if (again && !d->broken_until_ms && bh_decide_anew(d, &err) < 0)
        bh_decide_later(d, &err);
    if (more)
        bh_daemon_due(d);
}

static uint64_t clock_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

void bh_decide(struct bh_daemon *d)
{
    const uint64_t began = clock_us();
    decide(d);
    bh_meter_cycle(&d->meter, clock_us() - began);
}

/* ---- those that are set aside ---- */

bool bh_decide_check(const struct bh_daemon *d, struct bh_arena *arena, struct bh_api_check *ret)
{
    const struct bh_life *first = NULL;
    size_t n = 0;
    for (size_t i = 0; d->any_held && i < d->runs.n; i++)
        if (d->runs.at[i]->held_ms) {
            first = first ? first : d->runs.at[i];
            n++;
        }
    if (!n)
        return false;
    *ret = (struct bh_api_check){
        .layer = "scheduler",
        .state = "warn",
        .sentence = bh_arena_printf(arena, "%zu job%s set aside, one of them J%llu: %s", n,
                                    n == 1 ? " is" : "s are", (unsigned long long)first->job, first->held),
        .mend = "it is tried again by itself; where it stays so, cancel the job and report what is said"};
    return true;
}

void bh_decide_tick(struct bh_daemon *d)
{
    struct bh_err err;
    bool held = false, again = false;
    const uint64_t now_ms = bh_daemon_now(d);
    if (d->broken_until_ms || !d->any_held)
        return;
    for (size_t i = d->runs.n; i-- > 0;) { /* one that is refused leaves its place */
        struct bh_life *run = d->runs.at[i];
        if (!run->held_ms)
            continue;
        held = true;
        if (now_ms < run->held_ms)
            continue;
        run->held_ms = 0;
        if (bh_life_waits(run))
            bh_decide_take_up(d, run);
        else
            again = true; /* what it has is the scheduler's again */
    }
    bh_checks_stale(d);
    d->any_held = held;
    if (again && bh_decide_anew(d, &err) < 0)
        bh_decide_later(d, &err);
}
