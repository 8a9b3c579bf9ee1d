/* SPDX-License-Identifier: Apache-2.0 */
/*
 * events.h - what goes wrong on GPUs, as it happens.
 *
 * Events come from the GPU as a whole; on a GPU that is cut they name the instance. A GPU that cannot report,
 * or not all of it, is a gap and says why: silence of a GPU in a gap proves nothing.
 */
#ifndef BH_GPU_EVENTS_H
#define BH_GPU_EVENTS_H

#include "gpu/gpu.h"
#include "gpu/xid.h"

enum bh_gpu_event_kind {
    BH_GPU_EVENT_XID,     /* data: the Xid */
    BH_GPU_EVENT_ECC,     /* an error that ECC could not correct, or too many that it could */
    BH_GPU_EVENT_MEMORY,  /* rows retired, or poison met */
    BH_GPU_EVENT_RECOVER, /* the driver asks for a recovery action, or calls the GPU unavailable */
    BH_GPU_EVENT_MIG,     /* somebody changed the layout */
    BH_GPU_EVENT_LOST,    /* a GPU fell off the bus, not said which: close, read them all, open again */
    BH_GPU_EVENT_OTHER,   /* data as the driver gave it */
};

struct bh_gpu_event {
    uint32_t gpu;             /* its index; BH_NO_ID: not said */
    char uuid[96];            /* "" when gpu is BH_NO_ID */
    uint8_t kind;             /* enum bh_gpu_event_kind */
    uint8_t reach;            /* enum bh_reach; of a LOST one NOTE: which it was shows in the next look */
    uint64_t type, data;      /* the driver's own bit and datum */
    uint32_t gi, ci;          /* BH_NO_ID: of the whole GPU */
    const struct bh_xid *xid; /* NULL: no Xid, or not a common one */
    char text[320];           /* one sentence: what, whose fault, what to do */
};

struct bh_gpu_events;

/* On every GPU that has them. BH_NOT_FOUND: no driver, or none of its GPUs reports anything. */
int bh_gpu_events_open(struct bh_gpu_events **ret, struct bh_err *err) BH_MUST_USE;
void bh_gpu_events_close(struct bh_gpu_events *e); /* NULL is fine */
/* What is not watched, a sentence each. */
size_t bh_gpu_events_gaps(const struct bh_gpu_events *e, const char *const **ret);
/* 1: *ret has one. 0: none came in time. Blocks in the driver for up to timeout_ms, and longer only if that hangs. */
int bh_gpu_events_wait(struct bh_gpu_events *e, uint32_t timeout_ms, struct bh_gpu_event *ret,
                       struct bh_err *err) BH_MUST_USE;

#endif
