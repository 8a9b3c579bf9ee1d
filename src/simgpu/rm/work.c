/* SPDX-License-Identifier: Apache-2.0 */
/* work.c - doorbells, fences and the passing of time on every engine. */
#include "simgpu/rm/state.h"

#include <errno.h>

#define SAMPLE_NS UINT64_C(100000000)

static struct sim_object *channel_of(struct bh_sim_rm *rm, uint32_t file, uint32_t client, uint32_t channel,
                                     int *ret_rc)
{
    struct sim_file *f = bh_simrm_file(rm, file);
    struct sim_client *c = f ? bh_simrm_client(rm, f, client) : NULL;
    struct sim_object *o = c ? bh_simrm_object(rm, c, channel) : NULL;
    *ret_rc = 0;
    if (!f)
        *ret_rc = -EBADF;
    else if (!o || o->class->kind != SIM_CHANNEL)
        *ret_rc = -EINVAL;
    else if (bh_simrm_channel_dead(rm, o))
        *ret_rc = -EIO;
    return *ret_rc ? NULL : o;
}

int bh_sim_rm_submit(struct bh_sim_rm *rm, uint32_t file, uint32_t client, uint32_t channel, uint64_t work_ns,
                     uint64_t *ret_fence)
{
    int rc;
    struct sim_object *o = channel_of(rm, file, client, channel, &rc);
    if (!o)
        return rc;
    if (work_ns > SIM_WORK_MAX)
        return -EINVAL;
    if (o->last_fence - bh_sim_fence_done(o->place->sched, o->channel) >= SIM_QUEUE_MAX)
        return -EAGAIN; /* as full as a ring of this many entries */
    *ret_fence = o->last_fence = bh_sim_submit(o->place->sched, o->channel, work_ns);
    return 0;
}

int bh_sim_rm_fence(struct bh_sim_rm *rm, uint32_t file, uint32_t client, uint32_t channel,
                    uint64_t *ret_done)
{
    int rc;
    struct sim_object *o = channel_of(rm, file, client, channel, &rc);
    if (o)
        *ret_done = bh_sim_fence_done(o->place->sched, o->channel);
    return rc;
}

static void engines_to(struct bh_sim_rm *rm, uint64_t ns)
{
    for (uint32_t g = 0; g < rm->node.n_gpus; g++)
        for (size_t i = 0; i <= BH_SIM_GIS_MAX; i++) {
            struct sim_place *p = i ? &rm->gpus[g].gis[i - 1] : &rm->gpus[g].whole;
            if (p->made)
                bh_sim_sched_advance(p->sched, ns);
        }
    rm->now_ns = ns;
}

/*
 * Utilisation is over the last second, so the busy time is noted every 100 ms of simulated time; after a long step only
 * the notes that still matter are taken.
 */
void bh_sim_rm_advance(struct bh_sim_rm *rm, uint64_t now_ns)
{
    uint64_t next = rm->now_ns / SAMPLE_NS + 1, last = now_ns / SAMPLE_NS;
    if (now_ns <= rm->now_ns)
        return;
    if (last > SIM_SAMPLES - 2 && next < last - (SIM_SAMPLES - 2))
        next = last - (SIM_SAMPLES - 2);
    for (; next <= last; next++) {
        engines_to(rm, next * SAMPLE_NS);
        for (uint32_t g = 0; g < rm->node.n_gpus; g++) {
            struct sim_gpu *s = &rm->gpus[g];
            s->samples[s->n_samples++ % SIM_SAMPLES] =
                (struct sim_sample){next * SAMPLE_NS, bh_sim_sched_busy_ns(s->whole.sched)};
        }
    }
    engines_to(rm, now_ns);
}

uint64_t bh_sim_rm_next(const struct bh_sim_rm *rm)
{
    uint64_t first = UINT64_MAX;
    for (uint32_t g = 0; g < rm->node.n_gpus; g++)
        for (size_t i = 0; i <= BH_SIM_GIS_MAX; i++) {
            const struct sim_place *p = i ? &rm->gpus[g].gis[i - 1] : &rm->gpus[g].whole;
            uint64_t at = p->made && p->n_channels ? bh_sim_sched_next(p->sched) : UINT64_MAX;
            first = at < first ? at : first;
        }
    return first;
}
