/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tenant.h - what the parts of the test tenant share.
 *
 * The tenant loads libcuda.so.1 as any program does and uses nothing but the driver library's interface, so the same
 * binary runs on a real GPU and on simulated silicon. What it says goes to stdout in lines of `key value`.
 */
#ifndef BH_TESTS_TENANTS_TENANT_H
#define BH_TESTS_TENANTS_TENANT_H

#include "gpu/abi/cuda.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)

#define TENANT_CALLS(X)               \
    X(cuInit)                         \
    X(cuDeviceGet)                    \
    X(cuDeviceGetCount)               \
    X(cuDeviceGetName)                \
    X(cuDeviceGetUuid_v2)             \
    X(cuDeviceTotalMem_v2)            \
    X(cuDeviceGetAttribute)           \
    X(cuDeviceGetPCIBusId)            \
    X(cuDriverGetVersion)             \
    X(cuGetErrorName)                 \
    X(cuDevicePrimaryCtxRetain)       \
    X(cuDevicePrimaryCtxRelease_v2)   \
    X(cuCtxCreate_v2)                 \
    X(cuCtxDestroy_v2)                \
    X(cuCtxSetCurrent)                \
    X(cuCtxSynchronize)               \
    X(cuMemGetInfo_v2)                \
    X(cuMemAlloc_v2)                  \
    X(cuMemFree_v2)                   \
    X(cuMemAllocPitch_v2)             \
    X(cuMemAllocHost_v2)              \
    X(cuMemFreeHost)                  \
    X(cuMemAllocManaged)              \
    X(cuMemPrefetchAsync_v2)          \
    X(cuArrayCreate_v2)               \
    X(cuArray3DCreate_v2)             \
    X(cuMemAddressReserve)            \
    X(cuMemAddressFree)               \
    X(cuMemCreate)                    \
    X(cuMemRelease)                   \
    X(cuMemMap)                       \
    X(cuMemUnmap)                     \
    X(cuMemSetAccess)                 \
    X(cuMemExportToShareableHandle)   \
    X(cuMemImportFromShareableHandle) \
    X(cuIpcGetMemHandle)              \
    X(cuIpcOpenMemHandle_v2)          \
    X(cuIpcCloseMemHandle)            \
    X(cuMemPoolCreate)                \
    X(cuMemPoolDestroy)               \
    X(cuMemAllocAsync)                \
    X(cuMemAllocFromPoolAsync)        \
    X(cuMemFreeAsync)                 \
    X(cuMemcpyHtoD_v2)                \
    X(cuMemcpyDtoH_v2)                \
    X(cuMemcpyDtoD_v2)                \
    X(cuMemcpyHtoDAsync_v2)           \
    X(cuMemcpyDtoHAsync_v2)           \
    X(cuMemsetD8_v2)                  \
    X(cuMemsetD32_v2)                 \
    X(cuModuleLoadData)               \
    X(cuModuleUnload)                 \
    X(cuModuleGetFunction)            \
    X(cuLaunchKernel)                 \
    X(cuStreamCreate)                 \
    X(cuStreamDestroy_v2)             \
    X(cuStreamSynchronize)            \
    X(cuStreamWaitEvent)              \
    X(cuStreamBeginCapture_v2)        \
    X(cuStreamEndCapture)             \
    X(cuEventCreate)                  \
    X(cuEventDestroy_v2)              \
    X(cuEventRecord)                  \
    X(cuEventSynchronize)             \
    X(cuEventElapsedTime)             \
    X(cuGraphCreate)                  \
    X(cuGraphDestroy)                 \
    X(cuGraphAddKernelNode_v2)        \
    X(cuGraphAddMemAllocNode)         \
    X(cuGraphAddMemFreeNode)          \
    X(cuGraphInstantiateWithFlags)    \
    X(cuGraphLaunch) X(cuGraphExecDestroy) X(cuDeviceGraphMemTrim) X(cuCtxSetLimit) X(cuModuleGetGlobal_v2)

struct cuda {
#define MEMBER(name) __typeof__(name) *name;
    TENANT_CALLS(MEMBER)
#undef MEMBER
};
extern struct cuda cuda;

struct tenant {
    CUdevice device;
    CUcontext ctx;
    CUmodule module;
    CUfunction spin, fault;
    int sms;
    const char *self;
};

/* Ends the program when a call fails that must not: with the call, its number and its name. */
void tenant_must(int rc, const char *call);
#define MUST(name, ...) tenant_must(cuda.name(__VA_ARGS__), #name)

const char *tenant_error(int rc);
void tenant_open(struct tenant *t, int ordinal); /* library, device, context, kernels */
int tenant_spin(const struct tenant *t, uint64_t ns,
                CUstream stream);                  /* a kernel of this length on all processors */
bool tenant_size(const char *text, uint64_t *ret); /* `512MiB`, `4GiB` or bytes */
bool tenant_number(const char *text, uint64_t *ret);
uint64_t tenant_now_ns(void);
uint64_t tenant_random(uint64_t *state);

/* verbs; what they return is the program's status */
int tenant_fill(const struct tenant *t, int n, char **args);
int tenant_churn(const struct tenant *t, int n, char **args);
int tenant_cycle(const struct tenant *t, int n, char **args);
int tenant_graph(const struct tenant *t, int n, char **args);
int tenant_ipc(const struct tenant *t, int n, char **args);
int tenant_share(const struct tenant *t, int n, char **args);
int tenant_borrow(const struct tenant *t, int n, char **args);
int tenant_ipc_child(const struct tenant *t, int n, char **args);
int tenant_lend(const struct tenant *t, int n, char **args);

#endif
