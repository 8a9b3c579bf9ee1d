/* SPDX-License-Identifier: Apache-2.0 */
/* sleep_idle.c - who sleeps by itself, who wakes, and whether those who are held are: a look at the governor now and then. */
#include "node/sleep_inside.h"

#include "base/str.h"
#include "launch/governor.h"
#include "node/life.h"
#include "node/spec.h"

enum {
    PATIENCE_MS = 200, /* with the governor, in the loop */
    HELD_MS = 5000     /* between two looks whether those who are held are */
};

/* ---- who is idle ---- */

/* What its tenant agreed to; 0: nothing. */
static uint64_t agreed(const struct bh_daemon *d, const struct bh_life *run)
{
    const struct bh_policy *p = d->book.policy;
    if (!p || run->state != BH_LEASE_ACTIVE || !run->terms.weight)
        return 0;
    for (size_t i = 0; i < p->tenants.n; i++)
        if (bh_str_eq(p->tenants.at[i].name, run->tenant))
            return p->tenants.at[i].idle.sleep_after_ms;
    return 0;
}

/* Somebody did: most policies have nobody who did, and then no lease is looked at. */
static bool anybody_agreed(const struct bh_daemon *d)
{
    const struct bh_policy *p = d->book.policy;
    for (size_t i = 0; p && i < p->tenants.n; i++)
        if (p->tenants.at[i].idle.sleep_after_ms)
            return true;
    return false;
}

struct look {
    uint64_t busy_ns, cpu_ns;
    bool there; /* the governor knows it */
    bool suspended, paused;
    bool known; /* its sensors answer, and it has something on a card */
};

/* By itself, as the books say: a governor that began anew has forgotten it. */
static bool sleeps_alone(struct bh_daemon *d, uint64_t lease)
{
    const struct bh_sleep_idle *idle = bh_sleep_idle_of(d, lease);
    struct bh_err err;
    char note[32];
    if (idle)
        return idle->by_itself;
    return bh_sleep_read_note(d, BH_SLEEP_NOTE, lease, note, &err) == BH_OK && bh_str_eq(note, "idle");
}

static struct look look_at(struct bh_daemon *d, const struct bh_life *run, const struct bh_governor_all *all)
{
    struct look l = {0};
    char name[24];
    struct bh_arena arena = {0};
    (void)bh_sleep_name(run->lease, name);
    for (size_t i = 0; i < all->rows.n; i++) {
        const struct bh_govern_row *r = &all->rows.at[i];
        if (!bh_str_eq(r->name, name))
            continue;
        l.there = true;
        l.busy_ns += r->busy_ns;
        l.suspended = l.suspended || r->state == BH_GOVERN_SHOWN_SUSPENDED;
        l.paused = l.paused || r->state == BH_GOVERN_SHOWN_PAUSED;
        l.known = l.known || (r->gpu != UINT32_MAX && r->seen);
    }
    l.known = (l.known || l.suspended || (l.there && sleeps_alone(d, run->lease))) && d->has_cgroups &&
              bh_cgroup_cpu_ns(&d->cgroups, bh_spec_cgroup(d, &arena, run->lease), &l.cpu_ns);
    bh_arena_fini(&arena);
    return l;
}

static struct bh_sleep_idle *meet(struct bh_daemon *d, const struct bh_life *run, const struct look *l)
{
    struct bh_sleep_idle *idle = bh_sleep_idle_of(d, run->lease);
    if (idle)
        return idle;
    const bool by_itself = sleeps_alone(d, run->lease); /* an earlier daemon put it to sleep */
    idle = bh_vec_push(&d->sleepers.idle);
    *idle = (struct bh_sleep_idle){.lease = run->lease,
                                   .busy_ns = l->busy_ns,
                                   .cpu_ns = l->cpu_ns,
                                   .seen_ms = bh_daemon_now(d),
                                   .active_ms = d->last_ms,
                                   .by_itself = by_itself};
    return idle;
}

