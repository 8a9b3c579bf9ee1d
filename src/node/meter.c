/* SPDX-License-Identifier: Apache-2.0 */
/* meter.c - sums that are kept, and what others were last heard to say. */
#include "node/meter.h"

#include "base/str.h"
#include "base/units.h"
#include "launch/governor.h"
#include "node/life.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <unistd.h>

enum { SHARES_MAX = 8192, GOVERNOR_MS = 2000, CGROUP_MAX = 4096 };

/* ---- the books ---- */

struct bh_meter_tenant *bh_meter_tenant(struct bh_meter *m, const char *name)
{
    const uint32_t at = bh_map_find(&m->by_name, name);
    if (at != BH_MAP_NONE)
        return &m->tenants.at[at];
    struct bh_meter_tenant *more = bh_vec_push(&m->tenants);
    *more = (struct bh_meter_tenant){.name = bh_arena_str(&m->arena, name)};
    (void)bh_map_add(&m->by_name, more->name, (uint32_t)m->tenants.n - 1);
    return more;
}

/* Kept under tenant, mechanism, card and instance together. */
static void add_used(struct bh_meter *m, const struct bh_store_used *u)
{
    char key[512];
    (void)snprintf(key, sizeof(key), "%s/%u/%s/%s", u->tenant, u->mechanism, u->gpu, u->instance);
    uint32_t at = bh_map_find(&m->by_used, key);
    if (at == BH_MAP_NONE) {
        at = (uint32_t)m->used.n;
        *bh_vec_push(&m->used) = (struct bh_store_used){.tenant = bh_arena_str(&m->arena, u->tenant),
                                                        .mechanism = u->mechanism,
                                                        .gpu = bh_arena_str(&m->arena, u->gpu),
                                                        .instance = bh_arena_str(&m->arena, u->instance)};
        (void)bh_map_add(&m->by_used, bh_arena_str(&m->arena, key), at);
    }
    m->used.at[at].milli_ms += u->milli_ms;
    m->used.at[at].mib_ms += u->mib_ms;
}

/* What is new in the books. */
struct news {
    struct bh_arena arena;
    struct bh_store_tail to;
    uint64_t scrubs[BH_SLICE_KINDS][BH_SCRUB_VERDICTS];
    bh_store_turns turns;
    bh_store_gone_turns gone;
    bh_store_useds used;
};

/* Who starts takes up what was dropped before. */
static int read_gone(struct bh_daemon *d, struct news *n, struct bh_err *err)
{
    int rc = bh_store_gone_turns_list(d->store, &n->arena, &n->gone, err);
    if (rc == BH_OK)
        rc = bh_store_gone_used(d->store, &n->arena, &n->used, err);
    if (rc == BH_OK)
        rc = bh_store_gone_scrubs(d->store, n->scrubs, err);
    return rc;
}

static int read_news(struct bh_daemon *d, struct news *n, struct bh_err *err)
{
    const struct bh_store_tail *from = &d->meter.tail;
    int rc = bh_store_tail_now(d->store, bh_daemon_now(d), &n->to, err);
    if (rc == BH_OK && !from->closed_ms)
        rc = read_gone(d, n, err);
    if (rc == BH_OK)
        rc = bh_store_tail_turns(d->store, &n->arena, from, &n->to, &n->turns, err);
    if (rc == BH_OK)
        rc = bh_store_tail_used(d->store, &n->arena, from->closed_ms, n->to.closed_ms, &n->used, err);
    if (rc == BH_OK)
        rc = bh_store_tail_scrubs(d->store, from, &n->to, n->scrubs, err);
    return rc;
}

static void add_news(struct bh_meter *m, const struct news *n)
{
    for (size_t i = 0; i < n->turns.n; i++) {
        struct bh_meter_tenant *t = bh_meter_tenant(m, n->turns.at[i].tenant);
        t->preemptions += n->turns.at[i].evicted;
        if (!n->turns.at[i].evicted)
            bh_metric_spread_add(&t->wait, n->turns.at[i].waited_ms);
    }
    for (size_t i = 0; i < n->gone.n; i++) {
        const struct bh_store_gone_turn *g = &n->gone.at[i];
        struct bh_meter_tenant *t = bh_meter_tenant(m, g->tenant);
        if (g->evicted)
            t->preemptions += g->n;
        else
            bh_metric_spread_add_many(&t->wait, g->upto_ms, g->n, g->waited_ms);
    }
    for (size_t i = 0; i < n->used.n; i++)
        add_used(m, &n->used.at[i]);
    for (size_t k = 0; k < BH_SLICE_KINDS; k++)
        for (size_t v = 0; v < BH_SCRUB_VERDICTS; v++)
            m->scrubs[k][v] += n->scrubs[k][v];
    m->tail = n->to;
}

