/* SPDX-License-Identifier: Apache-2.0 */
/*
 * metrics.c - everything there is to measure of this node, as rows (metrics/metrics.h); who is shown what is not decided here.
 *
 * Nothing here walks the books: sums are kept (meter.h), what is in use is read by index, and the rest is in memory.
 */
#include "base/idmap.h"
#include "base/str.h"
#include "base/units.h"
#include "core/model/advisory.h"
#include "core/model/vocab.h"
#include "core/sched/explain.h"
#include "node/life.h"
#include "node/meter.h"
#include "store/audit_rows.h"

#include <stdio.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

enum { LINES_MAX = 64 }; /* that are explained for one scrape */

/* What a tenant has and waits for now. */
struct now {
    const char *name;
    const struct bh_tenant *in_policy; /* NULL: it is not any more */
    uint32_t at;                       /* in the policy */
    uint64_t milli, mib, leases, running, used_bytes;
    bool has_used;
    uint64_t waiting[BH_WAITS + 1]; /* by reason; the last: not known */
    uint64_t oldest_ms;
};

struct gathering {
    struct bh_daemon *d;
    struct bh_metrics *out;
    struct bh_arena arena;
    uint64_t now_ms;
    BH_VEC(struct now) tenants;
    struct bh_map by_name;
    uint32_t last; /* that was asked for */
    bh_store_slices slices;
};

static struct now *tenant_of(struct gathering *g, const char *name)
{
    /* Ten thousand jobs follow each other, and most are of whoever had the one before. */
    if (g->last < g->tenants.n && bh_str_eq(g->tenants.at[g->last].name, name))
        return &g->tenants.at[g->last];
    const uint32_t at = bh_map_find(&g->by_name, name);
    g->last = at != BH_MAP_NONE ? at : (uint32_t)g->tenants.n;
    if (at != BH_MAP_NONE)
        return &g->tenants.at[at];
    struct now *more = bh_vec_push(&g->tenants);
    *more = (struct now){.name = bh_arena_str(&g->arena, name), .at = BH_NONE};
    (void)bh_map_add(&g->by_name, more->name, (uint32_t)g->tenants.n - 1);
    return more;
}

static void add(struct gathering *g, enum bh_metric family, uint64_t value)
{
    bh_metrics_add(g->out, family, NULL, (int64_t)value, BH_NO_LABELS);
}

/* ---- tenants ---- */

/* What the first of a line waits for is what all of it waits for. */
static enum bh_wait tier_of(const struct gathering *g, struct bh_idmap *tiers, const struct bh_gang *gang)
{
    const struct bh_sched *s = g->d->sched;
    struct bh_verdict v;
    if (gang->state != BH_GANG_PENDING)
        return BH_WAIT_LEAVING;
    const uint32_t known = bh_idmap_find(tiers, gang->line);
    if (known != BH_IDMAP_NONE)
        return (enum bh_wait)known;
    const struct bh_line *line = bh_sched_line(s, gang);
    const struct bh_gang *first = line ? bh_sched_first(s, line) : NULL;
    const bool told = tiers->n < LINES_MAX && first && bh_explain(s, NULL, first->id, g->now_ms, &v);
    const enum bh_wait tier = told ? v.tier : BH_WAITS;
    (void)bh_idmap_add(tiers, gang->line, (uint32_t)tier);
    return tier;
}

static void gather_jobs(struct gathering *g)
{
    struct bh_idmap tiers = {0};
    for (size_t i = 0; i < g->d->runs.n; i++) {
        const struct bh_life *run = g->d->runs.at[i];
        struct now *t = tenant_of(g, run->tenant);
        if (run->after == BH_AFTER_NOTHING)
            continue;
        t->leases += bh_lease_holds_slices(run->state);
        if (!bh_life_waits(run)) {
            t->running += run->state != BH_LEASE_SCRUBBING;
            continue;
        }
        const struct bh_gang *gang = g->d->sched && run->known ? bh_sched_job(g->d->sched, run->job) : NULL;
        t->waiting[gang ? tier_of(g, &tiers, gang) : BH_WAITS]++;
        uint64_t since = run->since_ms;
        if (gang && gang->submit_ms > since)
            since = gang->submit_ms;
        if (since && g->now_ms > since && g->now_ms - since > t->oldest_ms)
            t->oldest_ms = g->now_ms - since;
    }
    bh_idmap_fini(&tiers);
}

