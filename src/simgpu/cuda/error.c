/* SPDX-License-Identifier: Apache-2.0 */
/* error.c - the library's results: their names, and what the driver's statuses become. */
#include "simgpu/cuda/internal.h"

#include <errno.h>

static const struct {
    int result;
    const char *name, *text;
} results[] = {
#define R(name_, text_) {name_, #name_, text_}
    R(CUDA_SUCCESS, "no error"),
    R(CUDA_ERROR_INVALID_VALUE, "invalid argument"),
    R(CUDA_ERROR_OUT_OF_MEMORY, "out of memory"),
    R(CUDA_ERROR_NOT_INITIALIZED, "initialization error"),
    R(CUDA_ERROR_DEINITIALIZED, "driver shutting down"),
    R(CUDA_ERROR_DEVICE_UNAVAILABLE, "device unavailable"),
    R(CUDA_ERROR_NO_DEVICE, "no CUDA-capable device"),
    R(CUDA_ERROR_INVALID_DEVICE, "invalid device ordinal"),
    R(CUDA_ERROR_INVALID_IMAGE, "invalid kernel image"),
    R(CUDA_ERROR_INVALID_CONTEXT, "invalid context"),
    R(CUDA_ERROR_MAP_FAILED, "mapping failed"),
    R(CUDA_ERROR_UNMAP_FAILED, "unmapping failed"),
    R(CUDA_ERROR_ALREADY_MAPPED, "already mapped"),
    R(CUDA_ERROR_NOT_MAPPED, "not mapped"),
    R(CUDA_ERROR_ECC_UNCORRECTABLE, "uncorrectable ECC error"),
    R(CUDA_ERROR_UNSUPPORTED_LIMIT, "unsupported limit"),
    R(CUDA_ERROR_PEER_ACCESS_UNSUPPORTED, "no peer access between these devices"),
    R(CUDA_ERROR_NVLINK_UNCORRECTABLE, "uncorrectable NVLink error"),
    R(CUDA_ERROR_FILE_NOT_FOUND, "file not found"),
    R(CUDA_ERROR_OPERATING_SYSTEM, "operating system call failed"),
    R(CUDA_ERROR_INVALID_HANDLE, "invalid resource handle"),
    R(CUDA_ERROR_ILLEGAL_STATE, "not possible in this state"),
    R(CUDA_ERROR_NOT_FOUND, "named symbol not found"),
    R(CUDA_ERROR_NOT_READY, "not ready"),
    R(CUDA_ERROR_ILLEGAL_ADDRESS, "illegal memory access"),
    R(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, "launch asks for too many resources"),
    R(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED, "peer access is already on"),
    R(CUDA_ERROR_PEER_ACCESS_NOT_ENABLED, "peer access is not on"),
    R(CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE, "primary context is active"),
    R(CUDA_ERROR_CONTEXT_IS_DESTROYED, "context is destroyed"),
    R(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, "host memory is already registered"),
    R(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, "host memory is not registered"),
    R(CUDA_ERROR_LAUNCH_FAILED, "unspecified launch failure"),
    R(CUDA_ERROR_NOT_PERMITTED, "operation not permitted"),
    R(CUDA_ERROR_NOT_SUPPORTED, "operation not supported"),
    R(CUDA_ERROR_SYSTEM_NOT_READY, "system not ready"),
    R(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "not permitted while a stream is capturing"),
    R(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, "the stream did not begin this capture"),
    R(CUDA_ERROR_CAPTURED_EVENT, "event was recorded in a capturing stream"),
    R(CUDA_ERROR_UNKNOWN, "unknown error"),
#undef R
};

