/* SPDX-License-Identifier: Apache-2.0 */
/* counters_fixture.h - a card's counters in the governor's tests: they show what they are told to. */
#ifndef BH_GOVERNOR_COUNTERS_FIXTURE_H
#define BH_GOVERNOR_COUNTERS_FIXTURE_H

#include "governor/gauge.h"

struct counters {
    uint32_t dram, rx, tx, missing, mw;
    uint64_t clocks, link_kbps;
    bool refuses; /* to be opened */
    uint32_t opened, looks, closed;
};

static int counters_open(void *arg, uint32_t gpu, void **ret, struct bh_err *err)
{
    struct counters *c = arg;
    (void)gpu;
    c->opened++;
    *ret = c;
    return c->refuses ? bh_fail(err, BH_NOT_FOUND, "no library here") : BH_OK;
}

static void counters_look(void *card, struct bh_noise_look *ret)
{
    struct counters *c = card;
    c->looks++;
    *ret = (struct bh_noise_look){.sample = {.dram_permille = c->dram,
                                             .pcie_rx_kbps = c->rx,
                                             .pcie_tx_kbps = c->tx,
                                             .power_mw = c->mw,
                                             .clock_reasons = c->clocks,
                                             .missing = c->missing},
                                  .link_kbps = c->link_kbps,
                                  .limit_mw = 700000};
}

static void counters_close(void *card)
{
    struct counters *c = card;
    c->closed++;
}

/* Without a thread: everything happens when it is posted. */
static inline struct bh_gauge_source counters_source(struct counters *c)
{
    return (struct bh_gauge_source){
        .open = counters_open, .look = counters_look, .close = counters_close, .arg = c, .at_once = true};
}

#endif
