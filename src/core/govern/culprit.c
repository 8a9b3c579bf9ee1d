/* SPDX-License-Identifier: Apache-2.0 */
#include "core/govern/culprit.h"

#include "base/mem.h"

#include <inttypes.h>

enum {
    WHOLE = 1000,
    SLOWED = 900, /* a rate below this is one */
    USES_TIME = 50,
    ROUNDS = 48,   /* of the least squares */
    NOISE = 400,   /* a variance: a deviation of 2 % */
    STRONG = 250,  /* permille of the variance that must go together */
    ALIKE = 800,   /* two tenants that are there at the same times */
    CLEARER = 200, /* by so much another resource must explain more than turns, where the rate is a latency */
    POWER_REASONS = 0xec, /* power cap, slowdown, both kinds of heat, power brake */
};
/* From here on a tenant's own level is high enough to be in somebody's way. */
static const uint32_t high[BH_CULPRIT_RESOURCES] = {[BH_CULPRIT_TIME] = USES_TIME,
                                                    [BH_CULPRIT_DRAM] = 400,
                                                    [BH_CULPRIT_PCIE] = 400,
                                                    [BH_CULPRIT_POWER] = 300};

static const struct {
    const char *words, *counter;
} names[BH_CULPRIT_RESOURCES] = {
    [BH_CULPRIT_TIME] = {"time on the card", "GPU time of each tenant"},
    [BH_CULPRIT_DRAM] = {"memory bandwidth", "NVML GPM DRAM_BW_UTIL"},
    [BH_CULPRIT_PCIE] = {"PCIe", "NVML GPM PCIE_TX_PER_SEC and PCIE_RX_PER_SEC"},
    [BH_CULPRIT_POWER] = {"clocks lowered for power or heat", "NVML clocks event reasons"},
};

uint32_t bh_culprit_pcie(uint32_t rx_kbps, uint32_t tx_kbps, uint64_t link_kbps)
{
    if (rx_kbps == BH_CULPRIT_UNKNOWN || tx_kbps == BH_CULPRIT_UNKNOWN || link_kbps == 0)
        return BH_CULPRIT_UNKNOWN;
    const uint64_t most = rx_kbps > tx_kbps ? rx_kbps : tx_kbps;
    return most >= link_kbps ? WHOLE : (uint32_t)(most * WHOLE / link_kbps);
}

uint32_t bh_culprit_power(uint64_t clock_reasons)
{
    return clock_reasons & POWER_REASONS ? WHOLE : 0;
}

/* A tenant's part in an interval. Copies go beside the turns, so that for PCIe being there is all that is known. */
static uint32_t part_of(const struct bh_culprit_use *u, enum bh_culprit_resource r)
{
    return r == BH_CULPRIT_PCIE ? (u->running ? WHOLE : 0) : u->gpu_permille;
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
        ret->v[s] = in->samples[s].level[r];
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

/* Each tenant's own level of a resource, for the time it had; the sum over all explains what the card showed. */
static void own_levels(const struct bh_culprit_in *in, enum bh_culprit_resource r,
                       uint32_t ret[BH_CULPRIT_TENANTS])
{
    struct column c;
    uint64_t parts = 0;
    for (uint32_t i = 0; i < in->n_tenants; i++) {
        column_part(in, i, r, &c);
        parts += mean(in, &c, NULL);
    }
    column_level(in, r, &c);
    /* who cannot be told apart is taken to be alike, whatever the order */
    const uint64_t even = parts ? (uint64_t)mean(in, &c, NULL) * WHOLE / parts : 0;
    for (uint32_t i = 0; i < in->n_tenants; i++)
        ret[i] = (uint32_t)(even > WHOLE ? WHOLE : even);
    for (uint32_t round = 0; round < ROUNDS; round++)
        for (uint32_t i = 0; i < in->n_tenants; i++) {
            int64_t num = 0, den = 0;
            for (uint32_t s = 0; s < in->n_samples; s++) {
                const struct bh_culprit_sample *at = &in->samples[s];
                const uint32_t x = part_of(&at->at[i], r);
                if (!is_known(at->level[r]) || !is_known(x) || x == 0)
                    continue;
                int64_t rest = (int64_t)at->level[r] * WHOLE;
                for (uint32_t k = 0; k < in->n_tenants; k++)
                    if (k != i && is_known(part_of(&at->at[k], r)))
                        rest -= (int64_t)ret[k] * part_of(&at->at[k], r);
                num += rest / WHOLE * x;
                den += (int64_t)x * x;
            }
            const int64_t level = den ? num * WHOLE / den : 0;
            ret[i] = (uint32_t)(level < 0 ? 0 : level > WHOLE ? WHOLE : level);
        }
}

/* --- one victim --- */

struct scene {
    const struct bh_culprit_in *in;
    uint32_t own[BH_CULPRIT_RESOURCES][BH_CULPRIT_TENANTS];
    uint32_t missing;
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
        const uint64_t e = u->rate_permille * solo / u->gpu_permille;
        ret->v[s] = (uint32_t)(e > WHOLE ? WHOLE : e);
    }
}

