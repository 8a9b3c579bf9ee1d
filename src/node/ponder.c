/* SPDX-License-Identifier: Apache-2.0 */
/* ponder.c - one child for a question, its answer in shared memory, and a few answers kept. */
#include "node/ponder.h"

#include "base/str.h"
#include "core/sched/whatif_search.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { NICE = 10, US_OF_MS = 1000 };

/* What an answer was worked out from: the same of these is the same answer, for a moment. */
struct state {
    const struct bh_sched *sched;
    uint64_t digest, version;
    size_t runs;
};

struct bh_ponder {
    struct bh_daemon *of;
    char caller[128];
    struct bh_ponder_question question;
    struct state state;
    uint64_t now_ms; /* of the question */
    struct bh_worker worker;
    sd_event_source *source, *timer;
    struct bh_ponder_answer *found; /* shared with the child */
    BH_VEC(uint64_t) tickets;
};

struct bh_ponder_kept {
    uint64_t job, at_ms;
    struct state state;
    struct bh_ponder_answer found;
};

static struct state state_of(const struct bh_daemon *d)
{
    return (struct state){.sched = d->sched,
                          .digest = bh_sched_digest(d->sched),
                          .version = d->book.version,
                          .runs = d->runs.n};
}

static bool same_state(const struct state *a, const struct state *b)
{
    return a->sched == b->sched && a->digest == b->digest && a->version == b->version && a->runs == b->runs;
}

/* ---- in the child ---- */

static void take_steps(struct bh_ponder_answer *ret, const bh_changes *steps)
{
    ret->n_steps = steps->n < BH_PONDER_STEPS ? (uint32_t)steps->n : BH_PONDER_STEPS;
    if (ret->n_steps)
        memcpy(ret->steps, steps->at, ret->n_steps * sizeof(*ret->steps));
}

static void search(struct bh_ponder *p)
{
    struct bh_sched *s = p->of->sched;
    struct bh_remedy_config config;
    struct bh_remedy remedy = {0};
    struct bh_whatif w;
    p->found->is_known = bh_explain(s, NULL, p->question.job, p->now_ms, &p->found->verdict);
    if (!p->found->is_known || p->found->verdict.tier == BH_WAIT_NOT)
        return;
    bh_remedy_config_init(&config);
    bh_whatif_init(&w, s, NULL, p->now_ms);
    bh_remedy_find(&w, s, p->question.job, &config, &remedy);
    take_steps(p->found, &remedy.steps);
    bh_remedy_fini(&remedy);
    bh_whatif_fini(&w);
}

static void try_changes(struct bh_ponder *p)
{
    struct bh_whatif w;
    struct bh_trial trial;
    bh_whatif_init(&w, p->of->sched, NULL, p->now_ms);
    p->found->code = bh_trial_begin(&w, p->question.changes, p->question.n_changes, &trial, &p->found->err);
    if (p->found->code == BH_OK) {
        p->found->starts = bh_trial_runs(&trial, p->question.job);
        p->found->is_known = bh_explain(trial.sched, NULL, p->question.job, trial.now_ms, &p->found->verdict);
        bh_trial_end(&trial);
    }
    bh_whatif_fini(&w);
}

static void ponder(const void *arg, struct bh_worker_result *ret)
{
    struct bh_ponder *p = *(struct bh_ponder *const *)arg;
    (void)ret;
    (void)prctl(PR_SET_NAME, "bulkhead-why", 0, 0, 0);
    (void)!nice(NICE); /* whoever has work to do comes first */
    if (p->question.is_if)
        try_changes(p);
    else
        search(p);
    p->found->is_over = true;
}

/* ---- in the daemon ---- */

/* Before its descriptor is closed (worker.h). */
static void hear_no_more(struct bh_ponder *p)
{
    p->source = sd_event_source_disable_unref(p->source);
    p->timer = sd_event_source_disable_unref(p->timer);
}

static void end(struct bh_ponder *p)
{
    hear_no_more(p);
    bh_worker_kill(&p->worker);
    (void)munmap(p->found, sizeof(*p->found));
    bh_vec_fini(&p->tickets);
    free(p);
}

static void forget(struct bh_ponder *p)
{
    struct bh_daemon *d = p->of;
    for (size_t i = 0; i < d->ponders.n; i++)
        if (d->ponders.at[i] == p)
            d->ponders.at[i] = d->ponders.at[--d->ponders.n];
    end(p);
}

static void keep(struct bh_daemon *d, const struct bh_ponder *p)
{
    if (p->question.is_if || !p->found->is_over)
        return;
    if (!d->pondered)
        d->pondered = bh_alloc(BH_PONDER_KEPT, sizeof(*d->pondered));
    d->pondered[d->pondered_next++ % BH_PONDER_KEPT] = (struct bh_ponder_kept){
        .job = p->question.job, .at_ms = p->now_ms, .state = p->state, .found = *p->found};
}

