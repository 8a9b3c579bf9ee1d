/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda.h - the part of the CUDA driver library's binary interface that is used here, and no more.
 *
 * Written for this project from public facts: names, numbers and layouts. No vendor header is needed to build. Names
 * carry the version under which the library exports them (cuMemAlloc_v2); all return an enum cuda_result. A program
 * loads the library and asks it for each name, as dlopen(3) has it: `__typeof__(cuInit) *init = dlsym(...)`.
 */
#ifndef BH_GPU_ABI_CUDA_H
#define BH_GPU_ABI_CUDA_H

#include <stddef.h>
#include <stdint.h>

enum cuda_result {
    CUDA_SUCCESS = 0,
    CUDA_ERROR_INVALID_VALUE = 1,
    CUDA_ERROR_OUT_OF_MEMORY = 2,
    CUDA_ERROR_NOT_INITIALIZED = 3,
    CUDA_ERROR_DEINITIALIZED = 4,
    CUDA_ERROR_DEVICE_UNAVAILABLE = 46,
    CUDA_ERROR_NO_DEVICE = 100,
    CUDA_ERROR_INVALID_DEVICE = 101,
    CUDA_ERROR_INVALID_IMAGE = 200,
    CUDA_ERROR_INVALID_CONTEXT = 201,
    CUDA_ERROR_MAP_FAILED = 205,
    CUDA_ERROR_UNMAP_FAILED = 206,
    CUDA_ERROR_ALREADY_MAPPED = 208,
    CUDA_ERROR_NOT_MAPPED = 211,
    CUDA_ERROR_ECC_UNCORRECTABLE = 214,
    CUDA_ERROR_UNSUPPORTED_LIMIT = 215,
    CUDA_ERROR_PEER_ACCESS_UNSUPPORTED = 217,
    CUDA_ERROR_NVLINK_UNCORRECTABLE = 220,
    CUDA_ERROR_FILE_NOT_FOUND = 301,
    CUDA_ERROR_OPERATING_SYSTEM = 304,
    CUDA_ERROR_INVALID_HANDLE = 400,
    CUDA_ERROR_ILLEGAL_STATE = 401,
    CUDA_ERROR_NOT_FOUND = 500,
    CUDA_ERROR_NOT_READY = 600,
    CUDA_ERROR_ILLEGAL_ADDRESS = 700,
    CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES = 701,
    CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED = 704,
    CUDA_ERROR_PEER_ACCESS_NOT_ENABLED = 705,
    CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE = 708,
    CUDA_ERROR_CONTEXT_IS_DESTROYED = 709,
    CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED = 712,
    CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED = 713,
    CUDA_ERROR_LAUNCH_FAILED = 719,
    CUDA_ERROR_NOT_PERMITTED = 800,
    CUDA_ERROR_NOT_SUPPORTED = 801,
    CUDA_ERROR_SYSTEM_NOT_READY = 802,
    CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED = 900,
    CUDA_ERROR_STREAM_CAPTURE_UNMATCHED = 903,
    CUDA_ERROR_CAPTURED_EVENT = 907,
    CUDA_ERROR_UNKNOWN = 999,
};

