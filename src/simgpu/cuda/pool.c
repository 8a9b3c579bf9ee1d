/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool.c - memory that is asked for and given back in a stream.
 *
 * A pool grows by parts of 32 MiB or more: a range of addresses with pieces of 32 MiB in it, as the vendor's library asks
 * for them. Allocations are cut from the parts. What is given back is used again; at a synchronization, parts
 * that nobody uses lose their memory down to the pool's threshold and keep their addresses. The order of streams
 * needs no more than the order of calls here, since contents move when they are asked to. A graph's allocations have a
 * part each, at an address that was promised.
 */
#include "simgpu/cuda/internal.h"

#define PIECE (UINT64_C(32) << 20)

struct span { /* a stretch of a part: used, or free and never beside another free one */
    uint64_t base, size;
    bool used;
};
struct part {
    uint64_t base, size;
    BH_VEC(struct bh_cu_mem *) pieces; /* none: given back, the addresses stay */
    BH_VEC(struct span) spans;
};

struct CUmemPoolHandle_st {
    pthread_mutex_t lock;
    struct bh_cu_device *device;
    int uvm;
    enum bh_cu_shape shape;
    BH_VEC(struct part) parts;
    uint64_t threshold, reserved, reserved_high, used, used_high, reuse[4];
    bool dying; /* destroyed while something of it was in use: ends with the last of it */
};

/* --- parts --- */

/* The recording shows some memory of the machine being set up before the first part ever. */
static int first_time(CUcontext ctx)
{
    const struct bh_recording *r = bh_cu_recording();
    struct bh_cu_device *d = ctx->device;
    size_t first, n;
    int rc = CUDA_SUCCESS;
    pthread_mutex_lock(&d->lock);
    const bool again = d->pooled;
    d->pooled = true;
    if (!again && bh_recording_section(r, "pool", &first, &n)) {
        size_t from = first, to;
        while (from < first + n && r->calls.at[from].kind != BH_CALL_ALLOC)
            from++;
        for (to = from; to < first + n; to++)
            if (r->calls.at[to].kind == BH_CALL_ALLOC && r->calls.at[to].what == RM_CLASS_MEMORY_LOCAL)
                break;
        rc = bh_play_calls(&d->play, r, from, to - from);
    }
    pthread_mutex_unlock(&d->lock);
    return rc;
}

static void part_strip(CUmemoryPool pool, struct part *p)
{
    struct bh_cu_back back;
    while (p->pieces.n > 0) {
        struct bh_cu_mem *mem = p->pieces.at[--p->pieces.n];
        const uint64_t at = p->base + p->pieces.n * PIECE;
        if (bh_cu_back_take(at, PIECE, &back)) {
            bh_cu_unmap_from(at, PIECE, mem);
            pool->reserved -= PIECE;
        }
        bh_cu_mem_put(mem);
    }
}

/* All pieces are obtained before the first is mapped; if one is missing, none is kept. */
static int part_back(CUmemoryPool pool, CUcontext ctx, struct part *p)
{
    int rc = CUDA_SUCCESS;
    for (uint64_t at = 0; !rc && at < p->size; at += PIECE) {
        struct bh_cu_mem *mem;
        rc = bh_cu_mem_new(ctx, pool->shape, PIECE, &mem);
        if (!rc)
            *bh_vec_push(&p->pieces) = mem;
    }
    for (size_t i = 0; !rc && i < p->pieces.n; i++) {
        rc = bh_cu_map_into(p->base + i * PIECE, PIECE, p->pieces.at[i], 0);
        if (!rc) {
            bh_cu_back_add(p->base + i * PIECE, PIECE, p->pieces.at[i], 0);
            pool->reserved += PIECE;
        }
    }
    if (rc)
        part_strip(pool, p);
    pool->reserved_high = pool->reserved > pool->reserved_high ? pool->reserved : pool->reserved_high;
    return rc;
}

