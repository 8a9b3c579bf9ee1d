/* SPDX-License-Identifier: Apache-2.0 */
/* watchdog.c - one look of the driver at its processes, held against the leases. */
#include "node/watch/watchdog.h"

#include "base/str.h"
#include "base/units.h"
#include "node/decide.h"
#include "node/life.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    TICKS = 5,       /* between looks while somebody asks */
    TICKS_HELD = 10, /* while somebody has something */
    TICKS_IDLE = 60,
};
/* The kernel's number of its first namespace of processes (PROC_PID_INIT_INO of its headers). */
#define FIRST_PIDS UINT64_C(0xeffffffc)
/* What the driver counts for a process beside what it asked for, and what may be on its way. */
#define SLACK_BYTES   (UINT64_C(1) * BH_GIB)
#define CONTEXT_BYTES (UINT64_C(256) * BH_MIB)

uint64_t bh_watch_most(uint64_t share_bytes, uint32_t processes)
{
    return share_bytes + SLACK_BYTES + processes * CONTEXT_BYTES;
}

/* ---- one process ---- */

/* The driver counts in the machine's first namespace; where ours is another, its numbers are other processes here. */
static bool is_reachable(const struct bh_daemon *d)
{
    struct stat st;
    return d->view.simulated || (stat("/proc/self/ns/pid", &st) == 0 && (uint64_t)st.st_ino == FIRST_PIDS);
}

static void begin(struct bh_daemon *d)
{
    struct bh_who self;
    if (d->watch.began)
        return;
    d->watch.began = bh_who_read("/proc", (uint32_t)getpid(), d->cgroup, &self) ? self.began : UINT64_C(1);
    d->watch.reachable = is_reachable(d);
}

static bool has_part(const bh_store_slices *slices, uint64_t lease)
{
    for (size_t i = 0; i < slices->n; i++)
        if (lease && slices->at[i].lease == lease && slices->at[i].state != BH_SLICE_FREE)
            return true;
    return false;
}

/* A server of MPS is its leases'. */
static bool serves(const struct bh_daemon *d, uint64_t server, const char *gpu)
{
    for (size_t i = 0; server && i < d->servers.n; i++)
        if (d->servers.at[i]->number == server && strstr(d->servers.at[i]->gpus, gpu))
            return true;
    return false;
}

static bool is_given(const bh_store_slices *slices)
{
    for (size_t i = 0; i < slices->n; i++)
        if (slices->at[i].state != BH_SLICE_FREE)
            return true;
    return false;
}

static struct bh_stranger *known(struct bh_watch *w, const char *gpu, uint32_t pid, uint64_t began)
{
    for (size_t i = 0; i < w->strangers.n; i++) {
        struct bh_stranger *s = &w->strangers.at[i];
        if (s->pid == pid && s->who.began == began && bh_str_eq(s->gpu, gpu))
            return s;
    }
    return NULL;
}

static void count_use(struct bh_watch *w, uint64_t lease, const char *gpu, struct bh_reading bytes)
{
    struct bh_watch_use *u = NULL;
    for (size_t i = 0; !u && i < w->uses.n; i++)
        if (w->uses.at[i].lease == lease && bh_str_eq(w->uses.at[i].gpu, gpu))
            u = &w->uses.at[i];
    if (!u) {
        u = bh_vec_push(&w->uses);
        *u = (struct bh_watch_use){.lease = lease};
        (void)snprintf(u->gpu, sizeof(u->gpu), "%s", gpu);
    }
    u->bytes += bytes.why ? 0 : bytes.v;
    u->processes++;
}

/* ---- what is done ---- */

static void describe(const struct bh_stranger *s, char *words, size_t size)
{
    char of[48] = "";
    if (s->who.lease)
        (void)snprintf(of, sizeof(of), ", of L%llu", (unsigned long long)s->who.lease);
    (void)snprintf(words, size,
                   "process %u (%s, user %u%s) is on %s with %llu MiB and belongs to no lease there", s->pid,
                   s->who.name, s->who.uid, of, s->card, (unsigned long long)(s->bytes / BH_MIB));
}

static int write_found(struct bh_daemon *d, const struct bh_stranger *s, const char *what, bool cordon,
                       const char *words, struct bh_err *err)
{
    struct bh_audit_event e = {.event = BH_AUDIT_GPU_STRANGER,
                               .outcome = BH_AUDIT_DENIED,
                               .sub = "service:bulkheadd",
                               .object_type = "gpu",
                               .object_id = s->gpu,
                               .after = what,
                               .reason = words};
    int rc = bh_audit_append(d->audit, &e, err);
    if (rc < 0 || !cordon)
        return rc;
    e.event = BH_AUDIT_GPU_CORDON;
    e.outcome = BH_AUDIT_SUCCESS;
    rc = bh_store_card_cordon(d->store, s->gpu, bh_daemon_now(d), "service:bulkheadd", words, err);
    return rc == BH_OK ? bh_audit_append(d->audit, &e, err) : rc;
}

