/* SPDX-License-Identifier: Apache-2.0 */
/* checks.c - one function for each layer; each says at least that it is well. */
#include "node/watch/checks.h"

#include "base/str.h"
#include "base/units.h"
#include "launch/warden.h"
#include "node/daemon.h"
#include "node/decide.h"
#include "node/mech/tier.h"
#include "node/watch/drift.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum {
    FRESH_MS = 250,
    SLOW_MS = 30000, /* a worker that is spoken of */
    HUNG_MS = 10000, /* one that was ended and is not gone */
    OLD_MS = 180000, /* numbers of the GPUs */
    CERT_DAYS = 14,
    DAY_MS = 86400000,
};
#define DISK_BAD  (UINT64_C(256) * BH_MIB)
#define DISK_WARN (UINT64_C(2) * BH_GIB)

static const char ok[] = "ok", warn[] = "warn", bad[] = "bad";

static void add(struct bh_daemon *d, const char *layer, const char *state, const char *mend, const char *fmt,
                ...) BH_PRINTF(5, 6);

static void add(struct bh_daemon *d, const char *layer, const char *state, const char *mend, const char *fmt,
                ...)
{
    char text[640];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    *bh_vec_push(&d->checks.at) =
        (struct bh_api_check){layer, state, bh_arena_str(&d->checks.arena, text), mend};
}

static bool any_pool(const struct bh_daemon *d, bool (*is)(const struct bh_pool *p))
{
    const struct bh_policy *p = d->book.policy;
    for (size_t i = 0; p && i < p->pools.n; i++)
        if (is(&p->pools.at[i]))
            return true;
    return false;
}

/* ---- what is written ---- */

static void check_store(struct bh_daemon *d)
{
    struct statvfs f;
    if (d->broken_until_ms) {
        add(d, "store", bad, "see whether the disk is full or fails: df, dmesg",
            "nothing is decided or acknowledged: %s", d->checks.store);
        return;
    }
    if (statvfs(d->opt.state_dir, &f) < 0) {
        add(d, "store", warn, NULL, "how much room %s has cannot be told", d->opt.state_dir);
        return;
    }
    const uint64_t left = (uint64_t)f.f_bavail * f.f_frsize;
    const bool no_files = f.f_files && f.f_favail < 64;
    const char *state = left < DISK_BAD || no_files ? bad : left < DISK_WARN ? warn : ok;
    add(d, "store", state, bh_str_eq(state, ok) ? NULL : "make room on that disk",
        "%s has room for %llu MiB%s", d->opt.state_dir, (unsigned long long)(left / BH_MIB),
        no_files ? ", and for no more files" : "");
}

static void check_audit(struct bh_daemon *d)
{
    if (*d->checks.audit)
        add(d, "audit", bad, "bulkhead audit verify", "the log got no checkpoint: %s", d->checks.audit);
    else
        add(d, "audit", ok, NULL, "every change is written with its record");
}

static void check_policy(struct bh_daemon *d)
{
    if (!d->book.policy)
        add(d, "policy", bad, "bulkhead policy apply FILE", "no policy is in force: nothing is given away");
    else
        add(d, "policy", ok, NULL, "version %llu is in force", (unsigned long long)d->book.version);
}

/* A process has the machine's network: what the policy says of its speed there is held by nobody, and is said. */
static void check_bandwidth(struct bh_daemon *d)
{
    const struct bh_policy *p = d->book.policy;
    for (size_t i = 0; p && i < p->tenants.n && !bh_tier_can_limit(d, BH_CGROUP_IO); i++)
        if (bh_tenant_bandwidth(&p->tenants.at[i]).disk)
            add(d, "disk", bad, "mount the cgroup controller io (version 1: blkio) and restart bulkheadd",
                "the disk speed of %s cannot be held here, and its leases do not start",
                p->tenants.at[i].name);
    for (size_t i = 0; p && i < p->pools.n; i++) {
        const struct bh_pool *pool = &p->pools.at[i];
        for (size_t k = 0; pool->tier == BH_TIER_PROCESS && k < pool->tenants.n; k++) {
            const struct bh_tenant *t = &p->tenants.at[pool->tenants.at[k]];
            if (bh_tenant_bandwidth(t).network)
                add(d, "network", warn, "give the pool tier container, or the tenant another pool",
                    "the network speed of %s is not held in pool %s, which is of tier process", t->name,
                    pool->name);
        }
    }
}

/* ---- the machine ---- */

static bool is_contained(const struct bh_pool *p)
{
    return p->tier == BH_TIER_CONTAINER;
}

static bool is_mps(const struct bh_pool *p)
{
    return bh_pool_effective(p) == BH_MECH_MPS;
}