enum cuda_attribute {
    CU_ATTR_MAX_THREADS_PER_BLOCK = 1,
    CU_ATTR_MAX_BLOCK_DIM_X = 2,
    CU_ATTR_MAX_BLOCK_DIM_Y = 3,
    CU_ATTR_MAX_BLOCK_DIM_Z = 4,
    CU_ATTR_MAX_GRID_DIM_X = 5,
    CU_ATTR_MAX_GRID_DIM_Y = 6,
    CU_ATTR_MAX_GRID_DIM_Z = 7,
    CU_ATTR_SHARED_MEMORY_PER_BLOCK = 8,
    CU_ATTR_TOTAL_CONSTANT_MEMORY = 9,
    CU_ATTR_WARP_SIZE = 10,
    CU_ATTR_MAX_PITCH = 11,
    CU_ATTR_REGISTERS_PER_BLOCK = 12,
    CU_ATTR_CLOCK_RATE = 13, /* kHz */
    CU_ATTR_TEXTURE_ALIGNMENT = 14,
    CU_ATTR_GPU_OVERLAP = 15,
    CU_ATTR_MULTIPROCESSOR_COUNT = 16,
    CU_ATTR_CAN_MAP_HOST_MEMORY = 19,
    CU_ATTR_CONCURRENT_KERNELS = 31,
    CU_ATTR_ECC_ENABLED = 32,
    CU_ATTR_PCI_BUS_ID = 33,
    CU_ATTR_PCI_DEVICE_ID = 34,
    CU_ATTR_MEMORY_CLOCK_RATE = 36, /* kHz */
    CU_ATTR_GLOBAL_MEMORY_BUS_WIDTH = 37,
    CU_ATTR_L2_CACHE_SIZE = 38,
    CU_ATTR_MAX_THREADS_PER_MULTIPROCESSOR = 39,
    CU_ATTR_ASYNC_ENGINE_COUNT = 40,
    CU_ATTR_UNIFIED_ADDRESSING = 41,
    CU_ATTR_PCI_DOMAIN_ID = 50,
    CU_ATTR_TEXTURE_PITCH_ALIGNMENT = 51,
    CU_ATTR_COMPUTE_CAPABILITY_MAJOR = 75,
    CU_ATTR_COMPUTE_CAPABILITY_MINOR = 76,
    CU_ATTR_STREAM_PRIORITIES_SUPPORTED = 78,
    CU_ATTR_SHARED_MEMORY_PER_MULTIPROCESSOR = 81,
    CU_ATTR_REGISTERS_PER_MULTIPROCESSOR = 82,
    CU_ATTR_MANAGED_MEMORY = 83,
    CU_ATTR_CONCURRENT_MANAGED_ACCESS = 89,
    CU_ATTR_COMPUTE_PREEMPTION_SUPPORTED = 90,
    CU_ATTR_COOPERATIVE_LAUNCH = 95,
    CU_ATTR_SHARED_MEMORY_PER_BLOCK_OPTIN = 97,
    CU_ATTR_HOST_REGISTER_SUPPORTED = 99,
    CU_ATTR_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED = 102,
    CU_ATTR_HANDLE_TYPE_POSIX_FD_SUPPORTED = 103,
    CU_ATTR_MAX_BLOCKS_PER_MULTIPROCESSOR = 106,
    CU_ATTR_MEMORY_POOLS_SUPPORTED = 115,
    CU_ATTR_MEMPOOL_SUPPORTED_HANDLE_TYPES = 119,
    CU_ATTR_MAX_ = 160, /* a number past every attribute known today */
};

