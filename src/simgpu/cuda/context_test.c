/* SPDX-License-Identifier: Apache-2.0 */
/* context_test.c - the library comes up on a node, makes contexts, and leaves nothing behind. */
#include "simgpu/cuda/internal.h"
#include "simgpu/cuda/node_fixture.h"

#include <signal.h>
#include <sys/wait.h>

TEST(nothing_works_before_it_is_initialised)
{
    int n;
    CUcontext ctx;
    CUdeviceptr at;
    CHECK_EQ(cuDeviceGetCount(&n), CUDA_ERROR_NOT_INITIALIZED);
    CHECK_EQ(cuCtxGetCurrent(&ctx), CUDA_ERROR_NOT_INITIALIZED);
    CHECK_EQ(cuMemAlloc_v2(&at, 1), CUDA_ERROR_NOT_INITIALIZED);
    CHECK_EQ(cuInit(1), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQ(cuInit(0), CUDA_ERROR_NO_DEVICE); /* no node is named */
    fixture_begin("h200");
    CHECK_EQ(cuInit(0), CUDA_SUCCESS);
    CHECK_EQ(cuInit(0), CUDA_SUCCESS);
}

TEST(a_device_says_what_it_is)
{
    struct bh_sim_gpu_view v;
    int n = 0, major = 0, sm = 0, value;
    char name[96], pci[32];
    size_t total = 0;
    CUdevice d, again;
    CUuuid uuid;
    CHECK_EQ(bh_sim_view(0, &v), 0);
    CHECK_EQ(cuDeviceGetCount(&n), CUDA_SUCCESS);
    CHECK_EQ(n, 1);
    CHECK_EQ(cuDeviceGet(&d, 0), CUDA_SUCCESS);
    CHECK_EQ(cuDeviceGet(&d, 1), CUDA_ERROR_INVALID_DEVICE);
    CHECK_EQ(cuDeviceGet(&d, 0), CUDA_SUCCESS);
    CHECK_EQ(cuDeviceGetName(name, sizeof(name), d), CUDA_SUCCESS);
    CHECK_STR(name, v.name);
    CHECK_EQ(cuDeviceGetPCIBusId(pci, sizeof(pci), d), CUDA_SUCCESS);
    CHECK_STR(pci, v.pci);
    CHECK_EQ(cuDeviceGetByPCIBusId(&again, pci), CUDA_SUCCESS);
    CHECK_EQ(again, d);
    CHECK_EQ(cuDeviceGetByPCIBusId(&again, "ffff:00:00.0"), CUDA_ERROR_INVALID_DEVICE);
    CHECK_EQ(cuDeviceTotalMem_v2(&total, d), CUDA_SUCCESS);
    CHECK_EQ(total, v.total_bytes - v.reserved_bytes);
    CHECK_EQ(cuDeviceGetAttribute(&sm, CU_ATTR_MULTIPROCESSOR_COUNT, d), CUDA_SUCCESS);
    CHECK_EQ(sm, v.sm);
    CHECK_EQ(cuDeviceGetAttribute(&major, CU_ATTR_COMPUTE_CAPABILITY_MAJOR, d), CUDA_SUCCESS);
    CHECK_EQ(major, 9);
    CHECK_EQ(cuDeviceGetAttribute(&value, 0, d), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQ(cuDeviceGetUuid_v2(&uuid, d), CUDA_SUCCESS);
    (void)snprintf(name, sizeof(name), "GPU-%02x%02x", (uint8_t)uuid.bytes[0], (uint8_t)uuid.bytes[1]);
    CHECK_EQ(strncmp(name, v.uuid, strlen(name)), 0);
}

TEST(results_have_names)
{
    const char *name = NULL, *text = NULL;
    CHECK_EQ(cuGetErrorName(CUDA_ERROR_OUT_OF_MEMORY, &name), CUDA_SUCCESS);
    CHECK_STR(name, "CUDA_ERROR_OUT_OF_MEMORY");
    CHECK_EQ(cuGetErrorString(CUDA_ERROR_OUT_OF_MEMORY, &text), CUDA_SUCCESS);
    CHECK_STR(text, "out of memory");
    CHECK_EQ(cuGetErrorName(12345, &name), CUDA_ERROR_INVALID_VALUE);
    CHECK(!name);
}

TEST(a_thread_works_in_the_context_on_top)
{
    CUcontext a, b, now;
    CUdeviceptr at;
    CUdevice d;
    CHECK_EQ(cuMemAlloc_v2(&at, 1), CUDA_ERROR_INVALID_CONTEXT);
    CHECK_EQ(cuCtxCreate_v2(&a, 0, 0), CUDA_SUCCESS);
    CHECK_EQ(cuCtxCreate_v3(&b, NULL, 0, 0, 0), CUDA_SUCCESS);
    CHECK_EQ(cuCtxGetCurrent(&now), CUDA_SUCCESS);
    CHECK(now == b);
    CHECK_EQ(cuCtxPopCurrent_v2(&now), CUDA_SUCCESS);
    CHECK(now == b);
    CHECK_EQ(cuCtxGetCurrent(&now), CUDA_SUCCESS);
    CHECK(now == a);
    CHECK_EQ(cuCtxPushCurrent_v2(b), CUDA_SUCCESS);
    CHECK_EQ(cuCtxGetDevice(&d), CUDA_SUCCESS);
    CHECK_EQ(d, 0);
    CHECK_EQ(cuCtxDestroy_v2(b), CUDA_SUCCESS);
    CHECK_EQ(cuCtxDestroy_v2(b), CUDA_ERROR_INVALID_CONTEXT);
    CHECK_EQ(cuCtxSetCurrent(b), CUDA_ERROR_INVALID_CONTEXT);
    CHECK_EQ(cuCtxGetCurrent(&now), CUDA_SUCCESS);
    CHECK(now == a);
    CHECK_EQ(cuCtxDestroy_v2(a), CUDA_SUCCESS);
    CHECK_EQ(cuCtxGetCurrent(&now), CUDA_SUCCESS);
    CHECK(!now);
    CHECK_EQ(fixture_held().channels, 0);
    CHECK_EQ(fixture_held().groups, 0);
}

TEST(the_primary_context_lives_as_long_as_somebody_wants_it)
{
    CUcontext a, b;
    unsigned flags;
    int active = -1;
    CHECK_EQ(cuDevicePrimaryCtxRelease_v2(0), CUDA_ERROR_INVALID_CONTEXT);
    CHECK_EQ(cuDevicePrimaryCtxRetain(&a, 0), CUDA_SUCCESS);
    CHECK_EQ(cuDevicePrimaryCtxRetain(&b, 0), CUDA_SUCCESS);
    CHECK(a == b);
    CHECK_EQ(cuCtxDestroy_v2(a), CUDA_ERROR_INVALID_CONTEXT);
    CHECK_EQ(cuDevicePrimaryCtxGetState(0, &flags, &active), CUDA_SUCCESS);
    CHECK_EQ(active, 1);
    CHECK_EQ(cuDevicePrimaryCtxRelease_v2(0), CUDA_SUCCESS);
    CHECK(fixture_held().channels > 0);
    CHECK_EQ(cuDevicePrimaryCtxRelease_v2(0), CUDA_SUCCESS);
    CHECK_EQ(cuDevicePrimaryCtxGetState(0, &flags, &active), CUDA_SUCCESS);
    CHECK_EQ(active, 0);
    CHECK_EQ(fixture_held().channels, 0);
}

TEST(contexts_end_when_memory_does_and_give_all_of_it_back)
{
    static CUcontext many[512];
    size_t n = 0;
    int rc = CUDA_SUCCESS;
    const uint64_t before = fixture_held().bytes;
    while (n < BH_COUNT_OF(many) && (rc = cuCtxCreate_v2(&many[n], 0, 0)) == CUDA_SUCCESS)
        n++;
    CHECK_EQ(rc, CUDA_ERROR_OUT_OF_MEMORY);
    CHECK(n > 100);
    while (n-- > 0)
        CHECK_EQ(cuCtxDestroy_v2(many[n]), CUDA_SUCCESS);
    CHECK_EQ(fixture_held().channels, 0);
    CHECK_EQ(fixture_held().bytes, before);
}

TEST(limits_are_kept_and_unknown_ones_refused)
{
    CUcontext ctx;
    size_t value = 0;
    unsigned version = 0;
    int least = 1, greatest = 1;
    CHECK_EQ(cuCtxCreate_v4(&ctx, NULL, 0, 0), CUDA_SUCCESS);
    CHECK_EQ(cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 64 << 20), CUDA_SUCCESS);
    CHECK_EQ(cuCtxGetLimit(&value, CU_LIMIT_MALLOC_HEAP_SIZE), CUDA_SUCCESS);
    CHECK_EQ(value, 64 << 20);
    CHECK_EQ(cuCtxSetLimit(99, 1), CUDA_ERROR_UNSUPPORTED_LIMIT);
    CHECK_EQ(cuCtxGetStreamPriorityRange(&least, &greatest), CUDA_SUCCESS);
    CHECK(greatest < least);
    CHECK_EQ(cuCtxGetApiVersion(ctx, &version), CUDA_SUCCESS);
    CHECK(version > 0);
    CHECK_EQ(cuCtxDestroy_v2(ctx), CUDA_SUCCESS);
}

TEST(who_is_no_cuda_process_is_not_suspended)
{
    int state = -1;
    pid_t pid = fork();
    if (pid == 0)
        _exit(pause());
    CHECK(pid > 0);
    CHECK_EQ(cuCheckpointProcessGetState(pid, &state), CUDA_ERROR_NOT_INITIALIZED);
    CHECK_EQ(cuCheckpointProcessLock(pid, NULL), CUDA_ERROR_NOT_INITIALIZED);
    CHECK_EQ(kill(pid, SIGKILL), 0);
    CHECK_EQ(waitpid(pid, NULL, 0), pid);
    CHECK_EQ(cuCheckpointProcessLock(pid, NULL), CUDA_ERROR_NOT_INITIALIZED);
    CHECK_EQ(cuCheckpointProcessGetState(pid, NULL), CUDA_ERROR_INVALID_VALUE);
}

TEST(orders_that_do_not_fit_the_state_change_nothing)
{
    int state = -1, thread = 0;
    char restore[64] = {0};
    CHECK_EQ(cuCheckpointProcessGetState(getpid(), &state), CUDA_SUCCESS);
    CHECK_EQ(state, CU_PROCESS_RUNNING);
    CHECK_EQ(cuCheckpointProcessCheckpoint(getpid(), NULL), CUDA_ERROR_ILLEGAL_STATE);
    CHECK_EQ(cuCheckpointProcessRestore(getpid(), NULL), CUDA_ERROR_ILLEGAL_STATE);
    CHECK_EQ(cuCheckpointProcessRestore(getpid(), restore), CUDA_ERROR_NOT_SUPPORTED);
    CHECK_EQ(cuCheckpointProcessUnlock(getpid(), NULL), CUDA_ERROR_ILLEGAL_STATE);
    CHECK_EQ(cuCheckpointProcessGetRestoreThreadId(getpid(), &thread), CUDA_SUCCESS);
    CHECK(thread > 0 && thread != getpid());
    CHECK_EQ(cuCheckpointProcessLock(getpid(), NULL), CUDA_SUCCESS);
    CHECK_EQ(cuCheckpointProcessLock(getpid(), NULL), CUDA_ERROR_ILLEGAL_STATE);
    CHECK_EQ(cuCheckpointProcessUnlock(getpid(), NULL), CUDA_SUCCESS);
}

TEST(a_child_that_was_forked_has_none_of_it)
{
    pid_t pid = fork();
    int n, status = 0;
    if (pid == 0)
        _exit(cuDeviceGetCount(&n) == CUDA_ERROR_NOT_INITIALIZED && cuInit(0) == CUDA_ERROR_NOT_INITIALIZED
                  ? 0
                  : 1);
    CHECK(pid > 0);
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK_EQ(status, 0);
    CHECK_EQ(cuDeviceGetCount(&n), CUDA_SUCCESS);
}

TEST_MAIN
