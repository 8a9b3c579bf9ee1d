/* SPDX-License-Identifier: Apache-2.0 */
/*
 * why.c - why a job waits and what would start it, from the scheduler that decides it.
 *
 * A sentence names nobody but the job's own tenant: whoever asks may not be allowed to see the others. Who holds what it
 * waits for stands in rows of its own, which the API shows to those who may.
 */
#include "node/life.h"
#include "node/ops.h"
#include "node/ponder.h"
#include "node/rule.h"

#include <stdio.h>

enum { WAITS_MS = 5000 };

static const char *tenant_of(const struct bh_daemon *d, uint32_t queue, struct bh_arena *a)
{
    const uint32_t t = bh_admit_queue_tenant(d->book.admit, queue);
    return t == BH_NONE ? NULL : bh_arena_str(a, d->book.policy->tenants.at[t].name);
}

static const char *gpus(struct bh_arena *a, uint64_t milli)
{
    if (milli % BH_GPU_MILLI == 0)
        return bh_arena_printf(a, "%llu GPU%s", (unsigned long long)(milli / BH_GPU_MILLI),
                               milli == BH_GPU_MILLI ? "" : "s");
    return bh_arena_printf(a, "%llu.%03llu GPUs", (unsigned long long)(milli / BH_GPU_MILLI),
                           (unsigned long long)(milli % BH_GPU_MILLI));
}

/* Idle GPUs that are not for it, and what refuses it there. */
static const char *withheld(struct bh_arena *a, const struct bh_verdict *v)
{
    static const char *const words[BH_HINDERS] = {
        [BH_HINDER_NOT] = "",
        [BH_HINDER_TRUST] = "another tenant is beside them, and one of the two will not share",
        [BH_HINDER_KINDS] = "they are divided in another way, or beside work that is to be apart from it",
        [BH_HINDER_CPU] = "too few processors are left for one more",
        [BH_HINDER_MEMORY] = "too little host memory is left for one more",
        [BH_HINDER_GPU_MEMORY] = "too little GPU memory is left for one more",
        [BH_HINDER_HOLDS] = "no more pieces of work are taken there",
        [BH_HINDER_PARTS] = "its parts do not find a place each at once",
    };
    return bh_arena_printf(a, "it needs %s, and %s that are free cannot be used: %s", gpus(a, v->need),
                           gpus(a, v->withheld ? v->withheld : v->free), words[v->hinder]);
}

static const char *sentence_of(struct bh_arena *a, const struct bh_verdict *v)
{
    switch (v->tier) {
    case BH_WAIT_NOT:
        return "it does not wait";
    case BH_WAIT_MISCONFIGURED:
        return "no GPU of this machine could ever take it: model, pool or size";
    case BH_WAIT_EXCEEDS:
        return "even with nobody else here there is no place for all of it";
    case BH_WAIT_LIMIT:
        return "its tenant, or a group above it, has all that its quota allows";
    case BH_WAIT_FIRM:
        return "it may not be interrupted, and its tenant has all that it is entitled to";
    case BH_WAIT_TURN:
        return bh_arena_printf(a, "%u come before it", v->ahead);
    case BH_WAIT_ROOM:
        return bh_arena_printf(a, "it needs %s, and %s free", gpus(a, v->need),
                               v->free ? bh_arena_printf(a, "only %s are", gpus(a, v->free)) : "none is");
    case BH_WAIT_SHAPE:
        return bh_arena_printf(a, "it needs %s together; %s are free, at most %s of them in one place",
                               gpus(a, v->need), gpus(a, v->free), gpus(a, v->group));
    case BH_WAIT_WITHHELD:
        return withheld(a, v);
    case BH_WAIT_RESERVED:
        return "there is room, and it is kept for somebody who waits longer";
    case BH_WAIT_VICTIMS:
        return "those who would make room have not run for their least time yet";
    case BH_WAIT_LEAVING:
        return "it has its place; those who had it are leaving";
    default:
        return "it was not looked at yet";
    }
}

