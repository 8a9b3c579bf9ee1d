/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory.c - plain device memory: one piece per allocation, or several small ones in a piece.
 *
 * A piece is a multiple of 2 MiB, as the card's large pages are; what asks for a megabyte or less shares one.
 */
#include "simgpu/cuda/internal.h"

enum { UNITS = BH_CU_PAGE / BH_CU_UNIT, WORD = 64 };

/* --- small ones --- */

static bool unit_used(const struct bh_cu_slab *s, uint32_t i)
{
    return s->bits[i / WORD] >> i % WORD & 1;
}

static void units_set(struct bh_cu_slab *s, uint32_t first, uint32_t n, bool used)
{
    for (uint32_t i = first; i < first + n; i++)
        s->bits[i / WORD] = (s->bits[i / WORD] & ~(UINT64_C(1) << i % WORD)) | (uint64_t)used << i % WORD;
    s->used = used ? s->used + n : s->used - n;
}

/* The first run of n free units; UNITS: none. */
static uint32_t units_find(const struct bh_cu_slab *s, uint32_t n)
{
    uint32_t run = 0;
    if (UNITS - s->used < n)
        return UNITS;
    for (uint32_t i = 0; i < UNITS; i++) {
        if (s->bits[i / WORD] == UINT64_MAX && i % WORD == 0) {
            run = 0;
            i += WORD - 1;
            continue;
        }
        run = unit_used(s, i) ? 0 : run + 1;
        if (run == n)
            return i + 1 - n;
    }
    return UNITS;
}

/* A piece at an address of its own. */
static int piece_new(CUcontext ctx, enum bh_cu_shape shape, uint64_t bytes, uint64_t *ret_at,
                     struct bh_cu_mem **ret)
{
    struct bh_cu_mem *mem;
    const uint64_t at = bh_cu_va_take(bytes, 0);
    if (!at)
        return CUDA_ERROR_OUT_OF_MEMORY;
    int rc = bh_cu_mem_new(ctx, shape, bytes, &mem);
    if (!rc) {
        rc = bh_cu_map(at, bytes, mem, 0);
        bh_cu_mem_put(mem); /* the mapping holds it now */
    }
    if (rc)
        bh_cu_va_give(at, bytes);
    *ret_at = at;
    *ret = mem;
    return rc;
}

/* Under the context's lock. */
static int small_new(CUcontext ctx, uint64_t bytes, struct bh_cu_alloc *ret)
{
    const uint32_t n = (uint32_t)(BH_CU_ROUND(bytes, BH_CU_UNIT) / BH_CU_UNIT);
    struct bh_cu_slab *slab = NULL;
    uint32_t at = UNITS;
    for (size_t i = 0; i < ctx->slabs.n && at == UNITS; i++) {
        slab = ctx->slabs.at[i];
        at = units_find(slab, n);
    }
    if (at == UNITS) {
        struct bh_cu_mem *mem;
        uint64_t base;
        int rc = piece_new(ctx, BH_CU_SHAPE_PLAIN, BH_CU_PAGE, &base, &mem);
        if (rc)
            return rc;
        slab = bh_alloc(1, sizeof(*slab));
        slab->base = base;
        *bh_vec_push(&ctx->slabs) = slab;
        at = 0;
    }
    units_set(slab, at, n, true);
    *ret = (struct bh_cu_alloc){
        .base = slab->base + at * BH_CU_UNIT, .size = bytes, .what = BH_CU_SLAB, .ctx = ctx, .slab = slab};
    return CUDA_SUCCESS;
}

static void small_free(const struct bh_cu_alloc *a)
{
    CUcontext ctx = a->ctx;
    struct bh_cu_slab *slab = a->slab;
    bh_cu_lock(ctx);
    units_set(slab, (uint32_t)((a->base - slab->base) / BH_CU_UNIT),
              (uint32_t)(BH_CU_ROUND(a->size, BH_CU_UNIT) / BH_CU_UNIT), false);
    for (size_t i = 0; slab->used == 0 && i < ctx->slabs.n; i++)
        if (ctx->slabs.at[i] == slab) {
            ctx->slabs.at[i] = ctx->slabs.at[--ctx->slabs.n];
            bh_cu_unmap(slab->base, BH_CU_PAGE);
            bh_cu_va_give(slab->base, BH_CU_PAGE);
            free(slab);
            break;
        }
    bh_cu_unlock(ctx);
}

