/* SPDX-License-Identifier: Apache-2.0 */
/*
 * steer.c - a controller and a sensor for each card, and the two ways of acting.
 *
 * A call to the driver that fails leaves its channels unsure, and the next step makes it again, whichever way it is
 * wanted by then. Channels of a lease that is gone wait for that among the orphans.
 */
#include "governor/escape.h"
#include "governor/sense.h"
#include "governor/steer_inside.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define STEP_NS (BH_PACE_STEP_US * UINT64_C(1000))
enum {
    BACKOFF_MAX = 8, /* doublings of a step: what fails is tried again after 1.3 s and a step at the latest */
    TRIES_MAX = 24,  /* of an orphan: 20 s */
    ORPHANS_MAX = 16384,
    LAST_TRIES = 3,
    LOG_MAX_BYTES = 256 << 20
};

struct bh_steer *bh_steer_new(const struct bh_steer_config *config)
{
    struct bh_steer *t = bh_alloc(1, sizeof(*t));
    t->config = *config;
    bh_govern_config_default(&t->tuning);
    t->tuning.slices_only = config->slices_only;
    return t;
}

void bh_steer_free(struct bh_steer *t)
{
    for (size_t i = 0; i < BH_STATE_GPUS; i++) {
        struct card *c = t->cards[i];
        if (!c)
            continue;
        bh_govern_free(c->govern);
        if (c->sense)
            bh_sense_free(c->sense);
        bh_line_file_close(&c->log);
        free(c);
    }
    bh_vec_fini(&t->orphans);
    bh_vec_fini(&t->call);
    free(t);
}

/* ---- pausing and resuming ---- */

/* Those in t->call. */
static bool call_driver(struct bh_steer *t, uint32_t gpu, bool running)
{
    if (!t->call.n)
        return true;
    *(running ? &t->counts.resumes : &t->counts.pauses) += 1;
    if (t->config.driver->set_running(t->config.self, gpu, t->call.at, t->call.n, running) == 0)
        return true;
    t->counts.failed++;
    return false;
}

/* A name that fails makes a call for each channel of its seat: not at every step. */
static uint64_t backoff_ns(uint32_t failures)
{
    return STEP_NS << (failures < BACKOFF_MAX ? failures : BACKOFF_MAX);
}

static void note_failure(struct bh_steer *t, struct bh_seat *seat, bool running)
{
    const uint32_t before = seat->failed_running == running ? seat->failures : 0;
    seat->failures = before < BACKOFF_MAX ? before + 1 : before;
    seat->failed_running = running;
    seat->retry_ns = t->now_ns + backoff_ns(before);
}

static bool set_seat(struct bh_steer *t, struct bh_seat *seat, bool running)
{
    const uint8_t wanted = running ? BH_CHANNEL_RUNS : BH_CHANNEL_PAUSED;
    t->call.n = 0;
    for (size_t i = 0; i < seat->channels.n; i++) {
        struct bh_channel *c = &seat->channels.at[i];
        if (c->run == wanted)
            continue;
        *bh_vec_push(&t->call) = c->name;
        c->run = BH_CHANNEL_UNSURE;
    }
    if (!call_driver(t, seat->gpu, running)) {
        note_failure(t, seat, running);
        return false;
    }
    seat->failures = 0;
    for (size_t i = 0; i < seat->channels.n; i++)
        seat->channels.at[i].run = wanted;
    return true;
}

/* All of it as it is to be. */
static bool set_lease(struct bh_steer *t, struct bh_governed *l)
{
    bool ok = true;
    for (size_t i = 0; i < l->seats.n; i++)
        ok &= set_seat(t, &l->seats.at[i], !bh_steer_is_to_pause(l, &l->seats.at[i]));
    return ok;
}

/* ---- those whose lease is gone ---- */

static void adopt_orphan(struct bh_steer *t, uint32_t gpu, struct bh_driver_channel name)
{
    if (t->orphans.n == ORPHANS_MAX)
        t->counts.given_up++;
    else
        *bh_vec_push(&t->orphans) = (struct orphan){.gpu = gpu, .name = name};
    t->orphans_due_ns = t->orphans_failures = 0;
}

