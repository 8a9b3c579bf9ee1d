/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pressure.h - what one GPU is busy with as a whole: multiprocessors, memory bandwidth, PCIe, power, clocks.
 *
 * Not by tenant: no driver tells that. The library is held open in this process, so a driver that hangs hangs it too.
 * From Hopper on the counters are the driver's GPM samples, compared over the time since the last look; the driver
 * needs 100 ms for them, and a look that comes sooner has none.
 */
#ifndef BH_GPU_PRESSURE_H
#define BH_GPU_PRESSURE_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

enum bh_pressure_what {
    BH_PRESSURE_SM,
    BH_PRESSURE_DRAM,
    BH_PRESSURE_PCIE_RX,
    BH_PRESSURE_PCIE_TX,
    BH_PRESSURE_POWER,
    BH_PRESSURE_CLOCKS,
    BH_PRESSURE_N_
};

struct bh_pressure_sample {
    uint32_t sm_permille;                /* multiprocessors with work */
    uint32_t dram_permille;              /* of the bandwidth the memory has */
    uint32_t pcie_rx_kbps, pcie_tx_kbps; /* kB a second, to the GPU and from it */
    uint32_t power_mw;                   /* of the moment; else of the last second, by the driver */
    uint64_t clock_reasons;              /* the driver's bits; bh_throttle_words says them */
    uint32_t missing;                    /* bit enum bh_pressure_what: could not be had, and is 0 above */
};

struct bh_pressure;
/* slow: where GPM has no word of PCIe, the older call is used, which keeps the caller for 40 ms. */
int bh_pressure_open(uint32_t gpu, bool slow, struct bh_pressure **ret, struct bh_err *err) BH_MUST_USE;
void bh_pressure_close(struct bh_pressure *p);
void bh_pressure_take(struct bh_pressure *p, struct bh_pressure_sample *ret);
/* What the link carries in one direction, kB a second; 0: not known. */
uint64_t bh_pressure_link_kbps(const struct bh_pressure *p);
/* What the card may draw, in milliwatts; 0: not known. */
uint32_t bh_pressure_limit_mw(const struct bh_pressure *p);
/* The counter's name, and why it was missing in the last sample; NULL: it was not. */
const char *bh_pressure_counter(enum bh_pressure_what what);
const char *bh_pressure_why(struct bh_pressure *p, enum bh_pressure_what what);

#endif
