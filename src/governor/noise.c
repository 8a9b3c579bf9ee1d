/* SPDX-License-Identifier: Apache-2.0 */
#include "governor/noise.h"

#include "core/govern/worth.h"
#include "governor/word.h"

#include <stdio.h>
#include <string.h>

enum {
    WHOLE = 1000,
    STRONG = 250,     /* permille of the differences between turns that must go with somebody */
    SLOWED = 900,     /* as core/govern/culprit.c */
    OVER = 50,        /* permille of the card: so much above its own part takes time from others */
    MATTERS = 50,     /* permille of the card: a target below that is too small to lack something */
    STEADY = 4,       /* one in so many: the turns of a tenant that are its usual ones */
    FULL = 900,       /* permille of the card: who has that lacks nothing */
    HARDLY = 3,       /* one in so many of the time it is there */
    STRANGER = 250,   /* permille of the card that is busy and none of ours */
    APART_MS = 10000, /* intervals further apart belong to two stories */
    MARK_MS = 600000, /* and these are too old to tell of anybody */
    /* Intervals in which others were there tell most. They are kept when they would have to go. */
    RECENT = 96,
    MARKS = BH_CULPRIT_SAMPLES - RECENT,
    NOBODY = 20,   /* permille of the card that others had: up to this, it was alone, ... */
    SOMEBODY = 50, /* ... and from this on beside others */
};

/* What is kept of an interval beside the sample: the rate is made of it when all are there. */
struct kept {
    uint64_t at_ns; /* 0: this place is empty, and everything in it unknown */
    uint32_t turn_ns[BH_TALLY_LEASES];
    uint32_t held[BH_TALLY_LEASES],
        target[BH_TALLY_LEASES]; /* held: BH_CULPRIT_UNKNOWN where it was not seen */
    uint32_t there[BH_TALLY_LEASES], works[BH_TALLY_LEASES];
    uint64_t worth_milli[BH_TALLY_LEASES]; /* by its own word, of the last moments; 0: it said nothing */
};
struct tenant {
    uint64_t lease;
    char name[BH_GOVERN_NAME];
    bool here;                 /* in the last interval */
    struct bh_tally_line last; /* what it had in it */
    struct bh_word word;
};
/* What is known of a tenant over all intervals. */
struct judged {
    uint32_t work_permille; /* of the work its turns do when nobody is in their way */
    uint32_t held, target;
    bool has_turns, lacks;   /* lacks: it has less time than is its own */
    uint32_t worth_permille; /* by its own word, beside others; 0: not known */
};

struct bh_noise {
    uint32_t n, n_samples, next, next_mark; /* next: where the next sample goes */
    uint64_t last_ns;
    bool left_out, strangers;
    struct bh_noise_look look; /* the last */
    struct tenant tenants[BH_TALLY_LEASES];
    struct bh_culprit_sample samples[BH_CULPRIT_SAMPLES];
    struct kept kept[BH_CULPRIT_SAMPLES];
    struct judged judged[BH_TALLY_LEASES];
    struct bh_culprit_in in;
    struct bh_culprit_levels levels;
    struct bh_culprit_finding found[BH_TALLY_LEASES];
};

void bh_noise_look_none(struct bh_noise_look *ret, const char *why)
{
    *ret = (struct bh_noise_look){.sample.missing = (1u << BH_PRESSURE_N_) - 1};
    (void)snprintf(ret->why, sizeof(ret->why), "%s", why);
}

static void forget_sample(struct bh_noise *n, uint32_t s)
{
    n->kept[s] = (struct kept){0};
    for (unsigned r = 0; r < BH_CULPRIT_RESOURCES; r++)
        n->samples[s].level[r] = BH_CULPRIT_UNKNOWN;
    for (uint32_t i = 0; i < BH_TALLY_LEASES; i++) {
        n->samples[s].at[i] =
            (struct bh_culprit_use){BH_CULPRIT_UNKNOWN, BH_CULPRIT_UNKNOWN, BH_CULPRIT_UNKNOWN};
        n->kept[s].held[i] = BH_CULPRIT_UNKNOWN;
    }
}

