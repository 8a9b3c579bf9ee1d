/* SPDX-License-Identifier: Apache-2.0 */
/* device.c - what a device says about itself. */
#include "simgpu/cuda/internal.h"

#include "base/str.h"

#include <stdio.h>

int cuDeviceGetCount(int *ret)
{
    BH_CU_CALL();
    int rc = bh_cu_enter();
    if (rc || !ret)
        return rc ? rc : CUDA_ERROR_INVALID_VALUE;
    *ret = (int)cu.n_devices;
    return CUDA_SUCCESS;
}

int cuDeviceGet(CUdevice *ret, int ordinal)
{
    BH_CU_CALL();
    struct bh_cu_device *d;
    int rc = bh_cu_device(ordinal, &d);
    if (rc || !ret)
        return rc ? rc : CUDA_ERROR_INVALID_VALUE;
    *ret = ordinal;
    return CUDA_SUCCESS;
}

int cuDeviceGetName(char *ret, int size, CUdevice device)
{
    BH_CU_CALL();
    struct bh_cu_device *d;
    int rc = bh_cu_device(device, &d);
    if (rc || !ret || size <= 0)
        return rc ? rc : CUDA_ERROR_INVALID_VALUE;
    snprintf(ret, (size_t)size, "%s", d->name);
    return CUDA_SUCCESS;
}

int cuDeviceGetUuid_v2(CUuuid *ret, CUdevice device)
{
    BH_CU_CALL();
    struct bh_cu_device *d;
    int rc = bh_cu_device(device, &d);
    if (rc || !ret)
        return rc ? rc : CUDA_ERROR_INVALID_VALUE;
    memcpy(ret->bytes, d->uuid, sizeof(ret->bytes));
    return CUDA_SUCCESS;
}

/* The first version names the GPU where the second names the MIG instance. */
int cuDeviceGetUuid(CUuuid *ret, CUdevice device)
{
    BH_CU_CALL();
    struct bh_cu_device *d;
    int rc = bh_cu_device(device, &d);
    if (rc || !ret)
        return rc ? rc : CUDA_ERROR_INVALID_VALUE;
    memcpy(ret->bytes, d->play.uuid, sizeof(ret->bytes));
    return CUDA_SUCCESS;
}

int cuDeviceGetLuid(char *ret, unsigned *ret_mask, CUdevice device)
{
    BH_CU_CALL();
    (void)ret;
    (void)ret_mask;
    (void)device;
    return CUDA_ERROR_NOT_SUPPORTED; /* another operating system's */
}

int cuDeviceTotalMem_v2(size_t *ret, CUdevice device)
{
    BH_CU_CALL();
    struct bh_cu_device *d;
    int rc = bh_cu_device(device, &d);
    rc = rc ? rc : bh_cu_device_start(d); /* where the driver was asked */
    if (rc || !ret)
        return rc ? rc : CUDA_ERROR_INVALID_VALUE;
    *ret = d->play.total_bytes;
    return CUDA_SUCCESS;
}
BH_CU_ALIAS(cuDeviceTotalMem, cuDeviceTotalMem_v2);

/* `0000:18:00.0` in three numbers. */
static void pci_numbers(const char *pci, int ret[3])
{
    int n = 0;
    ret[0] = ret[1] = ret[2] = 0;
    for (; *pci && n < 3; pci++) {
        const char c = bh_to_lower(*pci);
        if (c == ':' || c == '.')
            n++;
        else
            ret[n] = ret[n] * 16 + (bh_is_digit(c) ? c - '0' : c - 'a' + 10);
    }
}