/* Resumes those of one GPU; whether it went well. */
static bool resume_orphans(struct bh_steer *t, uint32_t gpu)
{
    size_t kept = 0;
    t->call.n = 0;
    for (size_t i = 0; i < t->orphans.n; i++)
        if (t->orphans.at[i].gpu == gpu)
            *bh_vec_push(&t->call) = t->orphans.at[i].name;
    const bool ok = call_driver(t, gpu, true);
    for (size_t i = 0; i < t->orphans.n; i++) {
        struct orphan o = t->orphans.at[i];
        const bool tried = o.gpu == gpu;
        if (tried && !ok && ++o.tries >= TRIES_MAX)
            t->counts.given_up++;
        else if (!tried || !ok)
            t->orphans.at[kept++] = o;
    }
    t->orphans.n = kept;
    return ok;
}

static void resume_all_orphans(struct bh_steer *t)
{
    bool ok = true;
    for (uint32_t gpu = 0; t->orphans.n && gpu < BH_STATE_GPUS; gpu++)
        ok &= resume_orphans(t, gpu);
    t->orphans_due_ns = t->now_ns + backoff_ns(t->orphans_failures);
    t->orphans_failures = ok ? 0 : t->orphans_failures < BACKOFF_MAX ? t->orphans_failures + 1 : BACKOFF_MAX;
}

/* Channels of this lease that a message takes away (NULL: all): they run before they are forgotten. */
static void let_go(struct bh_steer *t, struct bh_governed *l, const struct bh_govern_channels *m)
{
    for (size_t i = 0; i < l->seats.n; i++) {
        const struct bh_seat *seat = &l->seats.at[i];
        t->call.n = 0;
        for (size_t k = 0; k < seat->channels.n; k++) {
            const struct bh_channel *c = &seat->channels.at[k];
            if (c->run != BH_CHANNEL_RUNS && (!m || bh_state_is_lost(m, c)))
                *bh_vec_push(&t->call) = c->name;
        }
        if (call_driver(t, seat->gpu, true))
            continue;
        for (size_t k = 0; k < t->call.n; k++)
            adopt_orphan(t, seat->gpu, t->call.at[k]);
    }
}

/* ---- what a warden says ---- */

/* A card that somebody comes to or leaves is looked at soon, but no oftener than at each step. */
static void hurry(struct bh_steer *t, uint32_t gpu)
{
    struct card *c = t->cards[gpu];
    if (!c)
        t->cards[gpu] = bh_alloc(1, sizeof(*c)); /* due at once */
    else if (c->due_ns > c->last_ns + STEP_NS)
        c->due_ns = c->last_ns + STEP_NS;
}

/* Whoever the controller before has paused runs after the next step, where the next one does not mean it. */
void bh_steer_set_slices_only(struct bh_steer *t, bool only)
{
    if (t->config.slices_only == only)
        return;
    t->config.slices_only = only;
    t->tuning.slices_only = only;
    for (uint32_t gpu = 0; gpu < BH_STATE_GPUS; gpu++) {
        struct card *c = t->cards[gpu];
        if (!c)
            continue;
        bh_govern_free(c->govern);
        c->govern = NULL;
        bh_line_file_close(&c->log);
        if (c->last_ns) /* one that rests goes on resting */
            hurry(t, gpu);
    }
}

/* An orphan that is named again is nobody's orphan: it may be paused, and its new seat knows. */
static void claim_orphans(struct bh_steer *t, const struct bh_seat *seat)
{
    size_t kept = 0;
    for (size_t i = 0; i < t->orphans.n; i++) {
        const struct orphan o = t->orphans.at[i];
        struct bh_channel *c = o.gpu == seat->gpu ? bh_seat_channel(seat, o.name) : NULL;
        if (c)
            c->run = BH_CHANNEL_UNSURE;
        else
            t->orphans.at[kept++] = o;
    }
    t->orphans.n = kept;
}

