/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stream.c - queues of work, and waiting for it.
 *
 * A stream is a place in line on one of the context's channels; streams share channels when there are more of them,
 * as on the card. What must come first but stands on another channel is waited for before the work is handed
 * over: the order is right, only the caller may be held up where the hardware would not hold it.
 */
#include "simgpu/cuda/internal.h"

#include <errno.h>

int bh_cu_stream(CUcontext ctx, CUstream given, CUstream *ret)
{
    const bool own = (uintptr_t)given <= (uintptr_t)CU_STREAM_PER_THREAD;
    if (!own && !bh_cu_handle_ok(BH_CU_STREAM, given))
        return CUDA_ERROR_INVALID_HANDLE;
    *ret = own ? ctx->null_stream : given;
    return bh_cu_context((*ret)->ctx, &ctx);
}

CUstream bh_cu_stream_new(CUcontext ctx, unsigned flags, int priority)
{
    CUstream s = bh_alloc(1, sizeof(*s));
    bh_cu_lock(ctx);
    *s = (struct CUstream_st){.ctx = ctx,
                              .flags = flags,
                              .priority = priority,
                              .channel = &ctx->channels[ctx->next_channel++ % ctx->n_channels]};
    *bh_vec_push(&ctx->streams) = s;
    bh_cu_unlock(ctx);
    pthread_mutex_lock(&cu.lock);
    s->id = ++cu.next_id;
    pthread_mutex_unlock(&cu.lock);
    bh_cu_handle_add(BH_CU_STREAM, s);
    return s;
}

/* --- waiting --- */

/* Under the lock. */
static bool known_done(CUcontext ctx, struct bh_cu_channel *c, uint64_t fence, int *ret)
{
    if (!ctx->error && c->fault && c->done >= c->fault)
        ctx->error = CUDA_ERROR_ILLEGAL_ADDRESS;
    *ret = ctx->error;
    return ctx->error || c->done >= fence;
}

/* Under the lock. A fault that is known now is that of the context. */
static int know_done(CUcontext ctx, struct bh_cu_channel *c, uint64_t done)
{
    int rc;
    c->done = done > c->done ? done : c->done;
    (void)known_done(ctx, c, 0, &rc);
    return rc;
}

static int note_done(CUcontext ctx, struct bh_cu_channel *c, uint64_t done)
{
    bh_cu_lock(ctx);
    const int rc = know_done(ctx, c, done);
    bh_cu_unlock(ctx);
    return rc;
}

int bh_cu_wait(CUcontext ctx, struct bh_cu_channel *c, uint64_t fence)
{
    int rc;
    bh_cu_lock(ctx);
    const bool done = known_done(ctx, c, fence, &rc);
    bh_cu_unlock(ctx);
    if (done)
        return rc;
    if (bh_sim_wait(ctx->fd, ctx->client, c->handle, fence) < 0)
        return bh_cu_fault(ctx, errno);
    return note_done(ctx, c, fence);
}

