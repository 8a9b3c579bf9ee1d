/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sense.c - what processes had of the card since the last look, added up by lease.
 *
 * What the card writes down are changes of turns. Between two of them whoever has the card has it, whether it works or not;
 * while others want it too, that is no question, as a tenant without work gives its turn up. But one that is alone keeps the
 * card when it rests, and so does one while the others are paused or rest themselves. Then what it had is taken for work as
 * far as the driver can tell by other means how much of it was. Where it cannot: when no turn changes for long nothing is
 * said; else all of it counts.
 *
 * And who has no turn has no work, or waits for the others' slices to end; which of the two is known when a round is over.
 */
#include "governor/sense.h"

#include "base/mem.h"
#include "core/govern/govern.h"
#include "core/govern/use.h"

enum { PROCESSES = 512 };
enum { RESTS_PERMILLE = 10 };        /* less than this is no work: what the samples have of noise */
#define ROUND_NS UINT64_C(300000000) /* longer than a round of slices may be (core/govern, round_max_us) */
#define QUIET_NS UINT64_C(800000000) /* longer than the driver's samples need to tell (core/govern/use.h) */

struct kept {
    uint64_t lease;
    uint64_t owed_ns;  /* of turns that were cut, to be taken off */
    uint64_t heard_ns; /* when it last had a turn */
};

struct kepts {
    struct kept *at;
    size_t n, cap;
};

struct bh_sense {
    const struct bh_driver *driver;
    void *self;
    uint32_t gpu;
    bool blind;
    struct bh_driver_busy now[PROCESSES], was[PROCESSES];
    size_t n_now, n_was;
    uint64_t now_ns, moved_ns; /* moved_ns: when a turn was last seen to have changed */
    struct kepts kept;
};

struct bh_sense *bh_sense_new(const struct bh_driver *driver, void *self, uint32_t gpu)
{
    struct bh_sense *s = bh_alloc(1, sizeof(*s));
    s->driver = driver;
    s->self = self;
    s->gpu = gpu;
    s->blind = driver->watch_busy(self, gpu, NULL) != BH_OK;
    return s;
}

void bh_sense_free(struct bh_sense *s)
{
    if (!s)
        return;
    bh_vec_fini(&s->kept);
    free(s);
}

void bh_sense_ask_seldom(struct bh_sense *s, bool seldom)
{
    if (!s->blind && s->driver->ask_seldom)
        s->driver->ask_seldom(s->self, s->gpu, seldom);
}

uint32_t bh_sense_unused(const struct bh_sense *s)
{
    return s->blind || !s->driver->unused ? 0 : s->driver->unused(s->self, s->gpu);
}

static const struct bh_driver_busy *find(const struct bh_driver_busy *at, size_t n, uint32_t pid)
{
    for (size_t i = 0; i < n; i++)
        if (at[i].pid == pid)
            return &at[i];
    return NULL;
}

/* What it got since the last look. One that was forgotten meanwhile, or is new, began at 0. */
static struct bh_driver_busy gain(const struct bh_sense *s, const struct bh_driver_busy *now)
{
    const struct bh_driver_busy *was = find(s->was, s->n_was, now->pid);
    struct bh_driver_busy d = *now;
    if (!was || was->ns > now->ns || was->turns > now->turns)
        return d;
    d.ns -= was->ns;
    d.turns -= was->turns;
    d.cut -= was->cut;
    d.cut_ns -= was->cut_ns;
    return d;
}

static void look(struct bh_sense *s)
{
    uint64_t now_ns = s->now_ns;
    if (s->n_now) { /* else it was not known, and what came before is still the last that was */
        memcpy(s->was, s->now, s->n_now * sizeof(s->now[0]));
        s->n_was = s->n_now;
    }
    s->n_now = s->driver->busy(s->self, s->gpu, s->now, PROCESSES, &now_ns);
    s->n_now = s->n_now < PROCESSES ? s->n_now : PROCESSES;
    s->now_ns = now_ns > s->now_ns ? now_ns : s->now_ns;
    for (size_t i = 0; i < s->n_now; i++) {
        const struct bh_driver_busy *was = find(s->was, s->n_was, s->now[i].pid);
        if (!was || was->turns != s->now[i].turns || was->on != s->now[i].on)
            s->moved_ns = s->now_ns;
    }
}

static uint64_t part_of(uint64_t ns, uint32_t permille)
{
    const uint32_t use = permille < RESTS_PERMILLE ? 0 : permille;
    return use < 1000 ? ns / 1000 * use : ns; /* unknown is more than all */
}

/* All processes of a lease as one. work_ns: of ns, what was no rest; use_permille: of the one that has the card. */
struct sum {
    struct bh_driver_busy all;
    uint64_t work_ns;
};

