/* SPDX-License-Identifier: Apache-2.0 */
/* doctor_gather.c - the facts, from the driver, the kernel and the files. Nothing is judged here. */
#include "base/str.h"
#include "base/sysfile.h"
#include "cli/doctor.h"

static const char elsewhere[] =
    "not asked: BULKHEAD_SYSROOT stands for another machine, and this kernel is not that one's";

typedef BH_VEC(uint32_t) number_vec;

static void add_cap(number_vec *v, struct bh_reading cap)
{
    if (!cap.why && cap.v <= UINT32_MAX)
        *bh_vec_push(v) = (uint32_t)cap.v;
}

/*
 * Simulated is to be said even where the stand-in does not get as far as saying it: it may be what is broken. A
 * failing library that is one says so at the start of its sentence.
 */
static const char *stand_in(const struct bh_err *err)
{
    if (bh_gpu_expects_simulated())
        return "a simulated node";
    return err->code != BH_OK && bh_str_starts(err->msg, BH_GPU_SIMULATED)
               ? "a library that calls itself a stand-in"
               : NULL;
}

void bh_doctor_gather(struct bh_doctor_gathered *g, int32_t day)
{
    BH_VEC(const char *) pci = {0};
    number_vec minors = {0}, caps = {0};
    *g = (struct bh_doctor_gathered){.facts.day = day};
    if (bh_gpu_read(&bh_gpu_nvml, &g->gpus, &g->facts.gpus_err) == BH_OK)
        g->facts.gpus = &g->gpus;
    /* Each maker by itself: what fails with one must not hide behind what is had from the other. */
    if (bh_gpu_read(&bh_gpu_amd, &g->amd, &g->facts.amd_err) == BH_OK)
        g->facts.amd = &g->amd;
    g->facts.stand_in = stand_in(&g->facts.gpus_err);
    for (size_t i = 0; i < g->gpus.devices.n; i++) {
        const struct bh_gpu_device *d = &g->gpus.devices.at[i];
        if (d->pci)
            *bh_vec_push(&pci) = d->pci;
        if (d->minor >= 0)
            *bh_vec_push(&minors) = (uint32_t)d->minor;
        for (size_t k = 0; k < d->instances.n; k++) {
            add_cap(&caps, d->instances.at[k].gi_cap);
            if (d->instances.at[k].ci != BH_NO_ID)
                add_cap(&caps, d->instances.at[k].ci_cap);
        }
    }
    bh_platform_read(&g->platform, pci.at, pci.n);
    bh_node_read(&g->node, &(struct bh_node_ask){.pci = pci.at,
                                                 .n_pci = pci.n,
                                                 .minors = minors.at,
                                                 .n_minors = minors.n,
                                                 .caps = caps.at,
                                                 .n_caps = caps.n});
    /* Under simulated GPUs the kernel is this one, whatever files stand beside it. */
    if (*bh_sysroot() && !g->gpus.simulated && !g->facts.stand_in)
        g->probes.skipped = elsewhere;
    else
        bh_probes_run(&g->probes);
    g->facts.platform = &g->platform;
    g->facts.node = &g->node;
    g->facts.probes = &g->probes;
    bh_vec_fini(&pci);
    bh_vec_fini(&minors);
    bh_vec_fini(&caps);
}

void bh_doctor_gathered_fini(struct bh_doctor_gathered *g)
{
    bh_gpu_snapshot_fini(&g->gpus);
    bh_gpu_snapshot_fini(&g->amd);
    bh_platform_fini(&g->platform);
    bh_node_fini(&g->node);
}