enum { CU_LIMIT_STACK_SIZE, CU_LIMIT_PRINTF_FIFO_SIZE, CU_LIMIT_MALLOC_HEAP_SIZE, CU_LIMIT_N_ = 7 };
enum { CU_STREAM_NON_BLOCKING = 1 };
enum { CU_EVENT_BLOCKING_SYNC = 1, CU_EVENT_DISABLE_TIMING = 2, CU_EVENT_INTERPROCESS = 4 };
enum { CU_MEMORYTYPE_HOST = 1, CU_MEMORYTYPE_DEVICE = 2, CU_MEMORYTYPE_ARRAY = 3 };
enum { CU_MEM_ATTACH_GLOBAL = 1, CU_MEM_ATTACH_HOST = 2 };
enum { CU_MEM_ALLOCATION_TYPE_PINNED = 1, CU_MEM_LOCATION_TYPE_DEVICE = 1, CU_MEM_LOCATION_TYPE_HOST = 2 };
enum { CU_MEM_HANDLE_TYPE_NONE = 0, CU_MEM_HANDLE_TYPE_POSIX_FD = 1 };
enum { CU_MEM_ACCESS_NONE = 0, CU_MEM_ACCESS_READ = 1, CU_MEM_ACCESS_READWRITE = 3 };
enum { CU_DEVICE_CPU = -1 };
enum { CU_CAPTURE_NONE = 0, CU_CAPTURE_ACTIVE = 1 };
/* Of a process that another one suspends; the last two are a step that is under way. */
enum cuda_process_state {
    CU_PROCESS_RUNNING = 0,
    CU_PROCESS_LOCKED = 1, /* its calls wait, its memory is on the card */
    CU_PROCESS_CHECKPOINTED = 2,
    CU_PROCESS_FAILED = 3, /* for good */
    CU_PROCESS_CHECKPOINTING = 4,
    CU_PROCESS_RESTORING = 5,
};
enum { CU_PROC_FOUND = 0, CU_PROC_NOT_FOUND = 1, CU_PROC_TOO_OLD = 2 };
enum { CU_NODE_KERNEL = 0, CU_NODE_EMPTY = 5, CU_NODE_MEM_ALLOC = 10, CU_NODE_MEM_FREE = 11 };
enum cuda_pool_attribute {
    CU_POOL_REUSE_FOLLOW_EVENT = 1,
    CU_POOL_REUSE_OPPORTUNISTIC = 2,
    CU_POOL_REUSE_INTERNAL = 3,
    CU_POOL_RELEASE_THRESHOLD = 4,
    CU_POOL_RESERVED_CURRENT = 5,
    CU_POOL_RESERVED_HIGH = 6,
    CU_POOL_USED_CURRENT = 7,
    CU_POOL_USED_HIGH = 8,
};
enum cuda_pointer_attribute {
    CU_POINTER_CONTEXT = 1,
    CU_POINTER_MEMORY_TYPE = 2,
    CU_POINTER_DEVICE_POINTER = 3,
    CU_POINTER_HOST_POINTER = 4,
    CU_POINTER_IS_MANAGED = 8,
    CU_POINTER_DEVICE_ORDINAL = 9,
    CU_POINTER_RANGE_START = 11,
    CU_POINTER_RANGE_SIZE = 12,
    CU_POINTER_MAPPED = 13,
};
enum cuda_array_format {
    CU_FORMAT_U8 = 0x01,
    CU_FORMAT_U16 = 0x02,
    CU_FORMAT_U32 = 0x03,
    CU_FORMAT_S8 = 0x08,
    CU_FORMAT_S16 = 0x09,
    CU_FORMAT_S32 = 0x0a,
    CU_FORMAT_HALF = 0x10,
    CU_FORMAT_FLOAT = 0x20,
};

typedef int CUdevice;
typedef uint64_t CUdeviceptr;
typedef uint64_t CUmemGenericAllocationHandle;
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUlib_st *CUlibrary;
typedef struct CUkern_st *CUkernel;
typedef struct CUarray_st *CUarray;
typedef struct CUevent_st *CUevent;
typedef struct CUstream_st *CUstream;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphNode_st *CUgraphNode;
typedef struct CUgraphExec_st *CUgraphExec;
typedef struct CUmemPoolHandle_st *CUmemoryPool;
typedef void (*CUhostFn)(void *);
typedef void (*CUstreamCallback)(CUstream, int, void *);

#define CU_STREAM_LEGACY     ((CUstream)1)
#define CU_STREAM_PER_THREAD ((CUstream)2)
/* The `extra` of a launch: a list of a tag and its value, ended by the first. */
#define CU_LAUNCH_PARAM_END            ((void *)0)
#define CU_LAUNCH_PARAM_BUFFER_POINTER ((void *)1)
#define CU_LAUNCH_PARAM_BUFFER_SIZE    ((void *)2)

typedef struct {
    char bytes[16];
} CUuuid;
typedef struct {
    char reserved[64];
} CUipcMemHandle;
typedef struct {
    char reserved[64];
} CUipcEventHandle;
typedef struct {
    int max_threads_per_block, max_threads_dim[3], max_grid_size[3], shared_mem_per_block,
        total_constant_memory, simd_width, mem_pitch, regs_per_block, clock_rate, texture_align;
} CUdevprop;
typedef struct {
    int type, id;
} CUmemLocation;
typedef struct {
    int type, handle_types;
    CUmemLocation location;
    void *win32;
    struct {
        uint8_t compression, rdma;
        uint16_t usage;
        uint8_t reserved[4];
    } flags;
} CUmemAllocationProp;
typedef struct {
    CUmemLocation location;
    int flags;
} CUmemAccessDesc;
typedef struct {
    int type, handle_types;
    CUmemLocation location;
    void *win32;
    size_t max_size;
    uint16_t usage;
    uint8_t reserved[54];
} CUmemPoolProps;
typedef struct {
    size_t width, height;
    int format;
    unsigned channels;
} CUDA_ARRAY_DESCRIPTOR;
typedef struct {
    size_t width, height, depth;
    int format;
    unsigned channels, flags;
} CUDA_ARRAY3D_DESCRIPTOR;
typedef struct {
    size_t size, alignment;
    unsigned reserved[4];
} CUDA_ARRAY_MEMORY_REQUIREMENTS;
typedef struct {
    CUfunction function;
    unsigned grid[3], block[3], shared_bytes;
    void **params, **extra;
    CUkernel kernel; /* from here on only in the second version */
    CUcontext context;
} CUDA_KERNEL_NODE_PARAMS;
typedef struct {
    CUmemPoolProps pool;
    const CUmemAccessDesc *access;
    size_t n_access, bytes;
    CUdeviceptr ret_pointer;
} CUDA_MEM_ALLOC_NODE_PARAMS;
typedef struct {
    unsigned grid[3], block[3], shared_bytes;
    CUstream stream;
    void *attributes;
    unsigned n_attributes;
} CUlaunchConfig;

