/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policy_bulkhead.c - what happens in the timeline becomes events of the scheduler, and its decisions moves.
 *
 * Each tenant is a queue that deserves its share; what others leave it may borrow, and gives back. Between its own jobs
 * a tenant is taken to want the small ones first: priority goes by the GPU time that is left, in steps that double. A
 * deadline counts once it is close, within the tenant's share. Durations are known ahead, as they are to srtf. A trace says how many
 * GPUs a job needs and not how they must stand together: a job is a gang of single GPUs that may be anywhere; with a
 * policy and a fleet (estate.h), anywhere in its tenant's pools and apart from those it must not meet. What is
 * stopped keeps what it has done, so it comes back as a job of what is left.
 */
#include "replay/policy_bulkhead.h"

#include "core/sched/reserve.h"
#include "replay/estate.h"

#include <assert.h>

enum {
    NODE_GPUS = 8,
    RESERVATIONS = 4,
    ROUNDS_MAX = 64,
    MIN_RUN_S = 600, /* a job that was started is left alone for a while: stopping costs */
    LOOK_AGAIN_S = 300,
};
static_assert((int)BH_JOB_GPUS_MAX <= (int)BH_MEMBERS_MAX, "a job of a trace is a gang of single GPUs");

struct work {
    uint64_t id;              /* the scheduler's name of it now */
    uint64_t left_s, since_s; /* left when it was last started or stopped */
    bool runs;
};

struct self {
    const struct bh_job *jobs;
    const struct bh_estate *estate; /* or NULL */
    uint64_t restart_s;
    struct bh_sched *sched;
    struct bh_reserve *reserve;
    struct work *at;
    uint32_t queue_of[BH_JOB_TENANTS];
    BH_VEC(uint32_t) job_of; /* by id - 1 */
    bh_job_ids gone;
    BH_VEC(uint64_t) starts; /* when, ascending; from next_safe on their minimum run time is not over */
    size_t next_safe;
    uint32_t n_running;
    uint64_t slack_s;          /* a deadline closer than this counts */
    BH_VEC(uint64_t) critical; /* when deadlines become so: a heap, the next first */
    uint64_t quiet_s;          /* nothing came of the last look: when to look again */
    bool stirred;              /* something happened since */
};

/* These events are made here, and cannot be wrong. */
static void tell(struct self *s, const struct bh_sched_event *e)
{
    struct bh_err err;
    if (bh_sched_apply(s->sched, e, &err) < 0)
        abort();
}

/* ---- the fleet and the queues ---- */

static void lay_fleet(struct self *s, uint32_t gpus)
{
    tell(s, &(struct bh_sched_event){.kind = BH_SCHED_MODEL});
    for (uint32_t i = 0; i * NODE_GPUS < gpus; i++) {
        const uint32_t left = gpus - i * NODE_GPUS;
        const struct bh_node_spec spec = {
            .domain = BH_NONE, .rank = i, .n_gpus = left < NODE_GPUS ? left : NODE_GPUS, .n_numa = 1};
        tell(s, &(struct bh_sched_event){.kind = BH_SCHED_NODE, .id = i, .node = &spec});
    }
}

/* In the order of their names: which file a tenant was first seen in is no reason to serve it first. */
static void number_queues(struct self *s, const struct bh_jobs *jobs)
{
    for (size_t i = 0; i < jobs->tenants.n; i++) {
        s->queue_of[i] = 1;
        for (size_t k = 0; k < jobs->tenants.n; k++)
            s->queue_of[i] += strcmp(jobs->tenants.at[k], jobs->tenants.at[i]) < 0;
    }
}

/* Shares in thousandths of a GPU, and in the units of a queue's weight. */
static void lay_queues(struct self *s, uint32_t gpus, const uint64_t *weight, size_t tenants)
{
    unsigned __int128 sum = 0;
    uint64_t most = 1;
    for (size_t i = 0; i < tenants; i++) {
        sum += weight[i];
        most = weight[i] > most ? weight[i] : most;
    }
    for (size_t i = 0; i < tenants; i++) {
        struct bh_queue_config c;
        bh_queue_config_init(&c);
        c.model = BH_QUOTA_PRIORITY;
        c.deserved.at[BH_RES_GPU] =
            sum ? (uint64_t)((unsigned __int128)gpus * BH_GPU_MILLI * weight[i] / sum) : 0;
        c.weight = (uint32_t)((unsigned __int128)weight[i] * (BH_WEIGHT_MAX - 1) / most) + 1;
        tell(s, &(struct bh_sched_event){.kind = BH_SCHED_QUEUE, .id = s->queue_of[i], .queue = &c});
    }
}