int bh_cu_done(CUcontext ctx, struct bh_cu_channel *c, uint64_t fence)
{
    uint64_t reached;
    int rc;
    bh_cu_lock(ctx);
    const bool done = known_done(ctx, c, fence, &rc);
    bh_cu_unlock(ctx);
    if (done)
        return rc;
    if (bh_sim_fence(ctx->fd, ctx->client, c->handle, &reached) < 0)
        return bh_cu_fault(ctx, errno);
    rc = note_done(ctx, c, reached);
    return rc ? rc : reached >= fence ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

int bh_cu_drain(CUcontext ctx)
{
    int rc = CUDA_SUCCESS;
    for (uint32_t i = 0; i < ctx->n_channels && !rc; i++) {
        bh_cu_lock(ctx);
        const uint64_t last = ctx->channels[i].last;
        bh_cu_unlock(ctx);
        rc = bh_cu_wait(ctx, &ctx->channels[i], last);
    }
    return rc;
}

/* --- handing over --- */

/* The stream's next work comes after this. Under the lock. */
static void after(CUstream s, struct bh_cu_channel *channel, uint64_t fence)
{
    if (channel == s->channel || channel->done >= fence)
        return; /* a channel keeps its own order */
    for (size_t i = 0; i < s->after.n; i++)
        if (s->after.at[i].channel == channel) {
            s->after.at[i].fence = fence > s->after.at[i].fence ? fence : s->after.at[i].fence;
            return;
        }
    s->after.at = s->after.n < s->after.cap
                      ? s->after.at
                      : bh_grow_(s->after.at, &s->after.cap, s->after.n + 1, sizeof(*s->after.at));
    s->after.at[s->after.n].channel = channel;
    s->after.at[s->after.n++].fence = fence;
}

/* The default stream and the others wait for each other, unless they were made not to. */
static int wait_for_others(CUstream s)
{
    CUcontext ctx = s->ctx;
    int rc = CUDA_SUCCESS;
    bh_cu_lock(ctx);
    for (size_t i = 0; i < ctx->streams.n; i++) {
        CUstream o = ctx->streams.at[i];
        const bool ordered = s == ctx->null_stream
                                 ? !(o->flags & CU_STREAM_NON_BLOCKING)
                                 : o == ctx->null_stream && !(s->flags & CU_STREAM_NON_BLOCKING);
        if (o != s && ordered)
            after(s, o->channel, o->last);
    }
    while (s->after.n && !rc) {
        struct bh_cu_channel *channel = s->after.at[s->after.n - 1].channel;
        const uint64_t fence = s->after.at[--s->after.n].fence;
        bh_cu_unlock(ctx);
        rc = bh_cu_wait(ctx, channel, fence);
        bh_cu_lock(ctx);
    }
    bh_cu_unlock(ctx);
    return rc;
}

int bh_cu_submit(CUstream s, uint64_t work_ns, bool fault)
{
    CUcontext ctx = s->ctx;
    uint64_t fence, done;
    int rc = wait_for_others(s), error;
    if (rc)
        return rc;
    for (;;) {
        bh_cu_lock(ctx);
        rc = bh_sim_ring(ctx->fd, ctx->client, s->channel->handle, work_ns, &fence, &done);
        error = errno;
        if (rc == 0) {
            const uint64_t now = bh_cu_now();
            s->channel->last = s->last = fence;
            s->until_ns = (s->until_ns > now ? s->until_ns : now) + work_ns;
            if (fault && !s->channel->fault)
                s->channel->fault = fence;
            (void)know_done(ctx, s->channel, done); /* whoever waits for it is told */
        }
        const uint64_t last = s->channel->last;
        bh_cu_unlock(ctx);
        if (rc == 0)
            return CUDA_SUCCESS;
        if (error != EAGAIN && error != EBUSY)
            return bh_cu_fault(ctx, error);
        rc = bh_cu_wait(ctx, s->channel, last); /* the channel is full */
        if (rc)
            return rc;
    }
}

/* --- the interface --- */

static int find(CUstream given, CUstream *ret)
{
    CUcontext ctx;
    int rc = bh_cu_current(&ctx);
    return rc ? rc : bh_cu_stream(ctx, given, ret);
}

int cuStreamCreateWithPriority(CUstream *ret, unsigned flags, int priority)
{
    BH_CU_CALL();
    CUcontext ctx;
    int rc = bh_cu_current(&ctx);
    if (rc || !ret || flags > CU_STREAM_NON_BLOCKING)
        return rc ? rc : CUDA_ERROR_INVALID_VALUE;
    *ret = bh_cu_stream_new(ctx, flags, priority > 0 ? 0 : priority < -5 ? -5 : priority);
    (void)bh_cu_uvm(ctx->uvm, UVM_CREATE_RANGE_GROUP, 0, 0); /* managed memory can be tied to a stream */
    return CUDA_SUCCESS;
}

int cuStreamCreate(CUstream *ret, unsigned flags)
{
    BH_CU_CALL();
    return cuStreamCreateWithPriority(ret, flags, 0);
}

int cuStreamDestroy_v2(CUstream stream)
{
    BH_CU_CALL();
    int rc = bh_cu_enter();
    if (rc)
        return rc;
    if (!bh_cu_handle_remove(BH_CU_STREAM, stream))
        return CUDA_ERROR_INVALID_HANDLE;
    CUcontext ctx = stream->ctx;
    bh_cu_lock(ctx);
    for (size_t i = 0; i < ctx->streams.n; i++)
        if (ctx->streams.at[i] == stream) {
            ctx->streams.at[i] = ctx->streams.at[--ctx->streams.n];
            break;
        }
    bh_cu_unlock(ctx);
    (void)bh_cu_uvm(ctx->uvm, UVM_DESTROY_RANGE_GROUP, 0, 0);
    if (stream->capture)
        bh_cu_graph_drop(stream->capture);
    bh_vec_fini(&stream->after);
    free(stream);
    return CUDA_SUCCESS;
}
BH_CU_ALIAS(cuStreamDestroy, cuStreamDestroy_v2);

int cuStreamSynchronize(CUstream stream)
{
    BH_CU_CALL();
    CUstream s;
    int rc = find(stream, &s);
    if (!rc && s->capture)
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    rc = rc ? rc : wait_for_others(s);
    rc = rc ? rc : bh_cu_wait(s->ctx, s->channel, s->last);
    if (!rc)
        bh_cu_pools_settle(s->ctx);
    return rc;
}

int cuStreamQuery(CUstream stream)
{
    BH_CU_CALL();
    CUstream s;
    int rc = find(stream, &s);
    return rc ? rc : bh_cu_done(s->ctx, s->channel, s->last);
}

int cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags)
{
    BH_CU_CALL();
    CUstream s;
    int rc = find(stream, &s);
    if (rc || flags > 1)
        return rc ? rc : CUDA_ERROR_INVALID_VALUE;
    if (!bh_cu_handle_ok(BH_CU_EVENT, event))
        return CUDA_ERROR_INVALID_HANDLE;
    if (!event->channel)
        return CUDA_SUCCESS;
    if (event->ctx != s->ctx)
        return bh_cu_wait(event->ctx, event->channel, event->fence);
    bh_cu_lock(s->ctx);
    after(s, event->channel, event->fence);
    bh_cu_unlock(s->ctx);
    return CUDA_SUCCESS;
}

