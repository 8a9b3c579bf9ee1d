/* SPDX-License-Identifier: Apache-2.0 */
/* health.c - events of the driver's: whose they are, what they end, what is written down. */
#include "node/watch/health.h"

#include "base/str.h"
#include "gpu/health.h"
#include "node/decide.h"
#include "node/mech/clear.h"
#include "node/spec.h"
#include "node/watch/health_inside.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>

enum { AGAIN_MS = 60000, PAUSE_MS = 5000, PAUSE_MAX_MS = 300000, WAITING_MAX = 4096 };

typedef BH_VEC(struct bh_life *) lives;

/* ---- whose it is ---- */

/* Who has something of the card and could be ended. */
static int on_card(struct bh_daemon *d, const char *uuid, lives *ret, struct bh_err *err)
{
    struct bh_arena arena = {0};
    bh_store_slices slices = {0};
    enum bh_lease_state to;
    const int rc = bh_store_slices_list(d->store, &arena, uuid, 0, &slices, err);
    for (size_t i = 0; rc == BH_OK && i < slices.n; i++) {
        struct bh_life *run = slices.at[i].owner ? bh_life_of_lease(d, slices.at[i].owner) : NULL;
        bool has = !run || !bh_lease_next(run->state, BH_LEASE_BY_FAULT, &to);
        for (size_t k = 0; k < ret->n; k++)
            has = has || ret->at[k] == run;
        if (!has)
            *bh_vec_push(ret) = run;
    }
    bh_vec_fini(&slices);
    bh_arena_fini(&arena);
    return rc;
}

/* The process that the kernel's log names for this error; 0: none, or the log cannot be read. */
static uint32_t pid_of(struct bh_daemon *d, const struct bh_gpu_event *e)
{
    struct bh_node_health *h = &d->health;
    const struct bh_gpu_device *card = bh_silicon_device(&d->silicon, e->uuid);
    const size_t have = h->n_lines < BH_HEALTH_LINES ? h->n_lines : BH_HEALTH_LINES;
    for (size_t i = 0; e->kind == BH_GPU_EVENT_XID && card && card->pci && i < have; i++) {
        struct bh_xid_line *l = &h->lines[(h->n_lines - 1 - i) % BH_HEALTH_LINES];
        char at[48];
        (void)snprintf(at, sizeof(at), "%04x:%02x:%02x.", l->domain, l->bus, l->device);
        if (l->number != e->data || !bh_str_starts(card->pci, at))
            continue;
        l->number = UINT32_MAX; /* a line is of one event */
        return l->pid;
    }
    return 0;
}

static struct bh_life *by_pid(struct bh_daemon *d, const lives *runs, uint32_t pid)
{
    struct bh_life *found = NULL;
    for (size_t i = 0; pid && d->has_cgroups && !found && i < runs->n; i++) {
        struct bh_arena arena = {0};
        struct bh_cgroup_pids pids = {0};
        struct bh_err err;
        if (bh_cgroup_list(&d->cgroups, bh_spec_cgroup(d, &arena, runs->at[i]->lease), &pids, &err) == BH_OK)
            for (size_t k = 0; k < pids.n; k++)
                found = (uint32_t)pids.at[k] == pid ? runs->at[i] : found;
        bh_vec_fini(&pids);
        bh_arena_fini(&arena);
    }
    return found;
}

/* Of an instance of MIG: the driver's number of it, its name, our name, the lease. */
static struct bh_life *by_instance(struct bh_daemon *d, const struct bh_gpu_event *e, const lives *runs)
{
    struct bh_arena arena = {0};
    bh_store_slices slices = {0};
    struct bh_err err;
    const char *name = NULL, *key = NULL;
    struct bh_life *found = NULL;
    const struct bh_gpu_snapshot *s = d->silicon.has_now ? &d->silicon.now : &d->silicon.snapshot;
    for (size_t i = 0; e->gi != BH_NO_ID && i < s->devices.n; i++)
        for (size_t k = 0; bh_str_eq(s->devices.at[i].uuid, e->uuid) && k < s->devices.at[i].instances.n; k++)
            if (s->devices.at[i].instances.at[k].gi == e->gi)
                name = s->devices.at[i].instances.at[k].uuid;
    for (size_t i = 0; name && i < d->cuts.n; i++)
        if (bh_str_eq(d->cuts.at[i].uuid, name))
            key = d->cuts.at[i].key;
    if (key && bh_store_slices_list(d->store, &arena, e->uuid, 0, &slices, &err) == BH_OK)
        for (size_t i = 0; i < slices.n; i++)
            for (size_t k = 0; bh_str_eq(slices.at[i].name.key, key) && k < runs->n; k++)
                found = runs->at[k]->lease == slices.at[i].owner ? runs->at[k] : found;
    bh_vec_fini(&slices);
    bh_arena_fini(&arena);
    return found;
}