typedef struct {
    unsigned timeout_ms, reserved0; /* 0: for as long as it takes */
    uint64_t reserved1[7];
} CUcheckpointLockArgs;

_Static_assert(sizeof(CUcheckpointLockArgs) == 64, "CUcheckpointLockArgs has another size");
_Static_assert(sizeof(CUmemAllocationProp) == 32, "CUmemAllocationProp has another size");
_Static_assert(sizeof(CUmemAccessDesc) == 12, "CUmemAccessDesc has another size");
_Static_assert(sizeof(CUmemPoolProps) == 88, "CUmemPoolProps has another size");
_Static_assert(sizeof(CUDA_ARRAY3D_DESCRIPTOR) == 40, "CUDA_ARRAY3D_DESCRIPTOR has another size");
_Static_assert(sizeof(CUDA_KERNEL_NODE_PARAMS) == 72, "CUDA_KERNEL_NODE_PARAMS has another size");
_Static_assert(sizeof(CUDA_MEM_ALLOC_NODE_PARAMS) == 120, "CUDA_MEM_ALLOC_NODE_PARAMS has another size");
_Static_assert(sizeof(CUlaunchConfig) == 56, "CUlaunchConfig has another size");

/* The library, errors, devices */
int cuInit(unsigned flags);
int cuDriverGetVersion(int *ret);
int cuGetProcAddress(const char *name, void **ret, int version, uint64_t flags);
int cuGetProcAddress_v2(const char *name, void **ret, int version, uint64_t flags, int *ret_found);
int cuGetExportTable(const void **ret, const CUuuid *which);
int cuGetErrorName(int result, const char **ret);
int cuGetErrorString(int result, const char **ret);
int cuDeviceGetCount(int *ret);
int cuDeviceGet(CUdevice *ret, int ordinal);
int cuDeviceGetName(char *ret, int size, CUdevice device);
int cuDeviceGetUuid(CUuuid *ret, CUdevice device);
int cuDeviceGetUuid_v2(CUuuid *ret, CUdevice device);
int cuDeviceGetLuid(char *ret, unsigned *ret_mask, CUdevice device);
int cuDeviceTotalMem_v2(size_t *ret, CUdevice device);
int cuDeviceGetAttribute(int *ret, int attribute, CUdevice device);
int cuDeviceGetProperties(CUdevprop *ret, CUdevice device);
int cuDeviceComputeCapability(int *ret_major, int *ret_minor, CUdevice device);
int cuDeviceGetPCIBusId(char *ret, int size, CUdevice device);
int cuDeviceGetByPCIBusId(CUdevice *ret, const char *id);
int cuDeviceCanAccessPeer(int *ret, CUdevice device, CUdevice peer);
int cuDeviceGetP2PAttribute(int *ret, int attribute, CUdevice device, CUdevice peer);

