/* SPDX-License-Identifier: Apache-2.0 */
#include "core/govern/culprit.h"

#include "base/mem.h"

#include <inttypes.h>
#include <string.h>

enum {
    WHOLE = 1000,
    SLOWED = 900, /* a rate below this is one */
    USES_TIME = 50,
    WORK = 400000, /* of the least squares: rounds by columns by columns */
    ROUNDS_MOST = 4096,
    APART =
        5000, /* a variance: what of a tenant's part the others' parts do not tell; more than SMALL squared */
    NOISE = 400,    /* a variance: a deviation of 2 % */
    SWITCHES = 100, /* of the time may be nobody's because the card goes from one to another */
    SMALL = 50,     /* a part of the card */
    STRONG = 250,   /* permille of the variance that must go together */
    ALIKE = 800,    /* two tenants that are there at the same times */
    CLEARER = 200, /* by so much another resource must explain more than turns, where the rate is a latency */
    POWER_REASONS = 0xec, /* power cap, slowdown, both kinds of heat, power brake */
};
/* From here on a tenant's own level is high enough to be in somebody's way. */
static const uint32_t high[BH_CULPRIT_RESOURCES] = {[BH_CULPRIT_TIME] = USES_TIME,
                                                    [BH_CULPRIT_DRAM] = 400,
                                                    [BH_CULPRIT_PCIE] = 400,
                                                    [BH_CULPRIT_POWER] = 300,
                                                    [BH_CULPRIT_WATTS] = 750};

static const struct {
    const char *words, *counter;
} names[BH_CULPRIT_RESOURCES] = {
    [BH_CULPRIT_TIME] = {"time on the card", "GPU time of each tenant"},
    [BH_CULPRIT_DRAM] = {"memory bandwidth", "NVML GPM DRAM_BW_UTIL"},
    [BH_CULPRIT_PCIE] = {"PCIe", "NVML GPM PCIE_TX_PER_SEC and PCIE_RX_PER_SEC"},
    [BH_CULPRIT_POWER] = {"clocks lowered for power or heat", "NVML clocks event reasons"},
    [BH_CULPRIT_WATTS] = {"power", "nvmlDeviceGetPowerUsage or nvmlDeviceGetEnforcedPowerLimit"},
};

const char *bh_culprit_words(enum bh_culprit_resource r)
{
    return names[r].words;
}

uint32_t bh_culprit_pcie(uint32_t rx_kbps, uint32_t tx_kbps, uint64_t link_kbps)
{
    if (rx_kbps == BH_CULPRIT_UNKNOWN || tx_kbps == BH_CULPRIT_UNKNOWN || link_kbps == 0)
        return BH_CULPRIT_UNKNOWN;
    const uint64_t most = rx_kbps > tx_kbps ? rx_kbps : tx_kbps;
    return most >= link_kbps ? WHOLE : (uint32_t)(most * WHOLE / link_kbps);
}

uint32_t bh_culprit_watts(uint32_t mw, uint32_t limit_mw)
{
    if (mw == BH_CULPRIT_UNKNOWN || limit_mw == BH_CULPRIT_UNKNOWN || limit_mw == 0)
        return BH_CULPRIT_UNKNOWN;
    return mw >= limit_mw ? WHOLE : (uint32_t)((uint64_t)mw * WHOLE / limit_mw);
}

uint32_t bh_culprit_power(uint64_t clock_reasons)
{
    return clock_reasons & POWER_REASONS ? WHOLE : 0;
}

/* Nothing is more than all of it, whatever was counted. */
static uint32_t bounded(uint32_t v)
{
    return v == BH_CULPRIT_UNKNOWN || v <= WHOLE ? v : WHOLE;
}

/* A tenant's part in an interval. Copies go beside the turns, so that for PCIe being there is all that is known. */
static uint32_t part_of(const struct bh_culprit_use *u, enum bh_culprit_resource r)
{
    return bounded(r == BH_CULPRIT_PCIE ? u->there_permille : u->gpu_permille);
}

static bool is_known(uint32_t v)
{
    return v != BH_CULPRIT_UNKNOWN;
}

/* A column of the samples: n_known of them have a value. */
struct column {
    uint32_t v[BH_CULPRIT_SAMPLES];
};

static void column_level(const struct bh_culprit_in *in, enum bh_culprit_resource r, struct column *ret)
{
    for (uint32_t s = 0; s < in->n_samples; s++)
        ret->v[s] = bounded(in->samples[s].level[r]);
}