/* A range of the UVM file holds one mapping here, so every piece has one of its own. */
static int part_ranges(CUmemoryPool pool, const struct part *p)
{
    int rc = CUDA_SUCCESS;
    uint64_t made = 0;
    for (; !rc && made < p->size; made += rc ? 0 : PIECE)
        rc = bh_cu_uvm(pool->uvm, UVM_CREATE_EXTERNAL_RANGE, p->base + made, PIECE);
    while (rc && made > 0) {
        made -= PIECE;
        (void)bh_cu_uvm(pool->uvm, UVM_FREE, p->base + made, PIECE);
    }
    return rc;
}

static void part_unranges(CUmemoryPool pool, const struct part *p)
{
    for (uint64_t at = 0; at < p->size; at += PIECE)
        (void)bh_cu_uvm(pool->uvm, UVM_FREE, p->base + at, PIECE);
}

/* at: where it must be; 0: anywhere. The part that was given back and fits best is used again. */
static int part_new(CUmemoryPool pool, CUcontext ctx, uint64_t bytes, uint64_t at, struct part **ret)
{
    const uint64_t size = BH_CU_ROUND(bytes, PIECE);
    for (size_t i = 0; i < pool->parts.n; i++) {
        struct part *p = &pool->parts.at[i];
        if (p->pieces.n == 0 && (at ? p->base == at : p->size == size)) {
            *ret = p;
            return part_back(pool, ctx, p);
        }
    }
    struct part fresh = {.base = at ? at : bh_cu_va_take(size, 0), .size = size};
    if (!fresh.base)
        return CUDA_ERROR_OUT_OF_MEMORY;
    int rc = part_ranges(pool, &fresh);
    if (!rc) {
        rc = first_time(ctx);
        rc = rc ? rc : part_back(pool, ctx, &fresh);
        if (rc)
            part_unranges(pool, &fresh);
    }
    if (rc) {
        bh_vec_fini(&fresh.pieces);
        if (!at)
            bh_cu_va_give(fresh.base, fresh.size);
        return rc;
    }
    *bh_vec_push(&fresh.spans) = (struct span){fresh.base, fresh.size, false};
    *ret = bh_vec_push(&pool->parts);
    **ret = fresh;
    return CUDA_SUCCESS;
}

static bool part_idle(const struct part *p)
{
    return p->spans.n == 1 && !p->spans.at[0].used;
}

static void part_end(CUmemoryPool pool, struct part *p)
{
    part_strip(pool, p);
    part_unranges(pool, p);
    bh_cu_va_give(p->base, p->size);
    bh_vec_fini(&p->pieces);
    bh_vec_fini(&p->spans);
}

/* --- spans --- */

static void span_cut(struct part *p, size_t i, uint64_t size)
{
    const struct span s = p->spans.at[i];
    if (s.size > size) {
        (void)bh_vec_push(&p->spans);
        memmove(&p->spans.at[i + 2], &p->spans.at[i + 1], (p->spans.n - i - 2) * sizeof(s));
        p->spans.at[i + 1] = (struct span){s.base + size, s.size - size, false};
    }
    p->spans.at[i] = (struct span){s.base, size, true};
}

static void span_join(struct part *p, size_t i)
{
    if (i + 1 >= p->spans.n || p->spans.at[i].used || p->spans.at[i + 1].used)
        return;
    p->spans.at[i].size += p->spans.at[i + 1].size;
    memmove(&p->spans.at[i + 1], &p->spans.at[i + 2], (p->spans.n - i - 2) * sizeof(p->spans.at[0]));
    p->spans.n--;
}

/* First fit among what the pool has. */
static uint64_t span_take(CUmemoryPool pool, uint64_t size)
{
    for (size_t i = 0; i < pool->parts.n; i++) {
        struct part *p = &pool->parts.at[i];
        for (size_t k = 0; p->pieces.n && k < p->spans.n; k++)
            if (!p->spans.at[k].used && p->spans.at[k].size >= size) {
                span_cut(p, k, size);
                return p->spans.at[k].base;
            }
    }
    return 0;
}

static void pool_uses(CUmemoryPool pool, uint64_t size)
{
    pool->used += size;
    pool->used_high = pool->used > pool->used_high ? pool->used : pool->used_high;
}