/* Durable when this returns true. */
static bool record(struct bh_daemon *d, const struct bh_stranger *s, const char *what, bool cordon)
{
    char words[240];
    struct bh_err err;
    describe(s, words, sizeof(words));
    int rc = bh_life_begin(d, &err);
    if (rc == BH_OK)
        rc = bh_life_end(d, write_found(d, s, what, cordon, words, &err), &err);
    if (rc < 0)
        bh_decide_later(d, &err);
    else
        bh_daemon_say(d, "%s: %s", words, what);
    return rc == BH_OK;
}

/* By a descriptor, so that nobody is hit who got the number meanwhile. */
static void stop(struct bh_daemon *d, struct bh_stranger *s)
{
    struct bh_who now;
    const int fd = (int)syscall(SYS_pidfd_open, (pid_t)s->pid, 0);
    const bool same = fd >= 0 && bh_who_read("/proc", s->pid, d->cgroup, &now) && now.began == s->who.began;
    if (same && (s->stopped || record(d, s, "stopped", false))) {
        s->stopped =
            true; /* one that hangs in the driver is stopped again at each look, and written down once */
        (void)syscall(SYS_pidfd_send_signal, fd, SIGKILL, NULL, 0);
    }
    if (fd >= 0)
        close(fd);
}

static bool is_cordoned(struct bh_daemon *d, const char *gpu)
{
    struct bh_arena arena = {0};
    struct bh_store_card card;
    struct bh_err err;
    const bool is = bh_store_card_get(d->store, &arena, gpu, &card, &err) == BH_OK && card.cordoned_ms;
    bh_arena_fini(&arena);
    return is;
}

static void leave(struct bh_daemon *d, struct bh_stranger *s)
{
    if (s->told || !record(d, s, "left alone", !is_cordoned(d, s->gpu)))
        return;
    s->told = true;
    bh_decide_health(d, s->gpu);
}

static void take(struct bh_daemon *d, const struct bh_gpu_device *g, const struct bh_gpu_process *p,
                 const bh_store_slices *slices)
{
    struct bh_watch *w = &d->watch;
    struct bh_who who;
    if (!bh_who_read("/proc", p->pid, d->cgroup, &who)) {
        if (w->reachable) /* it is gone */
            return;
        (void)snprintf(who.name, sizeof(who.name), "%.30s", p->name ? p->name : "unknown");
    }
    struct bh_stranger *s = known(w, g->uuid, p->pid, who.began);
    const struct bh_who_case c = {.here = has_part(slices, who.lease) || serves(d, who.server, g->uuid),
                                  .ours = who.ours,
                                  .of_lease = who.lease || who.server,
                                  .root = who.root,
                                  .was_there = who.began < w->began,
                                  .given = is_given(slices),
                                  .reachable = w->reachable,
                                  .seen_before = s != NULL};
    if (who.lease && c.here)
        count_use(w, who.lease, g->uuid, p->memory_bytes);
    const enum bh_who_act act = bh_who_judge(&c);
    if (act == BH_WHO_FINE)
        return;
    if (!s) {
        s = bh_vec_push(&w->strangers);
        *s = (struct bh_stranger){.pid = p->pid, .who = who};
        (void)snprintf(s->gpu, sizeof(s->gpu), "%s", g->uuid);
        (void)snprintf(s->card, sizeof(s->card), "GPU %u", g->index);
    }
    s->here = true;
    s->bytes = p->memory_bytes.why ? 0 : p->memory_bytes.v;
    if (act == BH_WHO_STOP)
        stop(d, s);
    else if (act == BH_WHO_LEAVE)
        leave(d, s);
}

/* ---- memory ---- */

/* Of shares and of whole cards alike; an instance of MIG has no more than it has. */
static uint64_t share_of(struct bh_daemon *d, const struct bh_watch_use *u)
{
    struct bh_arena arena = {0};
    bh_store_grants grants = {0};
    struct bh_err err;
    uint64_t mib = 0;
    if (bh_store_lease_grants(d->store, &arena, u->lease, &grants, &err) == BH_OK)
        for (size_t i = 0; i < grants.n; i++)
            if (grants.at[i].slice.kind == BH_SLICE_SHARE && bh_str_eq(grants.at[i].slice.gpu, u->gpu))
                mib += grants.at[i].mib;
    bh_vec_fini(&grants);
    bh_arena_fini(&arena);
    return mib * BH_MIB;
}