static void column_part(const struct bh_culprit_in *in, uint32_t tenant, enum bh_culprit_resource r,
                        struct column *ret)
{
    for (uint32_t s = 0; s < in->n_samples; s++)
        ret->v[s] = part_of(&in->samples[s].at[tenant], r);
}

static uint32_t mean(const struct bh_culprit_in *in, const struct column *c, uint32_t *ret_n)
{
    uint64_t sum = 0;
    uint32_t n = 0;
    for (uint32_t s = 0; s < in->n_samples; s++)
        if (is_known(c->v[s])) {
            sum += c->v[s];
            n++;
        }
    if (ret_n)
        *ret_n = n;
    return n ? (uint32_t)(sum / n) : 0;
}

/*
 * The part of the variance that two columns have in common, in permille, with the sign of how they go together; 0
 * where one of them hardly changes. Values are at most 1000 and samples 128, so squares of sums stay below 2^54.
 */
static int32_t together(const struct bh_culprit_in *in, const struct column *a, const struct column *b)
{
    int64_t n = 0, ma = 0, mb = 0, ab = 0, aa = 0, bb = 0;
    for (uint32_t s = 0; s < in->n_samples; s++)
        if (is_known(a->v[s]) && is_known(b->v[s])) {
            ma += a->v[s];
            mb += b->v[s];
            n++;
        }
    if (n < BH_CULPRIT_FEW)
        return 0;
    ma /= n;
    mb /= n;
    for (uint32_t s = 0; s < in->n_samples; s++)
        if (is_known(a->v[s]) && is_known(b->v[s])) {
            const int64_t da = (int64_t)a->v[s] - ma, db = (int64_t)b->v[s] - mb;
            ab += da * db;
            aa += da * da;
            bb += db * db;
        }
    if (aa / n < NOISE || bb / n < NOISE)
        return 0;
    const int64_t both = ab * ab / aa * WHOLE / bb;
    return (int32_t)(ab < 0 ? -both : both);
}

/* Does it change enough that something can be seen to go with it? */
static bool varies(const struct bh_culprit_in *in, const struct column *c)
{
    const int64_t m = mean(in, c, NULL);
    int64_t sum = 0, n = 0;
    for (uint32_t s = 0; s < in->n_samples; s++)
        if (is_known(c->v[s])) {
            sum += ((int64_t)c->v[s] - m) * ((int64_t)c->v[s] - m);
            n++;
        }
    return n >= BH_CULPRIT_FEW && sum / n >= NOISE;
}

/* --- whose is what the card shows --- */

/*
 * Least squares in the sums that it needs: parts by parts, and parts by level. The last column is nobody's: the time in which
 * none of the tenants held the card, which has a draw of its own. Parts and levels are at most 1000 and samples 128, so
 * that a sum of products stays below 2^27.
 */
enum {
    COLUMNS = BH_CULPRIT_TENANTS + 1,
    FINE = 1024, /* of a permille: what levels are reckoned in */
    STILL = 10,  /* of them: a round that changes no more was the last one */
    RATIO_BITS = 24,
};
struct squares {
    uint32_t n; /* columns */
    int64_t parts[COLUMNS][COLUMNS], level[COLUMNS];
};

static void squares_of(const struct bh_culprit_in *in, enum bh_culprit_resource r, struct squares *ret)
{
    const bool turns = r != BH_CULPRIT_PCIE;
    *ret = (struct squares){.n = in->n_tenants + turns};
    for (uint32_t s = 0; s < in->n_samples; s++) {
        int64_t x[COLUMNS] = {0}, sum = 0;
        if (!is_known(in->samples[s].level[r]))
            continue;
        for (uint32_t i = 0; i < in->n_tenants; i++) {
            const uint32_t part = part_of(&in->samples[s].at[i], r);
            x[i] = is_known(part) ? part : 0;
            sum += x[i];
        }
        x[in->n_tenants] = sum + SWITCHES < WHOLE ? WHOLE - sum : 0;
        for (uint32_t i = 0; i < ret->n; i++) {
            ret->level[i] += x[i] * bounded(in->samples[s].level[r]);
            for (uint32_t k = 0; k < ret->n; k++)
                ret->parts[i][k] += x[i] * x[k];
        }
    }
}

