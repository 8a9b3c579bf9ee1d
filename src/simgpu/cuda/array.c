/* SPDX-License-Identifier: Apache-2.0 */
/* array.c - memory in the layout of textures: one, two or three dimensions. */
#include "simgpu/cuda/internal.h"

struct CUarray_st {
    CUcontext ctx;
    CUDA_ARRAY3D_DESCRIPTOR what;
    uint64_t at, bytes;
};

static uint64_t element_bytes(int format)
{
    switch (format) {
    case CU_FORMAT_U8:
    case CU_FORMAT_S8:
        return 1;
    case CU_FORMAT_U16:
    case CU_FORMAT_S16:
    case CU_FORMAT_HALF:
        return 2;
    case CU_FORMAT_U32:
    case CU_FORMAT_S32:
    case CU_FORMAT_FLOAT:
        return 4;
    default:
        return 0;
    }
}

/* 0: no such array, or far too large. A missing height or depth counts as one. */
static uint64_t array_bytes(const CUDA_ARRAY3D_DESCRIPTOR *d)
{
    const uint64_t limit = UINT64_C(1) << 48;
    uint64_t n = element_bytes(d->format) * d->channels;
    if (d->channels != 1 && d->channels != 2 && d->channels != 4)
        return 0;
    const size_t sides[] = {d->width, d->height ? d->height : 1, d->depth ? d->depth : 1};
    for (size_t i = 0; i < BH_COUNT_OF(sides); i++) {
        if (sides[i] == 0 || sides[i] > limit || n > limit / sides[i])
            return 0;
        n *= sides[i];
    }
    return n;
}

int cuArray3DCreate_v2(CUarray *ret, const CUDA_ARRAY3D_DESCRIPTOR *what)
{
    BH_CU_CALL();
    CUcontext ctx;
    struct bh_cu_mem *mem;
    int rc = bh_cu_current(&ctx);
    if (rc || !ret || !what || array_bytes(what) == 0 || (what->depth && !what->height && !what->flags))
        return rc ? rc : CUDA_ERROR_INVALID_VALUE;
    const struct CUarray_st made = {.ctx = ctx,
                                    .what = *what,
                                    .bytes = BH_CU_ROUND(array_bytes(what), BH_CU_PAGE),
                                    .at = bh_cu_va_take(array_bytes(what), 0)};
    if (!made.at)
        return CUDA_ERROR_OUT_OF_MEMORY;
    bh_cu_lock(ctx);
    rc = bh_cu_mem_new(ctx, BH_CU_SHAPE_ARRAY, made.bytes, &mem);
    if (!rc) {
        rc = bh_cu_map(made.at, made.bytes, mem, 0);
        bh_cu_mem_put(mem);
    }
    bh_cu_unlock(ctx);
    if (rc) {
        bh_cu_va_give(made.at, made.bytes);
        return rc;
    }
    const struct bh_cu_alloc a = {.base = made.at, .size = made.bytes, .what = BH_CU_TEXTURE, .ctx = ctx};
    bh_cu_alloc_add(&a);
    *ret = bh_alloc(1, sizeof(**ret));
    **ret = made;
    bh_cu_handle_add(BH_CU_ARRAY, *ret);
    return CUDA_SUCCESS;
}
BH_CU_ALIAS(cuArray3DCreate, cuArray3DCreate_v2);

int cuArrayCreate_v2(CUarray *ret, const CUDA_ARRAY_DESCRIPTOR *what)
{
    BH_CU_CALL();
    if (!what)
        return CUDA_ERROR_INVALID_VALUE;
    const CUDA_ARRAY3D_DESCRIPTOR all = {
        .width = what->width, .height = what->height, .format = what->format, .channels = what->channels};
    return cuArray3DCreate_v2(ret, &all);
}
BH_CU_ALIAS(cuArrayCreate, cuArrayCreate_v2);

static int find(CUarray array)
{
    int rc = bh_cu_enter();
    return rc ? rc : bh_cu_handle_ok(BH_CU_ARRAY, array) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

int cuArray3DGetDescriptor_v2(CUDA_ARRAY3D_DESCRIPTOR *ret, CUarray array)
{
    BH_CU_CALL();
    int rc = find(array);
    if (rc || !ret)
        return rc ? rc : CUDA_ERROR_INVALID_VALUE;
    *ret = array->what;
    return CUDA_SUCCESS;
}
BH_CU_ALIAS(cuArray3DGetDescriptor, cuArray3DGetDescriptor_v2);

int cuArrayGetDescriptor_v2(CUDA_ARRAY_DESCRIPTOR *ret, CUarray array)
{
    BH_CU_CALL();
    int rc = find(array);
    if (rc || !ret)
        return rc ? rc : CUDA_ERROR_INVALID_VALUE;
    *ret = (CUDA_ARRAY_DESCRIPTOR){.width = array->what.width,
                                   .height = array->what.height,
                                   .format = array->what.format,
                                   .channels = array->what.channels};
    return CUDA_SUCCESS;
}
BH_CU_ALIAS(cuArrayGetDescriptor, cuArrayGetDescriptor_v2);

int cuArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS *ret, CUarray array, CUdevice device)
{
    BH_CU_CALL();
    struct bh_cu_device *d;
    int rc = find(array);
    rc = rc ? rc : bh_cu_device(device, &d);
    if (rc || !ret)
        return rc ? rc : CUDA_ERROR_INVALID_VALUE;
    *ret = (CUDA_ARRAY_MEMORY_REQUIREMENTS){.size = array->bytes, .alignment = BH_CU_PAGE};
    return CUDA_SUCCESS;
}

/* The memory may be gone already, with its context. */
int cuArrayDestroy(CUarray array)
{
    BH_CU_CALL();
    struct bh_cu_alloc a;
    int rc = find(array);
    if (rc)
        return rc;
    if (bh_cu_handle_ok(BH_CU_CONTEXT, array->ctx)) {
        rc = bh_cu_drain(array->ctx);
        if (rc)
            return rc;
    }
    if (!bh_cu_handle_remove(BH_CU_ARRAY, array))
        return CUDA_ERROR_INVALID_HANDLE;
    if (bh_cu_alloc_take(array->at, &a))
        rc = bh_cu_release(&a);
    free(array);
    return rc;
}