/* NULL: nobody is on it, or who of several it was is not known. */
static struct bh_life *culprit_of(struct bh_daemon *d, const struct bh_gpu_event *e, const lives *runs)
{
    const uint32_t pid = pid_of(d, e);
    struct bh_life *found = by_pid(d, runs, pid);
    /* One that lives and is in no lease here is somebody else's: an operator's, say. */
    if (found || (pid && kill((pid_t)pid, 0) == 0))
        return found;
    return runs->n == 1 ? runs->at[0] : by_instance(d, e, runs);
}

/* ---- what is written ---- */

struct verdict {
    const struct bh_gpu_event *e;
    struct bh_life *culprit; /* NULL: not known */
    lives on;                /* who is on the card */
    enum bh_card_health was, is;
    char reason[480];
};

/* For the tenant whose lease ends: nothing of neighbours. */
static void tell_tenant(const struct bh_gpu_event *e, char text[160])
{
    if (e->xid)
        (void)snprintf(text, 160, "Xid %llu on its GPU: %s (%s)", (unsigned long long)e->data, e->xid->words,
                       bh_xid_fault_words(e->xid));
    else
        (void)snprintf(text, 160, "%.159s", e->text);
}

static bool ends(const struct verdict *v, const struct bh_life *run)
{
    return v->e->reach == BH_REACH_ALL ||
           ((v->e->reach == BH_REACH_LEASE || v->e->reach == BH_REACH_HIT) && run == v->culprit);
}

static int write_ends(struct bh_daemon *d, const struct verdict *v, struct bh_err *err)
{
    char why[160];
    int rc = BH_OK;
    tell_tenant(v->e, why);
    for (size_t i = 0; rc == BH_OK && i < v->on.n; i++) {
        struct bh_life *run = v->on.at[i];
        if (!ends(v, run))
            continue;
        /* What did it by itself would do it again. */
        const bool back = v->e->reach != BH_REACH_LEASE && bh_life_may_return(d, run);
        rc = bh_life_write_leave(d, run, back ? BH_AFTER_WAITS : BH_AFTER_FAILED, BH_LEASE_BY_FAULT,
                                 BH_AUDIT_ALLOC_RECLAIM, why, err);
    }
    return rc;
}

static void make_reason(struct verdict *v)
{
    const struct bh_gpu_event *e = v->e;
    const bool one = e->reach == BH_REACH_LEASE || e->reach == BH_REACH_HIT;
    char who[96] = "";
    if (one && v->culprit)
        (void)snprintf(who, sizeof(who), "; of L%llu", (unsigned long long)v->culprit->lease);
    else if (one && v->on.n > 1)
        (void)snprintf(who, sizeof(who), "; whose of the %zu leases there it was is not known", v->on.n);
    (void)snprintf(v->reason, sizeof(v->reason), "%s%s", e->text, who);
}

static int write_card(struct bh_daemon *d, const struct verdict *v, struct bh_err *err)
{
    char why[480];
    if (v->is <= v->was)
        return BH_OK;
    (void)snprintf(why, sizeof(why), "%.400s; when that is done: bulkhead resume %u", v->e->text, v->e->gpu);
    return bh_store_card_health(d->store, v->e->uuid, v->is, bh_daemon_now(d), why, err);
}

