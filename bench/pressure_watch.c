/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pressure_watch.c - what one GPU is busy with, a line every so many milliseconds.
 *
 *     pressure_watch GPU SECONDS [INTERVAL_MS]
 *
 * Columns: seconds since the start, multiprocessors and memory bandwidth in permille, PCIe in and out in kB a second,
 * power in milliwatts, the driver's reasons for lower clocks. A counter that is missing is a `-`; why is said on stderr.
 */
#include "base/mem.h"
#include "base/units.h"
#include "gpu/pressure.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

static uint64_t now_ms(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static void cell(const struct bh_pressure_sample *s, enum bh_pressure_what what, uint64_t v)
{
    if (s->missing >> what & 1)
        printf(",-");
    else
        printf(",%" PRIu64, v);
}

static void row(const struct bh_pressure_sample *s, uint64_t ms)
{
    printf("%" PRIu64 ".%03" PRIu64, ms / 1000, ms % 1000);
    cell(s, BH_PRESSURE_SM, s->sm_permille);
    cell(s, BH_PRESSURE_DRAM, s->dram_permille);
    cell(s, BH_PRESSURE_PCIE_RX, s->pcie_rx_kbps);
    cell(s, BH_PRESSURE_PCIE_TX, s->pcie_tx_kbps);
    cell(s, BH_PRESSURE_POWER, s->power_mw);
    cell(s, BH_PRESSURE_CLOCKS, s->clock_reasons);
    printf("\n");
    (void)fflush(stdout);
}

int main(int argc, char **argv)
{
    uint64_t gpu, seconds, interval_ms = 200;
    struct bh_pressure *p;
    struct bh_pressure_sample s;
    struct bh_err err = {0};
    if (argc < 3 || argc > 4 || bh_uint_parse(argv[1], 255, &gpu, &err) < 0 ||
        bh_uint_parse(argv[2], 86400, &seconds, &err) < 0 ||
        (argc == 4 && bh_uint_parse(argv[3], 60000, &interval_ms, &err) < 0) || interval_ms == 0) {
        fprintf(stderr, "usage: pressure_watch GPU SECONDS [INTERVAL_MS]\n");
        return 2;
    }
    int rc = bh_pressure_open((uint32_t)gpu, false, &p, &err);
    if (rc < 0) {
        fprintf(stderr, "%s\n", err.msg);
        return bh_code_exit(rc);
    }
    printf("# link_kbps %" PRIu64 "\nseconds,sm,dram,pcie_rx_kbps,pcie_tx_kbps,power_mw,clock_reasons\n",
           bh_pressure_link_kbps(p));
    const uint64_t start = now_ms();
    const struct timespec nap = {.tv_sec = (time_t)(interval_ms / 1000),
                                 .tv_nsec = (long)(interval_ms % 1000) * 1000000};
    bh_pressure_take(p, &s); /* counters are compared with this */
    do {
        (void)nanosleep(&nap, NULL);
        bh_pressure_take(p, &s);
        row(&s, now_ms() - start);
    } while (now_ms() - start < seconds * 1000);
    for (unsigned i = 0; i < BH_PRESSURE_N_; i++) {
        const char *why = bh_pressure_why(p, (enum bh_pressure_what)i);
        if (why)
            fprintf(stderr, "%s: %s\n", bh_pressure_counter((enum bh_pressure_what)i), why);
    }
    bh_pressure_close(p);
    return 0;
}