/* Each column's level in FINE, none below zero; who cannot be told apart begins alike, whatever the order. */
static void solve(const struct squares *q, int64_t ret[COLUMNS])
{
    const int64_t whole = (int64_t)WHOLE * FINE;
    int64_t own = 0, all = 0, moved = whole;
    for (uint32_t i = 0; i < q->n; i++) {
        own += q->level[i];
        for (uint32_t k = 0; k < q->n; k++)
            all += q->parts[i][k];
    }
    for (uint32_t i = 0; i < q->n; i++)
        ret[i] = all > 0 ? own * whole / all : 0;
    const uint32_t most = WORK / (q->n * q->n + 1);
    for (uint32_t round = 0; moved > STILL && round < (most < ROUNDS_MOST ? most : ROUNDS_MOST); round++) {
        moved = 0;
        for (uint32_t i = 0; i < q->n; i++) {
            int64_t rest = q->level[i] * whole;
            for (uint32_t k = 0; k < q->n; k++)
                rest -= k == i ? 0 : q->parts[i][k] * ret[k];
            const int64_t v = q->parts[i][i] > 0 ? rest / q->parts[i][i] : 0;
            const int64_t to = v < 0       ? 0
                               : v > whole ? whole
                                           : v,
                          by = to > ret[i] ? to - ret[i] : ret[i] - to;
            moved = by > moved ? by : moved;
            ret[i] = to;
        }
    }
}

/*
 * What of a column the others do not tell: the sum of squares that is left when they have explained what they can of it. Levels
 * have bounds, so that a small part cannot stand for a large one (SMALL).
 */
static int64_t left_of(const struct squares *q, uint32_t which, uint32_t n_samples)
{
    int64_t m[COLUMNS][COLUMNS];
    memcpy(m, q->parts, sizeof(m));
    for (uint32_t i = 0; i < q->n; i++)
        m[i][i] += i == which ? 0 : (int64_t)SMALL * SMALL * n_samples;
    for (uint32_t i = 0; i < q->n; i++) {
        const int64_t at = m[i][i];
        if (i == which || at <= 0)
            continue;
        for (uint32_t k = 0; k < q->n; k++) {
            if (k <= i && k != which) /* they are done */
                continue;
            const int64_t ratio = m[k][i] * (INT64_C(1) << RATIO_BITS) / at;
            for (uint32_t c = 0; ratio != 0 && c < q->n; c++)
                m[k][c] -= ratio * m[i][c] / (INT64_C(1) << RATIO_BITS);
        }
    }
    return m[which][which];
}

static void levels_of(const struct bh_culprit_in *in, enum bh_culprit_resource r,
                      struct bh_culprit_levels *ret)
{
    struct squares q;
    int64_t own[COLUMNS] = {0};
    struct column c;
    uint32_t n;
    column_level(in, r, &c);
    (void)mean(in, &c, &n);
    for (uint32_t i = 0; i < BH_CULPRIT_TENANTS; i++) {
        ret->at[r][i] = BH_CULPRIT_UNKNOWN;
        ret->told_apart[r][i] = false;
    }
    if (n < BH_CULPRIT_FEW) {
        ret->missing |= 1u << r;
        return;
    }
    squares_of(in, r, &q);
    solve(&q, own);
    for (uint32_t i = 0; i < in->n_tenants; i++) {
        ret->at[r][i] = (uint32_t)((own[i] + FINE / 2) / FINE);
        ret->told_apart[r][i] = left_of(&q, i, n) >= (int64_t)APART * n;
    }
}

void bh_culprit_levels(const struct bh_culprit_in *in, struct bh_culprit_levels *ret)
{
    ret->missing = 0;
    for (unsigned r = 0; r < BH_CULPRIT_RESOURCES; r++)
        levels_of(in, (enum bh_culprit_resource)r, ret);
}

/* --- one victim --- */

struct scene {
    const struct bh_culprit_in *in;
    const struct bh_culprit_levels *own;
    uint32_t missing; /* of those that slow somebody */
};

/* What a victim gets for the time it has, where the rate of a tenant alone is 1000. */
static void efficiency(const struct scene *sc, uint32_t victim, struct column *ret)
{
    const struct bh_culprit_tenant *t = &sc->in->tenants[victim];
    const uint64_t solo = t->solo_permille ? t->solo_permille : WHOLE;
    for (uint32_t s = 0; s < sc->in->n_samples; s++) {
        const struct bh_culprit_use *u = &sc->in->samples[s].at[victim];
        ret->v[s] = BH_CULPRIT_UNKNOWN;
        if (!is_known(u->rate_permille) || !is_known(u->gpu_permille) || u->gpu_permille < solo / 50)
            continue;
        const uint64_t e = (uint64_t)bounded(u->rate_permille) * solo / bounded(u->gpu_permille);
        ret->v[s] = (uint32_t)(e > WHOLE ? WHOLE : e);
    }
}