struct suspect {
    uint32_t tenant, level;
    int32_t explains; /* permille of the variance of the victim's rate; 0: it cannot be seen */
    bool told;        /* it stands out from the others */
};

/* Is there another whose part comes and goes with this one's? */
static bool has_double(const struct scene *sc, uint32_t victim, enum bh_culprit_resource r, uint32_t tenant)
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
        const uint32_t level = r == BH_CULPRIT_TIME ? time : sc->own[r][i];
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
                                                       !has_double(sc, victim, r, ret->tenant)));
    return true;
}

static void most_used(const struct scene *sc, struct bh_culprit_finding *f)
{
    struct column part;
    f->most = BH_CULPRIT_TIME;
    f->most_permille = 0;
    for (unsigned r = BH_CULPRIT_DRAM; r < BH_CULPRIT_RESOURCES; r++) {
        const uint32_t level = sc->own[r][f->culprit];
        column_part(sc->in, f->culprit, (enum bh_culprit_resource)r, &part);
        if (sc->missing >> r & 1 || level < high[r] || level <= f->most_permille || !varies(sc->in, &part))
            continue;
        f->most = (enum bh_culprit_resource)r;
        f->most_permille = level;
    }
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
    for (unsigned r = BH_CULPRIT_DRAM; r < BH_CULPRIT_RESOURCES; r++) {
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
        rate.v[s] = sc->in->samples[s].at[victim].rate_permille;
    column_part(sc->in, victim, BH_CULPRIT_TIME, &part);
    *f = (struct bh_culprit_finding){
        .victim = victim, .missing = sc->missing, .verdict = BH_CULPRIT_NOT_SLOWED};
    f->rate_permille = mean(sc->in, &rate, &n_rates);
    (void)mean(sc->in, &part, &n_parts);
    if (n_rates < BH_CULPRIT_FEW) {
        f->verdict = BH_CULPRIT_NO_RATE;
        return;
    }
    if (f->rate_permille >= SLOWED)
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
                                : n_got > 0 && gets < SLOWED;
    if (!beyond && has_time)
        accuse(sc, BH_CULPRIT_TIME, &time, f);
    else if (has_other)
        accuse(sc, r, &other, f);
    else
        f->verdict = sc->missing ? BH_CULPRIT_MISSING : BH_CULPRIT_NONE_FULL;
}

void bh_culprit_find(const struct bh_culprit_in *in, struct bh_culprit_finding *ret)
{
    struct scene sc = {.in = in};
    struct column level;
    for (unsigned r = BH_CULPRIT_DRAM; r < BH_CULPRIT_RESOURCES; r++) {
        uint32_t n;
        column_level(in, (enum bh_culprit_resource)r, &level);
        (void)mean(in, &level, &n);
        if (n < BH_CULPRIT_FEW)
            sc.missing |= 1u << r;
        else
            own_levels(in, (enum bh_culprit_resource)r, sc.own[r]);
    }
    for (uint32_t i = 0; i < in->n_tenants; i++)
        judge(&sc, i, &ret[i]);
}

/* --- in words --- */

static void lease_words(const struct bh_culprit_tenant *t, struct bh_buf *out)
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
    bh_buf_str(out, "; ");
    if (t->name && *t->name)
        bh_buf_str(out, t->name);
    else
        bh_buf_printf(out, "lease %" PRIu64, t->id);
    bh_buf_str(out, " at ");
    percent(f->rate_permille, out);
    bh_buf_str(out, " of its own rate\n");
}

static void named_words(const struct bh_culprit_in *in, const struct bh_culprit_finding *f,
                        struct bh_buf *out)
{
    lease_words(&in->tenants[f->culprit], out);
    bh_buf_str(out, " slowed ");
    lease_words(&in->tenants[f->victim], out);
    bh_buf_str(out, ": ");
    switch (f->resource) {
    case BH_CULPRIT_TIME:
        bh_buf_str(out, "it held the card ");
        percent(f->level_permille, out);
        bh_buf_str(out, " of the time");
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

static void untold_words(const struct bh_culprit_in *in, const struct bh_culprit_finding *f,
                         struct bh_buf *out)
{
    lease_words(&in->tenants[f->victim], out);
    switch (f->verdict) {
    case BH_CULPRIT_NO_RATE:
        bh_buf_str(out, ": whether it is slowed cannot be told: it offers no rate or latency of its own\n");
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
