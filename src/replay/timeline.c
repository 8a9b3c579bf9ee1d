/* SPDX-License-Identifier: Apache-2.0 */
#include "replay/timeline.h"

#include "replay/clock.h"
#include "replay/estate.h"
#include "replay/policy_bulkhead.h"

#include <inttypes.h>
#include <string.h>

enum where { NOT_YET, WAITING, RUNNING, DONE, TOO_LARGE };
#define FNV_START UINT64_C(0xcbf29ce484222325)
#define FNV_PRIME UINT64_C(0x100000001b3)

struct live {
    uint64_t left_s, since_s; /* left when it was last started or stopped */
    uint32_t place;           /* in the heap, while running */
    uint8_t where;
    bool stopped; /* before, so that going on costs */
};

struct run {
    const struct bh_jobs *jobs;
    const struct bh_timeline_setup *setup;
    const struct bh_timeline_policy *policy;
    void *self;
    struct bh_timeline_result *result;
    struct live *at;
    bh_job_ids heap; /* what runs, the next end first */
    struct bh_moves moves;
    BH_VEC(uint64_t) decide_ns;
    uint64_t now_s, first_s, last_arrival_s;
    uint32_t next_arrival, used_gpus, n_waits;
    uint64_t *weight, *wanted, *used, *fair_milli, *may_have; /* for each tenant */
    bool shares_stale;
};

const struct bh_timeline_policy *const bh_timeline_policies[] = {
    &bh_baselines[0], &bh_baselines[1], &bh_baselines[2], &bh_baselines[3], &bh_policy_bulkhead, NULL,
};

const struct bh_timeline_policy *bh_timeline_find(const char *name)
{
    for (size_t i = 0; bh_timeline_policies[i]; i++)
        if (strcmp(bh_timeline_policies[i]->name, name) == 0)
            return bh_timeline_policies[i];
    return NULL;
}

/* ---- what runs, by its end ---- */

static uint64_t end_of(const struct run *r, uint32_t job)
{
    return r->at[job].since_s + r->at[job].left_s;
}

static bool ends_before(const struct run *r, uint32_t a, uint32_t b)
{
    const uint64_t x = end_of(r, a), y = end_of(r, b);
    return x != y ? x < y : a < b;
}

static void put(struct run *r, size_t i, uint32_t job)
{
    r->heap.at[i] = job;
    r->at[job].place = (uint32_t)i;
}

static void sift(struct run *r, size_t i)
{
    const uint32_t job = r->heap.at[i];
    for (; i && ends_before(r, job, r->heap.at[(i - 1) / 2]); i = (i - 1) / 2)
        put(r, i, r->heap.at[(i - 1) / 2]);
    for (;;) {
        size_t child = 2 * i + 1;
        if (child + 1 < r->heap.n && ends_before(r, r->heap.at[child + 1], r->heap.at[child]))
            child++;
        if (child >= r->heap.n || !ends_before(r, r->heap.at[child], job))
            break;
        put(r, i, r->heap.at[child]);
        i = child;
    }
    put(r, i, job);
}

static void heap_add(struct run *r, uint32_t job)
{
    *bh_vec_push(&r->heap) = job;
    sift(r, r->heap.n - 1);
}

static void heap_remove(struct run *r, uint32_t job)
{
    const size_t i = r->at[job].place;
    const uint32_t last = r->heap.at[--r->heap.n];
    if (last == job)
        return;
    r->heap.at[i] = last;
    sift(r, i);
}

/* ---- shares ---- */

void bh_fair_shares(uint32_t gpus, const uint64_t *weight, const uint64_t *wanted_gpus, size_t n,
                    uint64_t *ret_milli)
{
    uint64_t left = (uint64_t)gpus * 1000;
    bool is_full[BH_JOB_TENANTS] = {false};
    memset(ret_milli, 0, n * sizeof(*ret_milli));
    for (bool again = true; again && left;) {
        unsigned __int128 weights = 0;
        uint64_t given = 0;
        again = false;
        for (size_t i = 0; i < n; i++)
            if (!is_full[i] && ret_milli[i] < wanted_gpus[i] * 1000)
                weights += weight[i];
        for (size_t i = 0; i < n && weights; i++) {
            if (is_full[i] || ret_milli[i] >= wanted_gpus[i] * 1000)
                continue;
            const uint64_t part = (uint64_t)((unsigned __int128)left * weight[i] / weights);
            if (wanted_gpus[i] * 1000 > part)
                continue;
            ret_milli[i] = wanted_gpus[i] * 1000;
            given += ret_milli[i];
            is_full[i] = again = true; /* what it leaves goes round once more */
        }
        left -= given;
        if (again)
            continue;
        for (size_t i = 0; i < n && weights; i++)
            if (!is_full[i] && wanted_gpus[i])
                ret_milli[i] = (uint64_t)((unsigned __int128)left * weight[i] / weights);
    }
}