static void *new_(const struct bh_timeline_policy *policy, const struct bh_jobs *jobs,
                  const struct bh_timeline_setup *setup, const uint64_t *weight)
{
    const struct bh_reserve_config reserve = {.most = RESERVATIONS};
    struct self *s = bh_alloc(1, sizeof(*s));
    struct bh_sched_config c;
    (void)policy;
    bh_sched_config_init(&c);
    c.queues.divided = 1u << BH_RES_GPU;
    c.queues.quantum[BH_RES_GPU] = BH_GPU_MILLI;
    c.score = BH_SCORE_PACKING;
    s->jobs = jobs->at.at;
    s->restart_s = setup->restart_s;
    s->slack_s = c.queues.slack_ms / 1000;
    s->quiet_s = LOOK_AGAIN_S;
    s->sched = bh_sched_new(&c);
    s->reserve = bh_reserve_new(&reserve);
    s->at = bh_alloc(jobs->at.n + 1, sizeof(*s->at));
    bh_sched_set_veto(s->sched, bh_reserve_veto, s->reserve);
    s->estate = setup->estate;
    if (s->estate) {
        bh_estate_lay(s->estate, s->sched);
        for (size_t i = 0; i < jobs->tenants.n; i++)
            s->queue_of[i] = s->estate->tenants.at[i].queue;
        return s;
    }
    lay_fleet(s, setup->gpus);
    number_queues(s, jobs);
    lay_queues(s, setup->gpus, weight, jobs->tenants.n);
    return s;
}

static void free_(void *self)
{
    struct self *s = self;
    bh_sched_free(s->sched);
    bh_reserve_free(s->reserve);
    bh_vec_fini(&s->job_of);
    bh_vec_fini(&s->gone);
    bh_vec_fini(&s->starts);
    bh_vec_fini(&s->critical);
    free(s->at);
    free(s);
}

/* ---- events ---- */

static void critical_at(struct self *s, uint64_t at_s)
{
    (void)bh_vec_push(&s->critical);
    size_t i = s->critical.n - 1;
    for (; i && at_s < s->critical.at[(i - 1) / 2]; i = (i - 1) / 2)
        s->critical.at[i] = s->critical.at[(i - 1) / 2];
    s->critical.at[i] = at_s;
}

static void critical_pop(struct self *s)
{
    const uint64_t last = s->critical.at[--s->critical.n];
    size_t i = 0;
    for (;;) {
        size_t child = 2 * i + 1;
        if (child + 1 < s->critical.n && s->critical.at[child + 1] < s->critical.at[child])
            child++;
        if (child >= s->critical.n || s->critical.at[child] >= last)
            break;
        s->critical.at[i] = s->critical.at[child];
        i = child;
    }
    s->critical.at[i] = last;
}

static uint32_t doublings(uint64_t n)
{
    return 64 - (uint32_t)__builtin_clzll(n | 1);
}

static void submit(struct self *s, uint32_t job, uint64_t now_s)
{
    static const struct bh_request any = {
        .form = BH_FORM_WHOLE, .n_gpus = 1, .gpu_milli = BH_GPU_MILLI, .apart = BH_APART_NOTHING};
    const struct bh_job *j = &s->jobs[job];
    *bh_vec_push(&s->job_of) = job;
    s->at[job].id = s->job_of.n;
    const struct bh_gang_spec spec = {
        .id = s->at[job].id,
        .queue = s->queue_of[j->tenant],
        .user = j->tenant,
        .n_roles = 1,
        .within = BH_LEVEL_ANY,
        .prefer = BH_LEVEL_ANY,
        .band = BH_PRIORITY_NORMAL,
        .can = BH_CAN_REQUEUE,
        .submit_ms = j->submit_s * 1000,
        .deadline_ms = j->deadline_s == BH_JOB_NO_DEADLINE ? BH_TURN_NO_DEADLINE : j->deadline_s * 1000,
        .priority = -(int32_t)doublings(s->at[job].left_s * j->gpus / 60),
        .runtime_ms = s->at[job].left_s * 1000,
        .min_run_ms = (uint64_t)MIN_RUN_S * 1000,
        .roles = {{.request = s->estate ? bh_estate_request(&s->estate->tenants.at[j->tenant]) : any,
                   .min = j->gpus,
                   .max = j->gpus}},
    };
    tell(s, &(struct bh_sched_event){
                .kind = BH_SCHED_SUBMIT, .at_ms = now_s * 1000, .id = spec.id, .job = &spec});
    const uint64_t needs = s->at[job].left_s + s->slack_s;
    if (j->deadline_s != BH_JOB_NO_DEADLINE && j->deadline_s > now_s + needs)
        critical_at(s, j->deadline_s - needs + 1);
    s->stirred = true;
}

