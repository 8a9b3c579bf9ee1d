/* SPDX-License-Identifier: Apache-2.0 */
/*
 * culprit.h - who slowed whom on a shared card, and by which resource.
 *
 * Counters of bandwidth, PCIe and clocks are the card's, not a tenant's. Under time slicing one tenant is on the
 * card at a time, so a tenant's own level is found from how the card's level goes with the time it had (least
 * squares, none below zero). That needs samples in which its time changed, best some without it. A tenant is slowed
 * when its rate is below the one it has alone. If it gets its rate for the time it has, then it lacks time, and
 * whoever has the time is named; else something beside its turns is full. What cannot be told is said, with the
 * counter that is missing, or that those who might be it cannot be told apart.
 *
 * A rate may come from a tenant's own latency (solo latency over latency). Waiting for a turn and working slower look
 * the same there, so that time is the answer unless another resource explains clearly more.
 *
 * What a tenant says itself of its work is told as such. It is compared with what the same tenant said when it was alone, so
 * that one that lies can make itself a victim, and nobody a culprit who has nothing high.
 *
 * What each uses while it holds the card is told without any rate (bh_culprit_levels).
 */
#ifndef BH_CORE_GOVERN_CULPRIT_H
#define BH_CORE_GOVERN_CULPRIT_H

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    BH_CULPRIT_TENANTS = 32,
    BH_CULPRIT_SAMPLES = 128,
    BH_CULPRIT_FEW = 8, /* fewer samples of a tenant tell nothing */
};
#define BH_CULPRIT_UNKNOWN UINT32_MAX

enum bh_culprit_resource {
    BH_CULPRIT_TIME, /* the card's multiprocessors, by turns */
    BH_CULPRIT_DRAM,
    BH_CULPRIT_PCIE,
    BH_CULPRIT_POWER, /* clocks lowered for power or heat */
    BH_CULPRIT_WATTS, /* what it draws, of the card's limit: slows nobody as long as clocks are not lowered */
    BH_CULPRIT_RESOURCES
};

struct bh_culprit_tenant {
    uint64_t id;
    const char *name;       /* "": none */
    uint32_t solo_permille; /* of the time it uses the card alone; 0: not known, it is taken to fill it */
    bool latency;           /* its rate is made from its latency */
    bool tells;             /* it says itself what it does (own.h) */
    bool was_alone;         /* and said enough of it while alone; else that is what is missing */
    uint32_t
        worth_permille; /* by its own word: what a second on the card does beside others, of what it does alone (worth.h);
                                0: not known */
};
struct bh_culprit_use {
    uint32_t gpu_permille;   /* of the interval on the card, or BH_CULPRIT_UNKNOWN */
    uint32_t rate_permille;  /* of its own rate alone, or BH_CULPRIT_UNKNOWN */
    uint32_t there_permille; /* of the interval in which it was there and not paused, or BH_CULPRIT_UNKNOWN */
};
struct bh_culprit_sample {
    uint32_t level
        [BH_CULPRIT_RESOURCES]; /* permille of what the card has, or BH_CULPRIT_UNKNOWN; TIME: multiprocessors busy */
    struct bh_culprit_use at[BH_CULPRIT_TENANTS]; /* in the order of the tenants */
};
struct bh_culprit_in {
    uint32_t n_tenants, n_samples;
    struct bh_culprit_tenant tenants[BH_CULPRIT_TENANTS];
    const struct bh_culprit_sample *samples;
};

/*
 * What each uses: for the time it held the card, and of PCIe, where copies go beside the turns, for the time it was there.
 * Permille of what the card has; TIME: multiprocessors with work. BH_CULPRIT_UNKNOWN where there is no counter. Where parts of the
 * card never changed so that it could be told apart from the others', it is what it would be if they were alike.
 */
struct bh_culprit_levels {
    uint32_t at[BH_CULPRIT_RESOURCES][BH_CULPRIT_TENANTS];
    bool told_apart[BH_CULPRIT_RESOURCES][BH_CULPRIT_TENANTS];
    uint32_t missing; /* bit r: resource r has no counter */
};
void bh_culprit_levels(const struct bh_culprit_in *in, struct bh_culprit_levels *ret);
/* Which of them it uses most, of those that are high and told apart; TIME: none. */
enum bh_culprit_resource bh_culprit_most(const struct bh_culprit_levels *l, uint32_t tenant);
/* `memory bandwidth` */
const char *bh_culprit_words(enum bh_culprit_resource r);
/* `lease 7 (train)` */
void bh_culprit_lease(const struct bh_culprit_tenant *t, struct bh_buf *out);

/* The busier direction over what the link carries; UNKNOWN where one of the three is, or the link is 0. */
uint32_t bh_culprit_pcie(uint32_t rx_kbps, uint32_t tx_kbps, uint64_t link_kbps);
/* What it draws of what it may; UNKNOWN where one is, or the limit is 0. */
uint32_t bh_culprit_watts(uint32_t mw, uint32_t limit_mw);
/* 1000 where the driver's reasons for lower clocks are power, heat or a brake; 0: none, or the card merely idles. */
uint32_t bh_culprit_power(uint64_t clock_reasons);

enum bh_culprit_verdict {
    BH_CULPRIT_NAMED,
    BH_CULPRIT_NOT_SLOWED,
    BH_CULPRIT_NO_RATE, /* the tenant offers none, or too few, or was never alone: what its time is worth is not known */
    BH_CULPRIT_NO_TIME,   /* nobody knows when it was on the card */
    BH_CULPRIT_MISSING,   /* beyond its turns, and counters are missing */
    BH_CULPRIT_NONE_FULL, /* beyond its turns, and no counter is high */
    BH_CULPRIT_SEVERAL,   /* a resource is high, and whose it is cannot be told */
};
struct bh_culprit_finding {
    uint32_t victim, culprit; /* places among the tenants; culprit: of a named one */
    enum bh_culprit_verdict verdict;
    enum bh_culprit_resource resource; /* of NAMED and SEVERAL */
    uint32_t level_permille;           /* the culprit's own; for TIME its part of the card's time */
    enum bh_culprit_resource most; /* of TIME: what it used most while it held the card; TIME: nothing much */
    uint32_t most_permille;
    uint32_t rate_permille; /* of the victim, on average */
    uint32_t missing;       /* bit r: resource r has no counter */
    uint32_t
        share_permille; /* of TIME: what is the culprit's own, where the caller says that it has more; else 0 */
};

/* One for each tenant, in their order; ret has room for all. levels: of the same input. */
void bh_culprit_find(const struct bh_culprit_in *in, const struct bh_culprit_levels *levels,
                     struct bh_culprit_finding *ret);
/* One line for each that is slowed or cannot be judged:
 * `lease 7 (train) slowed lease 9 (serve): memory bandwidth 87 % while it held the card; serve at 61 % of its own rate`. */
void bh_culprit_report(const struct bh_culprit_in *in, const struct bh_culprit_finding *findings,
                       struct bh_buf *out);

#endif