static void gather_slices(struct gathering *g)
{
    for (size_t i = 0; i < g->slices.n; i++) {
        const struct bh_store_slice *s = &g->slices.at[i];
        const struct bh_life *run = s->lease ? bh_life_of_lease(g->d, s->lease) : NULL;
        if (!run || (s->state != BH_SLICE_OWNED && s->state != BH_SLICE_DIRTY))
            continue;
        struct now *t = tenant_of(g, run->tenant);
        t->milli += bh_node_slice_milli(&g->slices, s);
        t->mib += s->mib;
    }
    for (size_t i = 0; i < g->d->meter.memory.n; i++) {
        const struct bh_meter_memory *m = &g->d->meter.memory.at[i];
        const struct bh_life *run = bh_life_of_lease(g->d, m->lease);
        if (!run)
            continue;
        struct now *t = tenant_of(g, run->tenant);
        t->used_bytes += m->bytes;
        t->has_used = true;
    }
}

static void put_quota(struct gathering *g, const struct now *t)
{
    const struct bh_tenant *p = t->in_policy;
    const char *const *label = BH_LABELS(t->name);
    const uint64_t own = p && p->quota.has_gpus ? p->quota.gpus_milli : 0;
    if (p && p->quota.has_gpus)
        bh_metrics_add(g->out, BH_METRIC_T_QUOTA, t->name, (int64_t)own, label);
    if (p && p->quota.has_max)
        bh_metrics_add(g->out, BH_METRIC_T_LIMIT, t->name, (int64_t)p->quota.max_milli, label);
    bh_metrics_add(g->out, BH_METRIC_T_GRANTED, t->name, (int64_t)t->milli, label);
    bh_metrics_add(g->out, BH_METRIC_T_BORROWED, t->name, (int64_t)(t->milli > own ? t->milli - own : 0),
                   label);
    if (!g->d->sched || t->at == BH_NONE)
        return;
    const struct bh_queues *queues = bh_sched_queues(g->d->sched);
    const uint32_t queue = bh_admit_queue(g->d->book.admit, t->at);
    if (queue < queues->at.n)
        bh_metrics_add(g->out, BH_METRIC_T_STRANDED, t->name,
                       (int64_t)bh_queue_stranded(bh_queue_get(queues, queue), BH_RES_GPU), label);
}

static const char *reason_of(size_t wait)
{
    return wait < BH_WAITS ? bh_wait_names[wait] : "unknown";
}

/* Several reasons go by one word, and are one row. */
static void put_waiting(struct gathering *g, const struct now *t)
{
    for (size_t i = 0; i <= BH_WAITS; i++) {
        uint64_t n = 0;
        size_t first = i;
        for (size_t k = 0; k <= BH_WAITS; k++)
            if (bh_str_eq(reason_of(k), reason_of(i))) {
                n += t->waiting[k];
                first = k < first ? k : first;
            }
        if (n && first == i)
            bh_metrics_add(g->out, BH_METRIC_T_WAITING, t->name, (int64_t)n,
                           BH_LABELS(t->name, reason_of(i)));
    }
}

