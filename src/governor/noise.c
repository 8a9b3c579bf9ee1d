/* SPDX-License-Identifier: Apache-2.0 */
#include "governor/noise.h"

#include <stdio.h>
#include <string.h>

enum {
    WHOLE = 1000,
    STRONG = 250,     /* permille of the differences between turns that must go with somebody */
    SLOWED = 900,     /* as core/govern/culprit.c */
    OVER = 50,        /* permille of the card: so much above its own part takes time from others */
    MATTERS = 50,     /* permille of the card: a target below that is too small to lack something */
    STEADY = 4,       /* one in so many: the turns of a tenant that are its usual ones */
    APART_MS = 10000, /* intervals further apart belong to two stories */
};

/* What is kept of an interval beside the sample: the rate is made of it when all are there. */
struct kept {
    uint32_t turn_ns[BH_TALLY_LEASES];
    uint32_t held[BH_TALLY_LEASES],
        target[BH_TALLY_LEASES]; /* held: BH_CULPRIT_UNKNOWN where it was not seen */
};
struct tenant {
    uint64_t lease;
    char name[BH_GOVERN_NAME];
    bool here; /* in the last interval */
    bool asks_little;
};
/* What is known of a tenant over all intervals. */
struct judged {
    uint32_t work_permille; /* of the work its turns do when nobody is in their way */
    uint32_t held, target;
    bool has_turns, lacks; /* lacks: it has less time than is its own */
};

struct bh_noise {
    uint32_t n, n_samples, next; /* next: where the next sample goes, once all places are taken */
    uint64_t last_ns;
    bool left_out;
    struct bh_noise_look look; /* the last */
    struct tenant tenants[BH_TALLY_LEASES];
    struct bh_culprit_sample samples[BH_CULPRIT_SAMPLES];
    struct kept kept[BH_CULPRIT_SAMPLES];
    struct judged judged[BH_TALLY_LEASES];
    struct bh_culprit_in in;
    struct bh_culprit_finding found[BH_TALLY_LEASES];
};

void bh_noise_look_none(struct bh_noise_look *ret, const char *why)
{
    *ret = (struct bh_noise_look){.sample.missing = (1u << BH_PRESSURE_N_) - 1};
    (void)snprintf(ret->why, sizeof(ret->why), "%s", why);
}

struct bh_noise *bh_noise_new(void)
{
    return bh_alloc(1, sizeof(struct bh_noise));
}

void bh_noise_free(struct bh_noise *n)
{
    free(n);
}

/* ---- gathering ---- */

static void forget_place(struct bh_noise *n, uint32_t place)
{
    for (uint32_t s = 0; s < n->n_samples; s++) {
        n->samples[s].at[place] = (struct bh_culprit_use){0, BH_CULPRIT_UNKNOWN, false};
        n->kept[s].turn_ns[place] = n->kept[s].target[place] = 0;
        n->kept[s].held[place] = BH_CULPRIT_UNKNOWN;
    }
}

/* Its place, or a free one, or that of one that is gone. */
static uint32_t place_of(struct bh_noise *n, const struct bh_tally_line *line)
{
    uint32_t place = n->n;
    for (uint32_t i = 0; i < n->n; i++)
        if (n->tenants[i].lease == line->lease)
            return i;
    for (uint32_t i = 0; place == BH_TALLY_LEASES && i < n->n; i++)
        place = n->tenants[i].here ? place : i;
    if (place == BH_TALLY_LEASES)
        return place;
    n->n += place == n->n;
    n->tenants[place] = (struct tenant){.lease = line->lease};
    memcpy(n->tenants[place].name, line->name, sizeof(line->name));
    forget_place(n, place);
    return place;
}

static uint32_t known(const struct bh_pressure_sample *s, enum bh_pressure_what what, uint32_t v)
{
    return s->missing >> what & 1 ? BH_CULPRIT_UNKNOWN : v;
}