static void add_to_buckets(struct run *r, uint64_t from_s, uint64_t to_s)
{
    struct bh_timeline_result *x = r->result;
    while (from_s < to_s) {
        const uint64_t bucket = (from_s - r->first_s) / x->bucket_s;
        const uint64_t end = r->first_s + (bucket + 1) * x->bucket_s, stop = end < to_s ? end : to_s;
        if (bucket >= BH_TIMELINE_BUCKETS)
            return;
        for (size_t i = 0; i < x->n_tenants; i++)
            x->used[bucket * x->n_tenants + i] += r->used[i] * (stop - from_s);
        from_s = stop;
    }
}

/* What would be fair now; nobody gets what its quota or its pools do not allow. */
static void divide(struct run *r)
{
    const struct bh_estate *estate = r->setup->estate;
    for (size_t i = 0; i < r->result->n_tenants; i++) {
        const uint64_t most = estate ? estate->tenants.at[i].most : r->setup->gpus;
        r->may_have[i] = r->wanted[i] < most ? r->wanted[i] : most;
    }
    bh_fair_shares(r->setup->gpus, r->weight, r->may_have, r->result->n_tenants, r->fair_milli);
}

/* What was true since now_s stays true until to_s: add it up, as far as jobs still arrive. */
static void pass_time(struct run *r, uint64_t to_s)
{
    const uint64_t until = to_s < r->last_arrival_s ? to_s : r->last_arrival_s;
    if (until > r->now_s) {
        const uint64_t dt = until - r->now_s;
        if (r->shares_stale)
            divide(r);
        r->shares_stale = false;
        for (size_t i = 0; i < r->result->n_tenants; i++) {
            struct bh_tenant_result *t = &r->result->tenant[i];
            const uint64_t used = r->used[i] * 1000, fair = r->fair_milli[i];
            t->used_gpu_s += r->used[i] * dt;
            t->fair_gpu_s += fair * dt;
            t->off_gpu_s += (used > fair ? used - fair : fair - used) * dt;
            t->short_gpu_s += (fair > used ? fair - used : 0) * dt;
        }
        r->result->used_gpu_s += (uint64_t)r->used_gpus * dt;
        add_to_buckets(r, r->now_s, until);
    }
    r->now_s = to_s;
}

/* ---- moves ---- */

static void note(struct run *r, char kind, uint32_t job)
{
    const uint64_t words[] = {(uint64_t)(unsigned char)kind, r->now_s, job};
    for (size_t i = 0; i < BH_COUNT_OF(words); i++)
        r->result->digest = (r->result->digest ^ words[i]) * FNV_PRIME;
}

static int fault(const struct run *r, const char *verb, uint32_t job, struct bh_err *err)
{
    return bh_fail(err, BH_CONFLICT,
                   "policy '%s' wants to %s job %" PRIu32 " at second %" PRIu64 ", which is not possible",
                   r->policy->name, verb, job, r->now_s);
}

static int stop_job(struct run *r, uint32_t job, struct bh_err *err)
{
    if (job >= r->jobs->at.n || r->at[job].where != RUNNING)
        return fault(r, "stop", job, err);
    struct live *l = &r->at[job];
    const struct bh_job *j = &r->jobs->at.at[job];
    heap_remove(r, job);
    l->left_s -= r->now_s - l->since_s;
    l->where = WAITING;
    l->stopped = true;
    r->used_gpus -= j->gpus;
    r->used[j->tenant] -= j->gpus;
    r->result->stops++;
    note(r, '-', job);
    return BH_OK;
}

