/* SPDX-License-Identifier: Apache-2.0 */
/*
 * context.c - contexts, and which of them a thread works in.
 *
 * Making one plays the recording of a context's making, the process's first or a later one; ending one frees what its
 * pointers hold and plays the recorded end. A context that met a fault keeps its error: every call in it says the
 * same until it is destroyed.
 */
#include "simgpu/cuda/internal.h"

enum { STACK_MAX = 1024, API_VERSION = 3020 };

static _Thread_local struct {
    CUcontext at[STACK_MAX];
    int n;
} stack;

void bh_cu_lock(CUcontext ctx)
{
    pthread_mutex_lock(&ctx->lock);
}

void bh_cu_unlock(CUcontext ctx)
{
    pthread_mutex_unlock(&ctx->lock);
}

int bh_cu_context(CUcontext given, CUcontext *ret)
{
    int rc = bh_cu_enter();
    if (rc)
        return rc;
    if (!given)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (!bh_cu_handle_ok(BH_CU_CONTEXT, given))
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    bh_cu_lock(given);
    rc = given->error;
    bh_cu_unlock(given);
    *ret = given;
    return rc;
}

int bh_cu_current(CUcontext *ret)
{
    return bh_cu_context(stack.n ? stack.at[stack.n - 1] : NULL, ret);
}

/* --- making and ending --- */

/* Where the recorded start left what work and memory need. */
static int find_objects(CUcontext ctx)
{
    const struct bh_play *p = &ctx->play;
    const uint32_t class = ctx->device->ampere ? RM_CLASS_CHANNEL_AMPERE : RM_CLASS_CHANNEL_HOPPER;
    const struct bh_play_object *o, *device, *subdevice;
    while (ctx->n_channels < BH_CU_CHANNELS_MAX && (o = bh_play_find(p, class, 0, ctx->n_channels))) {
        ctx->channels[ctx->n_channels++].handle = o->handle;
        ctx->client = o->client;
        ctx->fd = o->fd;
    }
    device = bh_play_find(p, RM_CLASS_DEVICE, ctx->client, 0);
    subdevice = bh_play_find(p, RM_CLASS_SUBDEVICE, ctx->client, 0);
    ctx->uvm = bh_play_file(p, BH_FILE_UVM);
    if (!ctx->n_channels || !device || !subdevice || ctx->uvm < 0)
        return CUDA_ERROR_UNKNOWN;
    ctx->parent = device->handle;
    ctx->subdevice = subdevice->handle;
    return CUDA_SUCCESS;
}

static uint64_t last_event(void)
{
    struct bh_sim_event events[64];
    uint64_t after = 0;
    ssize_t n;
    while ((n = bh_sim_events(after, events, BH_COUNT_OF(events))) > 0)
        after = events[n - 1].seq;
    return after;
}

static void context_free(CUcontext ctx)
{
    for (size_t i = 0; i < ctx->streams.n; i++) {
        bh_cu_handle_remove(BH_CU_STREAM, ctx->streams.at[i]);
        bh_vec_fini(&ctx->streams.at[i]->after);
        free(ctx->streams.at[i]);
    }
    bh_vec_fini(&ctx->streams);
    bh_vec_fini(&ctx->slabs);
    bh_play_fini(&ctx->play);
    pthread_mutex_destroy(&ctx->lock);
    free(ctx);
}

static int uvm_space(CUcontext ctx, uint32_t number)
{
    const struct bh_play_object *space = bh_play_find(&ctx->play, RM_CLASS_VASPACE, 0, 0);
    const struct bh_uvm_call what = {.uuid = ctx->play.uuid,
                                     .ctl = bh_play_file(&ctx->play, BH_FILE_CTL),
                                     .client = space ? space->client : 0,
                                     .object = space ? space->handle : 0};
    return bh_uvm(bh_play_file(&ctx->play, BH_FILE_UVM), number, &what);
}