static void put_tenant(struct gathering *g, const struct now *t)
{
    static const char *const kinds[BH_REFUSALS] = {
        [BH_REFUSAL_MEMORY] = "memory", [BH_REFUSAL_DENIED] = "denied", [BH_REFUSAL_KILLED] = "killed"};
    const char *const *label = BH_LABELS(t->name);
    const struct bh_meter_tenant *kept = bh_meter_tenant(&g->d->meter, t->name);
    put_quota(g, t);
    bh_metrics_add(g->out, BH_METRIC_T_MEMORY_GRANTED, t->name, (int64_t)(t->mib * BH_MIB), label);
    if (t->has_used)
        bh_metrics_add(g->out, BH_METRIC_T_MEMORY_USED, t->name, (int64_t)t->used_bytes, label);
    bh_metrics_add(g->out, BH_METRIC_T_LEASES, t->name, (int64_t)t->leases, label);
    bh_metrics_add(g->out, BH_METRIC_T_RUNNING, t->name, (int64_t)t->running, label);
    put_waiting(g, t);
    bh_metrics_add(g->out, BH_METRIC_T_OLDEST, t->name, (int64_t)t->oldest_ms, label);
    bh_metrics_add_spread(g->out, BH_METRIC_T_WAIT, t->name, &kept->wait, label);
    bh_metrics_add(g->out, BH_METRIC_T_PREEMPTIONS, t->name, (int64_t)kept->preemptions, label);
    for (size_t i = 0; i < BH_REFUSALS; i++)
        bh_metrics_add(g->out, BH_METRIC_T_REFUSALS, t->name, (int64_t)kept->refusals[i],
                       BH_LABELS(t->name, kinds[i]));
}

static void gather_tenants(struct gathering *g)
{
    const struct bh_policy *p = g->d->book.policy;
    for (size_t i = 0; p && i < p->tenants.n; i++) {
        struct now *t = tenant_of(g, p->tenants.at[i].name);
        t->in_policy = &p->tenants.at[i];
        t->at = (uint32_t)i;
    }
    for (size_t i = 0; i < g->d->meter.tenants.n; i++) /* of the past, too: a counter does not vanish */
        (void)tenant_of(g, g->d->meter.tenants.at[i].name);
    gather_jobs(g);
    gather_slices(g);
    for (size_t i = 0; i < g->tenants.n; i++)
        put_tenant(g, &g->tenants.at[i]);
}

/* ---- usage ---- */

/* One sum of what several rows have in common. */
static void sum_up(struct gathering *g, struct bh_map *at, bh_store_useds *sums,
                   const struct bh_store_used *u, bool by_tenant)
{
    const char *key = by_tenant ? bh_arena_printf(&g->arena, "%s/%u", u->tenant, u->mechanism)
                                : bh_arena_printf(&g->arena, "%s/%s", u->gpu, u->instance);
    uint32_t i = bh_map_find(at, key);
    if (i == BH_MAP_NONE) {
        i = (uint32_t)sums->n;
        *bh_vec_push(sums) = *u;
        sums->at[i].milli_ms = sums->at[i].mib_ms = 0;
        (void)bh_map_add(at, key, i);
    }
    sums->at[i].milli_ms += u->milli_ms;
    sums->at[i].mib_ms += u->mib_ms;
}

struct usage {
    struct bh_map by_tenant, by_card;
    bh_store_useds tenants, cards;
};

static void count(struct gathering *g, struct usage *u, const struct bh_store_used *row)
{
    sum_up(g, &u->by_tenant, &u->tenants, row, true);
    sum_up(g, &u->by_card, &u->cards, row, false);
}

static void put_usage(struct gathering *g, const struct usage *u)
{
    for (size_t i = 0; i < u->tenants.n; i++) {
        const struct bh_store_used *row = &u->tenants.at[i];
        const char *const *labels = BH_LABELS(row->tenant, bh_word(mechanism, row->mechanism));
        bh_metrics_add(g->out, BH_METRIC_T_GPU_SECONDS, row->tenant, (int64_t)row->milli_ms, labels);
        bh_metrics_add(g->out, BH_METRIC_T_MEMORY_SECONDS, row->tenant, (int64_t)row->mib_ms, labels);
    }
    for (size_t i = 0; i < u->cards.n; i++) {
        const struct bh_store_used *row = &u->cards.at[i];
        const struct bh_gpu_device *dev = bh_silicon_device(&g->d->silicon, row->gpu);
        const char *index = dev ? bh_arena_printf(&g->arena, "%u", dev->index) : NULL;
        bh_metrics_add(g->out, BH_METRIC_G_SECONDS, NULL, (int64_t)row->milli_ms,
                       BH_LABELS(index, row->gpu, *row->instance ? row->instance : NULL));
    }
}

