/* SPDX-License-Identifier: Apache-2.0 */
/*
 * baselines.c - the four plain policies, as rows of a table.
 *
 *   fifo  in the order of arrival; nothing is stopped, and a job that does not fit keeps the rest waiting
 *   edf   earliest deadline first; jobs without one come last
 *   srtf  shortest remaining time first, with the durations known exactly
 *   las   least attained service first: GPU time received so far, in levels that double from one GPU hour on, by
 *         arrival within a level; so nothing of a job needs to be known ahead
 *
 * The last three stop jobs, and pass over one that does not fit. They know nothing of tenants.
 */
#include "replay/timeline.h"

#include <string.h>

enum where { ABSENT, WAITING, RUNNING };
enum { HOUR_S = 3600 };

struct progress {
    uint64_t left_s, attained_gpu_s; /* when it was last started or stopped */
    uint64_t since_s;
    uint8_t where;
};

struct self;
typedef uint64_t (*key_fn)(const struct self *s, uint32_t job, uint64_t now_s);
struct row {
    key_fn key; /* smaller goes first; then the smaller id. Of a waiting job it does not change. */
    bool stops; /* else what runs is left alone */
    bool blocks;
};

struct self {
    const struct row *row;
    const struct bh_job *jobs;
    uint32_t gpus;
    uint64_t restart_s;
    struct progress *at;
    bh_job_ids waiting, running; /* each in the order of the key */
};

/* ---- keys ---- */

static uint64_t ran_s(const struct self *s, uint32_t job, uint64_t now_s)
{
    return s->at[job].where == RUNNING ? now_s - s->at[job].since_s : 0;
}

static uint64_t key_arrival(const struct self *s, uint32_t job, uint64_t now_s)
{
    (void)now_s;
    return s->jobs[job].submit_s;
}

static uint64_t key_deadline(const struct self *s, uint32_t job, uint64_t now_s)
{
    (void)now_s;
    return s->jobs[job].deadline_s;
}

static uint64_t key_left(const struct self *s, uint32_t job, uint64_t now_s)
{
    return s->at[job].left_s - ran_s(s, job, now_s);
}

static uint64_t attained(const struct self *s, uint32_t job, uint64_t now_s)
{
    return s->at[job].attained_gpu_s + ran_s(s, job, now_s) * s->jobs[job].gpus;
}

/* 0 below one GPU hour, then one more each time it doubles. */
static uint64_t level_of(uint64_t gpu_s)
{
    const uint64_t hours = gpu_s / HOUR_S;
    return hours ? 64 - (uint64_t)__builtin_clzll(hours) : 0;
}

static uint64_t key_level(const struct self *s, uint32_t job, uint64_t now_s)
{
    return level_of(attained(s, job, now_s));
}

/* ---- the two lists ---- */

static bool before(const struct self *s, uint32_t a, uint32_t b, uint64_t now_s)
{
    const uint64_t x = s->row->key(s, a, now_s), y = s->row->key(s, b, now_s);
    return x != y ? x < y : a < b;
}

