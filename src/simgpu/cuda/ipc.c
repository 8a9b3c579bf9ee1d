/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ipc.c - memory of one process in another.
 *
 * A handle names the owner's client and object. Opening it makes a duplicate in the opener's client; whether that is
 * allowed is the resource manager's to say. A descriptor for memory made apart from addresses carries the same
 * names in a small file of its own, which the importer reads.
 */
#include "simgpu/cuda/internal.h"

#include <sys/mman.h>
#include <unistd.h>

#define MAGIC UINT64_C(0x6b6c7568706f6f6c)

struct shared { /* what a handle carries; 64 bytes at most */
    uint64_t magic, size, offset;
    uint32_t client, object, gpu, gi;
    int32_t pid;
    uint32_t pad;
};
_Static_assert(sizeof(struct shared) <= sizeof(CUipcMemHandle), "it must fit into a handle");

/* RM_SHARE: who else may duplicate the object. */
static int let_share(struct bh_cu_mem *mem)
{
    struct rm_share s = {
        .client = mem->client, .object = mem->handle, .rights = RM_RIGHT_DUP, .type = RM_SHARE_ALL};
    (void)bh_sim_ioctl(mem->fd, RM_IOC(RM_SHARE, sizeof(s)), &s);
    mem->lent = true;
    return bh_cu_from_status(s.status);
}

static struct shared name_of(const struct bh_cu_mem *mem, uint64_t size, uint64_t offset)
{
    return (struct shared){.magic = MAGIC,
                           .size = size,
                           .offset = offset,
                           .client = mem->client,
                           .object = mem->handle,
                           .gpu = mem->device->gpu,
                           .gi = mem->device->gi,
                           .pid = (int32_t)getpid()};
}

/* The piece as a whole is shared, as with the vendor's library; the offset says where in it the pointer was. */
int cuIpcGetMemHandle(CUipcMemHandle *ret, CUdeviceptr at)
{
    BH_CU_CALL();
    struct bh_cu_alloc a;
    struct bh_cu_back back;
    CUcontext ctx;
    int rc = bh_cu_current(&ctx);
    if (rc || !ret)
        return rc ? rc : CUDA_ERROR_INVALID_VALUE;
    if (!bh_cu_alloc_find(at, &a) || (a.what != BH_CU_PLAIN && a.what != BH_CU_SLAB) ||
        !bh_cu_back_find(at, &back))
        return CUDA_ERROR_INVALID_VALUE;
    rc = let_share(back.mem);
    if (rc)
        return rc;
    const struct shared s = name_of(back.mem, back.size, a.base - back.base);
    memset(ret, 0, sizeof(*ret));
    memcpy(ret->reserved, &s, sizeof(s));
    return CUDA_SUCCESS;
}

int cuIpcOpenMemHandle_v2(CUdeviceptr *ret, CUipcMemHandle handle, unsigned flags)
{
    BH_CU_CALL();
    struct shared s;
    struct bh_cu_mem *mem;
    CUcontext ctx;
    int rc = bh_cu_current(&ctx);
    memcpy(&s, handle.reserved, sizeof(s));
    if (rc || !ret || flags > 1 || s.magic != MAGIC || s.size == 0 || s.offset >= s.size)
        return rc ? rc : CUDA_ERROR_INVALID_VALUE;
    if (s.pid == getpid())
        return CUDA_ERROR_INVALID_CONTEXT; /* one's own memory is not opened */
    if (s.gpu != ctx->device->gpu || s.gi != ctx->device->gi)
        return CUDA_ERROR_INVALID_DEVICE;
    const struct bh_cu_alloc a = {
        .base = bh_cu_va_take(s.size, 0), .size = s.size, .what = BH_CU_IPC, .ctx = ctx};
    if (!a.base)
        return CUDA_ERROR_OUT_OF_MEMORY;
    bh_cu_lock(ctx);
    rc = bh_cu_mem_dup(ctx, s.client, s.object, s.size, &mem);
    if (!rc) {
        rc = bh_cu_map(a.base, s.size, mem, 0);
        bh_cu_mem_put(mem);
    }
    bh_cu_unlock(ctx);
    if (rc) {
        bh_cu_va_give(a.base, s.size);
        return rc;
    }
    bh_cu_alloc_add(&a);
    *ret = a.base + s.offset;
    return CUDA_SUCCESS;
}
BH_CU_ALIAS(cuIpcOpenMemHandle, cuIpcOpenMemHandle_v2);

int cuIpcCloseMemHandle(CUdeviceptr at)
{
    BH_CU_CALL();
    struct bh_cu_alloc a;
    CUcontext ctx;
    int rc = bh_cu_current(&ctx);
    if (rc)
        return rc;
    if (!bh_cu_alloc_find(at, &a) || a.what != BH_CU_IPC)
        return CUDA_ERROR_INVALID_VALUE;
    rc = bh_cu_drain(a.ctx);
    if (rc)
        return rc;
    return bh_cu_alloc_take(a.base, &a) ? bh_cu_release(&a) : CUDA_ERROR_INVALID_VALUE;
}

/* --- by descriptor --- */

int cuMemExportToShareableHandle(void *ret, CUmemGenericAllocationHandle handle, int type, uint64_t flags)
{
    BH_CU_CALL();
    struct bh_cu_mem *mem = (struct bh_cu_mem *)(uintptr_t)handle;
    int rc = bh_cu_enter();
    if (rc || !ret || flags || !bh_cu_handle_ok(BH_CU_MEM, mem))
        return rc ? rc : CUDA_ERROR_INVALID_VALUE;
    if (type != CU_MEM_HANDLE_TYPE_POSIX_FD || !(mem->prop.handle_types & type))
        return CUDA_ERROR_NOT_SUPPORTED;
    rc = let_share(mem);
    if (rc)
        return rc;
    const struct shared s = name_of(mem, mem->bytes, 0);
    int fd = memfd_create("simulated GPU memory", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return CUDA_ERROR_OPERATING_SYSTEM;
    if (write(fd, &s, sizeof(s)) != (ssize_t)sizeof(s)) {
        close(fd);
        return CUDA_ERROR_OPERATING_SYSTEM;
    }
    memcpy(ret, &fd, sizeof(fd));
    return CUDA_SUCCESS;
}

int cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *ret, void *handle, int type)
{
    BH_CU_CALL();
    const int fd = (int)(intptr_t)handle;
    struct shared s;
    struct bh_cu_mem *mem;
    CUcontext ctx;
    int rc = bh_cu_current(&ctx);
    if (rc || !ret || type != CU_MEM_HANDLE_TYPE_POSIX_FD)
        return rc ? rc : CUDA_ERROR_INVALID_VALUE;
    if (pread(fd, &s, sizeof(s), 0) != (ssize_t)sizeof(s) || s.magic != MAGIC || s.size == 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (s.gpu != ctx->device->gpu || s.gi != ctx->device->gi)
        return CUDA_ERROR_INVALID_DEVICE;
    bh_cu_lock(ctx);
    rc = bh_cu_mem_dup(ctx, s.client, s.object, s.size, &mem);
    bh_cu_unlock(ctx);
    if (rc)
        return rc;
    mem->prop =
        (CUmemAllocationProp){.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                              .handle_types = CU_MEM_HANDLE_TYPE_POSIX_FD,
                              .location = {CU_MEM_LOCATION_TYPE_DEVICE, (int)(ctx->device - cu.devices)}};
    bh_cu_handle_add(BH_CU_MEM, mem);
    *ret = (uint64_t)(uintptr_t)mem;
    return CUDA_SUCCESS;
}
