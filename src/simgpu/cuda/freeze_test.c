/* SPDX-License-Identifier: Apache-2.0 */
/* freeze_test.c - a process between two calls: what leaves the card, what comes back, and who waits meanwhile. */
#include "simgpu/cuda/internal.h"
#include "simgpu/cuda/node_fixture.h"

#include <stdatomic.h>

static CUcontext ctx;

static int order(int (*what)(int, void *))
{
    return what(getpid(), NULL);
}

static int lock_for(unsigned ms)
{
    CUcheckpointLockArgs args = {.timeout_ms = ms};
    return cuCheckpointProcessLock(getpid(), &args);
}

static int state(void)
{
    int now = -1;
    return cuCheckpointProcessGetState(getpid(), &now) == CUDA_SUCCESS ? now : -1;
}

TEST(starts)
{
    fixture_begin("h200");
    CHECK_EQ(cuInit(0), CUDA_SUCCESS);
    CHECK_EQ(cuCtxCreate_v2(&ctx, 0, 0), CUDA_SUCCESS);
}

/* Contents that differ at every place, with a stretch of zeros in the middle. */
static void pattern(uint8_t *at, size_t n, unsigned salt)
{
    for (size_t i = 0; i < n; i++)
        at[i] = i > n / 3 && i < n / 2 ? 0 : (uint8_t)(i * 31 + i / 253 + salt);
}

TEST(memory_in_every_form_leaves_and_comes_back)
{
    enum { N = 3 << 20 };
    static uint8_t in[N], out[N];
    const CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                      .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    const uint64_t context = fixture_held().bytes;
    CUmemGenericAllocationHandle piece, loose;
    CUdeviceptr at[4];
    CHECK_EQ(cuMemAlloc_v2(&at[0], N), CUDA_SUCCESS);
    CHECK_EQ(cuMemAlloc_v2(&at[1], 5000), CUDA_SUCCESS);
    CHECK_EQ(cuMemAllocAsync(&at[2], N, NULL), CUDA_SUCCESS);
    CHECK_EQ(cuMemAddressReserve(&at[3], 4 * BH_CU_PAGE, 0, 0, 0), CUDA_SUCCESS);
    CHECK_EQ(cuMemCreate(&piece, 2 * BH_CU_PAGE, &prop, 0), CUDA_SUCCESS);
    CHECK_EQ(cuMemCreate(&loose, 2 * BH_CU_PAGE, &prop, 0), CUDA_SUCCESS); /* nowhere mapped */
    CHECK_EQ(cuMemMap(at[3], 2 * BH_CU_PAGE, 0, piece, 0), CUDA_SUCCESS);
    for (unsigned i = 0; i < 4; i++) {
        pattern(in, i == 1 ? 5000 : N, i);
        CHECK_EQ(cuMemcpyHtoD_v2(at[i], in, i == 1 ? 5000 : N), CUDA_SUCCESS);
    }
    const uint64_t before = fixture_held().bytes;
    CHECK(before > context);
    CHECK_EQ(lock_for(0), CUDA_SUCCESS);
    CHECK_EQ(state(), CU_PROCESS_LOCKED);
    CHECK_EQ(fixture_held().bytes, before);
    CHECK_EQ(order(cuCheckpointProcessCheckpoint), CUDA_SUCCESS);
    CHECK_EQ(state(), CU_PROCESS_CHECKPOINTED);
    CHECK(fixture_held().bytes <= context);
    CHECK_EQ(order(cuCheckpointProcessUnlock), CUDA_ERROR_ILLEGAL_STATE);
    CHECK_EQ(order(cuCheckpointProcessRestore), CUDA_SUCCESS);
    CHECK_EQ(fixture_held().bytes, before);
    CHECK_EQ(order(cuCheckpointProcessUnlock), CUDA_SUCCESS);
    for (unsigned i = 0; i < 4; i++) {
        const size_t n = i == 1 ? 5000 : N;
        pattern(in, n, i);
        CHECK_EQ(cuMemcpyDtoH_v2(out, at[i], n), CUDA_SUCCESS);
        CHECK_EQ(memcmp(in, out, n), 0);
    }
    CHECK_EQ(cuMemMap(at[3] + 2 * BH_CU_PAGE, 2 * BH_CU_PAGE, 0, loose, 0), CUDA_SUCCESS);
    CHECK_EQ(cuMemUnmap(at[3], 4 * BH_CU_PAGE), CUDA_SUCCESS);
    CHECK_EQ(cuMemRelease(piece), CUDA_SUCCESS);
    CHECK_EQ(cuMemRelease(loose), CUDA_SUCCESS);
    CHECK_EQ(cuMemAddressFree(at[3], 4 * BH_CU_PAGE), CUDA_SUCCESS);
    for (unsigned i = 0; i < 3; i++)
        CHECK_EQ(cuMemFree_v2(at[i]), CUDA_SUCCESS);
    CHECK_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
}

struct caller {
    atomic_int started, done, result;
};

static void *call(void *arg)
{
    struct caller *c = arg;
    size_t left, total;
    (void)cuCtxSetCurrent(ctx); /* waits, too */
    atomic_store(&c->started, 1);
    c->result = cuMemGetInfo_v2(&left, &total);
    atomic_store(&c->done, 1);
    return NULL;
}