static void arrived(void *self, uint32_t job, uint64_t now_s)
{
    struct self *s = self;
    s->at[job] = (struct work){.left_s = s->jobs[job].duration_s};
    submit(s, job, now_s);
}

static void ended(void *self, uint32_t job, uint64_t now_s)
{
    struct self *s = self;
    s->at[job].runs = false;
    s->n_running--;
    s->stirred = true;
    tell(s, &(struct bh_sched_event){.kind = BH_SCHED_FINISH, .at_ms = now_s * 1000, .id = s->at[job].id});
}

/* ---- decisions ---- */

static void start(struct self *s, uint32_t job, uint64_t now_s)
{
    s->at[job].runs = true;
    s->at[job].since_s = now_s;
    s->stirred = true;
    *bh_vec_push(&s->starts) = now_s;
    s->n_running++;
}

static void stop(struct self *s, uint32_t job, uint64_t now_s)
{
    struct work *w = &s->at[job];
    w->left_s -= now_s - w->since_s;
    w->left_s += s->restart_s;
    w->runs = false;
    s->n_running--;
    const struct bh_sched_event told[] = {
        {.kind = BH_SCHED_GONE, .at_ms = now_s * 1000, .id = w->id},
        {.kind = BH_SCHED_CANCEL, .at_ms = now_s * 1000, .id = w->id},
    };
    for (size_t i = 0; i < BH_COUNT_OF(told); i++)
        tell(s, &told[i]);
    submit(s, job, now_s);
}

/* Who is told to go is gone at once, so those who waited for that are told to start in the next round. */
static void decide(void *self, uint64_t now_s, struct bh_moves *ret)
{
    struct self *s = self;
    for (uint32_t round = 0; round < ROUNDS_MAX; round++) {
        size_t n;
        bh_sched_settle(s->sched);
        bh_reserve_refresh(s->reserve, s->sched, now_s * 1000);
        const struct bh_decision *d = bh_sched_decide(s->sched, now_s * 1000, 0, &n);
        s->gone.n = 0;
        for (size_t i = 0; i < n; i++) {
            const uint32_t job = s->job_of.at[d[i].job - 1];
            if (d[i].kind == BH_DECIDE_START) {
                *bh_vec_push(&ret->start) = job;
                start(s, job, now_s);
            } else if (d[i].kind == BH_DECIDE_EVICT) {
                *bh_vec_push(&ret->stop) = job;
                *bh_vec_push(&s->gone) = job;
            }
        }
        if (!n)
            return;
        for (size_t i = 0; i < s->gone.n; i++)
            stop(s, s->gone.at[i], now_s);
    }
}

/*
 * While something waits: minimum run times end and deadlines come close, at times that are known. And past usage fades;
 * what that will change shows by looking, each time after as long again as nothing came of it.
 */
static uint64_t wake(void *self, uint64_t now_s)
{
    struct self *s = self;
    s->quiet_s = s->stirred ? LOOK_AGAIN_S : 2 * s->quiet_s;
    s->stirred = false;
    uint64_t at = now_s + s->quiet_s;
    while (s->next_safe < s->starts.n && s->starts.at[s->next_safe] + MIN_RUN_S <= now_s)
        s->next_safe++;
    if (s->next_safe < s->starts.n && s->starts.at[s->next_safe] + MIN_RUN_S < at)
        at = s->starts.at[s->next_safe] + MIN_RUN_S;
    while (s->critical.n && s->critical.at[0] <= now_s)
        critical_pop(s);
    if (s->critical.n && s->critical.at[0] < at)
        at = s->critical.at[0];
    return bh_sched_stats(s->sched).pending && s->n_running ? at : BH_NEVER_S;
}

const struct bh_timeline_policy bh_policy_bulkhead = {
    .name = "bulkhead",
    .new_ = new_,
    .free_ = free_,
    .arrived = arrived,
    .ended = ended,
    .decide = decide,
    .wake = wake,
};