static void tell(struct bh_ponder *p, int rc, struct bh_err *err)
{
    struct bh_daemon *d = p->of;
    /* Queues are numbered by the policy that was in force when it was asked. */
    if (rc == BH_OK && p->state.version != d->book.version)
        rc = bh_fail(err, BH_BUSY, "the policy changed while it was being worked out; ask again");
    else if (rc == BH_OK)
        keep(d, p);
    bh_why_told(d, p->tickets.at, p->tickets.n, p->found, rc, err);
    forget(p);
}

static int on_found(sd_event_source *source, int fd, uint32_t events, void *arg)
{
    struct bh_ponder *p = arg;
    struct bh_worker_result result;
    struct bh_err err = {0};
    (void)source;
    (void)fd;
    (void)events;
    hear_no_more(p);
    bh_worker_finish(&p->worker, &result);
    tell(p, result.code == BH_OK ? BH_OK : bh_fail(&err, BH_SYSTEM, "%s", result.text), &err);
    return 0;
}

static int on_late(sd_event_source *source, uint64_t usec, void *arg)
{
    struct bh_ponder *p = arg;
    struct bh_err err = {0};
    (void)source;
    (void)usec;
    hear_no_more(p);
    bh_worker_kill(&p->worker); /* what it wrote before stays as it is from here on */
    const bool some = p->found->is_known;
    tell(p, some ? BH_OK : bh_fail(&err, BH_BUSY, "it was not worked out in %d s", BH_PONDER_MS / 1000),
         &err);
    return 0;
}

static int start(struct bh_ponder *p, struct bh_err *err)
{
    struct bh_daemon *d = p->of;
    void *shared = mmap(NULL, sizeof(*p->found), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        return bh_fail(err, BH_SYSTEM, "mmap: %s", strerror(errno));
    p->found = shared;
    int rc = bh_worker_start(ponder, &p, &p->worker, err);
    if (rc == BH_OK && (sd_event_add_io(d->loop, &p->source, p->worker.fd, EPOLLIN, on_found, p) < 0 ||
                        sd_event_add_time_relative(d->loop, &p->timer, CLOCK_MONOTONIC,
                                                   (uint64_t)BH_PONDER_MS * US_OF_MS, 0, on_late, p) < 0))
        rc = bh_fail(err, BH_SYSTEM, "the loop takes no more");
    return rc;
}

/* Who is under way already: the same question is joined, another of the same caller is refused. */
static int look_around(struct bh_daemon *d, const char *caller, const struct bh_ponder_question *q,
                       struct bh_ponder **ret_same, struct bh_err *err)
{
    const struct state now = state_of(d);
    bool has_one = false;
    *ret_same = NULL;
    for (size_t i = 0; i < d->ponders.n; i++) {
        struct bh_ponder *p = d->ponders.at[i];
        has_one |= bh_str_eq(p->caller, caller);
        if (!q->is_if && !p->question.is_if && p->question.job == q->job && same_state(&p->state, &now))
            *ret_same = p;
    }
    if (*ret_same && (*ret_same)->tickets.n < BH_PONDER_JOINED)
        return BH_OK;
    if (has_one)
        return bh_fail(err, BH_BUSY, "another question of yours is still being worked out");
    if (*ret_same || d->ponders.n >= BH_PONDER_MOST)
        return bh_fail(err, BH_BUSY, "questions of others are still being worked out");
    return BH_OK;
}

int bh_ponder_ask(struct bh_daemon *d, const char *caller, const struct bh_ponder_question *q,
                  uint64_t ticket, struct bh_err *err)
{
    struct bh_ponder *p;
    int rc = look_around(d, caller, q, &p, err);
    if (rc == BH_OK && !p) {
        p = bh_alloc(1, sizeof(*p));
        *p = (struct bh_ponder){
            .of = d, .question = *q, .state = state_of(d), .now_ms = bh_daemon_now(d), .worker = {.fd = -1}};
        (void)snprintf(p->caller, sizeof(p->caller), "%s", caller);
        rc = start(p, err);
        if (rc == BH_OK) {
            *bh_vec_push(&d->ponders) = p;
        } else if (p->found) {
            forget(p);
        } else {
            free(p);
        }
    }
    if (rc == BH_OK)
        *bh_vec_push(&p->tickets) = ticket;
    return rc;
}

const struct bh_ponder_answer *bh_ponder_kept(const struct bh_daemon *d, uint64_t job)
{
    const struct state now = state_of(d);
    for (size_t i = 0; d->pondered && i < BH_PONDER_KEPT; i++) {
        const struct bh_ponder_kept *k = &d->pondered[i];
        if (k->job == job && same_state(&k->state, &now) && d->last_ms <= k->at_ms + BH_PONDER_KEPT_MS)
            return &k->found;
    }
    return NULL;
}

void bh_ponder_fini(struct bh_daemon *d)
{
    for (size_t i = 0; i < d->ponders.n; i++)
        end(d->ponders.at[i]);
    bh_vec_fini(&d->ponders);
    free(d->pondered);
    d->pondered = NULL;
}