/* Contexts */
int cuDevicePrimaryCtxRetain(CUcontext *ret, CUdevice device);
int cuDevicePrimaryCtxRelease_v2(CUdevice device);
int cuDevicePrimaryCtxReset_v2(CUdevice device);
int cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned flags);
int cuDevicePrimaryCtxGetState(CUdevice device, unsigned *ret_flags, int *ret_active);
int cuCtxCreate_v2(CUcontext *ret, unsigned flags, CUdevice device);
int cuCtxCreate_v3(CUcontext *ret, void *affinity, int n, unsigned flags, CUdevice device);
int cuCtxCreate_v4(CUcontext *ret, void *params, unsigned flags, CUdevice device);
int cuCtxDestroy_v2(CUcontext context);
int cuCtxPushCurrent_v2(CUcontext context);
int cuCtxPopCurrent_v2(CUcontext *ret);
int cuCtxSetCurrent(CUcontext context);
int cuCtxGetCurrent(CUcontext *ret);
int cuCtxGetDevice(CUdevice *ret);
int cuCtxGetFlags(unsigned *ret);
int cuCtxSetFlags(unsigned flags);
int cuCtxGetId(CUcontext context, uint64_t *ret);
int cuCtxGetApiVersion(CUcontext context, unsigned *ret);
int cuCtxSynchronize(void);
int cuCtxSetLimit(int limit, size_t value);
int cuCtxGetLimit(size_t *ret, int limit);
int cuCtxGetCacheConfig(int *ret);
int cuCtxSetCacheConfig(int config);
int cuCtxGetStreamPriorityRange(int *ret_least, int *ret_greatest);
int cuCtxEnablePeerAccess(CUcontext peer, unsigned flags);
int cuCtxDisablePeerAccess(CUcontext peer);

/* Memory */
int cuMemGetInfo_v2(size_t *ret_free, size_t *ret_total);
int cuMemAlloc_v2(CUdeviceptr *ret, size_t bytes);
int cuMemAllocPitch_v2(CUdeviceptr *ret, size_t *ret_pitch, size_t width, size_t height, unsigned element);
int cuMemFree_v2(CUdeviceptr at);
int cuMemGetAddressRange_v2(CUdeviceptr *ret_base, size_t *ret_size, CUdeviceptr at);
int cuPointerGetAttribute(void *ret, int attribute, CUdeviceptr at);
int cuPointerGetAttributes(unsigned n, int *attributes, void **ret, CUdeviceptr at);
int cuMemAllocHost_v2(void **ret, size_t bytes);
int cuMemHostAlloc(void **ret, size_t bytes, unsigned flags);
int cuMemFreeHost(void *at);
int cuMemHostGetDevicePointer_v2(CUdeviceptr *ret, void *at, unsigned flags);
int cuMemHostGetFlags(unsigned *ret, void *at);
int cuMemHostRegister_v2(void *at, size_t bytes, unsigned flags);
int cuMemHostUnregister(void *at);
int cuMemAllocManaged(CUdeviceptr *ret, size_t bytes, unsigned flags);
int cuMemPrefetchAsync(CUdeviceptr at, size_t bytes, CUdevice device, CUstream stream);
int cuMemPrefetchAsync_v2(CUdeviceptr at, size_t bytes, CUmemLocation where, unsigned flags, CUstream stream);
int cuMemAdvise(CUdeviceptr at, size_t bytes, int advice, CUdevice device);
int cuMemAdvise_v2(CUdeviceptr at, size_t bytes, int advice, CUmemLocation where);
int cuArrayCreate_v2(CUarray *ret, const CUDA_ARRAY_DESCRIPTOR *what);
int cuArray3DCreate_v2(CUarray *ret, const CUDA_ARRAY3D_DESCRIPTOR *what);
int cuArrayGetDescriptor_v2(CUDA_ARRAY_DESCRIPTOR *ret, CUarray array);
int cuArray3DGetDescriptor_v2(CUDA_ARRAY3D_DESCRIPTOR *ret, CUarray array);
int cuArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS *ret, CUarray array, CUdevice device);
int cuArrayDestroy(CUarray array);
int cuMemAddressReserve(CUdeviceptr *ret, size_t bytes, size_t alignment, CUdeviceptr want, uint64_t flags);
int cuMemAddressFree(CUdeviceptr at, size_t bytes);
int cuMemCreate(CUmemGenericAllocationHandle *ret, size_t bytes, const CUmemAllocationProp *prop,
                uint64_t flags);
int cuMemRelease(CUmemGenericAllocationHandle handle);
int cuMemMap(CUdeviceptr at, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle,
             uint64_t flags);