/* A later context finds its address space known to the UVM file, unless all before it are gone. */
static int play_start(CUcontext ctx)
{
    struct bh_cu_device *d = ctx->device;
    size_t first, n, begun = 2; /* the calls that announce a context */
    pthread_mutex_lock(&d->lock);
    ctx->first = d->contexts++ == 0;
    d->alive++;
    const bool known = ctx->first || d->spaced;
    d->spaced = true;
    pthread_mutex_unlock(&d->lock);
    int rc = bh_cu_stretch(ctx->first ? BH_CU_STRETCH_FIRST : BH_CU_STRETCH_NEXT, &first, &n);
    if (rc || known || n < begun)
        return rc ? rc : bh_play_calls(&ctx->play, bh_cu_recording(), first, n);
    rc = bh_play_calls(&ctx->play, bh_cu_recording(), first, begun);
    (void)uvm_space(ctx, UVM_REGISTER_GPU_VASPACE);
    return rc ? rc : bh_play_calls(&ctx->play, bh_cu_recording(), first + begun, n - begun);
}

/* The last one takes the address space along, when nothing is left in it. */
static void play_end(CUcontext ctx)
{
    struct bh_cu_device *d = ctx->device;
    size_t first, n;
    if (bh_cu_stretch(ctx->first ? BH_CU_STRETCH_FIRST_END : BH_CU_STRETCH_NEXT_END, &first, &n))
        return;
    pthread_mutex_lock(&d->lock);
    const bool last = --d->alive == 0 && bh_cu_pools_empty(d);
    d->spaced = d->spaced && !last;
    pthread_mutex_unlock(&d->lock);
    (void)bh_play_calls(&ctx->play, bh_cu_recording(), first, n - 1);
    if (last)
        (void)uvm_space(ctx, UVM_UNREGISTER_GPU_VASPACE);
    (void)bh_play_calls(&ctx->play, bh_cu_recording(), first + n - 1, 1);
}

static int context_new(struct bh_cu_device *d, unsigned flags, CUcontext *ret)
{
    int rc = bh_cu_device_start(d);
    if (rc)
        return rc;
    CUcontext ctx = bh_alloc(1, sizeof(*ctx));
    pthread_mutex_init(&ctx->lock, NULL);
    ctx->device = d;
    ctx->flags = flags;
    ctx->play =
        (struct bh_play){.base = &d->play, .gpu = d->play.gpu, .gi = d->gi, .ci = d->ci, .ampere = d->ampere};
    memcpy(ctx->play.uuid, d->play.uuid, sizeof(ctx->play.uuid));
    ctx->limits[CU_LIMIT_STACK_SIZE] = 1024;
    ctx->limits[CU_LIMIT_PRINTF_FIFO_SIZE] = 7 << 20;
    ctx->limits[CU_LIMIT_MALLOC_HEAP_SIZE] = 8 << 20;
    ctx->event_seq = last_event();
    rc = play_start(ctx);
    rc = rc ? rc : find_objects(ctx);
    if (rc) {
        play_end(ctx);
        context_free(ctx);
        return rc;
    }
    pthread_mutex_lock(&cu.lock);
    ctx->id = ++cu.next_id;
    pthread_mutex_unlock(&cu.lock);
    ctx->null_stream = bh_cu_stream_new(ctx, 0, 0);
    bh_cu_handle_add(BH_CU_CONTEXT, ctx);
    *ret = ctx;
    return CUDA_SUCCESS;
}

static void context_end(CUcontext ctx)
{
    (void)bh_cu_drain(ctx);
    bh_cu_release_all(ctx);
    play_end(ctx);
    context_free(ctx);
}