static int start_job(struct run *r, uint32_t job, struct bh_err *err)
{
    if (job >= r->jobs->at.n || r->at[job].where != WAITING ||
        r->jobs->at.at[job].gpus > r->setup->gpus - r->used_gpus)
        return fault(r, "start", job, err);
    struct live *l = &r->at[job];
    const struct bh_job *j = &r->jobs->at.at[job];
    if (l->stopped) {
        l->left_s += r->setup->restart_s;
        r->result->restart_gpu_s += r->setup->restart_s * j->gpus;
    }
    l->since_s = r->now_s;
    l->where = RUNNING;
    heap_add(r, job);
    r->used_gpus += j->gpus;
    r->used[j->tenant] += j->gpus;
    r->result->starts++;
    note(r, '+', job);
    return BH_OK;
}

static int decide(struct run *r, struct bh_err *err)
{
    int rc = BH_OK;
    r->moves.start.n = r->moves.stop.n = 0;
    const uint64_t began = bh_clock_ns();
    r->policy->decide(r->self, r->now_s, &r->moves);
    *bh_vec_push(&r->decide_ns) = bh_clock_ns() - began;
    for (size_t i = 0; i < r->moves.stop.n && rc == BH_OK; i++)
        rc = stop_job(r, r->moves.stop.at[i], err);
    for (size_t i = 0; i < r->moves.start.n && rc == BH_OK; i++)
        rc = start_job(r, r->moves.start.at[i], err);
    return rc;
}

/* ---- events ---- */

static void arrive(struct run *r)
{
    for (; r->next_arrival < r->jobs->at.n; r->next_arrival++) {
        const uint32_t job = r->next_arrival;
        const struct bh_job *j = &r->jobs->at.at[job];
        if (j->submit_s > r->now_s)
            return;
        if (r->at[job].where == TOO_LARGE)
            continue;
        r->at[job] = (struct live){.left_s = j->duration_s, .where = WAITING};
        r->wanted[j->tenant] += j->gpus;
        r->shares_stale = true;
        r->policy->arrived(r->self, job, r->now_s);
    }
}

static void finish(struct run *r)
{
    while (r->heap.n && end_of(r, r->heap.at[0]) <= r->now_s) {
        const uint32_t job = r->heap.at[0];
        const struct bh_job *j = &r->jobs->at.at[job];
        struct bh_tenant_result *t = &r->result->tenant[j->tenant];
        const uint64_t wait = r->now_s - j->submit_s - j->duration_s;
        heap_remove(r, job);
        r->at[job].where = DONE;
        r->used_gpus -= j->gpus;
        r->used[j->tenant] -= j->gpus;
        r->wanted[j->tenant] -= j->gpus;
        r->shares_stale = true;
        r->result->waits[r->n_waits++] = wait;
        t->wait_s += wait;
        if (j->deadline_s != BH_JOB_NO_DEADLINE && r->now_s > j->deadline_s)
            t->missed++;
        r->policy->ended(r->self, job, r->now_s);
    }
}

/* The next second in which something happens, or BH_NEVER_S. */
static uint64_t next_event(const struct run *r)
{
    uint64_t at = r->policy->wake ? r->policy->wake(r->self, r->now_s) : BH_NEVER_S;
    if (r->heap.n && end_of(r, r->heap.at[0]) < at)
        at = end_of(r, r->heap.at[0]);
    if (r->next_arrival < r->jobs->at.n && r->jobs->at.at[r->next_arrival].submit_s < at)
        at = r->jobs->at.at[r->next_arrival].submit_s;
    return at;
}

static int play(struct run *r, struct bh_err *err)
{
    int rc = BH_OK;
    for (uint64_t at = next_event(r); at != BH_NEVER_S && rc == BH_OK; at = next_event(r)) {
        if (at > r->now_s)
            pass_time(r, at);
        finish(r);
        arrive(r);
        rc = decide(r, err);
    }
    if (rc == BH_OK && r->n_waits != r->result->jobs)
        return bh_fail(err, BH_CONFLICT, "policy '%s' never ends %" PRIu32 " of %" PRIu32 " jobs",
                       r->policy->name, r->result->jobs - r->n_waits, r->result->jobs);
    return rc;
}

/* ---- before and after ---- */

