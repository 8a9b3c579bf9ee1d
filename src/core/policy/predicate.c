/* SPDX-License-Identifier: Apache-2.0 */
#include "core/policy/predicate.h"

#include "base/str.h"
#include "core/model/advisory.h"

bool bh_mech_keeps_hard_slo(enum bh_mechanism m)
{
    return m == BH_MECH_WHOLE || m == BH_MECH_MIG || m == BH_MECH_MIG_VGPU;
}

bool bh_mech_is_soft(enum bh_mechanism m)
{
    return !bh_mech_keeps_hard_slo(m);
}

bool bh_mech_fits_vm(enum bh_mechanism m)
{
    return m == BH_MECH_WHOLE || m == BH_MECH_VGPU || m == BH_MECH_MIG_VGPU;
}

bool bh_mech_fits_regulated(enum bh_mechanism m)
{
    return m == BH_MECH_WHOLE || m == BH_MECH_MIG_VGPU;
}

bool bh_mech_cuts_mig(enum bh_mechanism m)
{
    return m == BH_MECH_MIG || m == BH_MECH_MIG_VGPU;
}

bool bh_tier_shares_kernel(enum bh_tier t)
{
    return t == BH_TIER_PROCESS || t == BH_TIER_CONTAINER;
}

/*
 * What stays shared, said in two halves: what the silicon leaves open under a mechanism, and what
 * the tier leaves open around it. The halves are macros because each pair must be one array.
 */
#define ON_ONE_GPU "PCIe link and copy engines of the GPU", "clocks, power budget and thermals of the GPU"
#define CACHES     "L2 cache, last-level TLB and memory bandwidth"

#define SHARED_WHOLE                                           \
    "PCIe switch, host memory bandwidth and NICs of the node", \
        "NVLink fabric, unless it is partitioned along tenants", "power and cooling of the chassis"
#define SHARED_MIG                                                              \
    ON_ONE_GPU, "last-level TLB: a published timing channel between instances", \
        "memory barriers: a neighbour's can stall this instance",               \
        "GPU firmware, and its reset: it takes every instance",                 \
        "memory, L2 and bandwidth inside one GPU instance, should it be cut into compute instances"
#define SHARED_MPS                                                                          \
    "fate: a fatal fault or a stalled client reaches every client of the GPU's MPS server", \
        "SMs: thread percentages are ceilings, not reservations", CACHES, ON_ONE_GPU,       \
        "GPU firmware and its reset"
#define SHARED_TIMESLICE                                                            \
    "memory capacity: any client can take all of it where no cap is enforced",      \
        "SMs, in turns: every further client slows the others", CACHES, ON_ONE_GPU, \
        "faults: an error that resets the GPU ends every client", "sight of the GPU's load and memory use"
#define SHARED_GATE                                                                          \
    "SMs, in turns: a share is a target and gives way under contention", CACHES, ON_ONE_GPU, \
        "faults: an error that resets the GPU ends every client",                            \
        "freed memory: cleared by the driver, not by hardware walls",                        \
        "sight of the GPU's load and memory use"
#define SHARED_VGPU                                                                                         \
    "SMs, in turns: only the framebuffer is partitioned", CACHES, ON_ONE_GPU, "GPU firmware and its reset", \
        "vGPU manager and the host's GPU driver"
#define SHARED_MIG_VGPU SHARED_MIG, "vGPU manager and the host's GPU driver"
#define SHARED_UNKNOWN  "everything on the GPU: no backing primitive is named"

#define AROUND_PROCESS                                                                   \
    "files, processes and network of the host, as far as user ids allow", "host kernel", \
        "GPU driver of the host"
#define AROUND_CONTAINER "host kernel", "GPU driver and container toolkit of the host"
#define AROUND_SANDBOX   "host kernel behind the sandbox: the GPU driver's calls still reach it"
#define AROUND_VM        "hypervisor and its device emulation", "CPU caches and memory channels of the host"
#define AROUND_CVM                                                             \
    "side channels of CPU and GPU: timing, power and traffic stay observable", \
        "availability: the host can stop or starve the tenant"