static void put_lease_usage(struct gathering *g, const bh_store_usings *open)
{
    for (size_t i = 0; i < open->n; i++) {
        const struct bh_store_using *o = &open->at[i];
        uint64_t milli_ms = o->used.milli_ms + o->before_milli_ms;
        /* Several slices of one card are one row. */
        while (i + 1 < open->n && open->at[i + 1].lease == o->lease &&
               bh_str_eq(open->at[i + 1].used.gpu, o->used.gpu)) {
            i++;
            milli_ms += open->at[i].used.milli_ms + open->at[i].before_milli_ms;
        }
        const struct bh_gpu_device *dev = bh_silicon_device(&g->d->silicon, o->used.gpu);
        bh_metrics_add(g->out, BH_METRIC_L_GPU_SECONDS, o->used.tenant, (int64_t)milli_ms,
                       BH_LABELS(bh_arena_printf(&g->arena, "L%llu", (unsigned long long)o->lease),
                                 o->used.tenant,
                                 dev ? bh_arena_printf(&g->arena, "%u", dev->index) : o->used.gpu));
    }
}

static int gather_usage(struct gathering *g, struct bh_err *err)
{
    struct bh_meter *m = &g->d->meter;
    struct usage u = {0};
    bh_store_useds late = {0};
    bh_store_usings open = {0};
    int rc = bh_store_tail_used(g->d->store, &g->arena, m->tail.closed_ms, INT64_MAX, &late, err);
    if (rc == BH_OK)
        rc = bh_store_usage_open(g->d->store, &g->arena, g->now_ms, &open, err);
    for (size_t i = 0; rc == BH_OK && i < m->used.n; i++)
        count(g, &u, &m->used.at[i]);
    for (size_t i = 0; rc == BH_OK && i < late.n; i++)
        count(g, &u, &late.at[i]);
    for (size_t i = 0; rc == BH_OK && i < open.n; i++)
        count(g, &u, &open.at[i].used);
    if (rc == BH_OK) {
        put_usage(g, &u);
        put_lease_usage(g, &open);
    }
    bh_vec_fini(&late);
    bh_vec_fini(&open);
    bh_vec_fini(&u.tenants);
    bh_vec_fini(&u.cards);
    bh_map_fini(&u.by_tenant);
    bh_map_fini(&u.by_card);
    return rc;
}

/* ---- the daemon ---- */

static int gather_audit(struct gathering *g, struct bh_err *err)
{
    struct bh_audit_head head;
    const int rc = bh_audit_head_load(g->d->store, &head, err);
    if (rc < 0)
        return rc == BH_NOT_FOUND ? BH_OK : rc;
    const uint64_t since = head.signed_ms > 0 ? (uint64_t)head.signed_ms : 0;
    const uint64_t open = head.edge.n > head.signed_size ? head.edge.n - head.signed_size : 0;
    add(g, BH_METRIC_AUDIT_RECORDS, head.edge.n);
    add(g, BH_METRIC_AUDIT_UNSIGNED, open);
    add(g, BH_METRIC_AUDIT_LAG, open && g->now_ms > since ? g->now_ms - since : 0);
    add(g, BH_METRIC_AUDIT_FAILURES, g->d->meter.audit_failures);
    return BH_OK;
}

static void put_file(struct gathering *g, const char *what, const char *suffix)
{
    struct stat st;
    if (stat(bh_arena_printf(&g->arena, "%s%s", bh_store_path(g->d->store), suffix), &st) == 0)
        bh_metrics_add(g->out, BH_METRIC_STORE_BYTES, NULL, (int64_t)st.st_size, BH_LABELS(what));
}

