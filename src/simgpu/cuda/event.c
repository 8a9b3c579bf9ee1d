/* SPDX-License-Identifier: Apache-2.0 */
/*
 * event.c - marks in a stream.
 *
 * An event is done when everything before it is. The node does not say when that was, so its time is when the stream's
 * work would have been done without neighbours, or when somebody who waited for it saw it done.
 */
#include "simgpu/cuda/internal.h"

int cuEventCreate(CUevent *ret, unsigned flags)
{
    BH_CU_CALL();
    CUcontext ctx;
    int rc = bh_cu_current(&ctx);
    if (rc || !ret || flags > 7)
        return rc ? rc : CUDA_ERROR_INVALID_VALUE;
    if (flags & CU_EVENT_INTERPROCESS && !(flags & CU_EVENT_DISABLE_TIMING))
        return CUDA_ERROR_INVALID_VALUE;
    CUevent e = bh_alloc(1, sizeof(*e));
    *e = (struct CUevent_st){.ctx = ctx, .flags = flags};
    bh_cu_handle_add(BH_CU_EVENT, e);
    *ret = e;
    return CUDA_SUCCESS;
}

int cuEventDestroy_v2(CUevent event)
{
    BH_CU_CALL();
    int rc = bh_cu_enter();
    if (rc)
        return rc;
    if (!bh_cu_handle_remove(BH_CU_EVENT, event))
        return CUDA_ERROR_INVALID_HANDLE;
    free(event);
    return CUDA_SUCCESS;
}
BH_CU_ALIAS(cuEventDestroy, cuEventDestroy_v2);

static int find(CUevent event)
{
    CUcontext ctx;
    int rc = bh_cu_enter();
    if (rc)
        return rc;
    if (!bh_cu_handle_ok(BH_CU_EVENT, event))
        return CUDA_ERROR_INVALID_HANDLE;
    return bh_cu_context(event->ctx, &ctx);
}

int cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned flags)
{
    BH_CU_CALL();
    CUstream s;
    int rc = find(event);
    rc = rc ? rc : bh_cu_stream(event->ctx, stream, &s);
    if (rc || flags > 1)
        return rc ? rc : CUDA_ERROR_INVALID_VALUE;
    if (s->ctx != event->ctx)
        return CUDA_ERROR_INVALID_HANDLE;
    if (s->capture)
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    const uint64_t now = bh_cu_now();
    bh_cu_lock(event->ctx);
    event->channel = s->channel;
    event->fence = s->last;
    event->at_ns = s->until_ns > now ? s->until_ns : now;
    bh_cu_unlock(event->ctx);
    return CUDA_SUCCESS;
}

int cuEventRecord(CUevent event, CUstream stream)
{
    BH_CU_CALL();
    return cuEventRecordWithFlags(event, stream, 0);
}

int cuEventSynchronize(CUevent event)
{
    BH_CU_CALL();
    int rc = find(event);
    if (rc || !event->channel)
        return rc;
    rc = bh_cu_done(event->ctx, event->channel, event->fence);
    if (rc != CUDA_ERROR_NOT_READY)
        return rc;
    rc = bh_cu_wait(event->ctx, event->channel, event->fence);
    bh_cu_lock(event->ctx);
    event->at_ns = bh_cu_now();
    bh_cu_unlock(event->ctx);
    return rc;
}

int cuEventQuery(CUevent event)
{
    BH_CU_CALL();
    int rc = find(event);
    return rc || !event->channel ? rc : bh_cu_done(event->ctx, event->channel, event->fence);
}

int cuEventElapsedTime(float *ret_ms, CUevent from, CUevent to)
{
    BH_CU_CALL();
    int rc = find(from);
    rc = rc ? rc : find(to);
    if (rc || !ret_ms)
        return rc ? rc : CUDA_ERROR_INVALID_VALUE;
    if (!from->channel || !to->channel || (from->flags | to->flags) & CU_EVENT_DISABLE_TIMING)
        return CUDA_ERROR_INVALID_HANDLE;
    rc = cuEventQuery(from);
    rc = rc ? rc : cuEventQuery(to);
    if (rc)
        return rc;
    *ret_ms = (float)((double)(int64_t)(to->at_ns - from->at_ns) / 1e6);
    return CUDA_SUCCESS;
}
BH_CU_ALIAS(cuEventElapsedTime_v2, cuEventElapsedTime);

int cuIpcGetEventHandle(CUipcEventHandle *ret, CUevent event)
{
    BH_CU_CALL();
    (void)ret;
    (void)event;
    return CUDA_ERROR_NOT_SUPPORTED;
}

int cuIpcOpenEventHandle(CUevent *ret, CUipcEventHandle handle)
{
    BH_CU_CALL();
    (void)ret;
    (void)handle;
    return CUDA_ERROR_NOT_SUPPORTED;
}