int bh_meter_read(struct bh_daemon *d, struct bh_err *err)
{
    struct news n = {0};
    if (bh_store_in_transaction(d->store))
        return BH_OK;
    const int rc = read_news(d, &n, err);
    /* All of it or nothing: else the next one would count a part twice. */
    if (rc == BH_OK)
        add_news(&d->meter, &n);
    bh_vec_fini(&n.turns);
    bh_vec_fini(&n.gone);
    bh_vec_fini(&n.used);
    bh_arena_fini(&n.arena);
    return rc;
}

void bh_meter_start(struct bh_daemon *d)
{
    struct bh_err err;
    d->meter.worker.fd = -1;
    if (bh_meter_read(d, &err) < 0)
        bh_daemon_say(d, "the books cannot be summed up: %s", err.msg);
}

/* ---- what happened ---- */

void bh_meter_ended(struct bh_daemon *d, const struct bh_life *run, const struct bh_keeper_end *end)
{
    if (!end->counted)
        return;
    struct bh_meter_tenant *t = bh_meter_tenant(&d->meter, run->tenant);
    t->refusals[BH_REFUSAL_MEMORY] += end->refused;
    t->refusals[BH_REFUSAL_DENIED] += end->denied;
    t->refusals[BH_REFUSAL_KILLED] += end->killed;
}

void bh_meter_cycle(struct bh_meter *m, uint64_t us)
{
    m->cycle.count++;
    m->cycle.sum += us;
    m->longest_us = us > m->longest_us ? us : m->longest_us;
}

/* ---- what the governor says ---- */

struct board {
    size_t n;
    struct bh_meter_share at[SHARES_MAX];
};

/* Leases of the daemon's are named L17; what others started by hand is not ours to tell of. */
static bool lease_of(const char *name, uint64_t *ret)
{
    return name[0] == 'L' && bh_uint_parse(name + 1, UINT64_MAX, ret, NULL) == 0;
}

static struct bh_meter_share share_of(const struct bh_govern_row *r, uint64_t lease)
{
    const bool wants = r->state == BH_GOVERN_SHOWN_RUNS || r->state == BH_GOVERN_SHOWN_TURN;
    return (struct bh_meter_share){.lease = lease,
                                   .gpu = r->gpu,
                                   .target_permille = r->target_permille,
                                   .delivered_permille = r->delivered_permille,
                                   .missing_permille =
                                       wants && r->error_permille < 0 ? (uint32_t)-r->error_permille : 0,
                                   .corrections = r->corrections,
                                   .tampered = r->tampered,
                                   .busy_ns = r->busy_ns,
                                   .seen = r->seen != 0};
}

static void ask_work(const void *arg, struct bh_worker_result *ret)
{
    struct bh_governor_all all = {0};
    struct bh_err err = {0};
    struct board *board;
    memcpy(&board, arg, sizeof(struct board *));
    board->n = 0;
    ret->code = bh_governor_list(&all, GOVERNOR_MS, &err);
    for (size_t i = 0; ret->code == BH_OK && i < all.rows.n && board->n < SHARES_MAX; i++) {
        struct bh_govern_row *r = &all.rows.at[i];
        uint64_t lease;
        r->name[sizeof(r->name) - 1] = '\0';
        if (r->gpu != UINT32_MAX && lease_of(r->name, &lease))
            board->at[board->n++] = share_of(r, lease);
    }
    (void)snprintf(ret->text, sizeof(ret->text), "%s", err.msg);
    bh_governor_all_fini(&all);
}

static int on_answered(sd_event_source *source, int fd, uint32_t events, void *arg)
{
    struct bh_daemon *d = arg;
    struct bh_meter *m = &d->meter;
    struct bh_worker_result result;
    const struct board *board = m->board;
    (void)source;
    (void)fd;
    (void)events;
    m->source = sd_event_source_disable_unref(m->source);
    bh_worker_finish(&m->worker, &result);
    /* Where it does not answer, what it said before is not said again. */
    m->shares.n = 0;
    for (size_t i = 0; result.code == BH_OK && i < board->n && i < SHARES_MAX; i++)
        *bh_vec_push(&m->shares) = board->at[i];
    return 0;
}