struct suspect {
    uint32_t tenant, level;
    int32_t explains; /* permille of the variance of the victim's rate; 0: it cannot be seen */
    bool told;        /* it stands out from the others */
};

/* Is there another whose part comes and goes with this one's? */
static bool has_twin(const struct scene *sc, uint32_t victim, enum bh_culprit_resource r, uint32_t tenant)
{
    struct column one, two;
    bool found = false;
    column_part(sc->in, tenant, r, &one);
    for (uint32_t i = 0; i < sc->in->n_tenants && !found; i++) {
        column_part(sc->in, i, r, &two);
        found = i != tenant && i != victim && together(sc->in, &one, &two) >= ALIKE;
    }
    return found;
}

/*
 * Whoever has most of a resource, judged by what goes together with the victim's losses. Time is counted for each tenant; the
 * rest can be told apart only where a tenant's part in it changed.
 */
static bool suspect_of(const struct scene *sc, uint32_t victim, const struct column *rate,
                       enum bh_culprit_resource r, struct suspect *ret)
{
    struct column part;
    uint32_t n_high = 0;
    *ret = (struct suspect){.tenant = BH_CULPRIT_TENANTS};
    for (uint32_t i = 0; i < sc->in->n_tenants; i++) {
        column_part(sc->in, i, r, &part);
        const uint32_t time = mean(sc->in, &part, NULL);
        const uint32_t level = r == BH_CULPRIT_TIME ? time : sc->own->at[r][i];
        if (i == victim || level < high[r] || (r != BH_CULPRIT_TIME && time < USES_TIME))
            continue;
        const int32_t goes = together(sc->in, rate, &part);
        const int32_t explains = goes < 0 ? -goes : 0;
        n_high++;
        if (ret->tenant == BH_CULPRIT_TENANTS || explains > ret->explains ||
            (explains == ret->explains && level > ret->level))
            *ret = (struct suspect){i, level, explains, r == BH_CULPRIT_TIME || varies(sc->in, &part)};
    }
    if (ret->tenant == BH_CULPRIT_TENANTS)
        return false;
    ret->told = ret->told && (r == BH_CULPRIT_TIME || ((n_high == 1 || ret->explains >= STRONG) &&
                                                       !has_twin(sc, victim, r, ret->tenant)));
    return true;
}

enum bh_culprit_resource bh_culprit_most(const struct bh_culprit_levels *l, uint32_t tenant)
{
    unsigned most = BH_CULPRIT_TIME;
    for (unsigned r = BH_CULPRIT_DRAM; r < BH_CULPRIT_RESOURCES; r++)
        if (!(l->missing >> r & 1) && l->told_apart[r][tenant] && l->at[r][tenant] >= high[r] &&
            (most == BH_CULPRIT_TIME || l->at[r][tenant] > l->at[most][tenant]))
            most = r;
    return (enum bh_culprit_resource)most;
}

static void most_used(const struct scene *sc, struct bh_culprit_finding *f)
{
    f->most = bh_culprit_most(sc->own, f->culprit);
    f->most_permille = f->most == BH_CULPRIT_TIME ? 0 : sc->own->at[f->most][f->culprit];
}

static void accuse(const struct scene *sc, enum bh_culprit_resource r, const struct suspect *who,
                   struct bh_culprit_finding *f)
{
    f->verdict = who->told ? BH_CULPRIT_NAMED : BH_CULPRIT_SEVERAL;
    f->resource = r;
    f->culprit = who->tenant;
    f->level_permille = who->level;
    if (r == BH_CULPRIT_TIME)
        most_used(sc, f);
}

/* The resource, other than time, that explains most. false: none is full. */
static bool fullest(const struct scene *sc, uint32_t victim, const struct column *rate, struct suspect *ret,
                    enum bh_culprit_resource *ret_resource)
{
    bool found = false;
    for (unsigned r = BH_CULPRIT_DRAM; r < BH_CULPRIT_WATTS; r++) {
        struct suspect who;
        if (sc->missing >> r & 1 || !suspect_of(sc, victim, rate, (enum bh_culprit_resource)r, &who))
            continue;
        if (!found || who.explains > ret->explains ||
            (who.explains == ret->explains && who.level > ret->level)) {
            *ret = who;
            *ret_resource = (enum bh_culprit_resource)r;
        }
        found = true;
    }
    return found;
}

