/* SPDX-License-Identifier: Apache-2.0 */
/* host.c - memory of this machine that the card may reach: made here, or the caller's own. */
#include "simgpu/cuda/internal.h"

#include <sys/mman.h>
#include <unistd.h>

static uint64_t mapped_size(uint64_t size)
{
    return BH_CU_ROUND(size, (uint64_t)sysconf(_SC_PAGESIZE));
}

/* The card reaches the pages at the address they have here. */
static int pinned_add(CUcontext ctx, void *at, uint64_t size, unsigned flags, bool registered)
{
    struct bh_cu_alloc a = {.base = (uint64_t)(uintptr_t)at,
                            .size = size,
                            .what = BH_CU_PINNED,
                            .ctx = ctx,
                            .flags = flags,
                            .registered = registered};
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), first = a.base / page * page;
    const uint64_t all = mapped_size(a.base + size - first);
    int rc = bh_cu_mem_host(ctx, first, all, &a.mem);
    if (rc)
        return rc;
    rc = bh_cu_uvm(ctx->uvm, UVM_CREATE_EXTERNAL_RANGE, first, all);
    rc = rc ? rc : bh_cu_map_into(first, all, a.mem, 0);
    if (rc) {
        bh_cu_mem_put(a.mem);
        return rc;
    }
    bh_cu_alloc_add(&a);
    return CUDA_SUCCESS;
}

int bh_cu_pinned_free(const struct bh_cu_alloc *a)
{
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), first = a->base / page * page;
    (void)bh_cu_uvm(a->mem->uvm, UVM_FREE, first, mapped_size(a->base + a->size - first));
    bh_cu_mem_put(a->mem);
    if (!a->registered)
        munmap((void *)(uintptr_t)a->base, mapped_size(a->size));
    return CUDA_SUCCESS;
}

int cuMemHostAlloc(void **ret, size_t bytes, unsigned flags)
{
    BH_CU_CALL();
    CUcontext ctx;
    int rc = bh_cu_current(&ctx);
    if (rc || !ret || bytes == 0)
        return rc ? rc : CUDA_ERROR_INVALID_VALUE;
    void *at = bytes > SIZE_MAX / 2 ? MAP_FAILED
                                    : mmap(NULL, mapped_size(bytes), PROT_READ | PROT_WRITE,
                                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED)
        return CUDA_ERROR_OUT_OF_MEMORY;
    rc = pinned_add(ctx, at, bytes, flags, false);
    if (rc)
        munmap(at, mapped_size(bytes));
    else
        *ret = at;
    return rc;
}

int cuMemAllocHost_v2(void **ret, size_t bytes)
{
    BH_CU_CALL();
    return cuMemHostAlloc(ret, bytes, 0);
}
BH_CU_ALIAS(cuMemAllocHost, cuMemAllocHost_v2);

/* The one at this address that was made in the given way. */
static int pinned_take(const void *at, bool registered, int otherwise)
{
    struct bh_cu_alloc a;
    CUcontext ctx;
    const uint64_t base = (uint64_t)(uintptr_t)at;
    int rc = bh_cu_current(&ctx);
    if (rc)
        return rc;
    if (!bh_cu_alloc_find(base, &a) || a.base != base || a.what != BH_CU_PINNED || a.registered != registered)
        return otherwise;
    return bh_cu_alloc_take(base, &a) ? bh_cu_release(&a) : otherwise;
}

int cuMemFreeHost(void *at)
{
    BH_CU_CALL();
    return pinned_take(at, false, CUDA_ERROR_INVALID_VALUE);
}

int cuMemHostRegister_v2(void *at, size_t bytes, unsigned flags)
{
    BH_CU_CALL();
    struct bh_cu_alloc a;
    CUcontext ctx;
    int rc = bh_cu_current(&ctx);
    if (rc || !at || bytes == 0)
        return rc ? rc : CUDA_ERROR_INVALID_VALUE;
    if (bh_cu_alloc_find((uint64_t)(uintptr_t)at, &a))
        return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
    return pinned_add(ctx, at, bytes, flags, true);
}
BH_CU_ALIAS(cuMemHostRegister, cuMemHostRegister_v2);

int cuMemHostUnregister(void *at)
{
    BH_CU_CALL();
    return pinned_take(at, true, CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
}

int cuMemHostGetDevicePointer_v2(CUdeviceptr *ret, void *at, unsigned flags)
{
    BH_CU_CALL();
    struct bh_cu_alloc a;
    int rc = bh_cu_enter();
    if (rc || !ret || flags)
        return rc ? rc : CUDA_ERROR_INVALID_VALUE;
    if (!bh_cu_alloc_find((uint64_t)(uintptr_t)at, &a) || a.what != BH_CU_PINNED)
        return CUDA_ERROR_INVALID_VALUE;
    *ret = (uint64_t)(uintptr_t)at;
    return CUDA_SUCCESS;
}
BH_CU_ALIAS(cuMemHostGetDevicePointer, cuMemHostGetDevicePointer_v2);

int cuMemHostGetFlags(unsigned *ret, void *at)
{
    BH_CU_CALL();
    struct bh_cu_alloc a;
    int rc = bh_cu_enter();
    if (rc || !ret)
        return rc ? rc : CUDA_ERROR_INVALID_VALUE;
    if (!bh_cu_alloc_find((uint64_t)(uintptr_t)at, &a) || a.what != BH_CU_PINNED)
        return CUDA_ERROR_INVALID_VALUE;
    *ret = a.flags;
    return CUDA_SUCCESS;
}
