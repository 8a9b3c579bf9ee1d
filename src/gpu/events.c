/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/events.h"

#include "gpu/nvml.h"
#include "gpu/text.h"

#include <inttypes.h>
#include <stdio.h>

enum { GPUS_MAX = 256, TEXT = 256, ASKED = 96 };

struct watched {
    nvml_device_t handle;
    uint32_t index;
    char uuid[96];
};

struct bh_gpu_events {
    struct bh_nvml *n;
    nvml_event_set_t set;
    struct bh_arena arena;
    BH_VEC(struct watched) gpus;
    BH_VEC(const char *) gaps;
};

/* The driver's bits, what they are, and what an operator is told. */
static const struct {
    uint64_t type;
    uint8_t kind, reach;
    const char *words;
} types[] = {
    {NVML_EVENT_XID, BH_GPU_EVENT_XID, BH_REACH_CARD, NULL}, /* that of a common one is its own */
    {NVML_EVENT_ECC_DOUBLE, BH_GPU_EVENT_ECC, BH_REACH_ALL,
     "memory error that ECC could not correct: the hardware's fault; drain the GPU and reset it"},
    {NVML_EVENT_ECC_STORM, BH_GPU_EVENT_ECC, BH_REACH_NOTE,
     "a storm of memory errors that ECC corrected: the hardware's fault; watch it"},
    {NVML_EVENT_DRAM_RETIRED, BH_GPU_EVENT_MEMORY, BH_REACH_CARD,
     "a piece of memory was retired: the hardware's fault; drain the GPU and reset it"},
    {NVML_EVENT_DRAM_FAILED, BH_GPU_EVENT_MEMORY, BH_REACH_CARD,
     "retiring a piece of memory failed: the hardware's fault; drain the GPU and replace the card"},
    {NVML_EVENT_POISON, BH_GPU_EVENT_MEMORY, BH_REACH_HIT,
     "poisoned memory was met by one process: the hardware's fault; restart the tenant's work"},
    {NVML_EVENT_POISON_FATAL, BH_GPU_EVENT_MEMORY, BH_REACH_ALL,
     "poisoned memory was met and not contained: the hardware's fault; drain the GPU and reset it"},
    {NVML_EVENT_UNAVAILABLE, BH_GPU_EVENT_RECOVER, BH_REACH_ALL,
     "the GPU is not available; drain it and look at the kernel's log"},
    {NVML_EVENT_RECOVERY, BH_GPU_EVENT_RECOVER, BH_REACH_CARD,
     "the driver asks for a recovery action; drain the GPU"},
    {NVML_EVENT_MIG_CHANGE, BH_GPU_EVENT_MIG, BH_REACH_NOTE, "the MIG layout was changed; read it again"},
};

static uint64_t all_types(void)
{
    uint64_t all = 0;
    for (size_t i = 0; i < BH_COUNT_OF(types); i++)
        all |= types[i].type;
    return all;
}

static void gap(struct bh_gpu_events *e, uint32_t index, const char *what, int status)
{
    *bh_vec_push(&e->gaps) = bh_arena_printf(&e->arena, "GPU %" PRIu32 ": no word of %s: %s", index, what,
                                             bh_nvml_why(&e->arena, status));
}

static void watch(struct bh_gpu_events *e, uint32_t index)
{
    struct watched w = {.index = index};
    char uuid[TEXT] = {0};
    unsigned long long can = 0;
    int status = BH_NVML_CALL(e->n, handle, index, &w.handle);
    if (status == NVML_OK)
        status = BH_NVML_CALL(e->n, event_types, w.handle, &can);
    /* a library without the question is asked for the oldest kinds */
    if (status == NVML_FUNCTION_NOT_FOUND) {
        can = NVML_EVENT_XID | NVML_EVENT_ECC_DOUBLE;
        status = NVML_OK;
    }
    if (status == NVML_OK && !(can & all_types()))
        status = NVML_NOT_SUPPORTED;
    if (status == NVML_OK)
        status = BH_NVML_CALL(e->n, event_register, w.handle, can & all_types(), e->set);
    if (status != NVML_OK) {
        gap(e, index, "its health", status);
        return;
    }
    if (!(can & NVML_EVENT_XID))
        gap(e, index, "errors (Xid)", NVML_NOT_SUPPORTED);
    if (BH_NVML_CALL(e->n, uuid, w.handle, uuid, ASKED) == NVML_OK) {
        const char *text = bh_gpu_text(&e->arena, uuid, sizeof(uuid));
        (void)snprintf(w.uuid, sizeof(w.uuid), "%s", text ? text : "");
    }
    *bh_vec_push(&e->gpus) = w;
}

static int start(struct bh_gpu_events *e, struct bh_err *err)
{
    unsigned count = 0;
    if (!e->n->api.event_set || !e->n->api.event_register || !e->n->api.event_wait)
        return bh_fail(err, BH_NOT_FOUND, "the NVIDIA library %.200s reports no health events: it lacks %s",
                       e->n->path,
                       !e->n->api.event_set        ? e->n->names.event_set
                       : !e->n->api.event_register ? e->n->names.event_register
                                                   : e->n->names.event_wait);
    int status = BH_NVML_CALL(e->n, event_set, &e->set);
    if (status == NVML_OK)
        status = BH_NVML_CALL(e->n, count, &count);
    if (status != NVML_OK)
        return bh_fail(err, status == NVML_NO_PERMISSION ? BH_DENIED : BH_SYSTEM,
                       "the driver's health events cannot be had: %s", bh_nvml_why(&e->arena, status));
    for (unsigned i = 0; i < count && i < GPUS_MAX; i++)
        watch(e, i);
    if (!e->gpus.n)
        return bh_fail(err, BH_NOT_FOUND, "no GPU reports health events: %s",
                       e->gaps.n ? e->gaps.at[0] : "there is no GPU");
    return BH_OK;
}