int bh_steer_has(struct bh_steer *t, struct bh_governed *l, const struct bh_govern_channels *m,
                 struct bh_err *err)
{
    const int rc = bh_state_has(l, m, err);
    if (rc < 0)
        return rc;
    struct bh_seat *seat = bh_seat_find(l, m->gpu);
    claim_orphans(t, seat);
    hurry(t, m->gpu);
    if (bh_steer_is_to_pause(l, seat))
        (void)set_seat(t, seat, false); /* else it could always have one that nobody has paused yet */
    return BH_OK;
}

int bh_steer_lost(struct bh_steer *t, struct bh_governed *l, const struct bh_govern_channels *m,
                  struct bh_err *err)
{
    const int rc = bh_state_lost_check(m, err);
    if (rc < 0)
        return rc;
    let_go(t, l, m);
    bh_state_lost(l, m);
    for (size_t i = 0; i < l->seats.n; i++)
        hurry(t, l->seats.at[i].gpu);
    return BH_OK;
}

void bh_steer_leave(struct bh_steer *t, struct bh_governed *l, uint64_t now_ns)
{
    let_go(t, l, NULL);
    for (size_t i = 0; i < l->seats.n; i++)
        hurry(t, l->seats.at[i].gpu);
    bh_state_leave(l, now_ns);
}

/* ---- what an operator says ---- */

static const struct {
    bool is_right;
    uint8_t next; /* enum bh_hold */
} orders[BH_HOLDS][BH_GOVERN_SUSPENDED + 1] = {
    [BH_HOLD_NONE] = {[BH_GOVERN_PAUSE] = {true, BH_HOLD_PAUSED},
                      [BH_GOVERN_RESUME] = {true, BH_HOLD_NONE},
                      [BH_GOVERN_SUSPEND] = {true, BH_HOLD_SUSPENDED}},
    [BH_HOLD_PAUSED] = {[BH_GOVERN_PAUSE] = {true, BH_HOLD_PAUSED},
                        [BH_GOVERN_RESUME] = {true, BH_HOLD_NONE},
                        [BH_GOVERN_SUSPEND] = {true, BH_HOLD_SUSPENDED}},
    [BH_HOLD_SUSPENDED] = {[BH_GOVERN_RESUME] = {true, BH_HOLD_NONE},
                           [BH_GOVERN_SUSPEND] = {true, BH_HOLD_SUSPENDED},
                           [BH_GOVERN_SUSPENDED] = {true, BH_HOLD_AWAY}},
    [BH_HOLD_AWAY] =
        {[BH_GOVERN_RESUME] = {true, BH_HOLD_NONE}, [BH_GOVERN_SUSPEND] = {true, BH_HOLD_SUSPENDED}},
};

int bh_steer_order(struct bh_steer *t, struct bh_governed *l, uint32_t what, struct bh_err *err)
{
    if (what == 0 || what > BH_GOVERN_SUSPENDED)
        return bh_fail(err, BH_INVALID, "an order %u: there is none", what);
    if (!orders[l->hold][what].is_right)
        return bh_fail(err, BH_CONFLICT, "lease %" PRIu64 " %s", l->id,
                       what == BH_GOVERN_SUSPENDED ? "was resumed meanwhile"
                                                   : "is suspended: resume it first");
    l->hold = orders[l->hold][what].next;
    for (size_t i = 0; i < l->seats.n; i++)
        hurry(t, l->seats.at[i].gpu);
    /* It is resumed whatever is known of it: somebody else may have paused it. */
    for (size_t i = 0; what == BH_GOVERN_RESUME && i < l->seats.n; i++)
        bh_seat_unsure(&l->seats.at[i]);
    /* One that is to leave the card must run for that: its work is waited for. */
    if (!set_lease(t, l))
        return bh_fail(err, BH_SYSTEM,
                       "the driver failed to %s lease %" PRIu64 "; the order stands, and it is tried again",
                       l->hold == BH_HOLD_PAUSED ? "pause" : "resume", l->id);
    return BH_OK;
}