int cuGetErrorName(int result, const char **ret)
{
    if (!ret)
        return CUDA_ERROR_INVALID_VALUE;
    *ret = NULL;
    for (size_t i = 0; i < BH_COUNT_OF(results) && !*ret; i++)
        if (results[i].result == result)
            *ret = results[i].name;
    return *ret ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

int cuGetErrorString(int result, const char **ret)
{
    if (!ret)
        return CUDA_ERROR_INVALID_VALUE;
    *ret = NULL;
    for (size_t i = 0; i < BH_COUNT_OF(results) && !*ret; i++)
        if (results[i].result == result)
            *ret = results[i].text;
    return *ret ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

int bh_cu_from_status(uint32_t rm_status)
{
    static const struct {
        uint32_t status;
        int result;
    } map[] = {
        {RM_OK, CUDA_SUCCESS},
        {RM_NO_MEMORY, CUDA_ERROR_OUT_OF_MEMORY},
        {RM_INSUFFICIENT_RESOURCES, CUDA_ERROR_OUT_OF_MEMORY},
        {RM_GPU_IS_LOST, CUDA_ERROR_UNKNOWN},
        {RM_INSUFFICIENT_PERMISSIONS, CUDA_ERROR_NOT_PERMITTED},
        {RM_NOT_SUPPORTED, CUDA_ERROR_NOT_SUPPORTED},
        {RM_CARD_NOT_PRESENT, CUDA_ERROR_NO_DEVICE},
        {RM_STATE_IN_USE, CUDA_ERROR_DEVICE_UNAVAILABLE},
        {RM_INVALID_LIMIT, CUDA_ERROR_INVALID_VALUE},
        {RM_INVALID_ARGUMENT, CUDA_ERROR_INVALID_VALUE},
    };
    for (size_t i = 0; i < BH_COUNT_OF(map); i++)
        if (map[i].status == rm_status)
            return map[i].result;
    return CUDA_ERROR_UNKNOWN;
}

int bh_cu_from_errno(int error)
{
    static const struct {
        int error, result;
    } map[] = {
        {ENOMEM, CUDA_ERROR_OUT_OF_MEMORY},    {EPERM, CUDA_ERROR_NOT_PERMITTED},
        {EACCES, CUDA_ERROR_NOT_PERMITTED},    {ENODEV, CUDA_ERROR_NO_DEVICE},
        {ENOENT, CUDA_ERROR_NO_DEVICE},        {EFAULT, CUDA_ERROR_INVALID_VALUE},
        {EMFILE, CUDA_ERROR_OPERATING_SYSTEM},
    };
    for (size_t i = 0; i < BH_COUNT_OF(map); i++)
        if (map[i].error == error)
            return map[i].result;
    return CUDA_ERROR_UNKNOWN;
}

/* What the GPU last reported says how its work was lost. */
static int from_xid(uint64_t xid)
{
    static const struct {
        uint64_t xid;
        int result;
    } map[] = {
        {31, CUDA_ERROR_ILLEGAL_ADDRESS},      {48, CUDA_ERROR_ECC_UNCORRECTABLE},
        {63, CUDA_ERROR_ECC_UNCORRECTABLE},    {64, CUDA_ERROR_ECC_UNCORRECTABLE},
        {94, CUDA_ERROR_ECC_UNCORRECTABLE},    {95, CUDA_ERROR_ECC_UNCORRECTABLE},
        {74, CUDA_ERROR_NVLINK_UNCORRECTABLE}, {79, CUDA_ERROR_UNKNOWN},
    };
    for (size_t i = 0; i < BH_COUNT_OF(map); i++)
        if (map[i].xid == xid)
            return map[i].result;
    return CUDA_ERROR_LAUNCH_FAILED;
}

int bh_cu_fault(CUcontext ctx, int error)
{
    struct bh_sim_event events[64];
    int result = error == EIO ? CUDA_ERROR_LAUNCH_FAILED : bh_cu_from_errno(error);
    uint64_t after = ctx->event_seq;
    ssize_t n;
    while (error == EIO && (n = bh_sim_events(after, events, BH_COUNT_OF(events))) > 0)
        for (ssize_t i = 0; i < n; i++) {
            after = events[i].seq;
            if (events[i].gpu == ctx->device->gpu)
                result = events[i].kind == BH_SIM_EVENT_XID ? from_xid(events[i].data)
                                                            : CUDA_ERROR_ECC_UNCORRECTABLE;
        }
    bh_cu_lock(ctx);
    if (!ctx->error)
        ctx->error = result;
    result = ctx->error;
    bh_cu_unlock(ctx);
    return result;
}