static void begin(struct run *r)
{
    struct bh_timeline_result *x = r->result;
    const struct bh_estate *estate = r->setup->estate;
    const size_t n = r->jobs->at.n, tenants = r->jobs->tenants.n;
    *x = (struct bh_timeline_result){.n_tenants = tenants, .digest = FNV_START};
    x->tenant = bh_alloc(tenants + 1, sizeof(*x->tenant));
    x->used = bh_alloc(tenants * BH_TIMELINE_BUCKETS + 1, sizeof(*x->used));
    x->waits = bh_alloc(n + 1, sizeof(*x->waits));
    r->at = bh_alloc(n + 1, sizeof(*r->at));
    r->weight = bh_alloc(5 * tenants + 1, sizeof(*r->weight));
    r->wanted = r->weight + tenants;
    r->used = r->wanted + tenants;
    r->fair_milli = r->used + tenants;
    r->may_have = r->fair_milli + tenants;
    r->first_s = r->now_s = r->jobs->at.at[0].submit_s;
    r->last_arrival_s = r->jobs->at.at[n - 1].submit_s;
    x->window_s = r->last_arrival_s - r->first_s;
    x->bucket_s = x->window_s / BH_TIMELINE_BUCKETS + 1;
    for (size_t i = 0; i < n; i++) {
        const struct bh_job *j = &r->jobs->at.at[i];
        struct bh_tenant_result *t = &x->tenant[j->tenant];
        if (r->setup->shares_by_demand &&
            __builtin_add_overflow(r->weight[j->tenant], j->gpus * j->duration_s, &r->weight[j->tenant]))
            r->weight[j->tenant] = UINT64_MAX;
        if (j->gpus > (estate ? estate->tenants.at[j->tenant].most : r->setup->gpus)) {
            r->at[i].where = TOO_LARGE;
            x->too_large++;
            continue;
        }
        x->jobs++;
        t->jobs++;
        t->deadlines += j->deadline_s != BH_JOB_NO_DEADLINE;
    }
    for (size_t i = 0; i < tenants && !r->setup->shares_by_demand; i++)
        r->weight[i] = estate ? estate->tenants.at[i].weight : 1;
}

static void sum_up(struct run *r)
{
    struct bh_timeline_result *x = r->result;
    uint64_t sum = 0;
    x->makespan_s = r->now_s - r->first_s;
    bh_sort_values(x->waits, r->n_waits);
    for (size_t i = 0; i < x->n_tenants; i++) {
        struct bh_tenant_result *t = &x->tenant[i];
        t->fair_gpu_s /= 1000; /* were added up in thousandths */
        t->off_gpu_s /= 1000;
        t->short_gpu_s /= 1000;
        x->deadlines += t->deadlines;
        x->missed += t->missed;
        sum += t->wait_s;
    }
    x->wait_mean_s = r->n_waits ? sum / r->n_waits : 0;
    x->wait_p50_s = bh_percentile(x->waits, r->n_waits, 50);
    x->wait_p99_s = bh_percentile(x->waits, r->n_waits, 99);
    x->wait_max_s = bh_percentile(x->waits, r->n_waits, 100);
    bh_sort_values(r->decide_ns.at, r->decide_ns.n);
    x->decides = r->decide_ns.n;
    x->decide_p50_ns = bh_percentile(r->decide_ns.at, r->decide_ns.n, 50);
    x->decide_p99_ns = bh_percentile(r->decide_ns.at, r->decide_ns.n, 99);
}

int bh_timeline_run(const struct bh_jobs *jobs, const struct bh_timeline_setup *setup,
                    const struct bh_timeline_policy *policy, struct bh_timeline_result *ret,
                    struct bh_err *err)
{
    struct run r = {.jobs = jobs, .setup = setup, .policy = policy, .shares_stale = true};
    struct bh_timeline_result result;
    if (jobs->at.n == 0)
        return bh_fail(err, BH_INVALID, "needs a job that asks for a GPU, has none");
    r.result = &result;
    begin(&r);
    r.self = policy->new_(policy, jobs, setup, r.weight);
    int rc = play(&r, err);
    policy->free_(r.self);
    sum_up(&r);
    bh_vec_fini(&r.heap);
    bh_vec_fini(&r.moves.start);
    bh_vec_fini(&r.moves.stop);
    bh_vec_fini(&r.decide_ns);
    free(r.at);
    free(r.weight);
    if (rc < 0)
        bh_timeline_result_fini(&result);
    else
        *ret = result;
    return rc;
}

void bh_timeline_result_fini(struct bh_timeline_result *r)
{
    free(r->tenant);
    free(r->waits);
    free(r->used);
    *r = (struct bh_timeline_result){0};
}