static struct sum sum_of(const struct bh_sense *s, const struct bh_sense_who *who)
{
    struct sum sum = {.all.use_permille = BH_DRIVER_USE_UNKNOWN};
    for (size_t i = 0; i < who->n_pids; i++) {
        const struct bh_driver_busy *now = find(s->now, s->n_now, who->pids[i]);
        if (!now)
            continue;
        const struct bh_driver_busy d = gain(s, now);
        sum.all.ns += d.ns;
        sum.all.turns += d.turns;
        sum.all.cut += d.cut;
        sum.all.cut_ns += d.cut_ns;
        sum.work_ns += part_of(d.ns, d.use_permille);
        sum.all.doubt |= d.doubt;
        if (d.on) {
            sum.all.on = true;
            sum.all.use_permille = d.use_permille;
        }
    }
    return sum;
}

/* A turn that was cut ends in time without work. Never more than a quarter of it: short turns were mostly given back. */
static uint64_t wasted(const struct bh_driver_busy *d)
{
    const uint64_t each = d->cut * BH_SENSE_PREEMPT_US * 1000, most = d->cut_ns / 4;
    return each < most ? each : most;
}

/* Does it work whenever it has the card? That is its main process's; where nobody knows it must be taken to. */
static bool fills(const struct bh_sense *s, const struct bh_sense_who *who)
{
    const struct bh_driver_busy *main = NULL;
    for (size_t i = 0; i < who->n_pids; i++) {
        const struct bh_driver_busy *now = find(s->now, s->n_now, who->pids[i]);
        main = now && (!main || now->ns > main->ns) ? now : main;
    }
    return who->wants && !(main && (main->doubt || main->use_permille < BH_USE_FULL));
}

/* Does somebody else take the card whenever this one leaves it? */
static bool is_crowded(const struct bh_sense *s, const struct bh_sense_who *all, size_t n, size_t who)
{
    for (size_t i = 0; i < n; i++)
        if (i != who && fills(s, &all[i]))
            return true;
    return false;
}

static struct bh_sense_got got_of(const struct bh_sense *s, const struct bh_sense_who *who, bool crowded,
                                  struct kept *kept)
{
    const struct bh_sense_got unknown = {.gpu_ns = BH_GOVERN_NO_SAMPLE, .state = BH_GOVERN_UNKNOWN};
    const struct sum sum = sum_of(s, who);
    struct bh_driver_busy d = sum.all;
    const bool quiet = d.on && s->now_ns - s->moved_ns > QUIET_NS;
    bool works = d.on || d.ns || d.turns;
    uint64_t lost = wasted(&d);
    if (s->n_now == 0)
        return unknown; /* before the first change of turns, too: one of them may be alone, and which is not said */
    if (works)
        kept->heard_ns = s->now_ns;
    else if (!who->paused && crowded && s->now_ns - kept->heard_ns <= ROUND_NS)
        return unknown;
    if (quiet)
        kept->owed_ns = 0;
    if (quiet && d.use_permille == BH_DRIVER_USE_UNKNOWN)
        return unknown;
    /* Who is paused should have nothing, so all that it has is told. */
    if (quiet || (!crowded && !who->paused)) {
        works = d.ns ? sum.work_ns > 0 : works && d.use_permille >= RESTS_PERMILLE;
        if (d.ns) /* a rest that is cut loses nothing */
            lost = lost * (sum.work_ns / 1000) / (d.ns / 1000 + 1);
        d.ns = sum.work_ns;
    }
    const uint64_t turn_ns = d.ns;
    kept->owed_ns += lost;
    const uint64_t off = kept->owed_ns < d.ns ? kept->owed_ns : d.ns;
    kept->owed_ns -= off;
    return (struct bh_sense_got){.gpu_ns = d.ns - off,
                                 .state = works ? BH_GOVERN_BUSY : BH_GOVERN_IDLE,
                                 .doubt = d.doubt,
                                 .turns = d.turns,
                                 .turn_ns = turn_ns};
}

static const struct kept *kept_of(const struct bh_sense *s, uint64_t lease)
{
    for (size_t i = 0; i < s->kept.n; i++)
        if (s->kept.at[i].lease == lease)
            return &s->kept.at[i];
    return NULL;
}

int bh_sense_read(struct bh_sense *s, const struct bh_sense_who *who, size_t n, struct bh_sense_got *ret)
{
    struct kepts next = {0};
    if (!s->blind)
        look(s);
    for (size_t i = 0; i < n; i++) {
        const struct kept *before = kept_of(s, who[i].lease);
        struct kept *now = bh_vec_push(&next);
        *now = before ? *before : (struct kept){.lease = who[i].lease};
        ret[i] = before && !s->blind
                     ? got_of(s, &who[i], is_crowded(s, who, n, i), now)
                     : (struct bh_sense_got){.gpu_ns = BH_GOVERN_NO_SAMPLE, .state = BH_GOVERN_UNKNOWN};
    }
    bh_vec_fini(&s->kept);
    s->kept = next;
    return s->blind ? BH_REFUSED : BH_OK;
}