static void levels(const struct bh_noise_look *look, uint32_t ret[BH_CULPRIT_RESOURCES])
{
    const struct bh_pressure_sample *s = &look->sample;
    ret[BH_CULPRIT_TIME] = known(s, BH_PRESSURE_SM, s->sm_permille);
    ret[BH_CULPRIT_DRAM] = known(s, BH_PRESSURE_DRAM, s->dram_permille);
    ret[BH_CULPRIT_PCIE] = bh_culprit_pcie(known(s, BH_PRESSURE_PCIE_RX, s->pcie_rx_kbps),
                                           known(s, BH_PRESSURE_PCIE_TX, s->pcie_tx_kbps), look->link_kbps);
    ret[BH_CULPRIT_POWER] = known(s, BH_PRESSURE_CLOCKS, bh_culprit_power(s->clock_reasons));
}

static void put(struct bh_noise *n, uint32_t sample, const struct bh_tally_line *line)
{
    const uint32_t i = place_of(n, line);
    if (i == BH_TALLY_LEASES) {
        n->left_out = true;
        return;
    }
    n->tenants[i].here = true;
    n->tenants[i].asks_little = line->asks_little;
    n->samples[sample].at[i] = (struct bh_culprit_use){line->gpu_permille, BH_CULPRIT_UNKNOWN, line->running};
    n->kept[sample].turn_ns[i] = line->turn_ns;
    n->kept[sample].held[i] = line->held_permille;
    n->kept[sample].target[i] = line->target_permille;
}

void bh_noise_add(struct bh_noise *n, const struct bh_tally *t, const struct bh_noise_look *look)
{
    if (n->last_ns && t->at_ns - n->last_ns > UINT64_C(1000000) * APART_MS)
        n->n = n->n_samples = n->next = 0;
    n->last_ns = t->at_ns;
    if (t->fresh)
        return; /* the counters' time began before this interval */
    const bool full = n->n_samples == BH_CULPRIT_SAMPLES;
    const uint32_t sample = full ? n->next : n->n_samples++;
    n->next = (sample + 1) % BH_CULPRIT_SAMPLES;
    n->look = *look;
    n->left_out = t->left_out;
    memset(&n->samples[sample], 0, sizeof(n->samples[sample]));
    levels(look, n->samples[sample].level);
    for (uint32_t i = 0; i < BH_TALLY_LEASES; i++) {
        n->samples[sample].at[i].rate_permille = BH_CULPRIT_UNKNOWN;
        n->kept[sample].turn_ns[i] = n->kept[sample].target[i] = 0;
        n->kept[sample].held[i] = BH_CULPRIT_UNKNOWN;
        n->tenants[i].here = false;
        for (uint32_t k = 0; k < t->n; k++) /* so that nobody's place is taken who is there */
            n->tenants[i].here |= i < n->n && t->at[k].lease == n->tenants[i].lease;
    }
    for (uint32_t i = 0; i < t->n; i++)
        put(n, sample, &t->at[i]);
}

/* ---- judging ---- */