struct fact {
    int attribute, value;
};
/* The same on every card that is simulated here. */
static const struct fact common[] = {
    {CU_ATTR_MAX_THREADS_PER_BLOCK, 1024},
    {CU_ATTR_MAX_BLOCK_DIM_X, 1024},
    {CU_ATTR_MAX_BLOCK_DIM_Y, 1024},
    {CU_ATTR_MAX_BLOCK_DIM_Z, 64},
    {CU_ATTR_MAX_GRID_DIM_X, 2147483647},
    {CU_ATTR_MAX_GRID_DIM_Y, 65535},
    {CU_ATTR_MAX_GRID_DIM_Z, 65535},
    {CU_ATTR_SHARED_MEMORY_PER_BLOCK, 49152},
    {CU_ATTR_TOTAL_CONSTANT_MEMORY, 65536},
    {CU_ATTR_WARP_SIZE, 32},
    {CU_ATTR_MAX_PITCH, 2147483647},
    {CU_ATTR_REGISTERS_PER_BLOCK, 65536},
    {CU_ATTR_TEXTURE_ALIGNMENT, 512},
    {CU_ATTR_GPU_OVERLAP, 1},
    {CU_ATTR_CAN_MAP_HOST_MEMORY, 1},
    {CU_ATTR_CONCURRENT_KERNELS, 1},
    {CU_ATTR_MAX_THREADS_PER_MULTIPROCESSOR, 2048},
    {CU_ATTR_ASYNC_ENGINE_COUNT, 3},
    {CU_ATTR_UNIFIED_ADDRESSING, 1},
    {CU_ATTR_TEXTURE_PITCH_ALIGNMENT, 32},
    {CU_ATTR_STREAM_PRIORITIES_SUPPORTED, 1},
    {CU_ATTR_REGISTERS_PER_MULTIPROCESSOR, 65536},
    {CU_ATTR_MANAGED_MEMORY, 1},
    {CU_ATTR_CONCURRENT_MANAGED_ACCESS, 1},
    {CU_ATTR_COMPUTE_PREEMPTION_SUPPORTED, 1},
    {CU_ATTR_COOPERATIVE_LAUNCH, 1},
    {CU_ATTR_HOST_REGISTER_SUPPORTED, 1},
    {CU_ATTR_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 1},
    {CU_ATTR_HANDLE_TYPE_POSIX_FD_SUPPORTED, 1},
    {CU_ATTR_MAX_BLOCKS_PER_MULTIPROCESSOR, 32},
    {CU_ATTR_MEMORY_POOLS_SUPPORTED, 1},
    {CU_ATTR_MEMPOOL_SUPPORTED_HANDLE_TYPES, 0},
};

static int attribute_of(const struct bh_cu_device *d, int attribute)
{
    int pci[3];
    pci_numbers(d->pci, pci);
    const struct fact own[] = {
        {CU_ATTR_CLOCK_RATE, (int)d->sm_mhz * 1000},
        {CU_ATTR_MEMORY_CLOCK_RATE, (int)d->memory_mhz * 1000},
        {CU_ATTR_MULTIPROCESSOR_COUNT, (int)d->sm},
        {CU_ATTR_ECC_ENABLED, (int)d->ecc},
        {CU_ATTR_PCI_DOMAIN_ID, pci[0]},
        {CU_ATTR_PCI_BUS_ID, pci[1]},
        {CU_ATTR_PCI_DEVICE_ID, pci[2]},
        {CU_ATTR_GLOBAL_MEMORY_BUS_WIDTH, d->ampere ? 5120 : 6144},
        {CU_ATTR_L2_CACHE_SIZE, d->ampere ? 41943040 : 62914560},
        {CU_ATTR_COMPUTE_CAPABILITY_MAJOR, d->ampere ? 8 : 9},
        {CU_ATTR_COMPUTE_CAPABILITY_MINOR, 0},
        {CU_ATTR_SHARED_MEMORY_PER_MULTIPROCESSOR, d->ampere ? 167936 : 233472},
        {CU_ATTR_SHARED_MEMORY_PER_BLOCK_OPTIN, d->ampere ? 166912 : 232448},
    };
    for (size_t i = 0; i < BH_COUNT_OF(own); i++)
        if (own[i].attribute == attribute)
            return own[i].value;
    for (size_t i = 0; i < BH_COUNT_OF(common); i++)
        if (common[i].attribute == attribute)
            return common[i].value;
    return 0;
}

int cuDeviceGetAttribute(int *ret, int attribute, CUdevice device)
{
    BH_CU_CALL();
    struct bh_cu_device *d;
    int rc = bh_cu_device(device, &d);
    if (rc || !ret || attribute <= 0 || attribute >= CU_ATTR_MAX_)
        return rc ? rc : CUDA_ERROR_INVALID_VALUE;
    *ret = attribute_of(d, attribute);
    return CUDA_SUCCESS;
}