int cuMemUnmap(CUdeviceptr at, size_t bytes);
int cuMemSetAccess(CUdeviceptr at, size_t bytes, const CUmemAccessDesc *access, size_t n);
int cuMemGetAccess(uint64_t *ret, const CUmemLocation *where, CUdeviceptr at);
int cuMemGetAllocationGranularity(size_t *ret, const CUmemAllocationProp *prop, int option);
int cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *ret, CUmemGenericAllocationHandle handle);
int cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *ret, void *at);
int cuMemExportToShareableHandle(void *ret, CUmemGenericAllocationHandle handle, int type, uint64_t flags);
int cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *ret, void *handle, int type);
int cuIpcGetMemHandle(CUipcMemHandle *ret, CUdeviceptr at);
int cuIpcOpenMemHandle_v2(CUdeviceptr *ret, CUipcMemHandle handle, unsigned flags);
int cuIpcCloseMemHandle(CUdeviceptr at);
int cuIpcGetEventHandle(CUipcEventHandle *ret, CUevent event);
int cuIpcOpenEventHandle(CUevent *ret, CUipcEventHandle handle);
int cuDeviceGetDefaultMemPool(CUmemoryPool *ret, CUdevice device);
int cuDeviceGetMemPool(CUmemoryPool *ret, CUdevice device);
int cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool);
int cuMemPoolCreate(CUmemoryPool *ret, const CUmemPoolProps *props);
int cuMemPoolDestroy(CUmemoryPool pool);
int cuMemPoolTrimTo(CUmemoryPool pool, size_t keep);
int cuMemPoolSetAttribute(CUmemoryPool pool, int attribute, void *value);
int cuMemPoolGetAttribute(CUmemoryPool pool, int attribute, void *ret);
int cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *access, size_t n);
int cuMemPoolGetAccess(int *ret, CUmemoryPool pool, CUmemLocation *where);
int cuMemAllocAsync(CUdeviceptr *ret, size_t bytes, CUstream stream);
int cuMemAllocFromPoolAsync(CUdeviceptr *ret, size_t bytes, CUmemoryPool pool, CUstream stream);
int cuMemFreeAsync(CUdeviceptr at, CUstream stream);

/* Copies and fills */
int cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t bytes);
int cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream);
int cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t bytes);
int cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t bytes);
int cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes);
int cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, CUstream stream);
int cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, CUstream stream);
int cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream);
int cuMemsetD8_v2(CUdeviceptr at, uint8_t value, size_t n);
int cuMemsetD16_v2(CUdeviceptr at, uint16_t value, size_t n);
int cuMemsetD32_v2(CUdeviceptr at, uint32_t value, size_t n);
int cuMemsetD8Async(CUdeviceptr at, uint8_t value, size_t n, CUstream stream);
int cuMemsetD16Async(CUdeviceptr at, uint16_t value, size_t n, CUstream stream);
int cuMemsetD32Async(CUdeviceptr at, uint32_t value, size_t n, CUstream stream);

/* Modules and launches */
int cuModuleLoad(CUmodule *ret, const char *path);
int cuModuleLoadData(CUmodule *ret, const void *image);
int cuModuleLoadDataEx(CUmodule *ret, const void *image, unsigned n, int *options, void **values);
int cuModuleLoadFatBinary(CUmodule *ret, const void *image);
int cuModuleUnload(CUmodule module);
int cuModuleGetFunction(CUfunction *ret, CUmodule module, const char *name);
int cuModuleGetGlobal_v2(CUdeviceptr *ret, size_t *ret_bytes, CUmodule module, const char *name);
int cuModuleGetLoadingMode(int *ret);
int cuLibraryLoadData(CUlibrary *ret, const void *code, int *jit, void **jit_values, unsigned n_jit,
                      int *options, void **values, unsigned n);