TEST(calls_wait_until_it_is_unlocked)
{
    struct caller c = {0};
    pthread_t thread;
    CHECK_EQ(lock_for(0), CUDA_SUCCESS);
    CHECK_EQ(pthread_create(&thread, NULL, call, &c), 0);
    CHECK_EQ(order(cuCheckpointProcessCheckpoint), CUDA_SUCCESS);
    (void)usleep(20000);
    CHECK_EQ(atomic_load(&c.started), 0);
    CHECK_EQ(order(cuCheckpointProcessRestore), CUDA_SUCCESS);
    (void)usleep(20000);
    CHECK_EQ(atomic_load(&c.done), 0); /* restored is not unlocked */
    CHECK_EQ(order(cuCheckpointProcessUnlock), CUDA_SUCCESS);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_EQ(atomic_load(&c.done), 1);
    CHECK_EQ(c.result, CUDA_SUCCESS);
}

TEST(work_that_does_not_end_keeps_it_running)
{
    CUmodule module;
    CUfunction spin;
    uint64_t ns = UINT64_C(600000000);
    void *params[] = {&ns};
    CHECK_EQ(cuModuleLoadData(&module, ".entry spin"), CUDA_SUCCESS);
    CHECK_EQ(cuModuleGetFunction(&spin, module, "spin"), CUDA_SUCCESS);
    CHECK_EQ(cuLaunchKernel(spin, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL), CUDA_SUCCESS);
    CHECK_EQ(lock_for(5), CUDA_ERROR_NOT_READY);
    CHECK_EQ(state(), CU_PROCESS_RUNNING);
    CHECK_EQ(lock_for(0), CUDA_SUCCESS); /* waits for the work */
    CHECK_EQ(order(cuCheckpointProcessUnlock), CUDA_SUCCESS);
    CHECK_EQ(cuStreamQuery(NULL), CUDA_SUCCESS);
    CHECK_EQ(cuModuleUnload(module), CUDA_SUCCESS);
}

TEST(what_others_see_is_not_moved)
{
    CUdeviceptr managed, lent;
    CUipcMemHandle handle;
    const uint64_t before = fixture_held().bytes;
    CHECK_EQ(cuMemAllocManaged(&managed, BH_CU_PAGE, CU_MEM_ATTACH_GLOBAL), CUDA_SUCCESS);
    CHECK_EQ(lock_for(0), CUDA_SUCCESS);
    CHECK_EQ(order(cuCheckpointProcessCheckpoint), CUDA_ERROR_NOT_SUPPORTED);
    CHECK_EQ(state(), CU_PROCESS_LOCKED);
    CHECK_EQ(order(cuCheckpointProcessUnlock), CUDA_SUCCESS);
    CHECK_EQ(cuMemFree_v2(managed), CUDA_SUCCESS);
    CHECK_EQ(cuMemAlloc_v2(&lent, BH_CU_PAGE), CUDA_SUCCESS);
    CHECK_EQ(cuIpcGetMemHandle(&handle, lent), CUDA_SUCCESS);
    CHECK_EQ(lock_for(0), CUDA_SUCCESS);
    CHECK_EQ(order(cuCheckpointProcessCheckpoint), CUDA_ERROR_NOT_SUPPORTED);
    CHECK_EQ(order(cuCheckpointProcessUnlock), CUDA_SUCCESS);
    CHECK_EQ(cuMemFree_v2(lent), CUDA_SUCCESS);
    CHECK_EQ(fixture_held().bytes, before);
}

TEST(a_card_that_is_full_leaves_it_outside)
{
    CUdeviceptr at[3];
    uint8_t byte = 0;
    for (unsigned i = 0; i < 3; i++) {
        CHECK_EQ(cuMemAlloc_v2(&at[i], BH_CU_PAGE), CUDA_SUCCESS);
        CHECK_EQ(cuMemsetD8_v2(at[i], (uint8_t)(7 + i), BH_CU_PAGE), CUDA_SUCCESS);
    }
    CHECK_EQ(lock_for(0), CUDA_SUCCESS);
    CHECK_EQ(order(cuCheckpointProcessCheckpoint), CUDA_SUCCESS);
    const uint64_t outside = fixture_held().bytes;
    CHECK_EQ(fixture_break("calls fail 51 every 2"), 0); /* one comes in, the next does not */
    CHECK_EQ(order(cuCheckpointProcessRestore), CUDA_ERROR_OUT_OF_MEMORY);
    CHECK_EQ(fixture_break("mend"), 0);
    CHECK_EQ(state(), CU_PROCESS_CHECKPOINTED);
    CHECK_EQ(fixture_held().bytes, outside);
    CHECK_EQ(order(cuCheckpointProcessRestore), CUDA_SUCCESS);
    CHECK_EQ(order(cuCheckpointProcessUnlock), CUDA_SUCCESS);
    for (unsigned i = 0; i < 3; i++) {
        CHECK_EQ(cuMemcpyDtoH_v2(&byte, at[i] + BH_CU_PAGE - 1, 1), CUDA_SUCCESS);
        CHECK_EQ(byte, 7 + i);
        CHECK_EQ(cuMemFree_v2(at[i]), CUDA_SUCCESS);
    }
}

TEST_MAIN
