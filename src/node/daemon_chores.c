/* SPDX-License-Identifier: Apache-2.0 */
/* daemon_chores.c - what is due each second, one thing a turn; among it the looks at the cards, which a child takes. */
#include "node/daemon_chores.h"

#include "node/bill.h"
#include "node/decide.h"
#include "node/life.h"
#include "node/mech/mech.h"
#include "node/ops.h"
#include "node/retain.h"
#include "node/upkeep.h"

#include <stdio.h>
#include <sys/epoll.h>

enum { LINKS_TICKS = 60 /* where a card's links lead changes with cables */ };

/* ---- the cards ---- */

static void say_look(struct bh_daemon *d, int rc, const struct bh_err *err)
{
    (void)snprintf(d->checks.look, sizeof(d->checks.look), "%.190s", rc < 0 ? err->msg : "");
    if (rc < 0)
        bh_daemon_say(d, "the GPUs could not be read: %s", err->msg);
}

/* Who is on the cards; what else there is to know of them is as it was, unless something is odd. */
static void looked_who(struct bh_daemon *d)
{
    struct bh_gpu_snapshot seen;
    struct bh_err err;
    bool odd = true;
    const int rc = bh_silicon_looked_who(&d->silicon, &seen, &odd, &err);
    d->look_deep = d->look_deep || odd;
    if (rc < 0) {
        say_look(d, rc, &err); /* until the next one at all of it */
        return;
    }
    bh_watch_looked(d, &seen);
    bh_gpu_snapshot_fini(&seen);
    bh_checks_stale(d);
}

static int on_looked(sd_event_source *source, int fd, uint32_t events, void *arg)
{
    struct bh_daemon *d = arg;
    struct bh_err err;
    bool moved = d->moved;
    (void)source;
    (void)fd;
    (void)events;
    d->look_source = sd_event_source_disable_unref(d->look_source);
    if (d->silicon.depth == BH_GPU_USERS) {
        looked_who(d);
        return 0;
    }
    const int rc = bh_silicon_looked(&d->silicon, &moved, &err);
    say_look(d, rc, &err);
    if (rc == BH_OK)
        bh_watch_looked(d, &d->silicon.now);
    if (rc == BH_OK && !bh_meter_looked(d))
        (void)snprintf(d->checks.look, sizeof(d->checks.look),
                       "the driver refuses every reading of every GPU");
    if (moved && !d->moved)
        bh_daemon_say(
            d,
            "this machine's GPUs have changed: restart bulkheadd to take them up (systemctl restart bulkheadd); "
            "work goes on");
    d->moved = moved;
    bh_health_looked(d);
    bh_mech_look(d);
    bh_daemon_show(d);
    return 0;
}

/* A driver may take its time: whoever asks the daemon does not wait for it. */
static void look_again(struct bh_daemon *d, enum bh_gpu_depth depth)
{
    struct bh_err err;
    if (d->look_source) { /* one goes on */
        d->look_deep = d->look_deep || depth != BH_GPU_USERS;
        return;
    }
    int rc = bh_silicon_look(&d->silicon, depth, &err);
    if (rc == BH_OK &&
        sd_event_add_io(d->loop, &d->look_source, d->silicon.worker.fd, EPOLLIN, on_looked, d) < 0) {
        bh_worker_kill(&d->silicon.worker);
        rc = bh_fail(&err, BH_SYSTEM, "the loop takes no more");
    }
    if (rc < 0)
        bh_daemon_say(d, "the GPUs could not be read: %s", err.msg);
    else if (depth != BH_GPU_USERS)
        d->look_deep = false;
}

/* ---- once a second ---- */

static void chore_leases(struct bh_daemon *d)
{
    bh_worker_tick();
    bh_life_tick(d);
    bh_decide_tick(d);
}

static void chore_owed(struct bh_daemon *d)
{
    struct bh_err err;
    if (bh_owed_any(&d->owed) && !d->broken_until_ms && bh_ops_owe(d, NULL, true, &err) < 0)
        bh_daemon_say(d, "the log is still owed what happened: %s", err.msg);
}

static void chore_look(struct bh_daemon *d)
{
    static unsigned ticks;
    /* Asking a driver costs more than all the rest of an idle daemon: less often while nobody wants to know. */
    const bool idle = bh_daemon_now(d) > d->asked_ms + BH_DAEMON_ASKED_MS;
    const bool deep = ++ticks % bh_watch_ticks_deep(idle) == 0 || d->look_deep;
    if (deep || ticks % bh_watch_ticks(d, idle) == 0)
        look_again(d, !deep ? BH_GPU_USERS : ticks % LINKS_TICKS == 0 ? BH_GPU_FLEET : BH_GPU_STATE);
    if (deep)
        bh_meter_look(d);
}

static void chore_audit(struct bh_daemon *d)
{
    struct bh_err err;
    uint64_t wait_ms;
    if (bh_store_in_transaction(d->store))
        return;
    const int rc = bh_audit_tick(d->audit, &wait_ms, &err);
    (void)snprintf(d->checks.audit, sizeof(d->checks.audit), "%.190s", rc < 0 ? err.msg : "");
    d->meter.audit_failures += rc < 0;
    if (rc < 0)
        bh_daemon_say(d, "the audit log got no checkpoint: %s", err.msg);
}

/*
 * In this order, each in a turn of its own: some write and wait for the disk, some begin a process, and who asks meanwhile is answered
 * between two of them. The last one starts a cycle, for time itself decides: minimum run times, deadlines, reservations.
 */
static void (*const chores[])(struct bh_daemon *) = {
    chore_leases, bh_mech_tick, bh_upkeep_tick, bh_retain_tick, bh_health_tick, bh_sleep_tick,
    bh_bill_tick, chore_owed,   chore_look,     chore_audit,    bh_daemon_due};

static void next_chore(struct bh_daemon *d);

static int on_chore(sd_event_source *source, void *arg)
{
    struct bh_daemon *d = arg;
    (void)source;
    bh_daemon_had_turn(d);
    d->chore_source = sd_event_source_disable_unref(d->chore_source);
    chores[d->chore++](d);
    next_chore(d);
    return 0;
}

static void next_chore(struct bh_daemon *d)
{
    if (d->chore < BH_COUNT_OF(chores) && !d->chore_source)
        (void)bh_daemon_idle(d, &d->chore_source, on_chore, d); /* or at the next tick */
}

void bh_daemon_chores_tick(struct bh_daemon *d)
{
    if (d->chore >= BH_COUNT_OF(chores)) /* else it was a long second, and they go on */
        d->chore = 0;
    next_chore(d);
}