int bh_cu_primary(struct bh_cu_device *d, CUcontext *ret)
{
    int rc = CUDA_SUCCESS;
    pthread_mutex_lock(&d->lock);
    const bool there = d->primary;
    pthread_mutex_unlock(&d->lock);
    if (!there) {
        CUcontext fresh = NULL;
        rc = context_new(d, d->primary_flags, &fresh);
        pthread_mutex_lock(&d->lock);
        const bool late = d->primary;
        if (!rc && !late) {
            fresh->primary = true;
            d->primary = fresh;
        }
        pthread_mutex_unlock(&d->lock);
        if (!rc && late && bh_cu_handle_remove(BH_CU_CONTEXT, fresh))
            context_end(fresh);
    }
    pthread_mutex_lock(&d->lock);
    *ret = d->primary;
    pthread_mutex_unlock(&d->lock);
    return rc;
}

int cuDevicePrimaryCtxRetain(CUcontext *ret, CUdevice device)
{
    BH_CU_CALL();
    struct bh_cu_device *d;
    int rc = bh_cu_device(device, &d);
    if (rc || !ret)
        return rc ? rc : CUDA_ERROR_INVALID_VALUE;
    rc = bh_cu_primary(d, ret);
    pthread_mutex_lock(&d->lock);
    d->primary_refs += rc == CUDA_SUCCESS;
    pthread_mutex_unlock(&d->lock);
    return rc;
}

/* all: nobody is asked any more. */
static int primary_drop(CUdevice device, bool all)
{
    struct bh_cu_device *d;
    CUcontext old = NULL;
    int rc = bh_cu_device(device, &d);
    if (rc)
        return rc;
    pthread_mutex_lock(&d->lock);
    if (!all && d->primary_refs == 0)
        rc = CUDA_ERROR_INVALID_CONTEXT;
    else if (all || --d->primary_refs == 0) {
        old = d->primary;
        d->primary = NULL;
        d->primary_refs = 0;
    }
    pthread_mutex_unlock(&d->lock);
    if (old && bh_cu_handle_remove(BH_CU_CONTEXT, old))
        context_end(old);
    return rc;
}

int cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
    BH_CU_CALL();
    return primary_drop(device, false);
}
BH_CU_ALIAS(cuDevicePrimaryCtxRelease, cuDevicePrimaryCtxRelease_v2);

int cuDevicePrimaryCtxReset_v2(CUdevice device)
{
    BH_CU_CALL();
    return primary_drop(device, true);
}
BH_CU_ALIAS(cuDevicePrimaryCtxReset, cuDevicePrimaryCtxReset_v2);

int cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned flags)
{
    BH_CU_CALL();
    struct bh_cu_device *d;
    int rc = bh_cu_device(device, &d);
    if (!rc)
        d->primary_flags = flags;
    return rc;
}
BH_CU_ALIAS(cuDevicePrimaryCtxSetFlags, cuDevicePrimaryCtxSetFlags_v2);

int cuDevicePrimaryCtxGetState(CUdevice device, unsigned *ret_flags, int *ret_active)
{
    BH_CU_CALL();
    struct bh_cu_device *d;
    int rc = bh_cu_device(device, &d);
    if (rc || !ret_flags || !ret_active)
        return rc ? rc : CUDA_ERROR_INVALID_VALUE;
    *ret_flags = d->primary_flags;
    *ret_active = d->primary != NULL;
    return CUDA_SUCCESS;
}

/* --- a thread's contexts --- */

int cuCtxPushCurrent_v2(CUcontext context)
{
    BH_CU_CALL();
    int rc = bh_cu_enter();
    if (rc)
        return rc;
    if (!bh_cu_handle_ok(BH_CU_CONTEXT, context) || stack.n == STACK_MAX)
        return CUDA_ERROR_INVALID_CONTEXT;
    stack.at[stack.n++] = context;
    return CUDA_SUCCESS;
}
BH_CU_ALIAS(cuCtxPushCurrent, cuCtxPushCurrent_v2);

