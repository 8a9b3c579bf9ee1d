/* SPDX-License-Identifier: Apache-2.0 */
#include "governor/gauge.h"

#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { TEXT_MAX = 64 << 10, PARTING_S = 1, PLAIN_PRIORITY = 0 };
#define JUDGE_NS (UINT64_C(1000) * 1000 * 1000)
#define AGAIN_NS (UINT64_C(10000) * 1000 * 1000) /* a library that could not be opened is tried again */
#define STUCK_NS (UINT64_C(3000) * 1000 * 1000)
#define OLD_NS   (UINT64_C(10000) * 1000 * 1000)
#define AGED_NS  (UINT64_C(3000) * 1000 * 1000) /* from then on its age is said */

/* What was judged, and when. */
struct judgement {
    uint64_t at_ns; /* 0: nothing yet */
    struct bh_buf text;
    uint32_t n_uses;
    struct bh_noise_uses uses[BH_TALLY_LEASES];
};

struct gauged {
    /* under the lock */
    struct bh_tally posted;
    bool is_posted;
    struct judgement fresh; /* not picked up yet, where it has a time */
    /* the loop's own */
    struct judgement said; /* the last that was picked up */
    /* the thread's, for the loop to see without the lock: since when it looks at the card; 0: it does not */
    _Atomic uint64_t asked_ns;
    /* the thread's own */
    struct bh_tally taken;
    struct bh_noise *noise;
    struct bh_noise_look look;
    void *card; /* NULL: not open */
    bool was_tried;
    uint64_t tried_ns, judged_ns;
};

struct bh_gauge {
    struct bh_gauge_source source;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake, over;
    bool has_thread, stop, ended;
    bool missed[BH_STATE_GPUS];       /* the loop's own: an interval found the lock taken */
    struct gauged *at[BH_STATE_GPUS]; /* NULL: nobody competes there; made by the loop under the lock */
};

/* ---- the source ---- */

static int driver_open(void *arg, uint32_t gpu, void **ret, struct bh_err *err)
{
    struct bh_pressure *p = NULL;
    (void)arg;
    const int rc = bh_pressure_open(gpu, false, &p, err);
    *ret = p;
    return rc;
}

static void driver_look(void *card, struct bh_noise_look *ret)
{
    const char *why = NULL;
    *ret = (struct bh_noise_look){.link_kbps = bh_pressure_link_kbps(card),
                                  .limit_mw = bh_pressure_limit_mw(card)};
    bh_pressure_take(card, &ret->sample);
    for (unsigned i = 0; !why && i < BH_PRESSURE_N_; i++)
        why = bh_pressure_why(card, (enum bh_pressure_what)i);
    (void)snprintf(ret->why, sizeof(ret->why), "%s", why ? why : "");
}

static void driver_close(void *card)
{
    bh_pressure_close(card);
}

const struct bh_gauge_source bh_gauge_driver = {
    .open = driver_open, .look = driver_look, .close = driver_close};

/* ---- the work ---- */

static void take_look(struct bh_gauge *g, struct gauged *c, uint32_t gpu)
{
    struct bh_err err = {0};
    const uint64_t now_ns = c->taken.at_ns;
    if (!c->card && (!c->was_tried || now_ns - c->tried_ns >= AGAIN_NS)) {
        c->was_tried = true;
        c->tried_ns = now_ns;
        if (g->source.open(g->source.arg, gpu, &c->card, &err) < 0) {
            c->card = NULL;
            bh_noise_look_none(&c->look, err.msg);
        }
    }
    if (c->card)
        g->source.look(c->card, &c->look);
}

/* Outside the lock. Was it time to judge? */
static bool work(struct bh_gauge *g, struct gauged *c, uint32_t gpu, struct judgement *ret)
{
    if (!c->noise)
        c->noise = bh_noise_new();
    take_look(g, c, gpu);
    bh_noise_add(c->noise, &c->taken, &c->look);
    if (c->judged_ns && c->taken.at_ns - c->judged_ns < JUDGE_NS)
        return false;
    c->judged_ns = ret->at_ns = c->taken.at_ns;
    bh_buf_init(&ret->text, TEXT_MAX);
    ret->n_uses = bh_noise_judge(c->noise, ret->uses);
    bh_noise_report(c->noise, &ret->text);
    return true;
}

/* With the lock, which is given up meanwhile. */
static void serve(struct bh_gauge *g, struct gauged *c, uint32_t gpu)
{
    struct judgement said;
    c->taken = c->posted;
    c->is_posted = false;
    atomic_store(&c->asked_ns, c->taken.at_ns);
    (void)pthread_mutex_unlock(&g->lock);
    const bool judged = work(g, c, gpu, &said);
    (void)pthread_mutex_lock(&g->lock);
    atomic_store(&c->asked_ns, 0);
    if (!judged)
        return;
    bh_buf_fini(&c->fresh.text);
    c->fresh = said;
}

static bool serve_all(struct bh_gauge *g)
{
    bool any = false;
    for (uint32_t gpu = 0; !g->stop && gpu < BH_STATE_GPUS; gpu++)
        if (g->at[gpu] && g->at[gpu]->is_posted) {
            serve(g, g->at[gpu], gpu);
            any = true;
        }
    return any;
}

static void *run(void *arg)
{
    struct bh_gauge *g = arg;
    (void)setpriority(PRIO_PROCESS, (id_t)gettid(), PLAIN_PRIORITY); /* the loop's is not for this */
    (void)pthread_mutex_lock(&g->lock);
    while (!g->stop)
        if (!serve_all(g))
            (void)pthread_cond_wait(&g->wake, &g->lock);
    g->ended = true;
    (void)pthread_cond_signal(&g->over);
    (void)pthread_mutex_unlock(&g->lock);
    return NULL;
}