static int pool_take(CUmemoryPool pool, CUcontext ctx, uint64_t bytes, uint64_t *ret)
{
    const uint64_t size = BH_CU_ROUND(bytes, BH_CU_UNIT);
    struct part *p;
    int rc = CUDA_SUCCESS;
    pthread_mutex_lock(&pool->lock);
    *ret = span_take(pool, size);
    if (!*ret) {
        rc = part_new(pool, ctx, size, 0, &p);
        *ret = rc ? 0 : span_take(pool, size);
    }
    if (!rc)
        pool_uses(pool, size);
    pthread_mutex_unlock(&pool->lock);
    return rc;
}

static void pool_end(CUmemoryPool pool)
{
    for (size_t i = 0; i < pool->parts.n; i++)
        part_end(pool, &pool->parts.at[i]);
    bh_vec_fini(&pool->parts);
    pthread_mutex_destroy(&pool->lock);
    free(pool);
}

int bh_cu_pool_free(CUmemoryPool pool, uint64_t at)
{
    int rc = CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&pool->lock);
    for (size_t i = 0; i < pool->parts.n && rc; i++) {
        struct part *p = &pool->parts.at[i];
        for (size_t k = 0; rc && at >= p->base && at < p->base + p->size && k < p->spans.n; k++) {
            if (p->spans.at[k].base != at || !p->spans.at[k].used)
                continue;
            p->spans.at[k].used = false;
            pool->used -= p->spans.at[k].size;
            span_join(p, k);
            if (k > 0)
                span_join(p, k - 1);
            rc = CUDA_SUCCESS;
        }
    }
    const bool last = pool->dying && pool->used == 0;
    pthread_mutex_unlock(&pool->lock);
    if (last)
        pool_end(pool);
    return rc;
}

/* --- pools --- */

static CUmemoryPool pool_new(struct bh_cu_device *d, int uvm, enum bh_cu_shape shape)
{
    CUmemoryPool pool = bh_alloc(1, sizeof(*pool));
    pthread_mutex_init(&pool->lock, NULL);
    pool->device = d;
    pool->uvm = uvm;
    pool->shape = shape;
    for (size_t i = 1; i < BH_COUNT_OF(pool->reuse); i++)
        pool->reuse[i] = 1;
    return pool;
}

static void pool_trim(CUmemoryPool pool, uint64_t keep)
{
    pthread_mutex_lock(&pool->lock);
    for (size_t i = pool->parts.n; i-- > 0 && pool->reserved > keep;)
        if (part_idle(&pool->parts.at[i]))
            part_strip(pool, &pool->parts.at[i]);
    pthread_mutex_unlock(&pool->lock);
}

/* One of the device's own, made when it is first asked for. The UVM file is the process's, so any context's will do. */
static int own_pool(struct bh_cu_device *d, bool graph, CUmemoryPool *ret)
{
    int rc = bh_cu_device_start(d);
    if (rc)
        return rc;
    pthread_mutex_lock(&d->lock);
    CUmemoryPool *slot = graph ? &d->graph_pool : &d->default_pool;
    if (!*slot) {
        *slot =
            pool_new(d, bh_play_file(&d->play, BH_FILE_UVM), graph ? BH_CU_SHAPE_GRAPH : BH_CU_SHAPE_POOL);
        if (!graph)
            bh_cu_handle_add(BH_CU_MEMPOOL, *slot);
    }
    *ret = *slot;
    pthread_mutex_unlock(&d->lock);
    return CUDA_SUCCESS;
}

void bh_cu_pools_settle(CUcontext ctx)
{
    struct bh_cu_device *d = ctx->device;
    bool more = true;
    for (size_t i = 0; more; i++) {
        pthread_mutex_lock(&d->lock);
        CUmemoryPool pool = i == 0 ? d->default_pool : i <= d->pools.n ? d->pools.at[i - 1] : NULL;
        more = i <= d->pools.n;
        pthread_mutex_unlock(&d->lock);
        if (pool && bh_cu_handle_ok(BH_CU_MEMPOOL, pool))
            pool_trim(pool, pool->threshold);
    }
}

bool bh_cu_pools_empty(const struct bh_cu_device *d)
{
    bool empty = (!d->default_pool || d->default_pool->parts.n == 0) &&
                 (!d->graph_pool || d->graph_pool->parts.n == 0);
    for (size_t i = 0; i < d->pools.n; i++)
        empty = empty && d->pools.at[i]->parts.n == 0;
    return empty;
}