int cuCtxPopCurrent_v2(CUcontext *ret)
{
    BH_CU_CALL();
    int rc = bh_cu_enter();
    if (rc || stack.n == 0)
        return rc ? rc : CUDA_ERROR_INVALID_CONTEXT;
    stack.n--;
    if (ret)
        *ret = stack.at[stack.n];
    return CUDA_SUCCESS;
}
BH_CU_ALIAS(cuCtxPopCurrent, cuCtxPopCurrent_v2);

int cuCtxSetCurrent(CUcontext context)
{
    BH_CU_CALL();
    int rc = bh_cu_enter();
    if (rc)
        return rc;
    if (context && !bh_cu_handle_ok(BH_CU_CONTEXT, context))
        return CUDA_ERROR_INVALID_CONTEXT;
    stack.n -= stack.n > 0;
    if (context)
        stack.at[stack.n++] = context;
    return CUDA_SUCCESS;
}

int cuCtxGetCurrent(CUcontext *ret)
{
    BH_CU_CALL();
    int rc = bh_cu_enter();
    if (rc || !ret)
        return rc ? rc : CUDA_ERROR_INVALID_VALUE;
    *ret = stack.n ? stack.at[stack.n - 1] : NULL;
    return CUDA_SUCCESS;
}

int cuCtxCreate_v2(CUcontext *ret, unsigned flags, CUdevice device)
{
    BH_CU_CALL();
    struct bh_cu_device *d;
    CUcontext ctx;
    int rc = bh_cu_device(device, &d);
    if (rc || !ret)
        return rc ? rc : CUDA_ERROR_INVALID_VALUE;
    rc = stack.n < STACK_MAX ? context_new(d, flags, &ctx) : CUDA_ERROR_OUT_OF_MEMORY;
    if (rc)
        return rc;
    stack.at[stack.n++] = *ret = ctx;
    return CUDA_SUCCESS;
}
BH_CU_ALIAS(cuCtxCreate, cuCtxCreate_v2);

int cuCtxCreate_v3(CUcontext *ret, void *affinity, int n, unsigned flags, CUdevice device)
{
    BH_CU_CALL();
    (void)affinity; /* a share of the processors: only under MPS */
    return n > 0 ? CUDA_ERROR_NOT_SUPPORTED : cuCtxCreate_v2(ret, flags, device);
}

int cuCtxCreate_v4(CUcontext *ret, void *params, unsigned flags, CUdevice device)
{
    BH_CU_CALL();
    return params ? CUDA_ERROR_NOT_SUPPORTED : cuCtxCreate_v2(ret, flags, device);
}

int cuCtxDestroy_v2(CUcontext context)
{
    BH_CU_CALL();
    int rc = bh_cu_enter();
    if (rc)
        return rc;
    if (!bh_cu_handle_ok(BH_CU_CONTEXT, context) || context->primary ||
        !bh_cu_handle_remove(BH_CU_CONTEXT, context))
        return CUDA_ERROR_INVALID_CONTEXT;
    if (stack.n && stack.at[stack.n - 1] == context)
        stack.n--;
    context_end(context);
    return CUDA_SUCCESS;
}
BH_CU_ALIAS(cuCtxDestroy, cuCtxDestroy_v2);

int cuCtxGetDevice(CUdevice *ret)
{
    BH_CU_CALL();
    CUcontext ctx;
    int rc = bh_cu_current(&ctx);
    if (rc || !ret)
        return rc ? rc : CUDA_ERROR_INVALID_VALUE;
    *ret = (CUdevice)(ctx->device - cu.devices);
    return CUDA_SUCCESS;
}

int cuCtxGetFlags(unsigned *ret)
{
    BH_CU_CALL();
    CUcontext ctx;
    int rc = bh_cu_current(&ctx);
    if (rc || !ret)
        return rc ? rc : CUDA_ERROR_INVALID_VALUE;
    *ret = ctx->flags;
    return CUDA_SUCCESS;
}