/* --- all of them --- */

int cuMemAlloc_v2(CUdeviceptr *ret, size_t bytes)
{
    BH_CU_CALL();
    CUcontext ctx;
    struct bh_cu_alloc a = {.size = bytes, .what = BH_CU_PLAIN};
    struct bh_cu_mem *mem;
    int rc = bh_cu_current(&ctx);
    if (rc || !ret || bytes == 0)
        return rc ? rc : CUDA_ERROR_INVALID_VALUE;
    if (bytes > UINT64_MAX / 2)
        return CUDA_ERROR_OUT_OF_MEMORY;
    a.ctx = ctx;
    bh_cu_lock(ctx);
    rc = bytes <= BH_CU_SMALL
             ? small_new(ctx, bytes, &a)
             : piece_new(ctx, BH_CU_SHAPE_PLAIN, BH_CU_ROUND(bytes, BH_CU_PAGE), &a.base, &mem);
    bh_cu_unlock(ctx);
    if (rc)
        return rc;
    bh_cu_alloc_add(&a);
    *ret = a.base;
    return CUDA_SUCCESS;
}
BH_CU_ALIAS(cuMemAlloc, cuMemAlloc_v2);

int cuMemAllocPitch_v2(CUdeviceptr *ret, size_t *ret_pitch, size_t width, size_t height, unsigned element)
{
    BH_CU_CALL();
    if (!ret_pitch || width == 0 || height == 0 || (element != 4 && element != 8 && element != 16))
        return CUDA_ERROR_INVALID_VALUE;
    const size_t pitch = BH_CU_ROUND(width, BH_CU_UNIT);
    if (height > SIZE_MAX / 4 / pitch)
        return CUDA_ERROR_OUT_OF_MEMORY;
    int rc = cuMemAlloc_v2(ret, pitch * height);
    if (!rc)
        *ret_pitch = pitch;
    return rc;
}
BH_CU_ALIAS(cuMemAllocPitch, cuMemAllocPitch_v2);

int bh_cu_release(const struct bh_cu_alloc *a)
{
    switch (a->what) {
    case BH_CU_SLAB:
        small_free(a);
        return CUDA_SUCCESS;
    case BH_CU_POOL:
    case BH_CU_GRAPH:
        return bh_cu_pool_free(a->pool, a->base);
    case BH_CU_MANAGED:
        return bh_cu_managed_free(a);
    case BH_CU_PLAIN:
    case BH_CU_TEXTURE:
    case BH_CU_IPC:
    case BH_CU_RESERVED:
        bh_cu_unmap(a->base, BH_CU_ROUND(a->size, BH_CU_PAGE));
        bh_cu_va_give(a->base, a->size);
        return CUDA_SUCCESS;
    case BH_CU_PINNED:
        return bh_cu_pinned_free(a);
    }
    return CUDA_ERROR_INVALID_VALUE;
}

void bh_cu_release_all(CUcontext ctx)
{
    struct bh_cu_alloc a;
    while (bh_cu_alloc_take_of(ctx, &a))
        (void)bh_cu_release(&a);
}

/* Work that may still use the memory is waited for, as the vendor's library does. */
int cuMemFree_v2(CUdeviceptr at)
{
    BH_CU_CALL();
    struct bh_cu_alloc a;
    CUcontext ctx;
    int rc = bh_cu_current(&ctx);
    if (rc || at == 0)
        return rc;
    if (!bh_cu_alloc_find(at, &a) || a.base != at || a.what == BH_CU_RESERVED || a.what == BH_CU_PINNED ||
        a.what == BH_CU_TEXTURE || a.what == BH_CU_IPC)
        return CUDA_ERROR_INVALID_VALUE;
    rc = bh_cu_drain(a.ctx);
    if (rc)
        return rc;
    return bh_cu_alloc_take(at, &a) ? bh_cu_release(&a) : CUDA_ERROR_INVALID_VALUE;
}
BH_CU_ALIAS(cuMemFree, cuMemFree_v2);