static bool was_over(const struct bh_watch *w, uint64_t lease)
{
    for (size_t i = 0; i < w->over.n; i++)
        if (w->over.at[i] == lease)
            return true;
    return false;
}

static void judge_uses(struct bh_daemon *d)
{
    struct bh_watch *w = &d->watch;
    BH_VEC(uint64_t) over = {0};
    for (size_t i = 0; i < w->uses.n; i++) {
        const struct bh_watch_use *u = &w->uses.at[i];
        const uint64_t share = share_of(d, u);
        struct bh_life *run = bh_life_of_lease(d, u->lease);
        char why[160];
        if (!share || !run || run->state != BH_LEASE_ACTIVE || u->bytes <= bh_watch_most(share, u->processes))
            continue;
        *bh_vec_push(&over) = u->lease;
        if (!was_over(w, u->lease))
            continue; /* it may be letting go of it just now */
        (void)snprintf(why, sizeof(why),
                       "it had %llu MiB of %.60s by the driver's count; its share is %llu MiB",
                       (unsigned long long)(u->bytes / BH_MIB), u->gpu, (unsigned long long)(share / BH_MIB));
        bh_daemon_say(d, "L%llu is ended: %s", (unsigned long long)u->lease, why);
        bh_life_evict(d, run, BH_AFTER_FAILED, why);
    }
    w->over.n = 0;
    for (size_t i = 0; i < over.n; i++)
        *bh_vec_push(&w->over) = over.at[i];
    bh_vec_fini(&over);
}

/* ---- a look ---- */

static bool is_managed(const struct bh_daemon *d, const char *uuid)
{
    const struct bh_policy *p = d->book.policy;
    struct bh_gpu_ref ref;
    if (!p || !bh_silicon_ref(&d->silicon, uuid, &ref))
        return false;
    for (size_t i = 0; i < p->pools.n; i++)
        for (size_t k = 0; k < p->pools.at[i].gpus.n; k++)
            if (p->pools.at[i].gpus.at[k].gpu == ref.gpu)
                return true;
    return false;
}

static void take_card(struct bh_daemon *d, const struct bh_gpu_device *g)
{
    struct bh_arena arena = {0};
    bh_store_slices slices = {0};
    struct bh_err err;
    if (bh_store_slices_list(d->store, &arena, g->uuid, 0, &slices, &err) < 0)
        bh_daemon_say(d, "%s: %s", g->uuid, err.msg);
    else
        for (size_t i = 0; i < g->processes.n; i++)
            take(d, g, &g->processes.at[i], &slices);
    bh_vec_fini(&slices);
    bh_arena_fini(&arena);
}

void bh_watch_looked(struct bh_daemon *d, const struct bh_gpu_snapshot *seen)
{
    struct bh_watch *w = &d->watch;
    begin(d);
    w->uses.n = 0;
    if (d->broken_until_ms) /* what is believed may not be so */
        return;
    for (size_t i = 0; i < w->strangers.n; i++)
        w->strangers.at[i].here = false;
    for (size_t i = 0; i < seen->devices.n; i++) {
        const struct bh_gpu_device *g = &seen->devices.at[i];
        if (g->uuid && g->processes.n && is_managed(d, g->uuid))
            take_card(d, g);
    }
    for (size_t i = w->strangers.n; i-- > 0;)
        if (!w->strangers.at[i].here)
            w->strangers.at[i] = w->strangers.at[--w->strangers.n];
    judge_uses(d);
}

unsigned bh_watch_ticks(const struct bh_daemon *d, bool idle)
{
    for (size_t i = 0; i < d->watch.strangers.n; i++)
        if (!d->watch.strangers.at[i].told)
            return 1;
    if (d->watch.over.n)
        return 1;
    if (!idle)
        return TICKS;
    for (size_t i = 0; i < d->runs.n; i++)
        if (!bh_life_waits(d->runs.at[i]))
            return TICKS_HELD;
    return TICKS_IDLE;
}

unsigned bh_watch_ticks_deep(bool idle)
{
    return idle ? TICKS_IDLE : TICKS;
}

void bh_watch_fini(struct bh_watch *w)
{
    bh_vec_fini(&w->strangers);
    bh_vec_fini(&w->uses);
    bh_vec_fini(&w->over);
}