void bh_steer_put_back(struct bh_steer *t, struct bh_governed *l, uint8_t hold)
{
    if (l->hold != BH_HOLD_SUSPENDED)
        return;
    l->hold = hold;
    for (size_t i = 0; i < l->seats.n; i++)
        hurry(t, l->seats.at[i].gpu);
    (void)set_lease(t, l); /* counted, and made again at the next step */
}

/* ---- a step ---- */

/* Who takes part in the shares of a card: it has channels there and nobody has ordered something else. */
static struct bh_seat *partner(const struct bh_governed *l, uint32_t gpu)
{
    struct bh_seat *seat = bh_seat_find(l, gpu);
    return seat && seat->channels.n && bh_steer_is_shared(l) ? seat : NULL;
}

/* It runs, and as far as was told last it never leaves the card empty to others. */
static bool wants_all(const struct bh_governed *l, const struct bh_seat *seat)
{
    return seat && seat->told.active && !seat->told.light && !seat->told.paused && !l->latency;
}

/* Who is paused by an operator is looked at as well: it should have nothing. */
static struct bh_seat *held(const struct bh_governed *l, uint32_t gpu)
{
    struct bh_seat *seat = bh_seat_find(l, gpu);
    return seat && seat->channels.n && l->hold == BH_HOLD_PAUSED ? seat : NULL;
}

static void end_lease(struct bh_steer *t, const struct bh_governed *l, uint32_t gpu)
{
    char why[160];
    t->counts.ended++;
    (void)snprintf(
        why, sizeof(why),
        "GPU %u was used for a second by what should be paused: a channel was made behind the gate", gpu);
    t->config.end(t->config.arg, l, why);
}

static bool lives_in(const struct bh_governed *l, uint32_t pid)
{
    for (size_t i = 0; i < l->pids.n; i++)
        if (l->pids.at[i] == pid)
            return true;
    return false;
}

/*
 * Does another lease have a process of that number, too? A number is given again while channels are left of who had it, and what
 * they have of the card is booked on whoever has it now. One whose process it is in both was handed a file from one to the other:
 * that is their own doing, and hides nothing.
 */
static bool is_mixed(const struct bh_state *s, const struct bh_governed *l, struct bh_seat *seat)
{
    size_t n, m;
    const uint32_t *own = bh_seat_all_pids(l, seat, &n);
    for (size_t i = 0; i < s->n; i++) { /* whatever was ordered for it */
        const struct bh_governed *other = s->at[i];
        struct bh_seat *at = other == l ? NULL : bh_seat_find(other, seat->gpu);
        const uint32_t *others = at ? bh_seat_all_pids(other, at, &m) : NULL;
        for (size_t a = 0, b = 0; others && a < n && b < m;) {
            if (own[a] == others[b] && !(lives_in(l, own[a]) && lives_in(other, own[a])))
                return true;
            *(own[a] <= others[b] ? &a : &b) += 1;
        }
    }
    return false;
}

static void take_sample(struct bh_steer *t, const struct card *c, struct bh_governed *l, struct bh_seat *seat,
                        uint64_t gpu_ns, bool mixed)
{
    const uint64_t known_ns = mixed ? BH_GOVERN_NO_SAMPLE : gpu_ns;
    seat->busy_ns += gpu_ns == BH_GOVERN_NO_SAMPLE ? 0 : gpu_ns;
    const uint32_t before = seat->escaped_us;
    if (bh_escape_watch(seat, bh_steer_is_to_pause(l, seat), known_ns, c->in.elapsed_us))
        end_lease(t, l, seat->gpu);
    t->counts.escaped += seat->escaped_us > before;
}