static bool any_governed(const struct bh_daemon *d)
{
    for (size_t i = 0; i < d->runs.n; i++)
        if (d->runs.at[i]->state == BH_LEASE_ACTIVE && d->runs.at[i]->terms.weight)
            return true;
    return false;
}

void bh_meter_look(struct bh_daemon *d)
{
    struct bh_meter *m = &d->meter;
    struct bh_err err;
    if (m->source)
        return;
    if (!any_governed(d)) {
        m->shares.n = 0;
        return;
    }
    if (!m->board) {
        void *at = mmap(NULL, sizeof(struct board), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (at == MAP_FAILED)
            return;
        m->board = at;
    }
    if (bh_worker_start(ask_work, &m->board, &m->worker, &err) == BH_OK &&
        sd_event_add_io(d->loop, &m->source, m->worker.fd, EPOLLIN, on_answered, d) < 0)
        bh_worker_kill(&m->worker);
}

/* ---- what the driver says ---- */

/* Whose a process is, by its cgroup: `/bulkhead/L17`. */
static bool lease_of_process(const struct bh_daemon *d, uint32_t pid, uint64_t *ret)
{
    char path[64], text[CGROUP_MAX], group[80];
    (void)snprintf(path, sizeof(path), "/proc/%u/cgroup", pid);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
    if (fd >= 0)
        close(fd);
    if (n <= 0)
        return false;
    text[n] = '\0';
    (void)snprintf(group, sizeof(group), "/%s/L", d->cgroup);
    char *at = strstr(text, group);
    if (!at)
        return false;
    at += strlen(group);
    at[strspn(at, "0123456789")] = '\0';
    return bh_uint_parse(at, UINT64_MAX, ret, NULL) == 0;
}

static void add_memory(struct bh_meter *m, uint64_t lease, uint32_t gpu, uint64_t bytes)
{
    for (size_t i = 0; i < m->memory.n; i++)
        if (m->memory.at[i].lease == lease && m->memory.at[i].gpu == gpu) {
            m->memory.at[i].bytes += bytes;
            return;
        }
    *bh_vec_push(&m->memory) = (struct bh_meter_memory){.lease = lease, .gpu = gpu, .bytes = bytes};
}

/* A driver that refuses every reading still lists its cards, by what it said of them before. */
static bool answers(const struct bh_gpu_device *dev)
{
    const struct bh_reading *const changing[] = {&dev->used_bytes, &dev->util_percent, &dev->temperature_c,
                                                 &dev->power_mw, &dev->sm_mhz};
    for (size_t i = 0; dev->alive && i < BH_COUNT_OF(changing); i++)
        if (!changing[i]->why)
            return true;
    return false;
}

bool bh_meter_looked(struct bh_daemon *d)
{
    struct bh_meter *m = &d->meter;
    const struct bh_gpu_snapshot *s = &d->silicon.now;
    bool heard = !s->devices.n; /* that there is none is an answer */
    uint64_t lease;
    for (size_t i = 0; !heard && i < s->devices.n; i++)
        heard = answers(&s->devices.at[i]);
    if (heard)
        m->looked_ms = bh_daemon_now(d);
    m->memory.n = 0;
    for (size_t i = 0; i < s->devices.n; i++)
        for (size_t k = 0; k < s->devices.at[i].processes.n; k++) {
            const struct bh_gpu_process *p = &s->devices.at[i].processes.at[k];
            if (!p->memory_bytes.why && lease_of_process(d, p->pid, &lease))
                add_memory(m, lease, s->devices.at[i].index, p->memory_bytes.v);
        }
    return heard;
}

void bh_meter_fini(struct bh_meter *m)
{
    m->source = sd_event_source_disable_unref(m->source);
    bh_worker_kill(&m->worker);
    if (m->board)
        (void)munmap(m->board, sizeof(struct board));
    bh_vec_fini(&m->tenants);
    bh_map_fini(&m->by_name);
    bh_vec_fini(&m->used);
    bh_map_fini(&m->by_used);
    bh_vec_fini(&m->shares);
    bh_vec_fini(&m->memory);
    bh_arena_fini(&m->arena);
}
