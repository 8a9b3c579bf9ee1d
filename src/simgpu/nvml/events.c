/* SPDX-License-Identifier: Apache-2.0 */
/*
 * events.c - faults as they happen: sets of GPUs and kinds that somebody waits for.
 *
 * The node keeps its last faults in order; a set remembers up to which it has looked. What happened before a GPU was
 * registered is not told, and while nothing happens the lock is free for others.
 */
#include "simgpu/drv.h"
#include "simgpu/nvml/api.h"

#include <errno.h>
#include <time.h>

enum { SUPPORTED = NVML_EVENT_ECC_DOUBLE | NVML_EVENT_XID, BATCH = 32, STEP_MS = 10 };

struct nvml_event_set {
    uint64_t after;             /* the last event that was looked at */
    uint64_t kinds[BH_NV_GPUS]; /* of each GPU; 0: not registered */
    struct nvml_event_set *next;
};
static struct nvml_event_set *sets;

static struct nvml_event_set **find(nvml_event_set_t set)
{
    for (struct nvml_event_set **at = &sets; *at; at = &(*at)->next)
        if (*at == set)
            return at;
    return NULL;
}

API(nvmlEventSetCreate, nvml_event_set_t *ret)
{
    BH_NV_CALL c = bh_nv_enter(__func__, ret != NULL);
    if (c.status != NVML_OK)
        return c.status;
    struct nvml_event_set *set = bh_alloc(1, sizeof(*set));
    set->next = sets;
    *ret = sets = set;
    return NVML_OK;
}

API(nvmlEventSetFree, nvml_event_set_t set)
{
    BH_NV_CALL c = bh_nv_enter(__func__, set != NULL);
    struct nvml_event_set **at = find(set);
    if (c.status != NVML_OK)
        return c.status;
    if (!at)
        return NVML_INVALID_ARGUMENT;
    *at = set->next;
    free(set);
    return NVML_OK;
}

API(nvmlDeviceGetSupportedEventTypes, nvml_device_t device, unsigned long long *types)
{
    BH_NV_CALL c = bh_nv_enter_device(__func__, device, BH_NV_WHOLE, types != NULL);
    if (c.status == NVML_OK)
        *types = SUPPORTED;
    return c.status;
}

/* Passes over what has happened so far. */
static int skip(uint64_t *after)
{
    struct bh_sim_event batch[BATCH];
    ssize_t n;
    while ((n = bh_sim_events(*after, batch, BATCH)) > 0)
        *after = batch[n - 1].seq;
    return n < 0 ? bh_nv_status_of_errno(errno) : (int)NVML_OK;
}

API(nvmlDeviceRegisterEvents, nvml_device_t device, unsigned long long types, nvml_event_set_t set)
{
    BH_NV_CALL c = bh_nv_enter_device(__func__, device, BH_NV_WHOLE, set != NULL);
    if (c.status != NVML_OK)
        return c.status;
    if (!find(set))
        return NVML_INVALID_ARGUMENT;
    if (types & ~(unsigned long long)SUPPORTED)
        return NVML_NOT_SUPPORTED;
    bool is_first = true;
    for (size_t i = 0; i < BH_NV_GPUS; i++)
        is_first = is_first && !set->kinds[i];
    if (is_first)
        c.status = skip(&set->after);
    if (c.status == NVML_OK)
        set->kinds[c.gpu->index] |= types;
    return c.status;
}

/* The next event that this set asked for: NVML_OK; none yet: NVML_TIMEOUT. */
static int next(struct nvml_event_set *set, struct nvml_event_data *ret)
{
    struct bh_sim_event batch[BATCH];
    ssize_t n;
    while ((n = bh_sim_events(set->after, batch, BATCH)) > 0)
        for (ssize_t i = 0; i < n; i++) {
            const struct bh_sim_event *e = &batch[i];
            uint64_t kind = e->kind == BH_SIM_EVENT_XID ? NVML_EVENT_XID : NVML_EVENT_ECC_DOUBLE;
            set->after = e->seq;
            if (e->gpu >= BH_NV_GPUS || !(set->kinds[e->gpu] & kind))
                continue;
            *ret = (struct nvml_event_data){.device = bh_nv_device(e->gpu),
                                            .type = kind,
                                            .data = kind == NVML_EVENT_XID ? e->data : 0,
                                            .gi = e->gi,
                                            .ci = e->ci};
            return NVML_OK;
        }
    return n < 0 ? bh_nv_status_of_errno(errno) : (int)NVML_TIMEOUT;
}

/* One look. A GPU that is lost, with nothing left to say of it, ends the wait. */
static int poll_once(const char *function, nvml_event_set_t set, struct nvml_event_data *ret)
{
    BH_NV_CALL c = bh_nv_enter(function, set && ret);
    if (c.status != NVML_OK)
        return c.status;
    if (!find(set))
        return NVML_INVALID_ARGUMENT;
    int status = next(set, ret);
    const struct bh_sim_gpu_view *gpu;
    for (uint32_t i = 0; status == NVML_TIMEOUT && i < BH_NV_GPUS; i++)
        if (set->kinds[i] && bh_nv_peer_at(i, &gpu) == NVML_GPU_IS_LOST)
            status = NVML_GPU_IS_LOST;
    return status;
}

static uint64_t now_ms(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static int wait_for(const char *function, nvml_event_set_t set, struct nvml_event_data *ret,
                    unsigned timeout_ms)
{
    uint64_t end = now_ms() + timeout_ms;
    for (;;) {
        int status = poll_once(function, set, ret);
        uint64_t now = now_ms(), left = end > now ? end - now : 0;
        if (status != NVML_TIMEOUT || left == 0)
            return status;
        long step = left < STEP_MS ? (long)left : STEP_MS;
        const struct timespec pause = {0, step * 1000000};
        (void)nanosleep(&pause, NULL);
    }
}

API(nvmlEventSetWait_v2, nvml_event_set_t set, struct nvml_event_data *data, unsigned timeout_ms)
{
    return wait_for(__func__, set, data, timeout_ms);
}

/* The old form does not tell of instances: the caller's struct is as large, and those words say none. */
API(nvmlEventSetWait, nvml_event_set_t set, struct nvml_event_data *data, unsigned timeout_ms)
{
    int status = wait_for(__func__, set, data, timeout_ms);
    if (status == NVML_OK)
        data->gi = data->ci = BH_NV_NO_ID;
    return status;
}