/* Where job stands, or would stand, in a list that is in order. */
static size_t place_of(const struct self *s, const bh_job_ids *list, uint32_t job, uint64_t now_s)
{
    size_t low = 0, high = list->n;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (before(s, list->at[middle], job, now_s))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void insert(const struct self *s, bh_job_ids *list, uint32_t job, uint64_t now_s)
{
    const size_t i = place_of(s, list, job, now_s);
    (void)bh_vec_push(list);
    memmove(list->at + i + 1, list->at + i, (list->n - 1 - i) * sizeof(*list->at));
    list->at[i] = job;
}

static void remove_at(bh_job_ids *list, size_t i)
{
    memmove(list->at + i, list->at + i + 1, (--list->n - i) * sizeof(*list->at));
}

/* Running jobs change their keys together; few pass another, so this is nearly linear. */
static void order_running(const struct self *s, bh_job_ids *running, uint64_t now_s)
{
    for (size_t i = 1; i < running->n; i++) {
        const uint32_t job = running->at[i];
        size_t j = i;
        for (; j && before(s, job, running->at[j - 1], now_s); j--)
            running->at[j] = running->at[j - 1];
        running->at[j] = job;
    }
}

/* ---- the policy's functions ---- */

static void *new_(const struct bh_timeline_policy *policy, const struct bh_jobs *jobs,
                  const struct bh_timeline_setup *setup, const uint64_t *weight)
{
    struct self *s = bh_alloc(1, sizeof(*s));
    (void)weight;
    s->row = policy->row;
    s->jobs = jobs->at.at;
    s->gpus = setup->gpus;
    s->restart_s = setup->restart_s;
    s->at = bh_alloc(jobs->at.n + 1, sizeof(*s->at));
    return s;
}

static void free_(void *self)
{
    struct self *s = self;
    bh_vec_fini(&s->waiting);
    bh_vec_fini(&s->running);
    free(s->at);
    free(s);
}

static void arrived(void *self, uint32_t job, uint64_t now_s)
{
    struct self *s = self;
    s->at[job] = (struct progress){.left_s = s->jobs[job].duration_s, .where = WAITING};
    insert(s, &s->waiting, job, now_s);
}

static void ended(void *self, uint32_t job, uint64_t now_s)
{
    struct self *s = self;
    (void)now_s;
    s->at[job].where = ABSENT;
    for (size_t i = 0; i < s->running.n; i++)
        if (s->running.at[i] == job) {
            remove_at(&s->running, i);
            return;
        }
}

static void stop(struct self *s, uint32_t job, uint64_t now_s)
{
    struct progress *p = &s->at[job];
    const uint64_t ran = ran_s(s, job, now_s);
    p->left_s -= ran;
    p->attained_gpu_s += ran * s->jobs[job].gpus;
    p->left_s += s->restart_s; /* paid when it goes on, and known now */
    p->where = WAITING;
    insert(s, &s->waiting, job, now_s);
}

static void start(struct self *s, uint32_t job, uint64_t now_s)
{
    remove_at(&s->waiting, place_of(s, &s->waiting, job, now_s));
    s->at[job].where = RUNNING;
    s->at[job].since_s = now_s;
    insert(s, &s->running, job, now_s);
}

/* Only what waits, in order, into what is free. */
static void decide_gently(struct self *s, uint64_t now_s, struct bh_moves *ret)
{
    uint32_t left = s->gpus;
    for (size_t i = 0; i < s->running.n; i++)
        left -= s->jobs[s->running.at[i]].gpus;
    for (size_t i = 0; i < s->waiting.n && left; i++) {
        const uint32_t job = s->waiting.at[i];
        if (s->jobs[job].gpus <= left) {
            left -= s->jobs[job].gpus;
            *bh_vec_push(&ret->start) = job;
        } else if (s->row->blocks) {
            break;
        }
    }
    for (size_t i = 0; i < ret->start.n; i++)
        start(s, ret->start.at[i], now_s);
}

/* All jobs in one order, into all GPUs: who runs and has no place any more is stopped. */
static void decide_afresh(struct self *s, uint64_t now_s, struct bh_moves *ret)
{
    uint32_t left = s->gpus;
    size_t r = 0, w = 0;
    order_running(s, &s->running, now_s);
    while (r < s->running.n || (w < s->waiting.n && left)) {
        const bool from_running = r < s->running.n && (w == s->waiting.n || !left ||
                                                       before(s, s->running.at[r], s->waiting.at[w], now_s));
        const uint32_t job = from_running ? s->running.at[r++] : s->waiting.at[w++];
        const bool fits = s->jobs[job].gpus <= left;
        if (fits)
            left -= s->jobs[job].gpus;
        if (fits && !from_running)
            *bh_vec_push(&ret->start) = job;
        if (!fits && from_running)
            *bh_vec_push(&ret->stop) = job;
    }
    for (size_t i = 0; i < ret->start.n; i++)
        start(s, ret->start.at[i], now_s);
    for (size_t i = 0; i < ret->stop.n; i++) {
        remove_at(&s->running, place_of(s, &s->running, ret->stop.at[i], now_s));
        stop(s, ret->stop.at[i], now_s);
    }
}

static void decide(void *self, uint64_t now_s, struct bh_moves *ret)
{
    struct self *s = self;
    if (s->row->stops)
        decide_afresh(s, now_s, ret);
    else
        decide_gently(s, now_s, ret);
}

/* When the next running job reaches another level. */
static uint64_t wake_level(void *self, uint64_t now_s)
{
    const struct self *s = self;
    uint64_t soonest = BH_NEVER_S;
    if (s->waiting.n == 0)
        return soonest;
    for (size_t i = 0; i < s->running.n; i++) {
        const uint32_t job = s->running.at[i];
        const uint64_t has = attained(s, job, now_s), gpus = s->jobs[job].gpus;
        const uint64_t next = (UINT64_C(1) << level_of(has)) * HOUR_S;
        const uint64_t at = now_s + (next - has + gpus - 1) / gpus;
        soonest = at < soonest ? at : soonest;
    }
    return soonest;
}

#define BASELINE(name_, wake_, ...)                                            \
    {                                                                          \
        name_, new_, free_, arrived, ended, decide, wake_, &(const struct row) \
        {                                                                      \
            __VA_ARGS__                                                        \
        }                                                                      \
    }
const struct bh_timeline_policy bh_baselines[BH_BASELINES] = {
    BASELINE("fifo", NULL, key_arrival, false, true),
    BASELINE("edf", NULL, key_deadline, true, false),
    BASELINE("srtf", NULL, key_left, true, false),
    BASELINE("las", wake_level, key_level, true, false),
};