int cuDeviceComputeCapability(int *ret_major, int *ret_minor, CUdevice device)
{
    BH_CU_CALL();
    int rc = cuDeviceGetAttribute(ret_major, CU_ATTR_COMPUTE_CAPABILITY_MAJOR, device);
    return rc ? rc : cuDeviceGetAttribute(ret_minor, CU_ATTR_COMPUTE_CAPABILITY_MINOR, device);
}

int cuDeviceGetProperties(CUdevprop *ret, CUdevice device)
{
    BH_CU_CALL();
    struct bh_cu_device *d;
    int rc = bh_cu_device(device, &d);
    if (rc || !ret)
        return rc ? rc : CUDA_ERROR_INVALID_VALUE;
    *ret = (CUdevprop){
        .max_threads_per_block = attribute_of(d, CU_ATTR_MAX_THREADS_PER_BLOCK),
        .shared_mem_per_block = attribute_of(d, CU_ATTR_SHARED_MEMORY_PER_BLOCK),
        .total_constant_memory = attribute_of(d, CU_ATTR_TOTAL_CONSTANT_MEMORY),
        .simd_width = attribute_of(d, CU_ATTR_WARP_SIZE),
        .mem_pitch = attribute_of(d, CU_ATTR_MAX_PITCH),
        .regs_per_block = attribute_of(d, CU_ATTR_REGISTERS_PER_BLOCK),
        .clock_rate = attribute_of(d, CU_ATTR_CLOCK_RATE),
        .texture_align = attribute_of(d, CU_ATTR_TEXTURE_ALIGNMENT),
    };
    for (int i = 0; i < 3; i++) {
        ret->max_threads_dim[i] = attribute_of(d, CU_ATTR_MAX_BLOCK_DIM_X + i);
        ret->max_grid_size[i] = attribute_of(d, CU_ATTR_MAX_GRID_DIM_X + i);
    }
    return CUDA_SUCCESS;
}

int cuDeviceGetPCIBusId(char *ret, int size, CUdevice device)
{
    BH_CU_CALL();
    struct bh_cu_device *d;
    int rc = bh_cu_device(device, &d);
    if (rc || !ret || size <= 0)
        return rc ? rc : CUDA_ERROR_INVALID_VALUE;
    if ((size_t)size <= strlen(d->pci))
        return CUDA_ERROR_INVALID_VALUE;
    snprintf(ret, (size_t)size, "%s", d->pci);
    return CUDA_SUCCESS;
}

int cuDeviceGetByPCIBusId(CUdevice *ret, const char *id)
{
    BH_CU_CALL();
    int rc = bh_cu_enter();
    if (rc || !ret || !id)
        return rc ? rc : CUDA_ERROR_INVALID_VALUE;
    for (uint32_t i = 0; i < cu.n_devices; i++)
        if (bh_str_eq_nocase(cu.devices[i].pci, id)) {
            *ret = (CUdevice)i;
            return CUDA_SUCCESS;
        }
    return CUDA_ERROR_INVALID_DEVICE;
}

/* GPUs behind the same switches reach each other; MIG instances reach nobody. */
int cuDeviceCanAccessPeer(int *ret, CUdevice device, CUdevice peer)
{
    BH_CU_CALL();
    struct bh_cu_device *a, *b;
    int rc = bh_cu_device(device, &a);
    rc = rc ? rc : bh_cu_device(peer, &b);
    if (rc || !ret)
        return rc ? rc : CUDA_ERROR_INVALID_VALUE;
    *ret = a != b && a->gi == UINT32_MAX && b->gi == UINT32_MAX && a->links && b->links &&
           a->switch_group == b->switch_group;
    return CUDA_SUCCESS;
}

int cuDeviceGetP2PAttribute(int *ret, int attribute, CUdevice device, CUdevice peer)
{
    BH_CU_CALL();
    enum { RANK = 1, ACCESS = 2, ATOMICS = 3, ARRAYS = 4 };
    if (attribute < RANK || attribute > ARRAYS || device == peer)
        return CUDA_ERROR_INVALID_VALUE;
    int rc = cuDeviceCanAccessPeer(ret, device, peer);
    if (!rc && attribute == RANK)
        *ret = 0;
    return rc;
}
