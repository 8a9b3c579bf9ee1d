/* SPDX-License-Identifier: Apache-2.0 */
/*
 * driver_fixture.h - a driver in the governor's tests: cards whose time goes to whoever is busy and not paused, by
 * their slices, and which fail when they are told to.
 */
#ifndef BH_GOVERNOR_DRIVER_FIXTURE_H
#define BH_GOVERNOR_DRIVER_FIXTURE_H

#include "base/mem.h"
#include "warden/driver.h"

#include <errno.h>
#include <string.h>

enum { FAKE_CHANNELS = 1024, FAKE_PIDS = 256, FAKE_GPUS = 4, FAKE_CALLS = 64, FAKE_SLICE_US = 2000 };

struct fake_channel {
    uint32_t gpu, pid;
    struct bh_driver_channel name;
    bool paused;
};
struct fake_pid {
    uint32_t pid;
    uint32_t slice_us;
    bool busy;
    uint32_t use_permille; /* of the card, in short turns; 0: all it can get */
    uint32_t turn_ns;      /* how long those are */
    uint64_t ns[FAKE_GPUS], turns[FAKE_GPUS];
};
enum fake_failure { FAKE_WORKS, FAKE_FAILS, FAKE_FAILS_HALF_WAY };

struct fake {
    struct fake_channel channels[FAKE_CHANNELS];
    size_t n;
    struct fake_pid pids[FAKE_PIDS];
    size_t n_pids;
    bool blind;
    uint8_t failure;    /* enum fake_failure */
    uint32_t fail_left; /* so many calls, and it works again; 0: it fails for good */
    uint32_t poisoned;  /* a client that makes every call with others fail; 0: none */
    uint64_t now_ns, calls, watched, looks;
    bool seldom;     /* as it was told */
    uint32_t unused; /* permille */
    struct {         /* the last calls, in turn */
        uint32_t gpu, client;
        size_t n;
        bool running;
    } log[FAKE_CALLS];
};

static struct fake_channel *fake_find(struct fake *f, uint32_t gpu, struct bh_driver_channel name)
{
    for (size_t i = 0; i < f->n; i++) {
        struct fake_channel *c = &f->channels[i];
        if (c->gpu == gpu && c->name.client == name.client && c->name.channel == name.channel)
            return c;
    }
    return NULL;
}

static struct fake_pid *fake_pid(struct fake *f, uint32_t pid)
{
    for (size_t i = 0; i < f->n_pids; i++)
        if (f->pids[i].pid == pid)
            return &f->pids[i];
    if (f->n_pids == FAKE_PIDS)
        f->n_pids = 0; /* old ones are nobody's by then */
    f->pids[f->n_pids] = (struct fake_pid){.pid = pid, .slice_us = FAKE_SLICE_US};
    return &f->pids[f->n_pids++];
}

/* A process makes a channel. One of that name must not be there. */
static inline bool fake_make(struct fake *f, uint32_t gpu, uint32_t pid, struct bh_driver_channel name)
{
    (void)fake_pid(f, pid);
    if (f->n == FAKE_CHANNELS || fake_find(f, gpu, name))
        return false;
    f->channels[f->n++] = (struct fake_channel){.gpu = gpu, .pid = pid, .name = name};
    return true;
}

static inline void fake_unmake(struct fake *f, struct fake_channel *c)
{
    *c = f->channels[--f->n];
}

static inline size_t fake_paused(const struct fake *f)
{
    size_t n = 0;
    for (size_t i = 0; i < f->n; i++)
        n += f->channels[i].paused;
    return n;
}

static inline bool fake_is_paused(struct fake *f, uint32_t gpu, uint32_t client, uint32_t channel)
{
    const struct fake_channel *c = fake_find(f, gpu, (struct bh_driver_channel){client, channel});
    return c && c->paused;
}

