/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/pressure.h"

#include "gpu/nvml.h"

#include <time.h>

enum { GPM_MS = 100, GENERATIONS = 6 };

struct bh_pressure {
    struct bh_nvml *n;
    struct bh_arena arena;
    nvml_device_t gpu;
    nvml_gpm_sample_t before, now; /* NULL: there is no GPM */
    bool has_before, slow;
    uint64_t before_ms, link_kbps;
    uint32_t limit_mw;
    int gpm_status;
    int status[BH_PRESSURE_N_];
    struct nvml_gpm_metrics metrics;
};

static const char *const counters[BH_PRESSURE_N_] = {
    [BH_PRESSURE_SM] = "NVML GPM SM_UTIL",
    [BH_PRESSURE_DRAM] = "NVML GPM DRAM_BW_UTIL",
    [BH_PRESSURE_PCIE_RX] = "NVML GPM PCIE_RX_PER_SEC",
    [BH_PRESSURE_PCIE_TX] = "NVML GPM PCIE_TX_PER_SEC",
    [BH_PRESSURE_POWER] = "nvmlDeviceGetPowerUsage",
    [BH_PRESSURE_CLOCKS] = "nvmlDeviceGetCurrentClocksEventReasons",
};

/* Where a GPM metric goes: its unit to ours, and the most that makes sense. */
static const struct {
    uint32_t id;
    enum bh_pressure_what what;
    double times, most;
    size_t offset;
} metrics[] = {
    {NVML_GPM_SM_UTIL, BH_PRESSURE_SM, 10, 1000, offsetof(struct bh_pressure_sample, sm_permille)},
    {NVML_GPM_DRAM_UTIL, BH_PRESSURE_DRAM, 10, 1000, offsetof(struct bh_pressure_sample, dram_permille)},
    {NVML_GPM_PCIE_RX, BH_PRESSURE_PCIE_RX, 1048.576, 4e9, offsetof(struct bh_pressure_sample, pcie_rx_kbps)},
    {NVML_GPM_PCIE_TX, BH_PRESSURE_PCIE_TX, 1048.576, 4e9, offsetof(struct bh_pressure_sample, pcie_tx_kbps)},
};