static int write_verdict(struct bh_daemon *d, const struct verdict *v, struct bh_err *err)
{
    static const enum bh_audit_kind kinds[] = {
        [BH_GPU_EVENT_XID] = BH_AUDIT_GPU_XID,    [BH_GPU_EVENT_ECC] = BH_AUDIT_GPU_ECC,
        [BH_GPU_EVENT_MEMORY] = BH_AUDIT_GPU_ECC, [BH_GPU_EVENT_RECOVER] = BH_AUDIT_GPU_XID,
        [BH_GPU_EVENT_MIG] = BH_AUDIT_MIG_DRIFT,  [BH_GPU_EVENT_LOST] = BH_AUDIT_GPU_XID,
        [BH_GPU_EVENT_OTHER] = BH_AUDIT_GPU_XID};
    const bool nvlink = v->e->xid && v->e->xid->number == 74;
    const struct bh_audit_event a = {.event = nvlink ? BH_AUDIT_GPU_NVLINK : kinds[v->e->kind],
                                     .sub = "service:bulkheadd",
                                     .tenant = v->culprit ? v->culprit->tenant : NULL,
                                     .object_type = "gpu",
                                     .object_id = v->e->uuid,
                                     .before = bh_card_health_str(v->was),
                                     .after = bh_card_health_str(v->is > v->was ? v->is : v->was),
                                     .reason = v->reason};
    int rc = bh_audit_append(d->audit, &a, err);
    if (rc == BH_OK)
        rc = write_card(d, v, err);
    return rc == BH_OK ? write_ends(d, v, err) : rc;
}

/* ---- one event ---- */

static enum bh_card_health health_after(uint8_t reach)
{
    return reach == BH_REACH_ALL                             ? BH_CARD_BAD
           : reach == BH_REACH_CARD || reach == BH_REACH_HIT ? BH_CARD_SUSPECT
                                                             : BH_CARD_OK;
}

/* It was written down a moment ago, and changes nothing. */
static bool is_old(struct bh_daemon *d, const struct verdict *v)
{
    struct bh_node_health *h = &d->health;
    const uint64_t now = bh_daemon_now(d), lease = v->culprit ? v->culprit->lease : 0;
    bool acts = v->is > v->was;
    for (size_t i = 0; i < v->on.n; i++)
        acts = acts || ends(v, v->on.at[i]);
    for (size_t i = 0; !acts && i < h->n_seen && i < BH_HEALTH_SEEN; i++) {
        const struct bh_health_seen *s = &h->seen[i];
        if (s->type == v->e->type && s->data == v->e->data && s->lease == lease &&
            bh_str_eq(s->uuid, v->e->uuid) && now < s->at_ms + AGAIN_MS)
            return true;
    }
    struct bh_health_seen *s = &h->seen[h->n_seen++ % BH_HEALTH_SEEN];
    *s = (struct bh_health_seen){.type = v->e->type, .data = v->e->data, .at_ms = now, .lease = lease};
    (void)snprintf(s->uuid, sizeof(s->uuid), "%s", v->e->uuid);
    return false;
}

static void done(struct bh_daemon *d, const struct verdict *v)
{
    bh_daemon_say(d, "%s", v->reason);
    if (v->is > v->was) {
        bh_api_changed(d->api, BH_API_KIND_GPU, v->e->gpu, NULL,
                       v->is == BH_CARD_BAD ? "quarantined" : "cordoned");
        bh_decide_health(d, v->e->uuid);
    }
    bh_api_changed(d->api, BH_API_KIND_HEALTH, v->e->gpu, NULL,
                   bh_card_health_str(v->is > v->was ? v->is : v->was));
    for (size_t i = 0; i < v->on.n; i++) {
        struct bh_life *run = v->on.at[i];
        if (!ends(v, run))
            continue;
        bh_api_changed(d->api, BH_API_KIND_LEASE, run->lease, run->tenant, bh_lease_state_str(run->state));
        bh_clear_begin(d, run);
    }
    bh_checks_stale(d);
    bh_daemon_show(d);
}

/* False: the store could not be written; it waits. */
static bool take_event(struct bh_daemon *d, const struct bh_gpu_event *e)
{
    struct bh_arena arena = {0};
    struct bh_store_card card;
    struct verdict v = {.e = e, .is = health_after(e->reach)};
    struct bh_err err;
    if (!*e->uuid) {
        bh_daemon_say(d, "%s", e->text);
        d->asked_ms = bh_daemon_now(d); /* the next look comes soon, and shows which it was */
        return true;
    }
    int rc = bh_store_card_get(d->store, &arena, e->uuid, &card, &err);
    v.was = rc == BH_OK ? card.health : BH_CARD_OK;
    bh_arena_fini(&arena);
    if (rc == BH_OK)
        rc = on_card(d, e->uuid, &v.on, &err);
    if (rc == BH_OK) {
        v.culprit = culprit_of(d, e, &v.on);
        make_reason(&v);
        if (!is_old(d, &v)) {
            rc = bh_life_begin(d, &err);
            if (rc == BH_OK)
                rc = bh_life_end(d, write_verdict(d, &v, &err), &err);
            if (rc == BH_OK)
                done(d, &v);
        }
    }
    bh_vec_fini(&v.on);
    if (rc == BH_NOT_FOUND) /* a card that was never taken up is nobody's */
        return true;
    if (rc < 0)
        bh_decide_later(d, &err);
    return rc == BH_OK;
}

