/* SPDX-License-Identifier: Apache-2.0 */
/*
 * managed.c - memory that both sides use through one address.
 *
 * It is a mapping of the UVM file and, unlike other device memory, the host may follow its pointers. It takes room on
 * the card from the moment the card uses it: a fill, a copy or a prefetch there. The calls beside the mapping set
 * and take back how its pages move, as the recording shows them.
 */
#include "simgpu/cuda/internal.h"

#include <errno.h>
#include <sys/mman.h>

enum { PAGES_BYTES_PER_NS = 400 }; /* pages that nobody has written yet */

int cuMemAllocManaged(CUdeviceptr *ret, size_t bytes, unsigned flags)
{
    BH_CU_CALL();
    CUcontext ctx;
    uint64_t range;
    int rc = bh_cu_current(&ctx);
    if (rc || !ret || bytes == 0 || (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST))
        return rc ? rc : CUDA_ERROR_INVALID_VALUE;
    if (bytes > SIZE_MAX / 2)
        return CUDA_ERROR_OUT_OF_MEMORY;
    const uint64_t size = BH_CU_ROUND(bytes, BH_CU_PAGE);
    void *at = bh_sim_mmap(ctx->uvm, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, &range);
    if (at == MAP_FAILED)
        return bh_cu_from_errno(errno);
    const struct bh_cu_alloc a = {.base = (uint64_t)(uintptr_t)at,
                                  .size = size,
                                  .what = BH_CU_MANAGED,
                                  .ctx = ctx,
                                  .range = range,
                                  .flags = flags};
    (void)bh_cu_uvm(ctx->uvm, UVM_VALIDATE_VA_RANGE, a.base, size);
    (void)bh_cu_uvm(ctx->uvm, UVM_DISABLE_READ_DUPLICATION, a.base, size);
    bh_cu_alloc_add(&a);
    *ret = a.base;
    return CUDA_SUCCESS;
}

int bh_cu_managed_free(const struct bh_cu_alloc *a)
{
    static const uint32_t undo[] = {UVM_SET_RANGE_GROUP, UVM_DISABLE_READ_DUPLICATION, UVM_UNSET_ACCESSED_BY,
                                    UVM_UNSET_ACCESSED_BY, UVM_UNSET_PREFERRED_LOCATION};
    for (size_t i = 0; i < BH_COUNT_OF(undo); i++)
        (void)bh_cu_uvm(a->ctx->uvm, undo[i], a->base, a->size);
    return bh_sim_munmap(a->ctx->uvm, (void *)(uintptr_t)a->base, a->size, a->range) < 0 ? CUDA_ERROR_UNKNOWN
                                                                                         : CUDA_SUCCESS;
}

int bh_cu_managed_touch(CUcontext ctx, const struct bh_cu_alloc *a)
{
    if (!bh_cu_alloc_touch(a->base, ctx->device->gpu))
        return CUDA_SUCCESS;
    return bh_sim_touch(a->ctx->uvm, a->range, ctx->device->gpu) < 0 ? bh_cu_from_errno(errno) : CUDA_SUCCESS;
}

static int find(uint64_t at, size_t bytes, CUcontext *ret_ctx, struct bh_cu_alloc *ret)
{
    int rc = bh_cu_current(ret_ctx);
    if (rc)
        return rc;
    if (!bh_cu_alloc_find(at, ret) || ret->what != BH_CU_MANAGED || bytes == 0 ||
        bytes > ret->base + ret->size - at)
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

int cuMemPrefetchAsync(CUdeviceptr at, size_t bytes, CUdevice device, CUstream stream)
{
    BH_CU_CALL();
    struct bh_cu_alloc a;
    struct bh_cu_device *d;
    CUcontext ctx;
    CUstream s;
    int rc = find(at, bytes, &ctx, &a);
    rc = rc ? rc : bh_cu_stream(ctx, stream, &s);
    if (!rc && device != CU_DEVICE_CPU)
        rc = bh_cu_device(device, &d);
    if (!rc && device != CU_DEVICE_CPU && bh_cu_alloc_touch(a.base, d->gpu))
        rc = bh_sim_touch(a.ctx->uvm, a.range, d->gpu) < 0 ? bh_cu_from_errno(errno) : CUDA_SUCCESS;
    return rc ? rc : bh_cu_submit(s, bytes / PAGES_BYTES_PER_NS, false);
}

int cuMemPrefetchAsync_v2(CUdeviceptr at, size_t bytes, CUmemLocation where, unsigned flags, CUstream stream)
{
    BH_CU_CALL();
    if (flags || (where.type != CU_MEM_LOCATION_TYPE_DEVICE && where.type != CU_MEM_LOCATION_TYPE_HOST))
        return CUDA_ERROR_INVALID_VALUE;
    return cuMemPrefetchAsync(at, bytes, where.type == CU_MEM_LOCATION_TYPE_HOST ? CU_DEVICE_CPU : where.id,
                              stream);
}

/* Advice changes where pages go, and there is one place for all of them. */
int cuMemAdvise(CUdeviceptr at, size_t bytes, int advice, CUdevice device)
{
    BH_CU_CALL();
    struct bh_cu_alloc a;
    CUcontext ctx;
    (void)device;
    int rc = find(at, bytes, &ctx, &a);
    return rc ? rc : advice < 1 || advice > 6 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

int cuMemAdvise_v2(CUdeviceptr at, size_t bytes, int advice, CUmemLocation where)
{
    BH_CU_CALL();
    return cuMemAdvise(at, bytes, advice, where.id);
}