int cuLibraryUnload(CUlibrary library);
int cuLibraryGetKernel(CUkernel *ret, CUlibrary library, const char *name);
int cuLibraryGetModule(CUmodule *ret, CUlibrary library);
int cuKernelGetFunction(CUfunction *ret, CUkernel kernel);
int cuFuncGetAttribute(int *ret, int attribute, CUfunction function);
int cuFuncSetAttribute(CUfunction function, int attribute, int value);
int cuFuncSetCacheConfig(CUfunction function, int config);
int cuFuncGetModule(CUmodule *ret, CUfunction function);
int cuOccupancyMaxActiveBlocksPerMultiprocessor(int *ret, CUfunction function, int block, size_t shared);
int cuLaunchKernel(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                   unsigned bz, unsigned shared, CUstream stream, void **params, void **extra);
int cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **params, void **extra);
int cuLaunchCooperativeKernel(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                              unsigned by, unsigned bz, unsigned shared, CUstream stream, void **params);
int cuLaunchHostFunc(CUstream stream, CUhostFn fn, void *arg);

/* Streams and events */
int cuStreamCreate(CUstream *ret, unsigned flags);
int cuStreamCreateWithPriority(CUstream *ret, unsigned flags, int priority);
int cuStreamDestroy_v2(CUstream stream);
int cuStreamSynchronize(CUstream stream);
int cuStreamQuery(CUstream stream);
int cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags);
int cuStreamGetPriority(CUstream stream, int *ret);
int cuStreamGetFlags(CUstream stream, unsigned *ret);
int cuStreamGetId(CUstream stream, uint64_t *ret);
int cuStreamGetCtx(CUstream stream, CUcontext *ret);
int cuStreamAddCallback(CUstream stream, CUstreamCallback fn, void *arg, unsigned flags);
int cuStreamBeginCapture_v2(CUstream stream, int mode);
int cuStreamEndCapture(CUstream stream, CUgraph *ret);
int cuStreamIsCapturing(CUstream stream, int *ret);
int cuEventCreate(CUevent *ret, unsigned flags);
int cuEventDestroy_v2(CUevent event);
int cuEventRecord(CUevent event, CUstream stream);
int cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned flags);
int cuEventSynchronize(CUevent event);
int cuEventQuery(CUevent event);
int cuEventElapsedTime(float *ret_ms, CUevent from, CUevent to);
int cuEventElapsedTime_v2(float *ret_ms, CUevent from, CUevent to);

/* Graphs */
int cuGraphCreate(CUgraph *ret, unsigned flags);
int cuGraphDestroy(CUgraph graph);
int cuGraphAddKernelNode(CUgraphNode *ret, CUgraph graph, const CUgraphNode *after, size_t n,
                         const CUDA_KERNEL_NODE_PARAMS *params);
int cuGraphAddKernelNode_v2(CUgraphNode *ret, CUgraph graph, const CUgraphNode *after, size_t n,
                            const CUDA_KERNEL_NODE_PARAMS *params);
int cuGraphAddEmptyNode(CUgraphNode *ret, CUgraph graph, const CUgraphNode *after, size_t n);
int cuGraphAddMemAllocNode(CUgraphNode *ret, CUgraph graph, const CUgraphNode *after, size_t n,
                           CUDA_MEM_ALLOC_NODE_PARAMS *params);
int cuGraphAddMemFreeNode(CUgraphNode *ret, CUgraph graph, const CUgraphNode *after, size_t n,
                          CUdeviceptr at);
int cuGraphGetNodes(CUgraph graph, CUgraphNode *ret, size_t *n);
int cuGraphNodeGetType(CUgraphNode node, int *ret);
int cuGraphInstantiate_v2(CUgraphExec *ret, CUgraph graph, CUgraphNode *ret_bad, char *log, size_t log_size);
int cuGraphInstantiateWithFlags(CUgraphExec *ret, CUgraph graph, uint64_t flags);
int cuGraphUpload(CUgraphExec exec, CUstream stream);
int cuGraphLaunch(CUgraphExec exec, CUstream stream);
int cuGraphExecDestroy(CUgraphExec exec);
int cuDeviceGraphMemTrim(CUdevice device);
int cuDeviceGetGraphMemAttribute(CUdevice device, int attribute, void *ret);

/* Suspending another process */
int cuCheckpointProcessLock(int pid, CUcheckpointLockArgs *args);
int cuCheckpointProcessUnlock(int pid, void *args);
int cuCheckpointProcessCheckpoint(int pid, void *args);
int cuCheckpointProcessRestore(int pid, void *args);
int cuCheckpointProcessGetState(int pid, int *ret);
int cuCheckpointProcessGetRestoreThreadId(int pid, int *ret);

#endif