static void fill(const struct bh_daemon *d, const struct bh_verdict *v, struct bh_arena *a,
                 struct bh_api_why *ret)
{
    ret->tier = bh_wait_names[v->tier];
    ret->sentence = sentence_of(a, v);
    ret->need_milli = v->need;
    ret->free_milli = v->free;
    ret->ahead = v->ahead;
    ret->until_ms = v->until_ms == BH_NEVER_MS ? 0 : v->until_ms;
    for (uint32_t i = 0; i < v->n_holders; i++)
        *bh_vec_push(&ret->holders) =
            (struct bh_api_holder){.job = v->holders[i].job,
                                   .milli = v->holders[i].milli,
                                   .end_ms = v->holders[i].end_ms == BH_NEVER_MS ? 0 : v->holders[i].end_ms,
                                   .tenant = tenant_of(d, v->holders[i].queue, a)};
}

static void add_step(const struct bh_daemon *d, const struct bh_change *c, struct bh_arena *a,
                     struct bh_api_why *ret)
{
    struct bh_api_remedy *r = bh_vec_push(&ret->remedies);
    const struct bh_life *run = c->job ? bh_life_of_job(d, c->job) : NULL;
    *r = (struct bh_api_remedy){.milli = c->milli, .at_ms = c->kind == BH_CHANGE_WAIT ? c->at_ms : 0};
    switch (c->kind) {
    case BH_CHANGE_WAIT:
        r->kind = "wait";
        r->sentence = "wait: it starts then, if all end when they said";
        break;
    case BH_CHANGE_MOVE:
    case BH_CHANGE_FREE:
        r->kind = c->kind == BH_CHANGE_MOVE ? "move" : "free";
        r->tenant = run ? bh_arena_str(a, run->tenant) : NULL;
        r->sentence = bh_arena_printf(a, "%s J%llu, which has %s: bulkhead cancel J%llu",
                                      c->kind == BH_CHANGE_MOVE ? "move" : "end", (unsigned long long)c->job,
                                      gpus(a, c->milli), (unsigned long long)c->job);
        break;
    case BH_CHANGE_QUOTA:
        r->kind = "quota";
        r->tenant = tenant_of(d, c->queue, a);
        r->milli = c->to;
        r->sentence = bh_arena_printf(a, "raise the quota of %s from %llu to %llu thousandths in the policy",
                                      r->tenant ? r->tenant : "a group above", (unsigned long long)c->from,
                                      (unsigned long long)c->to);
        break;
    case BH_CHANGE_ADD:
        r->kind = "add";
        r->milli = (uint64_t)c->nodes * c->gpus * BH_GPU_MILLI;
        r->sentence = bh_arena_printf(a, "add %s", gpus(a, r->milli));
        break;
    default:
        r->kind = "health";
        r->sentence = "put a GPU back into service: bulkhead resume";
    }
}

/* What was found, as it stands now in words. */
static void words_of(const struct bh_daemon *d, const struct bh_ponder_answer *found, struct bh_arena *a,
                     struct bh_api_why *ret)
{
    ret->starts = found->starts;
    if (found->is_known)
        fill(d, &found->verdict, a, ret);
    for (size_t i = 0; i < found->n_steps; i++)
        add_step(d, &found->steps[i], a, ret);
    if (!found->is_over)
        *bh_vec_push(&ret->remedies) = (struct bh_api_remedy){
            .kind = "unknown", .sentence = "what would start it was not found in the time that a search has"};
}

void bh_why_told(struct bh_daemon *d, const uint64_t *tickets, size_t n, const struct bh_ponder_answer *found,
                 int rc, const struct bh_err *err)
{
    struct bh_arena arena = {0};
    struct bh_api_why why = {0};
    const bool refused = rc == BH_OK && found->code < 0;
    if (refused)
        rc = found->code;
    if (rc == BH_OK)
        words_of(d, found, &arena, &why);
    for (size_t i = 0; i < n; i++)
        bh_api_answer_why(d->api, tickets[i], rc, &why, refused ? &found->err : err);
    bh_vec_fini(&why.holders);
    bh_vec_fini(&why.remedies);
    bh_arena_fini(&arena);
}