static void judge(const struct scene *sc, uint32_t victim, struct bh_culprit_finding *f)
{
    struct column rate, got, part;
    struct suspect time = {0}, other = {0};
    enum bh_culprit_resource r = BH_CULPRIT_TIME;
    uint32_t n_rates, n_parts, n_got;
    for (uint32_t s = 0; s < sc->in->n_samples; s++)
        rate.v[s] = bounded(sc->in->samples[s].at[victim].rate_permille);
    column_part(sc->in, victim, BH_CULPRIT_TIME, &part);
    *f = (struct bh_culprit_finding){
        .victim = victim, .missing = sc->missing, .verdict = BH_CULPRIT_NOT_SLOWED};
    f->rate_permille = mean(sc->in, &rate, &n_rates);
    (void)mean(sc->in, &part, &n_parts);
    if (n_rates < BH_CULPRIT_FEW) {
        f->verdict = BH_CULPRIT_NO_RATE;
        return;
    }
    const uint32_t worth =
        sc->in->tenants[victim].worth_permille; /* all the rest may be of when it was alone */
    if (f->rate_permille >= SLOWED && (!worth || worth >= SLOWED))
        return;
    if (n_parts < BH_CULPRIT_FEW) {
        f->verdict = BH_CULPRIT_NO_TIME;
        return;
    }
    const bool latency = sc->in->tenants[victim].latency;
    const bool has_time = suspect_of(sc, victim, &rate, BH_CULPRIT_TIME, &time);
    efficiency(sc, victim, &got);
    const uint32_t gets = mean(sc->in, &got, &n_got);
    const bool has_other = fullest(sc, victim, latency ? &rate : &got, &other, &r);
    /* one that had no time at all shows no efficiency: it is time that it lacks */
    const bool beyond = latency ? has_other && other.told && other.explains > time.explains + CLEARER
                        : worth ? worth < SLOWED
                                : n_got > 0 && gets < SLOWED;
    if (!beyond && has_time)
        accuse(sc, BH_CULPRIT_TIME, &time, f);
    else if (has_other)
        accuse(sc, r, &other, f);
    else
        f->verdict = sc->missing ? BH_CULPRIT_MISSING : BH_CULPRIT_NONE_FULL;
}

void bh_culprit_find(const struct bh_culprit_in *in, const struct bh_culprit_levels *levels,
                     struct bh_culprit_finding *ret)
{
    const uint32_t used = 1u << BH_CULPRIT_DRAM | 1u << BH_CULPRIT_PCIE | 1u << BH_CULPRIT_POWER;
    const struct scene sc = {.in = in, .own = levels, .missing = levels->missing & used};
    for (uint32_t i = 0; i < in->n_tenants; i++)
        judge(&sc, i, &ret[i]);
}

/* --- in words --- */

void bh_culprit_lease(const struct bh_culprit_tenant *t, struct bh_buf *out)
{
    bh_buf_printf(out, "lease %" PRIu64, t->id);
    if (t->name && *t->name)
        bh_buf_printf(out, " (%s)", t->name);
}

static void percent(uint32_t permille, struct bh_buf *out)
{
    bh_buf_printf(out, "%" PRIu32 " %%", (permille + 5) / 10);
}

static void rate_words(const struct bh_culprit_in *in, const struct bh_culprit_finding *f, struct bh_buf *out)
{
    const struct bh_culprit_tenant *t = &in->tenants[f->victim];
    const bool by_worth =
        t->worth_permille && !(f->verdict == BH_CULPRIT_NAMED && f->resource == BH_CULPRIT_TIME);
    bh_buf_str(out, by_worth ? "; a turn of " : "; ");
    if (t->name && *t->name)
        bh_buf_str(out, t->name);
    else
        bh_buf_printf(out, "lease %" PRIu64, t->id);
    bh_buf_str(out, by_worth ? " does " : " at ");
    percent(by_worth ? t->worth_permille : f->rate_permille, out);
    bh_buf_str(out, by_worth ? " of the work that it does alone, by its own word\n" : " of its own rate\n");
}