int bh_gpu_events_open(struct bh_gpu_events **ret, struct bh_err *err)
{
    struct bh_gpu_events *e = bh_alloc(1, sizeof(*e));
    int rc = bh_nvml_open(&e->n, err);
    if (rc == BH_OK)
        rc = start(e, err);
    if (rc == BH_OK)
        *ret = e;
    else
        bh_gpu_events_close(e);
    return rc;
}

void bh_gpu_events_close(struct bh_gpu_events *e)
{
    if (!e)
        return;
    if (e->set)
        (void)BH_NVML_CALL(e->n, event_free, e->set);
    if (e->n)
        bh_nvml_close(e->n);
    bh_vec_fini(&e->gpus);
    bh_vec_fini(&e->gaps);
    bh_arena_fini(&e->arena);
    free(e);
}

size_t bh_gpu_events_gaps(const struct bh_gpu_events *e, const char *const **ret)
{
    *ret = e->gaps.at;
    return e->gaps.n;
}

/* `GPU 3, instance 7.0: ` */
static int say_where(const struct bh_gpu_event *e, char *buf, size_t size)
{
    if (e->gpu == BH_NO_ID)
        return snprintf(buf, size, "a GPU that is not known here: ");
    if (e->gi == BH_NO_ID)
        return snprintf(buf, size, "GPU %" PRIu32 ": ", e->gpu);
    if (e->ci == BH_NO_ID)
        return snprintf(buf, size, "GPU %" PRIu32 ", instance %" PRIu32 ": ", e->gpu, e->gi);
    return snprintf(buf, size, "GPU %" PRIu32 ", instance %" PRIu32 ".%" PRIu32 ": ", e->gpu, e->gi, e->ci);
}

static void say(struct bh_gpu_event *e, const char *words)
{
    int n = say_where(e, e->text, sizeof(e->text));
    char *at = e->text + n;
    size_t left = sizeof(e->text) - (size_t)n;
    if (e->xid)
        (void)snprintf(at, left, "Xid %" PRIu64 ": %s: %s; %s", e->data, e->xid->words,
                       bh_xid_fault_words(e->xid), bh_xid_action_words(e->xid));
    else if (e->kind == BH_GPU_EVENT_XID)
        (void)snprintf(at, left, "Xid %" PRIu64 ": not a common one; look it up before the GPU is given on",
                       e->data);
    else if (words)
        (void)snprintf(at, left, "%s", words);
    else
        (void)snprintf(at, left, "event 0x%" PRIx64 " of the driver, datum %" PRIu64, e->type, e->data);
}

static void translate(const struct bh_gpu_events *e, const struct nvml_event_data *d,
                      struct bh_gpu_event *ret)
{
    const char *words = NULL;
    *ret = (struct bh_gpu_event){.gpu = BH_NO_ID,
                                 .kind = BH_GPU_EVENT_OTHER,
                                 .reach = BH_REACH_NOTE,
                                 .type = d->type,
                                 .data = d->data,
                                 .gi = d->gi,
                                 .ci = d->ci};
    for (size_t i = 0; i < e->gpus.n; i++)
        if (e->gpus.at[i].handle == d->device) {
            ret->gpu = e->gpus.at[i].index;
            memcpy(ret->uuid, e->gpus.at[i].uuid, sizeof(ret->uuid));
        }
    for (size_t i = 0; i < BH_COUNT_OF(types); i++)
        if (types[i].type == d->type) {
            ret->kind = types[i].kind;
            ret->reach = types[i].reach;
            words = types[i].words;
        }
    if (ret->kind == BH_GPU_EVENT_XID)
        ret->xid = bh_xid_find(d->data);
    if (ret->xid)
        ret->reach = ret->xid->reach;
    say(ret, words);
}

int bh_gpu_events_wait(struct bh_gpu_events *e, uint32_t timeout_ms, struct bh_gpu_event *ret,
                       struct bh_err *err)
{
    struct nvml_event_data data;
    struct bh_nvml_room room;
    int status = BH_NVML_CALL(e->n, event_wait, e->set, bh_nvml_room_fill(&room), timeout_ms);
    status = bh_nvml_room_take(e->n, e->n->names.event_wait, status, &room, &data, sizeof(data),
                               offsetof(struct nvml_event_data, type));
    int rc = bh_nvml_fits(e->n, err);
    if (rc < 0)
        return rc;
    switch (status) {
    case NVML_OK:
        translate(e, &data, ret);
        return 1;
    case NVML_TIMEOUT:
        return 0;
    case NVML_GPU_IS_LOST:
        *ret = (struct bh_gpu_event){.gpu = BH_NO_ID,
                                     .kind = BH_GPU_EVENT_LOST,
                                     .reach = BH_REACH_NOTE,
                                     .gi = BH_NO_ID,
                                     .ci = BH_NO_ID};
        (void)snprintf(ret->text, sizeof(ret->text), "a GPU fell off the bus; read them all to see which");
        return 1;
    default:
        return bh_fail(err, BH_SYSTEM, "waiting for the driver's health events failed with error %d", status);
    }
}