static void read_sensors(struct card *c, struct bh_steer *t, uint32_t gpu)
{
    struct bh_sense_who who[BH_GOVERN_TENANTS] = {0};
    struct bh_sense_got *got = c->got;
    const struct bh_state *s = t->config.state;
    struct bh_governed *leases[BH_GOVERN_TENANTS];
    struct bh_seat *seats[BH_GOVERN_TENANTS];
    size_t n = 0;
    c->in.n = 0;
    for (size_t i = 0; i < 2 * s->n; i++) { /* those that take part come first */
        struct bh_governed *l = s->at[i % s->n];
        struct bh_seat *seat = i < s->n ? partner(l, gpu) : held(l, gpu);
        if (!seat)
            continue;
        leases[n] = l;
        seats[n] = seat;
        who[n].lease = l->id;
        who[n].pids = bh_seat_all_pids(l, seat, &who[n].n_pids);
        who[n].paused = bh_steer_is_to_pause(l, seat);
        who[n++].wants = i < s->n && wants_all(l, seat);
        if (i < s->n)
            c->in.at[c->in.n++] =
                (struct bh_govern_asked){.id = l->id,
                                         .weight = l->weight,
                                         .cap_permille = l->cap_permille,
                                         .floor_permille = l->floor_permille,
                                         .latency = l->latency ? BH_GOVERN_LATENCY : BH_GOVERN_BATCH};
    }
    /* Blind is said in each sample, too; the controller works with that. */
    (void)bh_sense_read(c->sense, who, n, got);
    c->in.unused_permille = bh_sense_unused(c->sense);
    for (uint32_t k = 0; k < n; k++) {
        const bool mixed = who[k].paused && got[k].gpu_ns && is_mixed(s, leases[k], seats[k]);
        take_sample(t, c, leases[k], seats[k], got[k].gpu_ns, mixed);
        if (k >= c->in.n)
            continue;
        c->in.at[k].gpu_ns = got[k].gpu_ns;
        c->in.at[k].state = got[k].state;
        c->in.at[k].doubt = got[k].doubt;
    }
}

static void write_log(struct bh_steer *t, struct card *c)
{
    if (c->log.open && bh_govern_log_step(&c->in, &c->out, t->line, sizeof(t->line), NULL) == 0)
        bh_line_file_add(&c->log, t->line);
}

static void open_log(struct bh_steer *t, struct card *c, uint32_t gpu)
{
    char path[BH_STEER_LOG_PREFIX + 16];
    const int n = snprintf(path, sizeof(path), "%s.gpu%u", t->config.log_prefix, gpu);
    if (n <= 0 || (size_t)n >= sizeof(path) ||
        bh_govern_log_config(&t->tuning, t->line, sizeof(t->line), NULL) < 0)
        return;
    bh_line_file_open(&c->log, path, LOG_MAX_BYTES);
    bh_line_file_add(&c->log, t->line);
}

/* The controller stays when everybody leaves: a log is one controller's. */
static bool begin(struct bh_steer *t, struct card *c, uint32_t gpu)
{
    if (!c->govern && bh_govern_new(&t->tuning, &c->govern, NULL) == BH_OK && t->config.log_prefix)
        open_log(t, c, gpu);
    if (!c->sense)
        c->sense = bh_sense_new(t->config.driver, t->config.self, gpu);
    return c->govern != NULL;
}

static void take_told(struct bh_seat *seat, const struct bh_govern_told *told)
{
    const uint32_t before = seat->told.corrections;
    /* Somebody made it run again: the pause is ordered anew. */
    if (told->paused && told->escaped)
        bh_seat_unsure(seat);
    /* The controller begins anew with one that was left out for a while. */
    seat->corrections += told->corrections >= before ? told->corrections - before : told->corrections;
    seat->pauses += told->paused && !seat->told.paused;
    seat->told = *told;
}

static bool is_to_wait(const struct bh_steer *t, const struct bh_seat *seat, bool running)
{
    return seat->failures && seat->failed_running == running && t->now_ns < seat->retry_ns;
}