static void named_words(const struct bh_culprit_in *in, const struct bh_culprit_finding *f,
                        struct bh_buf *out)
{
    bh_culprit_lease(&in->tenants[f->culprit], out);
    bh_buf_str(out, " slowed ");
    bh_culprit_lease(&in->tenants[f->victim], out);
    bh_buf_str(out, ": ");
    switch (f->resource) {
    case BH_CULPRIT_TIME:
        bh_buf_str(out, "it held the card ");
        percent(f->level_permille, out);
        bh_buf_str(out, " of the time");
        if (f->share_permille) {
            bh_buf_str(out, ", beyond its share of ");
            percent(f->share_permille, out);
        }
        if (f->most != BH_CULPRIT_TIME) {
            bh_buf_printf(out, ", with %s at ", names[f->most].words);
            percent(f->most_permille, out);
        }
        break;
    case BH_CULPRIT_PCIE:
        bh_buf_str(out, "PCIe ");
        percent(f->level_permille, out);
        bh_buf_str(out, " of the link while it ran");
        break;
    case BH_CULPRIT_POWER:
        bh_buf_printf(out, "%s ", names[f->resource].words);
        percent(f->level_permille, out);
        bh_buf_str(out, " of the time it held the card");
        break;
    case BH_CULPRIT_DRAM:
    case BH_CULPRIT_WATTS: /* slows nobody by itself */
    case BH_CULPRIT_RESOURCES:
        bh_buf_printf(out, "%s ", names[BH_CULPRIT_DRAM].words);
        percent(f->level_permille, out);
        bh_buf_str(out, " while it held the card");
        break;
    }
    rate_words(in, f, out);
}

static void missing_words(uint32_t missing, struct bh_buf *out)
{
    const char *between = "";
    for (unsigned r = 0; r < BH_CULPRIT_RESOURCES; r++)
        if (missing >> r & 1) {
            bh_buf_printf(out, "%s%s", between, names[r].counter);
            between = "; ";
        }
}

/* It takes both, to be compared. Copies take no time of the card: beside one that only copies it counts as alone. */
static const char *why_no_rate(const struct bh_culprit_tenant *t)
{
    if (!t->tells)
        return "offers no rate of its own\n";
    return t->was_alone
               ? "tells its own rate, but did not work beside others for long enough (who only copies is "
                 "not counted: that takes no time of the card)\n"
               : "tells its own rate, but was not alone on the card for long enough\n";
}

static void untold_words(const struct bh_culprit_in *in, const struct bh_culprit_finding *f,
                         struct bh_buf *out)
{
    bh_culprit_lease(&in->tenants[f->victim], out);
    switch (f->verdict) {
    case BH_CULPRIT_NO_RATE:
        bh_buf_str(
            out,
            ": whether a turn of it does less work than it would alone (memory bandwidth, caches, PCIe, power) "
            "cannot be told: it ");
        bh_buf_str(out, why_no_rate(&in->tenants[f->victim]));
        return;
    case BH_CULPRIT_NO_TIME:
        bh_buf_printf(out, " is slowed; by whom cannot be told, because %s is missing",
                      names[BH_CULPRIT_TIME].counter);
        break;
    case BH_CULPRIT_MISSING:
        bh_buf_str(out, " is slowed beyond its turns; by what cannot be told, because missing: ");
        missing_words(f->missing, out);
        break;
    case BH_CULPRIT_SEVERAL:
        bh_buf_printf(
            out,
            " is slowed beyond its turns: %s is high, and whose it is cannot be told: nobody's part changed, or "
            "those of several together",
            names[f->resource].words);
        break;
    case BH_CULPRIT_NONE_FULL:
    case BH_CULPRIT_NAMED:
    case BH_CULPRIT_NOT_SLOWED:
        bh_buf_str(out,
                   " is slowed beyond its turns; by what cannot be told: no counter shows a full resource");
        break;
    }
    rate_words(in, f, out);
}

void bh_culprit_report(const struct bh_culprit_in *in, const struct bh_culprit_finding *findings,
                       struct bh_buf *out)
{
    for (uint32_t i = 0; i < in->n_tenants; i++) {
        if (findings[i].verdict == BH_CULPRIT_NAMED)
            named_words(in, &findings[i], out);
        else if (findings[i].verdict != BH_CULPRIT_NOT_SLOWED)
            untold_words(in, &findings[i], out);
    }
}