static int fake_set_running(void *self, uint32_t gpu, const struct bh_driver_channel *at, size_t n,
                            bool running)
{
    struct fake *f = self;
    size_t done = n;
    bool bad = f->failure != FAKE_WORKS;
    for (size_t i = 0; i < n; i++)
        bad |= n > 1 && f->poisoned && at[i].client == f->poisoned;
    if (bad)
        done = f->failure == FAKE_FAILS_HALF_WAY ? n / 2 : 0;
    if (f->fail_left && --f->fail_left == 0)
        f->failure = FAKE_WORKS;
    for (size_t i = 0; i < done; i++) {
        struct fake_channel *c = fake_find(f, gpu, at[i]);
        if (c)
            c->paused = !running;
    }
    f->log[f->calls % FAKE_CALLS].gpu = gpu;
    f->log[f->calls % FAKE_CALLS].client = n ? at[0].client : 0;
    f->log[f->calls % FAKE_CALLS].n = n;
    f->log[f->calls++ % FAKE_CALLS].running = running;
    return bad ? -EIO : 0;
}

static int fake_watch_busy(void *self, uint32_t gpu, struct bh_err *err)
{
    struct fake *f = self;
    (void)gpu;
    f->watched++;
    return f->blind ? bh_fail(err, BH_REFUSED, "nothing is seen here") : BH_OK;
}

static bool fake_has_card(const struct fake *f, uint32_t gpu, const struct fake_pid *p)
{
    for (size_t i = 0; p->busy && i < f->n; i++)
        if (f->channels[i].gpu == gpu && f->channels[i].pid == p->pid && !f->channels[i].paused)
            return true;
    return false;
}

static size_t fake_busy(void *self, uint32_t gpu, struct bh_driver_busy *ret, size_t max,
                        uint64_t *ret_now_ns)
{
    struct fake *f = self;
    f->looks++;
    *ret_now_ns = f->now_ns;
    for (size_t i = 0; i < f->n_pids && i < max; i++)
        ret[i] = (struct bh_driver_busy){.pid = f->pids[i].pid,
                                         .on = fake_has_card(f, gpu, &f->pids[i]),
                                         .use_permille = f->pids[i].busy ? 1000 : 0,
                                         .ns = gpu < FAKE_GPUS ? f->pids[i].ns[gpu] : 0,
                                         .turns = gpu < FAKE_GPUS ? f->pids[i].turns[gpu] : 0};
    return f->blind ? 0 : f->n_pids;
}

static void fake_ask_seldom(void *self, uint32_t gpu, bool seldom)
{
    struct fake *f = self;
    (void)gpu;
    f->seldom = seldom;
}

static uint32_t fake_unused(void *self, uint32_t gpu)
{
    const struct fake *f = self;
    (void)gpu;
    return f->unused;
}

/* What one that asks for little takes, and its turns. */
static uint64_t fake_take_little(struct fake_pid *p, uint32_t gpu, uint64_t ns)
{
    const uint64_t took = ns * p->use_permille / 1000;
    p->turns[gpu] += (p->ns[gpu] % p->turn_ns + took) / p->turn_ns;
    p->ns[gpu] += took;
    return took;
}

/* Time passes on the cards. */
static inline void fake_advance(struct fake *f, uint64_t ns)
{
    f->now_ns += ns;
    for (uint32_t gpu = 0; gpu < FAKE_GPUS; gpu++) {
        bool has[FAKE_PIDS];
        uint64_t round_us = 0, left = ns;
        for (size_t i = 0; i < f->n_pids; i++) {
            has[i] = fake_has_card(f, gpu, &f->pids[i]);
            if (has[i] && f->pids[i].use_permille) {
                left -= fake_take_little(&f->pids[i], gpu, ns);
                has[i] = false;
            }
            round_us += has[i] ? f->pids[i].slice_us : 0;
        }
        for (size_t i = 0; i < f->n_pids; i++) {
            struct fake_pid *p = &f->pids[i];
            p->ns[gpu] += has[i] ? left * p->slice_us / round_us : 0;
            /* one that is alone keeps the card */
            p->turns[gpu] += has[i] && (p->slice_us < round_us || left < ns);
        }
    }
}

static const struct bh_driver fake_driver = {.name = "fake",
                                             .set_running = fake_set_running,
                                             .watch_busy = fake_watch_busy,
                                             .busy = fake_busy,
                                             .ask_seldom = fake_ask_seldom,
                                             .unused = fake_unused};

#endif