/* Everybody on the card who is to pause, or to run. */
static void apply(struct bh_steer *t, uint32_t gpu, bool running)
{
    const struct bh_state *s = t->config.state;
    for (size_t i = 0; i < s->n; i++) {
        struct bh_governed *l = s->at[i];
        struct bh_seat *seat = bh_seat_find(l, gpu);
        if (!seat || bh_steer_is_to_pause(l, seat) == running || is_to_wait(t, seat, running))
            continue;
        if (running)
            bh_escape_look(seat, bh_steer_is_shared(l), t->now_ns);
        (void)set_seat(t, seat, running); /* counted, and made again at another step */
    }
}

static void tell_slice(struct bh_steer *t, const struct bh_governed *l, struct bh_seat *seat,
                       uint32_t slice_us, uint32_t level)
{
    const bool plain = slice_us == t->tuning.default_slice_us && level == t->tuning.default_level;
    const uint32_t us = plain ? 0 : slice_us, level_1 = plain ? 0 : level + 1;
    if (us == seat->slice_us && level_1 == seat->level_1)
        return;
    const struct bh_govern_slice m = {
        .op = BH_GOVERN_SLICE, .gpu = seat->gpu, .slice_us = us, .level = level};
    if (t->config.tell(t->config.arg, l, &m)) {
        seat->slice_us = us;
        seat->level_1 = level_1;
    }
}

static void tell_slices(struct bh_steer *t, uint32_t gpu)
{
    const struct bh_state *s = t->config.state;
    for (size_t i = 0; i < s->n; i++) {
        struct bh_seat *seat = partner(s->at[i], gpu);
        if (seat && seat->told.id)
            tell_slice(t, s->at[i], seat, seat->told.slice_us, seat->told.level);
    }
}

/* The output has the order of the input, which is the state's. Who took no part was told nothing. */
static void take_all(const struct bh_steer *t, const struct bh_govern_out *out, uint32_t gpu)
{
    const struct bh_state *s = t->config.state;
    uint32_t k = 0;
    for (size_t i = 0; i < s->n; i++) {
        struct bh_seat *seat = bh_seat_find(s->at[i], gpu);
        if (seat && k < out->n && partner(s->at[i], gpu))
            take_told(seat, &out->at[k++]);
        else if (seat)
            seat->told = (struct bh_govern_told){0};
    }
}

/* What each had goes to whoever judges who slows whom. */
static void take_tally(struct bh_steer *t, struct card *c, uint32_t gpu, uint64_t now_ns)
{
    const struct bh_state *s = t->config.state;
    uint32_t k = 0;
    if (!t->config.gauge)
        return;
    bh_tally_begin(&c->tally, c->in.elapsed_us);
    for (size_t i = 0; i < s->n && k < c->out.n; i++) {
        if (!partner(s->at[i], gpu))
            continue;
        bh_tally_add(&c->tally, s->at[i], c->in.elapsed_us, &c->out.at[k], &c->got[k]);
        k++;
    }
    if (bh_tally_end(&c->tally, now_ns, t->config.slices_only, &t->tally))
        bh_gauge_post(t->config.gauge, gpu, &t->tally);
}

/* Has anybody channels here that the next step could have to look at? */
static bool is_used(const struct bh_steer *t, uint32_t gpu)
{
    const struct bh_state *s = t->config.state;
    for (size_t i = 0; i < s->n; i++) {
        const struct bh_seat *seat = bh_seat_find(s->at[i], gpu);
        if (seat && seat->channels.n)
            return true;
    }
    return false;
}

static uint32_t elapsed_us(const struct card *c, uint64_t now_ns)
{
    const uint64_t us = (now_ns - c->last_ns) / 1000;
    if (!c->last_ns || us > BH_GOVERN_ELAPSED_MAX_US)
        return c->last_ns ? BH_GOVERN_ELAPSED_MAX_US : (uint32_t)(STEP_NS / 1000);
    return us ? (uint32_t)us : 1;
}

/* Who comes or goes does not wait for it (hurry). By slices alone nobody is found out by what the card was used, so while several
 * compete that is asked for seldom. */