static void forget_all(struct bh_noise *n)
{
    n->n = n->n_samples = n->next = n->next_mark = 0;
    for (uint32_t s = 0; s < BH_CULPRIT_SAMPLES; s++)
        forget_sample(n, s);
}

struct bh_noise *bh_noise_new(void)
{
    struct bh_noise *n = bh_alloc(1, sizeof(*n));
    forget_all(n);
    return n;
}

void bh_noise_free(struct bh_noise *n)
{
    free(n);
}

/* ---- gathering ---- */

static void forget_place(struct bh_noise *n, uint32_t place)
{
    for (uint32_t s = 0; s < BH_CULPRIT_SAMPLES; s++) {
        if (!n->kept[s].at_ns)
            continue;
        n->samples[s].at[place] = (struct bh_culprit_use){0, BH_CULPRIT_UNKNOWN, 0};
        n->kept[s].turn_ns[place] = n->kept[s].target[place] = 0;
        n->kept[s].there[place] = n->kept[s].works[place] = 0;
        n->kept[s].worth_milli[place] = 0;
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
    ret[BH_CULPRIT_WATTS] = bh_culprit_watts(known(s, BH_PRESSURE_POWER, s->power_mw), look->limit_mw);
}

/* Is the card busy with more than what our leases had of it? Then what it shows is not theirs alone. */
static bool has_strangers(const struct bh_tally *t, const struct bh_pressure_sample *s)
{
    uint32_t ours = 0;
    bool all = !t->left_out && !(s->missing >> BH_PRESSURE_SM & 1);
    for (uint32_t i = 0; i < t->n; i++) {
        all = all && t->at[i].gpu_permille != BH_CULPRIT_UNKNOWN;
        ours += t->at[i].gpu_permille == BH_CULPRIT_UNKNOWN ? 0 : t->at[i].gpu_permille;
    }
    return all && s->sm_permille > ours + STRANGER;
}

/* Who else had the card meanwhile? */
static enum bh_word_company company_of(const struct bh_noise *n, const struct bh_tally *t, uint32_t line)
{
    uint32_t others = 0;
    bool known = !t->left_out && !n->strangers;
    for (uint32_t i = 0; i < t->n; i++)
        if (i != line) {
            known = known && t->at[i].gpu_permille != BH_CULPRIT_UNKNOWN;
            others += known ? t->at[i].gpu_permille : 0;
        }
    if (!known || (others > NOBODY && others < SOMEBODY))
        return BH_WORD_BETWEEN;
    return others <= NOBODY ? BH_WORD_ALONE : BH_WORD_BESIDE;
}

/* Of an interval of which the counters tell nothing. What tenants say themselves counts in a gap; what came before a first one, for
 * nobody knows how much time on the card, does not. */
static void hear(struct bh_noise *n, const struct bh_tally *t)
{
    for (uint32_t i = 0; i < n->n; i++)
        for (uint32_t k = 0; k < t->n; k++) {
            if (t->at[k].lease != n->tenants[i].lease)
                continue;
            if (t->fresh)
                bh_word_pass(&n->tenants[i].word, &t->at[k]);
            else
                (void)bh_word_take(&n->tenants[i].word, &t->at[k], company_of(n, t, k), t->at_ns);
        }
}

static void put(struct bh_noise *n, uint32_t sample, const struct bh_tally *t, uint32_t k)
{
    const struct bh_tally_line *line = &t->at[k];
    const uint32_t i = place_of(n, line);
    if (i == BH_TALLY_LEASES) {
        n->left_out = true;
        return;
    }
    n->tenants[i].here = true;
    n->tenants[i].last = *line;
    n->samples[sample].at[i] =
        (struct bh_culprit_use){line->gpu_permille, BH_CULPRIT_UNKNOWN, line->there_permille};
    n->kept[sample].turn_ns[i] = line->turn_ns;
    n->kept[sample].held[i] = line->held_permille;
    n->kept[sample].target[i] = line->target_permille;
    n->kept[sample].there[i] = line->there_permille;
    n->kept[sample].works[i] = line->works_permille;
    n->kept[sample].worth_milli[i] = bh_word_take(&n->tenants[i].word, line, company_of(n, t, k), t->at_ns);
}

/* Was somebody away who is there now, or the other way round? */
static bool tells_apart(const struct bh_noise *n, uint32_t sample)
{
    bool found = false;
    for (uint32_t i = 0; i < n->n && !found; i++)
        found = n->tenants[i].here != (n->kept[sample].there[i] > 0);
    return found;
}

/* A place for the next sample. What is there moves to the marks if it tells more than another of its kind would. */
static uint32_t take_sample(struct bh_noise *n, uint64_t at_ns)
{
    const uint32_t s = n->next, mark = RECENT + n->next_mark;
    n->next = (s + 1) % RECENT;
    if (n->kept[s].at_ns && tells_apart(n, s)) {
        n->samples[mark] = n->samples[s];
        n->kept[mark] = n->kept[s];
        n->next_mark = (n->next_mark + 1) % MARKS;
    }
    for (uint32_t i = RECENT; i < BH_CULPRIT_SAMPLES; i++)
        if (n->kept[i].at_ns && at_ns - n->kept[i].at_ns > UINT64_C(1000000) * MARK_MS)
            forget_sample(n, i);
    forget_sample(n, s);
    n->kept[s].at_ns = at_ns;
    n->n_samples += n->n_samples < RECENT;
    return s;
}

void bh_noise_add(struct bh_noise *n, const struct bh_tally *t, const struct bh_noise_look *look)
{
    if (n->last_ns && t->at_ns - n->last_ns > UINT64_C(1000000) * APART_MS)
        forget_all(n);
    n->last_ns = t->at_ns;
    if (t->fresh || t->gap) { /* fresh: the counters' time began before this interval */
        hear(n, t);
        return;
    }
    for (uint32_t i = 0; i < n->n; i++) {
        n->tenants[i].here = false;
        for (uint32_t k = 0; k < t->n; k++) /* so that nobody's place is taken who is there */
            n->tenants[i].here |= t->at[k].lease == n->tenants[i].lease;
    }
    const uint32_t sample = take_sample(n, t->at_ns);
    n->look = *look;
    n->left_out = t->left_out;
    n->strangers = has_strangers(t, &look->sample);
    if (!n->strangers)
        levels(look, n->samples[sample].level);
    for (uint32_t i = 0; i < BH_TALLY_LEASES; i++) /* who is not there has nothing */
        n->samples[sample].at[i] = (struct bh_culprit_use){0, BH_CULPRIT_UNKNOWN, 0};
    for (uint32_t i = 0; i < t->n; i++)
        put(n, sample, t, i);
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
    for (uint32_t s = 0; s < BH_CULPRIT_SAMPLES; s++)
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

/*
 * When it may have copied. Who works on the multiprocessors is taken to copy while it does; one that hardly ever does may copy
 * all the time that it is there, as nobody sees copies.
 */
static void judge_copies(struct bh_noise *n, uint32_t i)
{
    uint64_t there = 0, works = 0;
    for (uint32_t s = 0; s < BH_CULPRIT_SAMPLES; s++) {
        there += n->kept[s].there[i];
        works += n->kept[s].works[i];
    }
    for (uint32_t s = 0; s < BH_CULPRIT_SAMPLES; s++)
        if (n->kept[s].at_ns)
            n->samples[s].at[i].there_permille =
                works * HARDLY < there ? n->kept[s].there[i] : n->kept[s].works[i];
}

static uint32_t said_at(const struct bh_noise *n, uint32_t sample, uint32_t tenant, uint64_t alone_milli)
{
    const uint64_t milli = n->kept[sample].worth_milli[tenant];
    const uint32_t permille = milli ? bh_worth_permille(alone_milli, milli) : BH_CULPRIT_UNKNOWN;
    return permille == BH_CULPRIT_UNKNOWN || permille <= WHOLE ? permille : WHOLE;
}

/* Fills in rates where there is something to make one of; the rest stays unknown. */
static void judge_tenant(struct bh_noise *n, uint32_t i)
{
    struct judged *j = &n->judged[i];
    const uint32_t usual_ns = usual_turn(n, i);
    uint64_t held = 0, target = 0, work = 0;
    uint32_t n_held = 0, n_work = 0;
    for (uint32_t s = 0; s < BH_CULPRIT_SAMPLES; s++) {
        const uint32_t w = work_at(n, s, i, usual_ns);
        if (n->kept[s].held[i] != BH_CULPRIT_UNKNOWN && n->kept[s].target[i]) {
            held += n->kept[s].held[i];
            target += n->kept[s].target[i];
            n_held++;
        }
        work += w == BH_CULPRIT_UNKNOWN ? 0 : w;
        n_work += w != BH_CULPRIT_UNKNOWN;
    }
    const uint64_t alone_milli = bh_word_alone_milli(&n->tenants[i].word);
    *j =
        (struct judged){.work_permille = n_work ? (uint32_t)(work / n_work) : WHOLE, .has_turns = n_work > 0};
    if (n_held >= BH_CULPRIT_FEW) {
        j->held = (uint32_t)(held / n_held);
        j->target = (uint32_t)(target / n_held);
        j->lacks =
            !n->tenants[i].last.asks_little && j->target >= MATTERS && j->held * WHOLE < j->target * SLOWED;
    }
    j->worth_permille = bh_word_worth(&n->tenants[i].word);
    if (j->worth_permille)
        j->work_permille = j->worth_permille < WHOLE ? j->worth_permille : WHOLE;
    for (uint32_t s = 0; s < BH_CULPRIT_SAMPLES; s++) {
        struct bh_culprit_use *u = &n->samples[s].at[i];
        const uint32_t w = j->worth_permille ? said_at(n, s, i, alone_milli)
                           : j->has_turns    ? work_at(n, s, i, usual_ns)
                           : j->lacks        ? WHOLE
                                             : BH_CULPRIT_UNKNOWN;
        u->rate_permille = w == BH_CULPRIT_UNKNOWN || u->gpu_permille == BH_CULPRIT_UNKNOWN
                               ? BH_CULPRIT_UNKNOWN
                               : u->gpu_permille * w / WHOLE;
    }
}

/* A tenant's part in an interval, as core/govern/culprit.c takes it. */
static uint32_t part_at(const struct bh_noise *n, uint32_t s, uint32_t tenant, bool copies)
{
    const struct bh_culprit_use *u = &n->samples[s].at[tenant];
    return copies ? u->there_permille : u->gpu_permille;
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
    for (uint32_t s = 0; s < BH_CULPRIT_SAMPLES; s++) {
        const uint32_t p = part_at(n, s, f->culprit, copies);
        parts += p == BH_CULPRIT_UNKNOWN ? 0 : p;
        n_parts += p != BH_CULPRIT_UNKNOWN;
    }
    for (uint32_t s = 0; s < BH_CULPRIT_SAMPLES; s++) {
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
        f->most = bh_culprit_most(&n->levels, who);
        f->most_permille = f->most == BH_CULPRIT_TIME ? 0 : n->levels.at[f->most][who];
    }
    f->share_permille = n->judged[who].target;
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
    else if (!j->worth_permille && (f->verdict == BH_CULPRIT_NONE_FULL || f->verdict == BH_CULPRIT_MISSING ||
                                    (accused && f->resource != BH_CULPRIT_TIME && !goes_with(n, f))))
        f->verdict = BH_CULPRIT_NO_RATE;
    else if (accused && f->resource == BH_CULPRIT_TIME && j->lacks)
        f->verdict = blame_time(n, f) ? BH_CULPRIT_NAMED : BH_CULPRIT_NOT_SLOWED;
    else if (accused && f->resource == BH_CULPRIT_TIME)
        f->verdict = t->last.asks_little && !j->worth_permille ? BH_CULPRIT_NO_RATE : BH_CULPRIT_NOT_SLOWED;
    f->rate_permille = j->work_permille;
    if (j->lacks)
        f->rate_permille = f->rate_permille * j->held / j->target;
}

/* ---- in words ---- */

static void percent(uint32_t permille, struct bh_buf *out)
{
    bh_buf_printf(out, "%u %%", (permille + 5) / 10);
}

/* In the order in which they are said; PCIe goes by itself, as it is of another time. */
static const struct {
    enum bh_culprit_resource resource;
    const char *words, *of;
} said[] = {
    {BH_CULPRIT_DRAM, "memory bandwidth", ""},
    {BH_CULPRIT_TIME, "multiprocessors", ""},
    {BH_CULPRIT_WATTS, "power", " of the limit"},
    {BH_CULPRIT_POWER, "clocks lowered for power or heat", " of the time"},
};

static bool is_told(const struct bh_noise *n, enum bh_culprit_resource r, uint32_t tenant)
{
    return !(n->levels.missing >> r & 1) && n->levels.told_apart[r][tenant];
}

/* What it uses, and what of that is not told apart from its neighbours'. */
static void uses_words(const struct bh_noise *n, uint32_t i, struct bh_buf *out)
{
    const char *between = ": ";
    bool any = false;
    bh_culprit_lease(&n->in.tenants[i], out);
    for (size_t k = 0; k < BH_COUNT_OF(said); k++)
        if (is_told(n, said[k].resource, i)) {
            bh_buf_printf(out, "%s%s ", between, said[k].words);
            percent(n->levels.at[said[k].resource][i], out);
            bh_buf_str(out, said[k].of);
            between = ", ";
            any = true;
        }
    bh_buf_str(out, any ? ", while it holds the card" : "");
    between = any ? "; " : ": ";
    if (is_told(n, BH_CULPRIT_PCIE, i)) {
        bh_buf_printf(out, "%sPCIe ", between);
        percent(n->levels.at[BH_CULPRIT_PCIE][i], out);
        bh_buf_str(out, " of the link while it is there");
        between = "; ";
    }
    for (unsigned r = 0, first = 1; r < BH_CULPRIT_RESOURCES; r++)
        if (!(n->levels.missing >> r & 1) && !n->levels.told_apart[r][i]) {
            bh_buf_printf(out, "%s%s", first ? between : ", ",
                          r == BH_CULPRIT_TIME ? "multiprocessors"
                                               : bh_culprit_words((enum bh_culprit_resource)r));
            first = 0;
            between = "";
        }
    bh_buf_str(
        out,
        *between
            ? "\n"
            : ": not told apart from its neighbours', as their parts of the card did not change, or it had none\n");
}

/* Who has the time that this one could use: whoever has most of it. false: it lacks none, or not because of somebody. */
static bool time_words(const struct bh_noise *n, uint32_t victim, struct bh_buf *out)
{
    const struct bh_tally_line *l = &n->tenants[victim].last;
    uint32_t who = BH_TALLY_LEASES, most = OVER;
    const bool at_cap =
        l->cap_permille && (uint64_t)l->held_permille * WHOLE >= (uint64_t)l->cap_permille * SLOWED;
    if (!l->active || l->asks_little || at_cap || l->held_permille >= FULL) /* not known is above it, too */
        return false;
    for (uint32_t i = 0; i < n->n; i++) {
        const uint32_t held = n->tenants[i].last.held_permille;
        if (i != victim && n->tenants[i].here && held != BH_CULPRIT_UNKNOWN && held > most) {
            most = held;
            who = i;
        }
    }
    if (who == BH_TALLY_LEASES)
        return false;
    const uint32_t share = n->tenants[who].last.target_permille;
    const enum bh_culprit_resource used = bh_culprit_most(&n->levels, who);
    bh_culprit_lease(&n->in.tenants[who], out);
    bh_buf_str(out, " has ");
    percent(most, out);
    bh_buf_printf(out, " of the card's time, %s its share of ", most > share + OVER ? "beyond" : "within");
    percent(share, out);
    if (used != BH_CULPRIT_TIME) {
        bh_buf_printf(out, ", with %s at ", bh_culprit_words(used));
        percent(n->levels.at[used][who], out);
    }
    bh_buf_str(out, "; ");
    bh_culprit_lease(&n->in.tenants[victim], out);
    bh_buf_str(out, " could use it: it has ");
    percent(l->held_permille, out);
    bh_buf_str(out, ", and runs at that part of its own speed at most\n");
    return true;
}

static void missing_words(const struct bh_noise *n, struct bh_buf *out)
{
    const char *between = "what else slows them cannot be told, because missing: ";
    bool any = false;
    for (unsigned i = 0; i < BH_PRESSURE_N_; i++)
        if (n->look.sample.missing >> i & 1) {
            bh_buf_printf(out, "%s%s", between, bh_pressure_counter((enum bh_pressure_what)i));
            between = ", ";
            any = true;
        }
    if (!(n->look.sample.missing >> BH_PRESSURE_POWER & 1) && !n->look.limit_mw) {
        bh_buf_printf(out, "%snvmlDeviceGetEnforcedPowerLimit", between);
        any = true;
    }
    if (any)
        bh_buf_printf(out, "%s%s%s\n", *n->look.why ? " (" : "", n->look.why, *n->look.why ? ")" : "");
}

uint32_t bh_noise_judge(struct bh_noise *n, struct bh_noise_uses *ret)
{
    uint32_t found = 0;
    n->in.n_tenants = n->n;
    n->in.n_samples = BH_CULPRIT_SAMPLES;
    n->in.samples = n->samples;
    for (uint32_t i = 0; i < n->n; i++) {
        judge_copies(n, i);
        judge_tenant(n, i);
        n->in.tenants[i] =
            (struct bh_culprit_tenant){.id = n->tenants[i].lease,
                                       .name = n->tenants[i].name,
                                       .tells = n->tenants[i].word.speaks,
                                       .was_alone = bh_word_alone_milli(&n->tenants[i].word) > 0,
                                       .worth_permille = n->judged[i].worth_permille};
    }
    bh_culprit_levels(&n->in, &n->levels);
    bh_culprit_find(&n->in, &n->levels, n->found);
    for (uint32_t i = 0; i < n->n; i++) {
        temper(n, &n->found[i]);
        if (!n->tenants[i].here)
            continue;
        ret[found].lease = n->tenants[i].lease;
        for (unsigned r = 0; r < BH_CULPRIT_RESOURCES; r++)
            ret[found].permille[r] =
                is_told(n, (enum bh_culprit_resource)r, i) ? n->levels.at[r][i] : BH_CULPRIT_UNKNOWN;
        found++;
    }
    return found;
}

void bh_noise_report(struct bh_noise *n, struct bh_buf *out)
{
    if (n->n_samples < BH_CULPRIT_FEW || n->n < 2)
        return; /* it has just begun */
    for (uint32_t i = 0; i < n->n; i++)
        if (n->tenants[i].here)
            uses_words(n, i, out);
    for (uint32_t i = 0; i < n->n; i++)
        if (n->tenants[i].here &&
            !(n->found[i].verdict == BH_CULPRIT_NAMED && n->found[i].resource == BH_CULPRIT_TIME))
            (void)time_words(n, i, out);
    for (uint32_t i = 0; i < n->n; i++)
        if (n->tenants[i].here)
            bh_word_say(&n->tenants[i].word, &n->in.tenants[i], out);
    bh_culprit_report(&n->in, n->found, out);
    missing_words(n, out);
    if (n->strangers)
        bh_buf_str(
            out,
            "somebody without a share works on the card, too: what it shows meanwhile is nobody's here\n");
    if (n->left_out)
        bh_buf_printf(out, "more than %d leases: the others cannot be told apart\n", BH_TALLY_LEASES);
}