int cuStreamGetPriority(CUstream stream, int *ret)
{
    BH_CU_CALL();
    CUstream s;
    int rc = find(stream, &s);
    if (rc || !ret)
        return rc ? rc : CUDA_ERROR_INVALID_VALUE;
    *ret = s->priority;
    return CUDA_SUCCESS;
}

int cuStreamGetFlags(CUstream stream, unsigned *ret)
{
    BH_CU_CALL();
    CUstream s;
    int rc = find(stream, &s);
    if (rc || !ret)
        return rc ? rc : CUDA_ERROR_INVALID_VALUE;
    *ret = s->flags;
    return CUDA_SUCCESS;
}

int cuStreamGetId(CUstream stream, uint64_t *ret)
{
    BH_CU_CALL();
    CUstream s;
    int rc = find(stream, &s);
    if (rc || !ret)
        return rc ? rc : CUDA_ERROR_INVALID_VALUE;
    *ret = s->id;
    return CUDA_SUCCESS;
}

int cuStreamGetCtx(CUstream stream, CUcontext *ret)
{
    BH_CU_CALL();
    CUstream s;
    int rc = find(stream, &s);
    if (rc || !ret)
        return rc ? rc : CUDA_ERROR_INVALID_VALUE;
    *ret = s->ctx;
    return CUDA_SUCCESS;
}

/* The caller is held up until it is its turn; the order is what counts. */
int cuStreamAddCallback(CUstream stream, CUstreamCallback fn, void *arg, unsigned flags)
{
    BH_CU_CALL();
    CUstream s;
    int rc = find(stream, &s);
    if (rc || !fn || flags)
        return rc ? rc : CUDA_ERROR_INVALID_VALUE;
    rc = bh_cu_wait(s->ctx, s->channel, s->last);
    fn(stream, rc, arg);
    return CUDA_SUCCESS;
}