int bh_ops_why(void *self, const struct bh_api_caller *by, uint64_t job, uint64_t ticket,
               struct bh_arena *arena, struct bh_api_why *ret, struct bh_err *err)
{
    struct bh_daemon *d = self;
    const struct bh_life *run = bh_life_of_job(d, job);
    const struct bh_ponder_question question = {.job = job};
    if (run && run->held_ms && bh_life_waits(run)) {
        ret->tier = "set aside";
        ret->sentence = run->held;
        return BH_OK;
    }
    if (!d->sched || !run || !run->known)
        return bh_fail(err, BH_CONFLICT, "J%llu does not wait", (unsigned long long)job);
    const struct bh_ponder_answer *kept = bh_ponder_kept(d, job);
    if (kept) {
        words_of(d, kept, arena, ret);
        return BH_OK;
    }
    const int rc = bh_ponder_ask(d, by->principal, &question, ticket, err);
    return rc == BH_OK ? BH_API_LATER : rc;
}

/*
 * For lists. A list may have thousands of rows and be asked for all the time, so a sentence is kept for a while, and only so many are
 * worked out between two ticks: the rest keep the one they have.
 */
const char *bh_ops_waits(void *self, uint64_t job)
{
    struct bh_daemon *d = self;
    struct bh_life *run = bh_life_of_job(d, job);
    struct bh_arena arena = {0};
    struct bh_verdict v;
    if (!run || !bh_life_waits(run))
        return NULL;
    if (run->held_ms)
        return run->held;
    if (d->sched && d->whys_left && (!run->waits_ms || d->last_ms > run->waits_ms + WAITS_MS)) {
        d->whys_left--;
        run->waits_ms = d->last_ms;
        const bool known = bh_explain(d->sched, NULL, job, d->last_ms, &v) && v.tier != BH_WAIT_NOT;
        bh_life_note(&run->waits, known ? sentence_of(&arena, &v) : "");
        bh_arena_fini(&arena);
    }
    return run->waits;
}

/* ---- and if ---- */

static int change_of(const struct bh_daemon *d, const struct bh_api_change *c, struct bh_change *ret,
                     struct bh_err *err)
{
    *ret = (struct bh_change){.kind = BH_CHANGE_NONE};
    if (c->kind == BH_API_CHANGE_END_JOB) {
        ret->kind = BH_CHANGE_FREE;
        ret->job = c->job;
        return BH_OK;
    }
    if (c->kind == BH_API_CHANGE_GPUS)
        return bh_fail(
            err, BH_REFUSED,
            "GPUs that are not there yet are tried with a scenario file: bulkhead what-if -s FILE");
    for (size_t i = 0; i < d->book.policy->tenants.n; i++)
        if (c->tenant && strcmp(d->book.policy->tenants.at[i].name, c->tenant) == 0) {
            ret->kind = BH_CHANGE_QUOTA;
            ret->queue = bh_admit_queue(d->book.admit, (uint32_t)i);
            ret->part = BH_PART_LIMIT;
            ret->res = BH_RES_GPU;
            ret->to = c->gpus_milli;
            return BH_OK;
        }
    return bh_fail(err, BH_NOT_FOUND, "the policy has no tenant '%.63s'", c->tenant ? c->tenant : "");
}

int bh_ops_what_if(void *self, const struct bh_api_caller *by, const struct bh_api_whatif *what,
                   uint64_t ticket, struct bh_err *err)
{
    struct bh_daemon *d = self;
    struct bh_ponder_question question = {.job = what->job, .is_if = true};
    int rc = BH_OK;
    if (!d->sched || !what->job)
        return bh_fail(err, BH_REFUSED, "only a job that waits can be asked about: submit it first");
    if (what->n_changes > BH_PONDER_STEPS)
        return bh_fail(err, BH_TOO_LARGE, "no more than %d changes are tried at a time", BH_PONDER_STEPS);
    while (rc == BH_OK && question.n_changes < what->n_changes) {
        const uint32_t i = question.n_changes++;
        rc = change_of(d, &what->changes[i], &question.changes[i], err);
    }
    if (rc == BH_OK)
        rc = bh_ponder_ask(d, by->principal, &question, ticket, err);
    return rc == BH_OK ? BH_API_LATER : rc;
}