int cuCtxSetFlags(unsigned flags)
{
    BH_CU_CALL();
    CUcontext ctx;
    int rc = bh_cu_current(&ctx);
    if (!rc)
        ctx->flags = flags;
    return rc;
}

int cuCtxGetId(CUcontext context, uint64_t *ret)
{
    BH_CU_CALL();
    CUcontext ctx;
    int rc = context ? bh_cu_context(context, &ctx) : bh_cu_current(&ctx);
    if (rc || !ret)
        return rc ? rc : CUDA_ERROR_INVALID_VALUE;
    *ret = ctx->id;
    return CUDA_SUCCESS;
}

int cuCtxGetApiVersion(CUcontext context, unsigned *ret)
{
    BH_CU_CALL();
    CUcontext ctx;
    int rc = context ? bh_cu_context(context, &ctx) : bh_cu_current(&ctx);
    if (rc || !ret)
        return rc ? rc : CUDA_ERROR_INVALID_VALUE;
    *ret = API_VERSION;
    return CUDA_SUCCESS;
}

int cuCtxSynchronize(void)
{
    BH_CU_CALL();
    CUcontext ctx;
    int rc = bh_cu_current(&ctx);
    rc = rc ? rc : bh_cu_drain(ctx);
    if (!rc)
        bh_cu_pools_settle(ctx);
    return rc;
}

int cuCtxSetLimit(int limit, size_t value)
{
    BH_CU_CALL();
    CUcontext ctx;
    int rc = bh_cu_current(&ctx);
    if (rc || limit < 0 || limit >= CU_LIMIT_N_)
        return rc ? rc : CUDA_ERROR_UNSUPPORTED_LIMIT;
    ctx->limits[limit] = value;
    return CUDA_SUCCESS;
}

int cuCtxGetLimit(size_t *ret, int limit)
{
    BH_CU_CALL();
    CUcontext ctx;
    int rc = bh_cu_current(&ctx);
    if (rc || !ret || limit < 0 || limit >= CU_LIMIT_N_)
        return rc ? rc : CUDA_ERROR_UNSUPPORTED_LIMIT;
    *ret = ctx->limits[limit];
    return CUDA_SUCCESS;
}

int cuCtxGetCacheConfig(int *ret)
{
    BH_CU_CALL();
    CUcontext ctx;
    int rc = bh_cu_current(&ctx);
    if (rc || !ret)
        return rc ? rc : CUDA_ERROR_INVALID_VALUE;
    *ret = 0;
    return CUDA_SUCCESS;
}

int cuCtxSetCacheConfig(int config)
{
    BH_CU_CALL();
    CUcontext ctx;
    (void)config; /* a preference, and there is no cache */
    return bh_cu_current(&ctx);
}

int cuCtxGetStreamPriorityRange(int *ret_least, int *ret_greatest)
{
    BH_CU_CALL();
    CUcontext ctx;
    int rc = bh_cu_current(&ctx);
    if (!rc && ret_least)
        *ret_least = 0;
    if (!rc && ret_greatest)
        *ret_greatest = -5;
    return rc;
}

int cuCtxEnablePeerAccess(CUcontext peer, unsigned flags)
{
    BH_CU_CALL();
    CUcontext ctx, other;
    int can = 0, rc = bh_cu_current(&ctx);
    rc = rc ? rc : bh_cu_context(peer, &other);
    if (rc || flags)
        return rc ? rc : CUDA_ERROR_INVALID_VALUE;
    rc = cuDeviceCanAccessPeer(&can, (CUdevice)(ctx->device - cu.devices),
                               (CUdevice)(other->device - cu.devices));
    return rc ? rc : can ? CUDA_SUCCESS : CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
}

int cuCtxDisablePeerAccess(CUcontext peer)
{
    BH_CU_CALL();
    CUcontext ctx, other;
    int rc = bh_cu_current(&ctx);
    return rc ? rc : bh_cu_context(peer, &other);
}