static uint64_t interval_ns(const struct bh_steer *t, struct card *c)
{
    const uint64_t ns = bh_pace_us(&c->pace, t->tuning.slices_only, &c->in, &c->out) * UINT64_C(1000);
    if (c->sense)
        bh_sense_ask_seldom(c->sense, c->pace.seldom);
    return ns;
}

static void step_card(struct bh_steer *t, struct card *c, uint32_t gpu, uint64_t now_ns)
{
    const uint64_t failed = t->counts.failed;
    t->counts.steps++;
    if (begin(t, c, gpu)) {
        c->in.elapsed_us = elapsed_us(c, now_ns);
        read_sensors(c, t, gpu);
    }
    if (c->govern && bh_govern_step(c->govern, &c->in, &c->out, NULL) == BH_OK) {
        write_log(t, c);
    } else {
        t->counts.refused++;
        c->out = (struct bh_govern_out){0}; /* so everybody runs */
    }
    take_all(t, &c->out, gpu);
    apply(t, gpu, !c->out.pause_first);
    apply(t, gpu, c->out.pause_first);
    tell_slices(t, gpu);
    take_tally(t, c, gpu, now_ns); /* last: whoever is to run does */
    c->last_ns = now_ns;
    const uint64_t after_ns = interval_ns(t, c);
    c->due_ns = now_ns + (t->counts.failed == failed ? after_ns : STEP_NS);
}

/* Who comes next is not to be measured against the time when nobody was there. */
static void rest_card(struct bh_steer *t, struct card *c, uint32_t gpu)
{
    if (c->sense)
        bh_sense_free(c->sense);
    c->sense = NULL;
    c->tally = (struct bh_tally_card){0};
    c->pace = (struct bh_pace){0};
    c->out = (struct bh_govern_out){0};
    take_all(t, &c->out, gpu);
    c->last_ns = 0;
    c->due_ns = BH_STEER_NEVER;
}

uint64_t bh_steer_step(struct bh_steer *t, uint64_t now_ns)
{
    uint64_t next = BH_STEER_NEVER;
    t->now_ns = now_ns;
    if (t->orphans.n && t->orphans_due_ns <= now_ns)
        resume_all_orphans(t);
    for (uint32_t gpu = 0; gpu < BH_STATE_GPUS; gpu++) {
        struct card *c = t->cards[gpu];
        if (!c)
            continue;
        if (c->due_ns <= now_ns) {
            if (is_used(t, gpu))
                step_card(t, c, gpu, t->config.clock ? t->config.clock() : now_ns);
            else
                rest_card(t, c, gpu);
        }
        next = c->due_ns < next ? c->due_ns : next;
    }
    return t->orphans.n && t->orphans_due_ns < next ? t->orphans_due_ns : next;
}

/* ---- the end ---- */

/* A name that makes a whole call fail must not keep the others paused. */
static void resume_each(struct bh_steer *t)
{
    for (size_t i = t->orphans.n; i-- > 0;) {
        t->call.n = 0;
        *bh_vec_push(&t->call) = t->orphans.at[i].name;
        if (call_driver(t, t->orphans.at[i].gpu, true))
            t->orphans.at[i] = t->orphans.at[--t->orphans.n];
    }
}

size_t bh_steer_release(struct bh_steer *t)
{
    const struct bh_state *s = t->config.state;
    for (size_t i = 0; i < s->n; i++) {
        struct bh_governed *l = s->at[i];
        let_go(t, l, NULL);
        for (size_t k = 0; k < l->seats.n; k++) {
            struct bh_seat *seat = &l->seats.at[k];
            seat->told.paused = 0;
            for (size_t n = 0; n < seat->channels.n; n++) /* what failed is an orphan now */
                seat->channels.at[n].run = BH_CHANNEL_RUNS;
            if (l->server != BH_STATE_NOBODY && l->hold != BH_HOLD_SUSPENDED)
                tell_slice(t, l, seat, t->tuning.default_slice_us, t->tuning.default_level);
        }
    }
    for (int i = 0; t->orphans.n && i < LAST_TRIES; i++)
        resume_all_orphans(t);
    resume_each(t);
    return t->orphans.n;
}