#define BEHIND_EACH_TIER(...)                                                             \
    {                                                                                     \
        [BH_TIER_PROCESS] = (const char *const[]){__VA_ARGS__, AROUND_PROCESS, NULL},     \
        [BH_TIER_CONTAINER] = (const char *const[]){__VA_ARGS__, AROUND_CONTAINER, NULL}, \
        [BH_TIER_SANDBOX] = (const char *const[]){__VA_ARGS__, AROUND_SANDBOX, NULL},     \
        [BH_TIER_VM] = (const char *const[]){__VA_ARGS__, AROUND_VM, NULL},               \
        [BH_TIER_CVM] = (const char *const[]){__VA_ARGS__, AROUND_CVM, NULL},             \
    }

static const char *const *const stays_shared[BH_N_mechanism][BH_N_tier] = {
    [BH_MECH_UNSET] = BEHIND_EACH_TIER(SHARED_UNKNOWN),
    [BH_MECH_WHOLE] = BEHIND_EACH_TIER(SHARED_WHOLE),
    [BH_MECH_MIG] = BEHIND_EACH_TIER(SHARED_MIG),
    [BH_MECH_MPS] = BEHIND_EACH_TIER(SHARED_MPS),
    [BH_MECH_TIMESLICE] = BEHIND_EACH_TIER(SHARED_TIMESLICE),
    [BH_MECH_VGPU] = BEHIND_EACH_TIER(SHARED_VGPU),
    [BH_MECH_MIG_VGPU] = BEHIND_EACH_TIER(SHARED_MIG_VGPU),
    [BH_MECH_FRACTIONAL] = BEHIND_EACH_TIER(SHARED_UNKNOWN),
    [BH_MECH_GATE] = BEHIND_EACH_TIER(SHARED_GATE),
};

const char *const *bh_mech_stays_shared(enum bh_mechanism m, enum bh_tier t)
{
    return stays_shared[m][t];
}

const char *bh_mech_bounded_by(enum bh_mechanism m)
{
    static const char *const by[BH_N_mechanism] = {
        [BH_MECH_UNSET] = "nothing: no backing primitive is named",
        [BH_MECH_WHOLE] =
            "sole ownership: nobody else is on the GPU; fabric and storage limits bound the rest",
        [BH_MECH_MIG] = "hardware partition: own SMs, L2 and memory slices",
        [BH_MECH_MPS] = "scheduler limits: thread percentage and memory limit of each MPS client",
        [BH_MECH_TIMESLICE] = "scheduler limits: the driver's equal turns among the declared replicas",
        [BH_MECH_VGPU] = "scheduler limits: the vGPU manager's turns, over a fixed framebuffer",
        [BH_MECH_MIG_VGPU] = "hardware partition: own SMs, L2 and memory slices, handed to a VM",
        [BH_MECH_FRACTIONAL] = "nothing: no backing primitive is named",
        [BH_MECH_GATE] =
            "scheduler limits: a memory cap at the kernel boundary and time slices set from outside",
    };
    return by[m];
}

static bool set_has(uint32_t set, unsigned value)
{
    return set == 0 || (set >> value & 1);
}

bool bh_class_accepts(const struct bh_class *c, enum bh_mechanism m, enum bh_quota_model q, enum bh_tier t)
{
    /* The gate exists only as the backing of a fraction, so a class that takes fractions takes it. */
    bool mechanism =
        set_has(c->mechanisms, m) || (m == BH_MECH_GATE && set_has(c->mechanisms, BH_MECH_FRACTIONAL));
    /* One past the last model: the tenant names none and takes what the class has. */
    bool quota = q == BH_N_quota_model || set_has(c->quotas, q);
    return mechanism && quota && set_has(c->tiers, t);
}

bool bh_tenants_agree_on_driver(const struct bh_tenant *a, const struct bh_tenant *b)
{
    for (size_t i = 0; i < a->drivers.n; i++) {
        for (size_t k = 0; k < b->drivers.n; k++) {
            const char *x = a->drivers.at[i].s, *y = b->drivers.at[k].s;
            if (bh_str_eq(x, y) || bh_version_accepts(x, y) || bh_version_accepts(y, x))
                return true;
        }
    }
    return !a->drivers.n || !b->drivers.n;
}