int cuDeviceGetDefaultMemPool(CUmemoryPool *ret, CUdevice device)
{
    BH_CU_CALL();
    struct bh_cu_device *d;
    int rc = bh_cu_device(device, &d);
    if (rc || !ret)
        return rc ? rc : CUDA_ERROR_INVALID_VALUE;
    return own_pool(d, false, ret);
}

int cuDeviceGetMemPool(CUmemoryPool *ret, CUdevice device)
{
    BH_CU_CALL();
    struct bh_cu_device *d;
    int rc = bh_cu_device(device, &d);
    if (rc || !ret)
        return rc ? rc : CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&d->lock);
    *ret = d->pool;
    pthread_mutex_unlock(&d->lock);
    return *ret ? CUDA_SUCCESS : own_pool(d, false, ret);
}

int cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool)
{
    BH_CU_CALL();
    struct bh_cu_device *d;
    int rc = bh_cu_device(device, &d);
    if (rc || !bh_cu_handle_ok(BH_CU_MEMPOOL, pool) || pool->device != d)
        return rc ? rc : CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&d->lock);
    d->pool = pool;
    pthread_mutex_unlock(&d->lock);
    return CUDA_SUCCESS;
}

int cuMemPoolCreate(CUmemoryPool *ret, const CUmemPoolProps *props)
{
    BH_CU_CALL();
    struct bh_cu_device *d;
    int rc = bh_cu_enter();
    if (rc || !ret || !props || props->type != CU_MEM_ALLOCATION_TYPE_PINNED ||
        props->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
        return rc ? rc : CUDA_ERROR_INVALID_VALUE;
    if (props->handle_types)
        return CUDA_ERROR_NOT_SUPPORTED;
    rc = bh_cu_device(props->location.id, &d);
    rc = rc ? rc : bh_cu_device_start(d);
    if (rc)
        return rc;
    *ret = pool_new(d, bh_play_file(&d->play, BH_FILE_UVM), BH_CU_SHAPE_POOL);
    bh_cu_handle_add(BH_CU_MEMPOOL, *ret);
    pthread_mutex_lock(&d->lock);
    *bh_vec_push(&d->pools) = *ret;
    pthread_mutex_unlock(&d->lock);
    return CUDA_SUCCESS;
}

int cuMemPoolDestroy(CUmemoryPool pool)
{
    BH_CU_CALL();
    int rc = bh_cu_enter();
    if (rc || !bh_cu_handle_ok(BH_CU_MEMPOOL, pool) || pool == pool->device->default_pool)
        return rc ? rc : CUDA_ERROR_INVALID_VALUE;
    struct bh_cu_device *d = pool->device;
    pthread_mutex_lock(&d->lock);
    for (size_t i = 0; i < d->pools.n; i++)
        if (d->pools.at[i] == pool)
            d->pools.at[i--] = d->pools.at[--d->pools.n];
    if (d->pool == pool)
        d->pool = NULL;
    pthread_mutex_unlock(&d->lock);
    if (!bh_cu_handle_remove(BH_CU_MEMPOOL, pool))
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&pool->lock);
    pool->dying = true;
    const bool idle = pool->used == 0;
    pthread_mutex_unlock(&pool->lock);
    if (idle)
        pool_end(pool);
    return CUDA_SUCCESS;
}

int cuMemPoolTrimTo(CUmemoryPool pool, size_t keep)
{
    BH_CU_CALL();
    int rc = bh_cu_enter();
    if (rc || !bh_cu_handle_ok(BH_CU_MEMPOOL, pool))
        return rc ? rc : CUDA_ERROR_INVALID_VALUE;
    pool_trim(pool, keep);
    return CUDA_SUCCESS;
}

