/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vmm.c - addresses and memory apart: reserve, create, map, release in any order.
 *
 * A handle released while it is mapped keeps its memory until the mapping goes. Memory belongs to the process, not to a
 * context; it is made below the device's own one.
 */
#include "simgpu/cuda/internal.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

/* --- addresses --- */

int cuMemAddressReserve(CUdeviceptr *ret, size_t bytes, size_t alignment, CUdeviceptr want, uint64_t flags)
{
    BH_CU_CALL();
    int rc = bh_cu_enter();
    (void)want; /* a wish, and the library may choose */
    if (rc || !ret || bytes == 0 || bytes % BH_CU_PAGE || (alignment & (alignment - 1)) || flags)
        return rc ? rc : CUDA_ERROR_INVALID_VALUE;
    const struct bh_cu_alloc a = {
        .base = bh_cu_va_take(bytes, alignment), .size = bytes, .what = BH_CU_RESERVED};
    if (!a.base)
        return CUDA_ERROR_OUT_OF_MEMORY;
    bh_cu_alloc_add(&a);
    *ret = a.base;
    return CUDA_SUCCESS;
}

static bool reserved(uint64_t at, size_t bytes, struct bh_cu_alloc *ret)
{
    return bytes && bytes % BH_CU_PAGE == 0 && at % BH_CU_PAGE == 0 && bh_cu_alloc_find(at, ret) &&
           ret->what == BH_CU_RESERVED && bytes <= ret->base + ret->size - at;
}

int cuMemAddressFree(CUdeviceptr at, size_t bytes)
{
    BH_CU_CALL();
    struct bh_cu_alloc a;
    int rc = bh_cu_enter();
    if (rc || !reserved(at, bytes, &a) || a.base != at || a.size != bytes || bh_cu_back_overlaps(at, bytes))
        return rc ? rc : CUDA_ERROR_INVALID_VALUE;
    return bh_cu_alloc_take(at, &a) ? bh_cu_release(&a) : CUDA_ERROR_INVALID_VALUE;
}

/* --- memory --- */

static int prop_check(const CUmemAllocationProp *prop, struct bh_cu_device **ret)
{
    if (!prop || prop->type != CU_MEM_ALLOCATION_TYPE_PINNED)
        return CUDA_ERROR_INVALID_VALUE;
    if (prop->location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
        prop->handle_types & ~CU_MEM_HANDLE_TYPE_POSIX_FD)
        return CUDA_ERROR_NOT_SUPPORTED;
    return bh_cu_device(prop->location.id, ret);
}

/* A context on the device: the thread's own if it is there, else the device's. */
static int context_on(struct bh_cu_device *d, CUcontext *ret)
{
    int rc = bh_cu_current(ret);
    return !rc && (*ret)->device == d ? CUDA_SUCCESS : bh_cu_primary(d, ret);
}

int cuMemGetAllocationGranularity(size_t *ret, const CUmemAllocationProp *prop, int option)
{
    BH_CU_CALL();
    struct bh_cu_device *d;
    int rc = bh_cu_enter();
    rc = rc ? rc : prop_check(prop, &d);
    if (rc || !ret || option < 0 || option > 1)
        return rc ? rc : CUDA_ERROR_INVALID_VALUE;
    *ret = BH_CU_PAGE;
    return CUDA_SUCCESS;
}

int cuMemCreate(CUmemGenericAllocationHandle *ret, size_t bytes, const CUmemAllocationProp *prop,
                uint64_t flags)
{
    BH_CU_CALL();
    struct bh_cu_device *d;
    struct bh_cu_mem *mem;
    CUcontext ctx;
    int rc = bh_cu_enter();
    rc = rc ? rc : prop_check(prop, &d);
    if (rc || !ret || bytes == 0 || bytes % BH_CU_PAGE || flags)
        return rc ? rc : CUDA_ERROR_INVALID_VALUE;
    rc = context_on(d, &ctx);
    rc = rc ? rc : bh_cu_mem_new(ctx, BH_CU_SHAPE_VMM, bytes, &mem);
    if (rc)
        return rc;
    mem->prop = *prop;
    bh_cu_handle_add(BH_CU_MEM, mem);
    *ret = (uint64_t)(uintptr_t)mem;
    return CUDA_SUCCESS;
}