static void check_machine(struct bh_daemon *d)
{
    if (d->has_cgroups)
        add(d, "cgroup", ok, NULL, "each lease has a cgroup of its own");
    else
        add(d, "cgroup", bad, "mount the cgroup file systems and restart bulkheadd",
            "this machine has no cgroups: tenants' processes cannot be limited or found again");
    if (d->tier.runtime)
        add(d, "container", ok, NULL, "containers are run by %s", d->tier.runtime);
    else
        add(d, "container", any_pool(d, is_contained) ? bad : warn,
            "install runc (or crun) and restart bulkheadd", "no container can be run: %s",
            d->tier.why_not ? d->tier.why_not : "unknown");
    if (any_pool(d, is_mps) && !*d->mps)
        add(d, "mps", bad, "install nvidia-cuda-mps-control and restart bulkheadd",
            "a pool divides its cards by MPS, and its control program is not here");
}

static void check_programs(struct bh_daemon *d)
{
    char at[4000];
    struct bh_err err;
    size_t missing = 0;
    static const struct {
        const char *what;
        int (*find)(char *ret, size_t size, struct bh_err *err);
    } programs[] = {{"bulkhead-warden", bh_warden_find},
                    {"bulkhead-governor", bh_governor_program},
                    {"bulkhead-keeper", bh_keeper_program},
                    {"bulkhead-scrub", bh_scrub_program}};
    for (size_t i = 0; i < BH_COUNT_OF(programs); i++)
        if (programs[i].find(at, sizeof(at), &err) < 0 || access(at, X_OK) < 0) {
            missing++;
            add(d, "program", bad, "install bulkhead again", "%s is not here: leases that need it fail",
                programs[i].what);
        }
    if (!missing)
        add(d, "program", ok, NULL, "warden, governor, keeper and scrubber are here");
}

static void check_certificate(struct bh_daemon *d)
{
    const uint64_t now = bh_daemon_now(d);
    if (!d->opt.listen)
        return;
    const uint64_t days = d->cert.until_ms > now ? (d->cert.until_ms - now) / DAY_MS : 0;
    add(d, "https",
        days == 0          ? bad
        : days < CERT_DAYS ? warn
                           : ok,
        days < CERT_DAYS ? "give it another: --cert, --key" : NULL,
        "its certificate is good for %llu more days", (unsigned long long)days);
}

/* ---- workers ---- */

static void check_workers(struct bh_daemon *d)
{
    struct bh_worker_seen w;
    size_t said = 0;
    for (size_t at = 0; bh_worker_next(&at, &w);) {
        const unsigned long long s = w.age_ms / 1000, limit = w.limit_ms / 1000;
        if (w.over && w.age_ms > HUNG_MS && ++said)
            add(d, "worker", bad, "the driver hangs: drain the machine and restart it",
                "process %d (%s) was ended and is not gone after %llu s", (int)w.pid,
                *w.what ? w.what : "unnamed", s);
        else if (!w.over && w.age_ms > SLOW_MS && ++said)
            add(d, "worker", warn, NULL, "%s, for %llu s so far; it is ended after %llu s",
                *w.what ? w.what : "a process works", s, limit);
    }
    if (!said)
        add(d, "worker", ok, NULL, "nothing takes longer than it should");
}

/* ---- the silicon ---- */

static void check_look(struct bh_daemon *d)
{
    const uint64_t now = bh_daemon_now(d);
    const uint64_t since = d->meter.looked_ms ? d->meter.looked_ms : d->view.started_ms;
    if (*d->checks.look)
        add(d, "driver", bad, "nvidia-smi; dmesg",
            "the GPUs could not be read, and what is shown is %llu s old: %s",
            (unsigned long long)((now - since) / 1000), d->checks.look);
    else if (now > since + OLD_MS)
        add(d, "driver", warn, "nvidia-smi; dmesg", "what is shown of the GPUs is %llu s old",
            (unsigned long long)((now - since) / 1000));
    else
        add(d, "driver", ok, NULL, "%s answers", d->view.driver ? d->view.driver : "the driver");
    if (d->moved)
        add(d, "driver", warn, "systemctl restart bulkheadd",
            "this machine's GPUs are not those that bulkheadd started with");
}

static void check_canary(struct bh_daemon *d)
{
    if (d->shares)
        add(d, "canary", ok, NULL, "%s", d->canary);
    else
        add(d, "canary", any_pool(d, bh_pool_is_shared) ? bad : warn,
            "see that nobody is on the cards and restart bulkheadd",
            "GPUs are not shared: this driver was not seen to clear what it frees%s%s",
            *d->canary_why ? ": " : "", d->canary_why);
}

static void check_slices(struct bh_daemon *d, const struct bh_store_card *card, const bh_store_slices *kept)
{
    for (size_t i = 0; i < kept->n; i++)
        if (bh_str_eq(kept->at[i].name.gpu, card->uuid))
            add(d, "gpu", bad,
                bh_arena_printf(&d->checks.arena,
                                "see to the reason; bulkhead resume %u has it looked at again", card->index),
                "GPU %u: %s is quarantined: %s", card->index,
                *kept->at[i].name.key ? kept->at[i].name.key : "all of it", kept->at[i].why);
}