int cuMemGetInfo_v2(size_t *ret_free, size_t *ret_total)
{
    BH_CU_CALL();
    CUcontext ctx;
    struct rm_fb_info info = {.count = 2, .at = {{.index = RM_FB_HEAP_FREE}, {.index = RM_FB_HEAP_SIZE}}};
    int rc = bh_cu_current(&ctx);
    if (rc || !ret_free || !ret_total)
        return rc ? rc : CUDA_ERROR_INVALID_VALUE;
    bh_cu_lock(ctx);
    rc = bh_cu_control(ctx, ctx->subdevice, RM_CTRL_FB_GET_INFO_V2, &info, sizeof(info));
    bh_cu_unlock(ctx);
    *ret_free = (size_t)info.at[0].value << 10;
    *ret_total = (size_t)info.at[1].value << 10;
    return rc;
}
BH_CU_ALIAS(cuMemGetInfo, cuMemGetInfo_v2);

int cuMemGetAddressRange_v2(CUdeviceptr *ret_base, size_t *ret_size, CUdeviceptr at)
{
    BH_CU_CALL();
    struct bh_cu_alloc a;
    CUcontext ctx;
    int rc = bh_cu_current(&ctx);
    if (rc)
        return rc;
    if (!bh_cu_alloc_find(at, &a))
        return CUDA_ERROR_NOT_FOUND;
    if (ret_base)
        *ret_base = a.base;
    if (ret_size)
        *ret_size = a.size;
    return CUDA_SUCCESS;
}
BH_CU_ALIAS(cuMemGetAddressRange, cuMemGetAddressRange_v2);

int cuPointerGetAttribute(void *ret, int attribute, CUdeviceptr at)
{
    BH_CU_CALL();
    struct bh_cu_alloc a;
    int rc = bh_cu_enter();
    if (rc || !ret)
        return rc ? rc : CUDA_ERROR_INVALID_VALUE;
    if (!bh_cu_alloc_find(at, &a))
        return CUDA_ERROR_INVALID_VALUE;
    const bool host = a.what == BH_CU_PINNED || a.what == BH_CU_MANAGED;
    const uint32_t type = a.what == BH_CU_PINNED ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
    const uint32_t managed = a.what == BH_CU_MANAGED, mapped = 1;
    const int ordinal = a.ctx ? (int)(a.ctx->device - cu.devices) : 0;
    void *pointer = (void *)(uintptr_t)at;
    const struct {
        int attribute;
        const void *from;
        size_t n;
    } facts[] = {
        {CU_POINTER_CONTEXT, &a.ctx, sizeof(CUcontext)},
        {CU_POINTER_MEMORY_TYPE, &type, sizeof(type)},
        {CU_POINTER_DEVICE_POINTER, &at, sizeof(at)},
        {host ? CU_POINTER_HOST_POINTER : 0, &pointer, sizeof(pointer)},
        {CU_POINTER_IS_MANAGED, &managed, sizeof(managed)},
        {CU_POINTER_DEVICE_ORDINAL, &ordinal, sizeof(ordinal)},
        {CU_POINTER_RANGE_START, &a.base, sizeof(a.base)},
        {CU_POINTER_RANGE_SIZE, &a.size, sizeof(a.size)},
        {CU_POINTER_MAPPED, &mapped, sizeof(mapped)},
    };
    for (size_t i = 0; i < BH_COUNT_OF(facts); i++)
        if (facts[i].attribute == attribute) {
            memcpy(ret, facts[i].from, facts[i].n);
            return CUDA_SUCCESS;
        }
    return CUDA_ERROR_INVALID_VALUE;
}

int cuPointerGetAttributes(unsigned n, int *attributes, void **ret, CUdeviceptr at)
{
    BH_CU_CALL();
    if (!attributes || !ret)
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < n; i++)
        (void)cuPointerGetAttribute(ret[i], attributes[i],
                                    at); /* an unknown pointer leaves them as they are */
    return bh_cu_enter();
}