static int mem_of(CUmemGenericAllocationHandle handle, struct bh_cu_mem **ret)
{
    int rc = bh_cu_enter();
    *ret = (struct bh_cu_mem *)(uintptr_t)handle;
    return rc ? rc : bh_cu_handle_ok(BH_CU_MEM, *ret) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

int cuMemRelease(CUmemGenericAllocationHandle handle)
{
    BH_CU_CALL();
    struct bh_cu_mem *mem;
    int rc = mem_of(handle, &mem);
    if (rc)
        return rc;
    pthread_mutex_lock(&cu.lock);
    const bool retained = mem->retained > 0;
    mem->retained -= retained;
    pthread_mutex_unlock(&cu.lock);
    if (!retained && !bh_cu_handle_remove(BH_CU_MEM, mem))
        return CUDA_ERROR_INVALID_VALUE;
    bh_cu_mem_put(mem);
    return CUDA_SUCCESS;
}

int cuMemMap(CUdeviceptr at, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle, uint64_t flags)
{
    BH_CU_CALL();
    struct bh_cu_alloc a;
    struct bh_cu_mem *mem;
    int rc = mem_of(handle, &mem);
    if (rc || flags || offset || !reserved(at, bytes, &a) || bytes > mem->bytes)
        return rc ? rc : CUDA_ERROR_INVALID_VALUE;
    if (bh_cu_back_overlaps(at, bytes))
        return CUDA_ERROR_INVALID_VALUE;
    return bh_cu_map(at, bytes, mem, 0);
}

int cuMemUnmap(CUdeviceptr at, size_t bytes)
{
    BH_CU_CALL();
    struct bh_cu_alloc a;
    int rc = bh_cu_enter();
    if (rc || !reserved(at, bytes, &a))
        return rc ? rc : CUDA_ERROR_INVALID_VALUE;
    return bh_cu_unmap(at, bytes) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* Access is all or nothing here: mapped memory is reachable from its device. */
int cuMemSetAccess(CUdeviceptr at, size_t bytes, const CUmemAccessDesc *access, size_t n)
{
    BH_CU_CALL();
    struct bh_cu_alloc a;
    struct bh_cu_back back;
    int rc = bh_cu_enter();
    if (rc || !access || n == 0 || !reserved(at, bytes, &a) || !bh_cu_back_find(at, &back))
        return rc ? rc : CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

int cuMemGetAccess(uint64_t *ret, const CUmemLocation *where, CUdeviceptr at)
{
    BH_CU_CALL();
    struct bh_cu_back back;
    struct bh_cu_device *d;
    int rc = bh_cu_enter();
    if (rc || !ret || !where || !bh_cu_back_find(at, &back))
        return rc ? rc : CUDA_ERROR_INVALID_VALUE;
    rc = bh_cu_device(where->id, &d);
    if (!rc)
        *ret = back.mem->device == d ? CU_MEM_ACCESS_READWRITE : CU_MEM_ACCESS_NONE;
    return rc;
}

int cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *ret, CUmemGenericAllocationHandle handle)
{
    BH_CU_CALL();
    struct bh_cu_mem *mem;
    int rc = mem_of(handle, &mem);
    if (rc || !ret)
        return rc ? rc : CUDA_ERROR_INVALID_VALUE;
    *ret = mem->prop;
    return CUDA_SUCCESS;
}

int cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *ret, void *at)
{
    BH_CU_CALL();
    struct bh_cu_back back;
    int rc = bh_cu_enter();
    if (rc || !ret || !bh_cu_back_find((uint64_t)(uintptr_t)at, &back) || !back.mem->prop.type)
        return rc ? rc : CUDA_ERROR_INVALID_VALUE;
    if (bh_cu_handle_ok(BH_CU_MEM, back.mem)) {
        pthread_mutex_lock(&cu.lock);
        back.mem->retained++;
        pthread_mutex_unlock(&cu.lock);
    } else {
        bh_cu_handle_add(BH_CU_MEM, back.mem);
    }
    bh_cu_mem_get(back.mem);
    *ret = (uint64_t)(uintptr_t)back.mem;
    return CUDA_SUCCESS;
}