/* The three about reuse are numbers of 32 bits, the others of 64. */
int cuMemPoolSetAttribute(CUmemoryPool pool, int attribute, void *value)
{
    BH_CU_CALL();
    int rc = bh_cu_enter();
    if (rc || !value || !bh_cu_handle_ok(BH_CU_MEMPOOL, pool))
        return rc ? rc : CUDA_ERROR_INVALID_VALUE;
    uint64_t wide = 0;
    uint32_t narrow = 0;
    memcpy(&narrow, value, sizeof(narrow));
    if (attribute > CU_POOL_REUSE_INTERNAL)
        memcpy(&wide, value, sizeof(wide));
    pthread_mutex_lock(&pool->lock);
    if (attribute >= CU_POOL_REUSE_FOLLOW_EVENT && attribute <= CU_POOL_REUSE_INTERNAL)
        pool->reuse[attribute] = narrow;
    else if (attribute == CU_POOL_RELEASE_THRESHOLD)
        pool->threshold = wide;
    else if (attribute == CU_POOL_RESERVED_HIGH && wide == 0)
        pool->reserved_high = pool->reserved;
    else if (attribute == CU_POOL_USED_HIGH && wide == 0)
        pool->used_high = pool->used;
    else
        rc = CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_unlock(&pool->lock);
    return rc;
}

int cuMemPoolGetAttribute(CUmemoryPool pool, int attribute, void *ret)
{
    BH_CU_CALL();
    int rc = bh_cu_enter();
    if (rc || !ret || !bh_cu_handle_ok(BH_CU_MEMPOOL, pool))
        return rc ? rc : CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&pool->lock);
    const uint64_t values[] = {[CU_POOL_RELEASE_THRESHOLD] = pool->threshold,
                               [CU_POOL_RESERVED_CURRENT] = pool->reserved,
                               [CU_POOL_RESERVED_HIGH] = pool->reserved_high,
                               [CU_POOL_USED_CURRENT] = pool->used,
                               [CU_POOL_USED_HIGH] = pool->used_high};
    if (attribute >= CU_POOL_REUSE_FOLLOW_EVENT && attribute <= CU_POOL_REUSE_INTERNAL) {
        const uint32_t narrow = (uint32_t)pool->reuse[attribute];
        memcpy(ret, &narrow, sizeof(narrow));
    } else if (attribute >= CU_POOL_RELEASE_THRESHOLD && attribute <= CU_POOL_USED_HIGH) {
        memcpy(ret, &values[attribute], sizeof(values[0]));
    } else {
        rc = CUDA_ERROR_INVALID_VALUE;
    }
    pthread_mutex_unlock(&pool->lock);
    return rc;
}

int cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *access, size_t n)
{
    BH_CU_CALL();
    int rc = bh_cu_enter();
    if (rc || !access || n == 0 || !bh_cu_handle_ok(BH_CU_MEMPOOL, pool))
        return rc ? rc : CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

int cuMemPoolGetAccess(int *ret, CUmemoryPool pool, CUmemLocation *where)
{
    BH_CU_CALL();
    struct bh_cu_device *d;
    int rc = bh_cu_enter();
    if (rc || !ret || !where || !bh_cu_handle_ok(BH_CU_MEMPOOL, pool))
        return rc ? rc : CUDA_ERROR_INVALID_VALUE;
    rc = bh_cu_device(where->id, &d);
    if (!rc)
        *ret = d == pool->device ? CU_MEM_ACCESS_READWRITE : CU_MEM_ACCESS_NONE;
    return rc;
}

/* --- allocations --- */

int cuMemAllocFromPoolAsync(CUdeviceptr *ret, size_t bytes, CUmemoryPool pool, CUstream stream)
{
    BH_CU_CALL();
    CUcontext ctx;
    CUstream s;
    struct bh_cu_alloc a = {.size = bytes, .what = BH_CU_POOL, .pool = pool};
    int rc = bh_cu_current(&ctx);
    rc = rc ? rc : bh_cu_stream(ctx, stream, &s);
    if (rc || !ret || bytes == 0 || !bh_cu_handle_ok(BH_CU_MEMPOOL, pool) || pool->device != s->ctx->device)
        return rc ? rc : CUDA_ERROR_INVALID_VALUE;
    if (s->capture)
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    if (bytes > UINT64_MAX / 2)
        return CUDA_ERROR_OUT_OF_MEMORY;
    a.ctx = s->ctx;
    rc = pool_take(pool, s->ctx, bytes, &a.base);
    if (rc)
        return rc;
    bh_cu_alloc_add(&a);
    *ret = a.base;
    return CUDA_SUCCESS;
}

int cuMemAllocAsync(CUdeviceptr *ret, size_t bytes, CUstream stream)
{
    BH_CU_CALL();
    CUcontext ctx;
    CUstream s;
    CUmemoryPool pool;
    int rc = bh_cu_current(&ctx);
    rc = rc ? rc : bh_cu_stream(ctx, stream, &s);
    rc = rc ? rc : cuDeviceGetMemPool(&pool, (CUdevice)(s->ctx->device - cu.devices));
    return rc ? rc : cuMemAllocFromPoolAsync(ret, bytes, pool, stream);
}

int cuMemFreeAsync(CUdeviceptr at, CUstream stream)
{
    BH_CU_CALL();
    CUcontext ctx;
    CUstream s;
    struct bh_cu_alloc a;
    int rc = bh_cu_current(&ctx);
    rc = rc ? rc : bh_cu_stream(ctx, stream, &s);
    if (rc || at == 0)
        return rc;
    if (s->capture)
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    if (!bh_cu_alloc_find(at, &a) || a.base != at ||
        (a.what != BH_CU_POOL && a.what != BH_CU_PLAIN && a.what != BH_CU_SLAB && a.what != BH_CU_GRAPH))
        return CUDA_ERROR_INVALID_VALUE;
    return bh_cu_alloc_take(at, &a) ? bh_cu_release(&a) : CUDA_ERROR_INVALID_VALUE;
}

/* --- memory of graphs --- */

/* The part at a promised address; the first time it is made. */
static int graph_part(CUmemoryPool pool, CUcontext ctx, uint64_t bytes, uint64_t at)
{
    struct part *p = NULL;
    for (size_t i = 0; i < pool->parts.n && !p; i++)
        p = pool->parts.at[i].base == at && pool->parts.at[i].pieces.n ? &pool->parts.at[i] : NULL;
    int rc = p ? CUDA_SUCCESS : part_new(pool, ctx, bytes, at, &p);
    if (!rc && p->spans.at[0].used)
        rc = CUDA_ERROR_INVALID_VALUE; /* what a graph asked for is given back before it is asked for again */
    if (!rc) {
        p->spans.at[0].used = true;
        pool_uses(pool, p->size);
    }
    return rc;
}

int bh_cu_graph_back(CUcontext ctx, uint64_t at, uint64_t bytes)
{
    struct bh_cu_alloc a = {.base = at, .size = bytes, .what = BH_CU_GRAPH, .ctx = ctx};
    int rc = own_pool(ctx->device, true, &a.pool);
    if (rc)
        return rc;
    pthread_mutex_lock(&a.pool->lock);
    rc = graph_part(a.pool, ctx, bytes, at);
    pthread_mutex_unlock(&a.pool->lock);
    if (!rc)
        bh_cu_alloc_add(&a);
    return rc;
}

uint64_t bh_cu_graph_address(uint64_t bytes)
{
    return bh_cu_va_take(BH_CU_ROUND(bytes, PIECE), 0);
}

int cuDeviceGraphMemTrim(CUdevice device)
{
    BH_CU_CALL();
    struct bh_cu_device *d;
    int rc = bh_cu_device(device, &d);
    if (!rc && d->graph_pool)
        pool_trim(d->graph_pool, 0);
    return rc;
}

int cuDeviceGetGraphMemAttribute(CUdevice device, int attribute, void *ret)
{
    BH_CU_CALL();
    struct bh_cu_device *d;
    int rc = bh_cu_device(device, &d);
    if (rc || !ret || attribute < 0 || attribute > 3)
        return rc ? rc : CUDA_ERROR_INVALID_VALUE;
    const struct CUmemPoolHandle_st none = {0}, *pool = d->graph_pool ? d->graph_pool : &none;
    const uint64_t values[] = {pool->used, pool->used_high, pool->reserved, pool->reserved_high};
    memcpy(ret, &values[attribute], sizeof(values[0]));
    return CUDA_SUCCESS;
}