static void check_cards(struct bh_daemon *d)
{
    bh_store_cards cards = {0};
    bh_store_slices kept = {0};
    struct bh_err err;
    const size_t before = d->checks.at.n;
    if (bh_store_cards_list(d->store, &d->checks.arena, &cards, &err) < 0 ||
        bh_store_slices_quarantined(d->store, &d->checks.arena, &kept, &err) < 0)
        add(d, "gpu", bad, NULL, "the cards cannot be read: %s", err.msg);
    for (size_t i = 0; i < cards.n; i++) {
        const struct bh_store_card *c = &cards.at[i];
        const char *resume = bh_arena_printf(&d->checks.arena, "bulkhead resume %u", c->index);
        if (c->health != BH_CARD_OK)
            add(d, "gpu", c->health == BH_CARD_BAD ? bad : warn, resume, "GPU %u is %s: %s", c->index,
                bh_card_health_str(c->health), c->health_why);
        if (c->cordoned_ms)
            add(d, "gpu", warn, resume, "GPU %u is cordoned by %s: %s", c->index, c->cordon_by,
                *c->cordon_why ? c->cordon_why : "no reason was given");
        check_slices(d, c, &kept);
    }
    if (d->checks.at.n == before)
        add(d, "gpu", ok, NULL, "all %zu cards are to be had", cards.n);
    bh_vec_fini(&kept);
    bh_vec_fini(&cards);
}

static void check_vigil(struct bh_daemon *d)
{
    if (!d->health.listens && *d->health.said)
        add(d, "gpu", warn, NULL, "nobody listens to the GPUs' health: %s", d->health.said);
}

static void check_decisions(struct bh_daemon *d)
{
    struct bh_api_check held;
    if (bh_decide_check(d, &d->checks.arena, &held))
        *bh_vec_push(&d->checks.at) = held;
}

static void check_driver(struct bh_daemon *d)
{
    const char *driver = d->silicon.snapshot.driver;
    bool open = false;
    const char *said =
        driver ? bh_drift_exposure(&d->checks.arena, driver, (int32_t)(bh_daemon_now(d) / DAY_MS), &open)
               : NULL;
    if (said)
        add(d, "driver", open ? warn : ok, open ? "bulkhead upgrade plan --driver VERSION" : NULL, "%s",
            said);
}

static void check_scrubs(struct bh_daemon *d)
{
    if (d->checks.scrubs_failed)
        add(d, "scrub", warn, NULL,
            "%llu times since the start a slice was not proved clean; the last time: %s",
            (unsigned long long)d->checks.scrubs_failed, d->checks.scrub);
    else
        add(d, "scrub", ok, NULL, "what was given back was proved clean");
}

static void check_strangers(struct bh_daemon *d)
{
    for (size_t i = 0; i < d->watch.strangers.n; i++) {
        const struct bh_stranger *s = &d->watch.strangers.at[i];
        add(d, "stranger", bad, s->told ? "stop it, then bulkhead resume the card" : NULL,
            "process %u (%s, user %u) is on %s with %llu MiB and belongs to no lease there", s->pid,
            s->who.name, s->who.uid, s->card, (unsigned long long)(s->bytes / BH_MIB));
    }
    if (!d->watch.strangers.n)
        add(d, "stranger", ok, NULL, "nobody is on a card who has no lease there");
}

void bh_checks_fresh(void *self)
{
    struct bh_daemon *d = self;
    static void (*const layers[])(struct bh_daemon *d) = {
        check_store,       check_audit,     check_policy, check_bandwidth, check_machine, check_programs,
        check_certificate, check_workers,   check_look,   check_vigil,     check_driver,  check_canary,
        check_cards,       check_decisions, check_scrubs, check_strangers};
    const uint64_t now = bh_daemon_now(d);
    const uint64_t rows = bh_store_changes(d->store);
    if (d->checks.made_ms && now < d->checks.made_ms + FRESH_MS && rows == d->checks.made_of)
        return;
    d->checks.made_ms = now;
    d->checks.made_of = rows;
    d->checks.at.n = 0;
    bh_arena_fini(&d->checks.arena);
    for (size_t i = 0; i < BH_COUNT_OF(layers); i++)
        layers[i](d);
    d->view.checks = d->checks.at.at;
    d->view.n_checks = d->checks.at.n;
}

void bh_checks_stale(struct bh_daemon *d)
{
    d->checks.made_ms = 0;
}

void bh_checks_fini(struct bh_checks *c)
{
    bh_vec_fini(&c->at);
    bh_arena_fini(&c->arena);
}