static void gather_store(struct gathering *g)
{
    struct statvfs disk;
    put_file(g, "database", "");
    put_file(g, "log", "-wal");
    add(g, BH_METRIC_STORE_FAILURES, g->d->meter.store_failures);
    if (statvfs(g->d->opt.state_dir, &disk) == 0) {
        add(g, BH_METRIC_DISK_FREE, (uint64_t)disk.f_bavail * disk.f_frsize);
        add(g, BH_METRIC_DISK_SIZE, (uint64_t)disk.f_blocks * disk.f_frsize);
    }
}

static void gather_advisories(struct gathering *g)
{
    const char *driver = g->d->view.driver;
    struct bh_exposure e;
    struct bh_err err;
    if (!driver || bh_advisory_check("nvidia-driver", driver, (int32_t)(g->now_ms / 86400000), &e, &err) < 0)
        return;
    bh_metrics_add(g->out, BH_METRIC_ADVISORIES, NULL, (int64_t)(e.n_open + e.unpatched_branch),
                   BH_LABELS("nvidia-driver", driver, e.worst ? e.worst->worst_cve : NULL, e.fix_version));
}

static void gather_daemon(struct gathering *g)
{
    struct bh_daemon *d = g->d;
    bh_metrics_add(g->out, BH_METRIC_BUILD, NULL, 1,
                   BH_LABELS(d->view.version, d->view.driver, d->node, d->view.simulated ? "true" : "false"));
    add(g, BH_METRIC_START, d->view.started_ms);
    add(g, BH_METRIC_POLICY, d->book.version);
    add(g, BH_METRIC_SHARING, d->shares);
    const uint64_t looked = d->meter.looked_ms ? d->meter.looked_ms : d->view.started_ms;
    add(g, BH_METRIC_SILICON_AGE, g->now_ms > looked ? g->now_ms - looked : 0);
    add(g, BH_METRIC_SILICON_CHANGED, d->moved);
    bh_metrics_add_spread(g->out, BH_METRIC_CYCLE, NULL, &d->meter.cycle, BH_NO_LABELS);
    add(g, BH_METRIC_CYCLE_LONGEST, d->meter.longest_us);
    for (unsigned k = 0; k < BH_SLICE_KINDS; k++)
        for (unsigned v = 0; v < BH_SCRUB_VERDICTS; v++)
            bh_metrics_add(g->out, BH_METRIC_SCRUBS, NULL, (int64_t)d->meter.scrubs[k][v],
                           BH_LABELS(bh_slice_kind_str((enum bh_slice_kind)k),
                                     bh_scrub_verdict_str((enum bh_scrub_verdict)v)));
    gather_store(g);
    gather_advisories(g);
}

/* What the state is asked for. */
static int gather_books(struct gathering *g, struct bh_err *err)
{
    int rc = bh_meter_read(g->d, err);
    if (rc == BH_OK)
        rc = bh_store_slices_list(g->d->store, &g->arena, NULL, 0, &g->slices, err);
    if (rc == BH_OK)
        rc = gather_usage(g, err);
    if (rc == BH_OK)
        rc = gather_audit(g, err);
    if (rc == BH_OK)
        rc = bh_node_metrics_cards(g->d, &g->slices, g->out, err);
    return rc;
}

/* Where the state cannot be read, that is told as well as what can be said without it: a scrape does not fail. */
void bh_node_metrics(void *self, struct bh_metrics *ret)
{
    struct bh_daemon *d = self;
    struct gathering g = {.d = d, .out = ret, .now_ms = bh_daemon_now(d)};
    struct bh_err err;
    const bool failed = gather_books(&g, &err) < 0;
    if (failed)
        bh_daemon_say(d, "metrics are not whole: %s", err.msg);
    else
        gather_tenants(&g);
    d->meter.store_failures += failed;
    gather_daemon(&g);
    add(&g, BH_METRIC_STORE_FAILING, failed || d->broken_until_ms != 0);
    bh_vec_fini(&g.slices);
    bh_vec_fini(&g.tenants);
    bh_map_fini(&g.by_name);
    bh_arena_fini(&g.arena);
}