/* ---- its ends ---- */

struct bh_gauge *bh_gauge_new(const struct bh_gauge_source *source)
{
    struct bh_gauge *g = bh_alloc(1, sizeof(*g));
    pthread_condattr_t clock;
    g->source = *source;
    (void)pthread_mutex_init(&g->lock, NULL);
    (void)pthread_cond_init(&g->wake, NULL);
    (void)pthread_condattr_init(&clock);
    (void)pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&g->over, &clock);
    (void)pthread_condattr_destroy(&clock);
    return g;
}

/* Signals are the loop's. */
static void begin_thread(struct bh_gauge *g)
{
    sigset_t all, before;
    sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    g->has_thread = pthread_create(&g->thread, NULL, run, g) == 0;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* false: it is in the library, and does not come back. */
static bool end_thread(struct bh_gauge *g)
{
    struct timespec until;
    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += PARTING_S;
    (void)pthread_mutex_lock(&g->lock);
    g->stop = true;
    (void)pthread_cond_signal(&g->wake);
    while (!g->ended && pthread_cond_timedwait(&g->over, &g->lock, &until) == 0)
        continue;
    const bool ended = g->ended;
    (void)pthread_mutex_unlock(&g->lock);
    return ended && pthread_join(g->thread, NULL) == 0;
}

bool bh_gauge_free(struct bh_gauge *g)
{
    if (!g)
        return true;
    if (g->has_thread && !end_thread(g)) {
        (void)pthread_detach(g->thread);
        return false; /* it has all of this in its hands */
    }
    for (uint32_t i = 0; i < BH_STATE_GPUS; i++) {
        struct gauged *c = g->at[i];
        if (!c)
            continue;
        if (c->card)
            g->source.close(c->card);
        bh_noise_free(c->noise);
        bh_buf_fini(&c->fresh.text);
        bh_buf_fini(&c->said.text);
        free(c);
    }
    (void)pthread_cond_destroy(&g->wake);
    (void)pthread_cond_destroy(&g->over);
    (void)pthread_mutex_destroy(&g->lock);
    free(g);
    return true;
}

/* ---- the loop's side: it never waits ---- */

/* With the lock. */
static void pick_up(struct gauged *c)
{
    if (!c->fresh.at_ns)
        return;
    bh_buf_fini(&c->said.text);
    c->said = c->fresh;
    c->fresh = (struct judgement){0};
}

void bh_gauge_post(struct bh_gauge *g, uint32_t gpu, const struct bh_tally *t)
{
    if (pthread_mutex_trylock(&g->lock) !=
        0) { /* held for a copy, but by a thread that may wait for a processor */
        g->missed[gpu] = true;
        return;
    }
    struct gauged *c = g->at[gpu];
    if (!c)
        c = g->at[gpu] = bh_alloc(1, sizeof(*c));
    const bool missed =
        g->missed[gpu] || c->is_posted; /* the counters' next time is longer than this interval */
    c->posted = *t;
    c->posted.fresh |= missed;
    c->is_posted = true;
    g->missed[gpu] = false;
    if (g->source.at_once)
        (void)serve_all(g);
    else if (!g->has_thread)
        begin_thread(g); /* tried again with the next one */
    pick_up(c);
    (void)pthread_cond_signal(&g->wake);
    (void)pthread_mutex_unlock(&g->lock);
}

/* What is known of a card, the newest that can be had now. NULL: nothing, or it is too old. */
static const struct judgement *newest(struct bh_gauge *g, uint32_t gpu, uint64_t now_ns)
{
    struct gauged *c = g->at[gpu];
    if (c && pthread_mutex_trylock(&g->lock) == 0) {
        pick_up(c);
        (void)pthread_mutex_unlock(&g->lock);
    }
    return c && c->said.at_ns && now_ns - c->said.at_ns <= OLD_NS ? &c->said : NULL;
}

void bh_gauge_uses(struct bh_gauge *g, uint32_t gpu, uint64_t now_ns, uint64_t lease,
                   uint32_t ret[BH_CULPRIT_RESOURCES])
{
    const struct judgement *j = newest(g, gpu, now_ns);
    for (unsigned r = 0; r < BH_CULPRIT_RESOURCES; r++)
        ret[r] = BH_CULPRIT_UNKNOWN;
    for (uint32_t i = 0; j && i < j->n_uses; i++)
        if (j->uses[i].lease == lease)
            memcpy(ret, j->uses[i].permille, sizeof(j->uses[i].permille));
}

void bh_gauge_report(struct bh_gauge *g, uint32_t gpu, uint64_t now_ns, struct bh_buf *out)
{
    const struct judgement *j = newest(g, gpu, now_ns);
    const uint64_t asked_ns = g->at[gpu] ? atomic_load(&g->at[gpu]->asked_ns) : 0;
    if (asked_ns && now_ns > asked_ns && now_ns - asked_ns > STUCK_NS) {
        bh_buf_str(out, "who slows whom cannot be told: the driver's library does not answer\n");
        return;
    }
    if (!j)
        return;
    if (now_ns - j->at_ns >= AGED_NS)
        bh_buf_printf(out, "judged %" PRIu64 " s ago:\n", (now_ns - j->at_ns) / JUDGE_NS);
    bh_buf_str(out, bh_buf_text(&j->text));
}

void bh_gauge_hold_lock(struct bh_gauge *g, bool held)
{
    if (held)
        (void)pthread_mutex_lock(&g->lock);
    else
        (void)pthread_mutex_unlock(&g->lock);
}