static void take_waiting(struct bh_daemon *d)
{
    struct bh_node_health *h = &d->health;
    size_t n = 0;
    while (n < h->waiting.n && !d->broken_until_ms && take_event(d, &h->waiting.at[n].event))
        n++;
    h->waiting.n -= n;
    if (n && h->waiting.n)
        memmove(h->waiting.at, h->waiting.at + n, h->waiting.n * sizeof(h->waiting.at[0]));
}

void bh_health_add(struct bh_daemon *d, const struct bh_vigil_word *w)
{
    struct bh_node_health *h = &d->health;
    if (h->waiting.n >=
        WAITING_MAX) { /* a disk that fails for so long: the looks will show what is left of it */
        bh_daemon_say(d, "%s", w->event.text);
        return;
    }
    *bh_vec_push(&h->waiting) = *w;
}

/* ---- listening ---- */

static void heard(struct bh_daemon *d, const struct bh_vigil_word *w)
{
    struct bh_node_health *h = &d->health;
    switch ((enum bh_vigil_kind)w->kind) {
    case BH_VIGIL_LINE:
        h->lines[h->n_lines++ % BH_HEALTH_LINES] = w->line;
        break;
    case BH_VIGIL_EVENT:
        bh_health_add(d, w);
        h->pause_ms = 0;
        break;
    case BH_VIGIL_GAP:
        bh_daemon_say(d, "%s", w->text);
        break;
    case BH_VIGIL_FAILED:
        if (!bh_str_eq(h->said, w->text))
            bh_daemon_say(d, "nobody listens to the GPUs' health: %s", w->text);
        (void)snprintf(h->said, sizeof(h->said), "%s", w->text);
        h->listens = false;
        break;
    }
}

static int on_word(sd_event_source *source, int fd, uint32_t events, void *arg)
{
    struct bh_daemon *d = arg;
    struct bh_node_health *h = &d->health;
    struct bh_vigil_word w;
    int rc;
    (void)source;
    (void)fd;
    (void)events;
    while ((rc = bh_vigil_next(&h->vigil, &w)) > 0)
        heard(d, &w);
    if (rc < 0) {
        h->source = sd_event_source_disable_unref(h->source);
        bh_vigil_end(&h->vigil);
        h->pause_ms = h->pause_ms * 2 < PAUSE_MS ? PAUSE_MS : h->pause_ms * 2;
        h->pause_ms = h->pause_ms > PAUSE_MAX_MS ? PAUSE_MAX_MS : h->pause_ms;
        h->start_ms = bh_daemon_now(d) + h->pause_ms;
    }
    take_waiting(d);
    return 0;
}

static void start(struct bh_daemon *d)
{
    struct bh_node_health *h = &d->health;
    struct bh_err err;
    int rc = bh_vigil_start(&h->vigil, &err);
    if (rc == BH_OK && sd_event_add_io(d->loop, &h->source, h->vigil.fd, EPOLLIN, on_word, d) < 0) {
        bh_vigil_end(&h->vigil);
        rc = bh_fail(&err, BH_SYSTEM, "the loop takes no more");
    }
    h->listens = rc == BH_OK;
    h->start_ms = bh_daemon_now(d) + PAUSE_MS;
    if (rc < 0)
        bh_daemon_say(d, "nobody listens to the GPUs' health: %s", err.msg);
}

void bh_health_tick(struct bh_daemon *d)
{
    struct bh_node_health *h = &d->health;
    if (h->vigil.pid <= 0 && bh_daemon_now(d) >= h->start_ms)
        start(d);
    take_waiting(d);
}

void bh_health_fini(struct bh_daemon *d)
{
    struct bh_node_health *h = &d->health;
    h->source = sd_event_source_disable_unref(h->source);
    bh_vigil_end(&h->vigil);
    bh_vec_fini(&h->waiting);
    bh_vec_fini(&h->strikes);
}