static void judge(struct bh_daemon *d, const struct bh_life *run, uint64_t agreed_ms, const struct look *l)
{
    struct bh_sleep_idle *idle = meet(d, run, l);
    const uint64_t now = bh_daemon_now(d);
    const struct bh_admit_use use = {.span_ms = now > idle->seen_ms ? now - idle->seen_ms : 0,
                                     .cpu_ns = l->cpu_ns > idle->cpu_ns ? l->cpu_ns - idle->cpu_ns : 0,
                                     .moved = idle->moved};
    const enum bh_awake used = bh_admit_awake(&use);
    const bool works = used == BH_AWAKE_WORKS;
    if (used == BH_AWAKE_UNTOLD)
        return;
    if (works || l->busy_ns != idle->busy_ns || l->paused)
        idle->active_ms = now;
    idle->busy_ns = l->busy_ns;
    idle->cpu_ns = l->cpu_ns;
    idle->seen_ms = now;
    idle->moved = false;
    if (bh_sleep_is_under_way(d, run->lease) || now < idle->again_ms)
        return;
    const struct bh_admit_idle ask = {.now_ms = now,
                                      .active_ms = idle->active_ms,
                                      .woken_ms = idle->woken_ms,
                                      .agreed_ms = agreed_ms,
                                      .can = BH_CAN_SUSPEND,
                                      .wanted = true};
    uint64_t at;
    const bool sleeps = !l->suspended && bh_admit_sleep(&ask, &at) == BH_SLEEP_NOW;
    const bool wakes = idle->by_itself && works; /* whatever the governor remembers */
    if (sleeps || wakes)
        bh_sleep_begin_alone(d, run, wakes ? BH_SLEEP_WAKE : BH_SLEEP_SUSPEND);
}

/* ---- who is held ---- */

/* A governor that began anew has forgotten whom somebody paused; the books have not. One whose memory is away does nothing anyway. */
static void hold(struct bh_daemon *d, const struct bh_life *run, const struct look *l)
{
    const struct bh_sleep_task t = {
        .lease = run->lease, .what = BH_SLEEP_PAUSE, .ordered = true, .again = true};
    struct bh_err err;
    char asleep[32];
    if (!l->there || l->paused || l->suspended || bh_sleep_is_under_way(d, run->lease) ||
        bh_sleep_read_note(d, BH_SLEEP_NOTE, run->lease, asleep, &err) < 0 || *asleep)
        return;
    if (bh_sleep_begin(d, &t, &err) < 0)
        bh_daemon_say(d, "L%llu cannot be paused: %s", (unsigned long long)run->lease, err.msg);
}

/* ---- all of them ---- */

/* The governor is asked for the first of whom something is to be known: mostly there is none. */
static void look_at_all(struct bh_daemon *d, bool some_agreed, bool look_held)
{
    struct bh_governor_all all = {0};
    struct bh_err err;
    bool asked = false;
    for (size_t i = 0; i < d->runs.n && !d->broken_until_ms; i++) {
        const struct bh_life *run = d->runs.at[i];
        const uint64_t agreed_ms = some_agreed ? agreed(d, run) : 0;
        const bool is_held = look_held && run->held_off && bh_sleep_is_active(run);
        if (!agreed_ms && !is_held)
            continue;
        if (!asked && bh_governor_list(&all, PATIENCE_MS, &err) < 0)
            break;
        asked = true;
        const struct look l = look_at(d, run, &all);
        if (l.known && agreed_ms)
            judge(d, run, agreed_ms, &l);
        if (is_held)
            hold(d, run, &l);
    }
    bh_governor_all_fini(&all);
}

void bh_sleep_tick(struct bh_daemon *d)
{
    const bool some_agreed = anybody_agreed(d), look_held = bh_daemon_now(d) >= d->sleepers.held_ms;
    for (size_t i = d->sleepers.idle.n; i-- > 0;)
        if (!bh_life_of_lease(d, d->sleepers.idle.at[i].lease)) {
            d->sleepers.idle.at[i] = d->sleepers.idle.at[--d->sleepers.idle.n];
            d->sleepers.swept = false;
        }
    if (d->broken_until_ms || bh_store_in_transaction(d->store))
        return;
    if (!d->sleepers.swept)
        bh_sleep_sweep(d);
    if (!d->sleepers.repeated)
        bh_sleep_repeat(d);
    if (some_agreed || look_held)
        look_at_all(d, some_agreed, look_held);
    if (look_held)
        d->sleepers.held_ms = d->last_ms + HELD_MS;
}