static int by_length(const void *a, const void *b)
{
    const uint32_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* How long a turn takes when nobody is in its way: one of its shorter ones; 0: not known. */
static uint32_t usual_turn(const struct bh_noise *n, uint32_t tenant)
{
    uint32_t lengths[BH_CULPRIT_SAMPLES], found = 0;
    for (uint32_t s = 0; s < n->n_samples; s++)
        if (n->kept[s].turn_ns[tenant])
            lengths[found++] = n->kept[s].turn_ns[tenant];
    if (found < BH_CULPRIT_FEW)
        return 0;
    qsort(lengths, found, sizeof(lengths[0]), by_length);
    return lengths[found / STEADY];
}

/* What a turn's work came to in one interval, of what it could be. */
static uint32_t work_at(const struct bh_noise *n, uint32_t s, uint32_t tenant, uint32_t usual_ns)
{
    const uint32_t turn_ns = n->kept[s].turn_ns[tenant];
    if (!turn_ns || !usual_ns)
        return BH_CULPRIT_UNKNOWN;
    return turn_ns <= usual_ns ? WHOLE : (uint32_t)((uint64_t)usual_ns * WHOLE / turn_ns);
}

/* Fills in rates where there is something to make one of; the rest stays unknown. */
static void judge_tenant(struct bh_noise *n, uint32_t i)
{
    struct judged *j = &n->judged[i];
    const uint32_t usual_ns = usual_turn(n, i);
    uint64_t held = 0, target = 0, work = 0;
    uint32_t n_held = 0, n_work = 0;
    for (uint32_t s = 0; s < n->n_samples; s++) {
        const uint32_t w = work_at(n, s, i, usual_ns);
        if (n->kept[s].held[i] != BH_CULPRIT_UNKNOWN && n->kept[s].target[i]) {
            held += n->kept[s].held[i];
            target += n->kept[s].target[i];
            n_held++;
        }
        work += w == BH_CULPRIT_UNKNOWN ? 0 : w;
        n_work += w != BH_CULPRIT_UNKNOWN;
    }
    *j =
        (struct judged){.work_permille = n_work ? (uint32_t)(work / n_work) : WHOLE, .has_turns = n_work > 0};
    if (n_held >= BH_CULPRIT_FEW) {
        j->held = (uint32_t)(held / n_held);
        j->target = (uint32_t)(target / n_held);
        j->lacks = !n->tenants[i].asks_little && j->target >= MATTERS && j->held * WHOLE < j->target * SLOWED;
    }
    for (uint32_t s = 0; s < n->n_samples; s++) {
        struct bh_culprit_use *u = &n->samples[s].at[i];
        const uint32_t w = j->has_turns ? work_at(n, s, i, usual_ns) : j->lacks ? WHOLE : BH_CULPRIT_UNKNOWN;
        u->rate_permille = w == BH_CULPRIT_UNKNOWN || u->gpu_permille == BH_CULPRIT_UNKNOWN
                               ? BH_CULPRIT_UNKNOWN
                               : u->gpu_permille * w / WHOLE;
    }
}

/* A tenant's part in an interval, as core/govern/culprit.c takes it. */
static uint32_t part_at(const struct bh_noise *n, uint32_t s, uint32_t tenant, bool copies)
{
    const struct bh_culprit_use *u = &n->samples[s].at[tenant];
    return copies ? u->running : u->gpu_permille;
}

/* The victim's work in the intervals in which the other has more than its mean part of the card, and in the rest. */
struct contrast {
    uint64_t with, without, squares;
    uint32_t n_with, n_without;
};

static struct contrast contrast_of(const struct bh_noise *n, const struct bh_culprit_finding *f)
{
    const bool copies = f->resource == BH_CULPRIT_PCIE;
    const uint32_t usual_ns = usual_turn(n, f->victim);
    struct contrast c = {0};
    uint64_t parts = 0;
    uint32_t n_parts = 0;
    for (uint32_t s = 0; s < n->n_samples; s++) {
        const uint32_t p = part_at(n, s, f->culprit, copies);
        parts += p == BH_CULPRIT_UNKNOWN ? 0 : p;
        n_parts += p != BH_CULPRIT_UNKNOWN;
    }
    for (uint32_t s = 0; s < n->n_samples; s++) {
        const uint32_t w = work_at(n, s, f->victim, usual_ns), p = part_at(n, s, f->culprit, copies);
        if (w == BH_CULPRIT_UNKNOWN || p == BH_CULPRIT_UNKNOWN)
            continue;
        const bool has_more = (uint64_t)p * n_parts > parts;
        *(has_more ? &c.with : &c.without) += w;
        *(has_more ? &c.n_with : &c.n_without) += 1;
        c.squares += (uint64_t)w * w;
    }
    return c;
}

/* Do the victim's turns take longer when the other has more of the card, and is that much of why they differ at all? */
static bool goes_with(const struct bh_noise *n, const struct bh_culprit_finding *f)
{
    const struct contrast c = contrast_of(n, f);
    if (!c.n_with || !c.n_without)
        return false;
    const uint64_t with = c.with / c.n_with, without = c.without / c.n_without;
    const uint64_t count = c.n_with + c.n_without, mean = (c.with + c.without) / count;
    const uint64_t all = c.squares / count - mean * mean, apart = without - with;
    return with * WHOLE < without * SLOWED &&
           apart * apart * c.n_with / count * c.n_without / count * WHOLE >= all * STRONG;
}

/* Who has most above its own part, and so what a victim lacks. false: nobody. */
static bool blame_time(const struct bh_noise *n, struct bh_culprit_finding *f)
{
    uint32_t most = OVER, who = BH_TALLY_LEASES;
    for (uint32_t i = 0; i < n->n; i++) {
        const struct judged *j = &n->judged[i];
        if (i != f->victim && j->held >= j->target + most) {
            most = j->held - j->target;
            who = i;
        }
    }
    if (who == BH_TALLY_LEASES)
        return false;
    if (who != f->culprit) {
        f->culprit = who;
        f->level_permille = n->judged[who].held;
        f->most = BH_CULPRIT_TIME;
    }
    return true;
}

/*
 * What was found holds for a tenant that tells its rate. From outside less can be said: a resource is somebody's doing only
 * if the turns show it, and turns that are longer for no reason may do more work.
 */
static void temper(const struct bh_noise *n, struct bh_culprit_finding *f)
{
    const struct tenant *t = &n->tenants[f->victim];
    const struct judged *j = &n->judged[f->victim];
    const bool accused = f->verdict == BH_CULPRIT_NAMED || f->verdict == BH_CULPRIT_SEVERAL;
    if (!t->here)
        f->verdict = BH_CULPRIT_NOT_SLOWED;
    else if (f->verdict == BH_CULPRIT_NONE_FULL || f->verdict == BH_CULPRIT_MISSING ||
             (accused && f->resource != BH_CULPRIT_TIME && !goes_with(n, f)))
        f->verdict = BH_CULPRIT_NO_RATE;
    else if (accused && f->resource == BH_CULPRIT_TIME && j->lacks)
        f->verdict = blame_time(n, f) ? BH_CULPRIT_NAMED : BH_CULPRIT_NOT_SLOWED;
    else if (accused && f->resource == BH_CULPRIT_TIME)
        f->verdict = t->asks_little ? BH_CULPRIT_NO_RATE : BH_CULPRIT_NOT_SLOWED;
    f->rate_permille = j->work_permille;
    if (j->lacks)
        f->rate_permille = f->rate_permille * j->held / j->target;
}

static void missing_words(const struct bh_noise *n, struct bh_buf *out)
{
    static const enum bh_pressure_what used[] = {BH_PRESSURE_DRAM, BH_PRESSURE_PCIE_RX, BH_PRESSURE_PCIE_TX,
                                                 BH_PRESSURE_CLOCKS};
    const char *between = "what else slows them cannot be told, because missing: ";
    bool any = false;
    for (size_t i = 0; i < BH_COUNT_OF(used); i++)
        if (n->look.sample.missing >> used[i] & 1) {
            bh_buf_printf(out, "%s%s", between, bh_pressure_counter(used[i]));
            between = ", ";
            any = true;
        }
    if (any)
        bh_buf_printf(out, "%s%s%s\n", *n->look.why ? " (" : "", n->look.why, *n->look.why ? ")" : "");
}

void bh_noise_report(struct bh_noise *n, struct bh_buf *out)
{
    if (n->n_samples < BH_CULPRIT_FEW || n->n < 2)
        return; /* it has just begun */
    n->in.n_tenants = n->n;
    n->in.n_samples = n->n_samples;
    n->in.samples = n->samples;
    for (uint32_t i = 0; i < n->n; i++) {
        n->in.tenants[i] = (struct bh_culprit_tenant){.id = n->tenants[i].lease, .name = n->tenants[i].name};
        judge_tenant(n, i);
    }
    bh_culprit_find(&n->in, n->found);
    for (uint32_t i = 0; i < n->n; i++)
        temper(n, &n->found[i]);
    bh_culprit_report(&n->in, n->found, out);
    missing_words(n, out);
    if (n->left_out)
        bh_buf_printf(out, "more than %d leases: the others cannot be told apart\n", BH_TALLY_LEASES);
}