static uint64_t now_ms(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* What a lane carries, by generation, less what the line code takes. */
static uint64_t link_of(const struct bh_nvml *n, nvml_device_t gpu)
{
    static const uint32_t lane_kbps[GENERATIONS + 1] = {0, 250000, 500000, 984615, 1969231, 3938462, 7562500};
    unsigned generation = 0, width = 0;
    if (BH_NVML_CALL(n, pcie_generation, gpu, &generation) != NVML_OK ||
        BH_NVML_CALL(n, pcie_width, gpu, &width) != NVML_OK || generation > GENERATIONS || width > 32)
        return 0;
    return (uint64_t)lane_kbps[generation] * width;
}

static uint32_t limit_of(const struct bh_nvml *n, nvml_device_t gpu)
{
    unsigned mw = 0;
    return BH_NVML_CALL(n, power_limit, gpu, &mw) == NVML_OK ? mw : 0;
}

static int gpm_open(struct bh_pressure *p)
{
    struct nvml_gpm_support can = {.version = NVML_GPM_VERSION};
    int status = BH_NVML_CALL(p->n, gpm_support, p->gpu, &can);
    if (status == NVML_OK && !can.supported)
        status = NVML_NOT_SUPPORTED;
    if (status == NVML_OK && (!p->n->api.gpm_take || !p->n->api.gpm_metrics || !p->n->api.gpm_free))
        status = NVML_FUNCTION_NOT_FOUND;
    if (status == NVML_OK)
        status = BH_NVML_CALL(p->n, gpm_alloc, &p->before);
    return status == NVML_OK ? BH_NVML_CALL(p->n, gpm_alloc, &p->now) : status;
}

int bh_pressure_open(uint32_t gpu, bool slow, struct bh_pressure **ret, struct bh_err *err)
{
    struct bh_nvml *n;
    int rc = bh_nvml_open(&n, err);
    if (rc < 0)
        return rc;
    struct bh_pressure *p = bh_alloc(1, sizeof(*p));
    p->n = n;
    p->slow = slow;
    int status = BH_NVML_CALL(n, handle, gpu, &p->gpu);
    if (status != NVML_OK) {
        rc = bh_fail(err, status == NVML_INVALID_ARGUMENT ? BH_NOT_FOUND : BH_SYSTEM,
                     "GPU %u cannot be asked: %s", gpu, bh_nvml_why(&p->arena, status));
        rc = n->simulated ? bh_gpu_fail_simulated(rc, err) : rc;
        bh_pressure_close(p);
        return rc;
    }
    p->gpm_status = gpm_open(p);
    p->link_kbps = link_of(n, p->gpu);
    p->limit_mw = limit_of(n, p->gpu);
    *ret = p;
    return BH_OK;
}

void bh_pressure_close(struct bh_pressure *p)
{
    if (!p)
        return;
    if (p->before)
        (void)BH_NVML_CALL(p->n, gpm_free, p->before);
    if (p->now)
        (void)BH_NVML_CALL(p->n, gpm_free, p->now);
    bh_nvml_close(p->n);
    bh_arena_fini(&p->arena);
    free(p);
}

static uint32_t whole(double v, double times, double most)
{
    v = v * times + 0.5;
    return v >= 0 && v <= most + 0.5 ? (uint32_t)v : v > most ? (uint32_t)most : 0; /* no number is 0 */
}

/* The status of all of them; of each where the driver was asked. */
static int gpm_read(struct bh_pressure *p, struct bh_pressure_sample *ret)
{
    const uint64_t at_ms = now_ms();
    if (p->gpm_status != NVML_OK)
        return p->gpm_status;
    if (p->has_before && at_ms - p->before_ms < GPM_MS)
        return NVML_NO_DATA;
    int status = BH_NVML_CALL(p->n, gpm_take, p->gpu, p->now);
    if (status != NVML_OK)
        return status;
    const bool first = !p->has_before;
    p->metrics = (struct nvml_gpm_metrics){
        .version = NVML_GPM_VERSION, .count = BH_COUNT_OF(metrics), .from = p->before, .to = p->now};
    for (size_t i = 0; i < BH_COUNT_OF(metrics); i++)
        p->metrics.at[i].id = metrics[i].id;
    status = first ? (int)NVML_NO_DATA : BH_NVML_CALL(p->n, gpm_metrics, &p->metrics);
    for (size_t i = 0; status == NVML_OK && i < BH_COUNT_OF(metrics); i++) {
        const uint32_t v = whole(p->metrics.at[i].value, metrics[i].times, metrics[i].most);
        p->status[metrics[i].what] = p->metrics.at[i].status;
        if (p->metrics.at[i].status == NVML_OK)
            memcpy((char *)ret + metrics[i].offset, &v, sizeof(v));
    }
    nvml_gpm_sample_t last = p->before;
    p->before = p->now;
    p->now = last;
    p->before_ms = at_ms;
    p->has_before = true;
    return status;
}

static void pcie_read(struct bh_pressure *p, enum bh_pressure_what what, unsigned counter, uint32_t *ret)
{
    unsigned v = 0;
    if (p->status[what] == NVML_OK || !p->slow)
        return;
    const int status = BH_NVML_CALL(p->n, pcie_throughput, p->gpu, counter, &v);
    if (status == NVML_OK)
        *ret = v;
    p->status[what] = status;
}

/* nvmlDeviceGetPowerUsage is a mean of the last second: too long to tell whose it was. The meter of the joules would be of the time
 * between two looks, but keeps the driver for 3 to 16 ms, and whoever is to be paused meanwhile waits. */
static int power_now(const struct bh_pressure *p, uint32_t *ret)
{
    struct nvml_field now = {.id = NVML_FIELD_POWER_NOW};
    unsigned mean_mw = 0;
    if (BH_NVML_CALL(p->n, fields, p->gpu, 1, &now) == NVML_OK && now.status == NVML_OK &&
        now.type == NVML_VALUE_UINT) {
        *ret = now.value.u32;
        return NVML_OK;
    }
    const int status = BH_NVML_CALL(p->n, power, p->gpu, &mean_mw);
    *ret = status == NVML_OK ? mean_mw : 0;
    return status;
}

void bh_pressure_take(struct bh_pressure *p, struct bh_pressure_sample *ret)
{
    unsigned long long bits = 0;
    *ret = (struct bh_pressure_sample){0};
    const int gpm = gpm_read(p, ret);
    for (size_t i = 0; gpm != NVML_OK && i < BH_COUNT_OF(metrics); i++)
        p->status[metrics[i].what] = gpm;
    pcie_read(p, BH_PRESSURE_PCIE_RX, NVML_PCIE_RX, &ret->pcie_rx_kbps);
    pcie_read(p, BH_PRESSURE_PCIE_TX, NVML_PCIE_TX, &ret->pcie_tx_kbps);
    p->status[BH_PRESSURE_POWER] = power_now(p, &ret->power_mw);
    p->status[BH_PRESSURE_CLOCKS] = BH_NVML_CALL(p->n, throttle, p->gpu, &bits);
    ret->clock_reasons = p->status[BH_PRESSURE_CLOCKS] == NVML_OK ? bits : 0;
    for (unsigned i = 0; i < BH_PRESSURE_N_; i++)
        ret->missing |= (uint32_t)(p->status[i] != NVML_OK) << i;
}

uint64_t bh_pressure_link_kbps(const struct bh_pressure *p)
{
    return p->link_kbps;
}

uint32_t bh_pressure_limit_mw(const struct bh_pressure *p)
{
    return p->limit_mw;
}

const char *bh_pressure_counter(enum bh_pressure_what what)
{
    return counters[what];
}

const char *bh_pressure_why(struct bh_pressure *p, enum bh_pressure_what what)
{
    return p->status[what] == NVML_OK ? NULL : bh_nvml_why(&p->arena, p->status[what]);
}
