/* SPDX-License-Identifier: Apache-2.0 */
/* stream_test.c - work: its order, its end, and what is left when it is lost. */
#include "simgpu/cuda/internal.h"
#include "simgpu/cuda/node_fixture.h"

#include <unistd.h>

static const char ptx[] = ".version 7.0\n.target sm_80\n.visible .entry spin(.param .u64 ns) { ret; }\n"
                          ".visible .entry fault() { ret; }\n.visible .entry long_50ms() { ret; }\n"
                          ".visible .entry quick() { ret; }\n";
static CUcontext ctx;
static CUmodule module;
static CUfunction quick, slow, fault;

static int launch(CUfunction f, CUstream s)
{
    return cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 0, s, NULL, NULL);
}

TEST(starts)
{
    CUfunction none;
    fixture_begin("a30x4");
    CHECK_EQ(cuInit(0), CUDA_SUCCESS);
    CHECK_EQ(cuCtxCreate_v2(&ctx, 0, 2), CUDA_SUCCESS);
    CHECK_EQ(cuModuleLoadData(&module, ptx), CUDA_SUCCESS);
    CHECK_EQ(cuModuleGetFunction(&quick, module, "quick"), CUDA_SUCCESS);
    CHECK_EQ(cuModuleGetFunction(&slow, module, "long_50ms"), CUDA_SUCCESS);
    CHECK_EQ(cuModuleGetFunction(&fault, module, "fault"), CUDA_SUCCESS);
    CHECK_EQ(cuModuleGetFunction(&none, module, "long"), CUDA_ERROR_NOT_FOUND);
}

TEST(work_is_under_way_until_it_is_done)
{
    CUstream s;
    CHECK_EQ(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    CHECK_EQ(cuStreamQuery(s), CUDA_SUCCESS);
    CHECK_EQ(launch(slow, s), CUDA_SUCCESS);
    CHECK_EQ(cuStreamQuery(s), CUDA_ERROR_NOT_READY);
    CHECK_EQ(cuStreamSynchronize(s), CUDA_SUCCESS);
    CHECK_EQ(cuStreamQuery(s), CUDA_SUCCESS);
    CHECK_EQ(cuStreamDestroy_v2(s), CUDA_SUCCESS);
    CHECK_EQ(cuStreamQuery(s), CUDA_ERROR_INVALID_HANDLE);
    CHECK_EQ(cuStreamDestroy_v2(s), CUDA_ERROR_INVALID_HANDLE);
}

TEST(a_launch_that_no_card_takes_is_refused)
{
    CHECK_EQ(cuLaunchKernel(quick, 0, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQ(cuLaunchKernel(quick, 1, 1, 1, 2000, 1, 1, 0, NULL, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQ(cuLaunchKernel(NULL, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL), CUDA_ERROR_INVALID_HANDLE);
    CHECK_EQ(cuLaunchKernel(quick, 1, 1, 1, 32, 1, 1, 0, (CUstream)ctx, NULL, NULL),
             CUDA_ERROR_INVALID_HANDLE);
}

TEST(spin_takes_its_time_from_its_parameter)
{
    uint64_t ns = 40000000;
    void *params[] = {&ns};
    size_t size = sizeof(ns);
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &ns, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                     CU_LAUNCH_PARAM_END};
    const CUlaunchConfig config = {.grid = {1, 1, 1}, .block = {32, 1, 1}};
    CUfunction spin;
    CHECK_EQ(cuModuleGetFunction(&spin, module, "spin"), CUDA_SUCCESS);
    CHECK_EQ(cuLaunchKernel(spin, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQ(cuLaunchKernel(spin, 1, 1, 1, 32, 1, 1, 0, NULL, params, NULL), CUDA_SUCCESS);
    CHECK_EQ(cuStreamQuery(NULL), CUDA_ERROR_NOT_READY);
    CHECK_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
    CHECK_EQ(cuLaunchKernelEx(&config, spin, NULL, extra), CUDA_SUCCESS);
    CHECK_EQ(cuStreamQuery(NULL), CUDA_ERROR_NOT_READY);
    CHECK_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
}

TEST(events_mark_a_place_in_a_stream)
{
    CUstream a, b;
    CUevent from, to, plain;
    float ms = -1;
    CHECK_EQ(cuStreamCreate(&a, 0), CUDA_SUCCESS);
    CHECK_EQ(cuStreamCreate(&b, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    CHECK_EQ(cuEventCreate(&from, 0), CUDA_SUCCESS);
    CHECK_EQ(cuEventCreate(&to, 0), CUDA_SUCCESS);
    CHECK_EQ(cuEventCreate(&plain, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
    CHECK_EQ(cuEventElapsedTime(&ms, from, to), CUDA_ERROR_INVALID_HANDLE); /* never recorded */
    CHECK_EQ(cuEventRecord(from, a), CUDA_SUCCESS);
    CHECK_EQ(launch(slow, a), CUDA_SUCCESS);
    CHECK_EQ(cuEventRecord(to, a), CUDA_SUCCESS);
    CHECK_EQ(cuEventRecord(plain, a), CUDA_SUCCESS);
    CHECK_EQ(cuEventQuery(from), CUDA_SUCCESS);
    CHECK_EQ(cuEventQuery(to), CUDA_ERROR_NOT_READY);
    CHECK_EQ(cuEventElapsedTime(&ms, from, to), CUDA_ERROR_NOT_READY);
    CHECK_EQ(cuStreamWaitEvent(b, to, 0), CUDA_SUCCESS);
    CHECK_EQ(launch(quick, b), CUDA_SUCCESS); /* comes after it, on another channel */
    CHECK_EQ(cuEventQuery(to), CUDA_SUCCESS);
    CHECK_EQ(cuEventSynchronize(to), CUDA_SUCCESS);
    CHECK_EQ(cuEventElapsedTime(&ms, from, to), CUDA_SUCCESS);
    CHECK(ms >= 49.0f);
    CHECK_EQ(cuEventElapsedTime(&ms, from, plain), CUDA_ERROR_INVALID_HANDLE);
    CHECK_EQ(cuEventDestroy_v2(from), CUDA_SUCCESS);
    CHECK_EQ(cuEventDestroy_v2(to), CUDA_SUCCESS);
    CHECK_EQ(cuEventDestroy_v2(plain), CUDA_SUCCESS);
    CHECK_EQ(cuEventQuery(plain), CUDA_ERROR_INVALID_HANDLE);
    CHECK_EQ(cuStreamDestroy_v2(a), CUDA_SUCCESS);
    CHECK_EQ(cuStreamDestroy_v2(b), CUDA_SUCCESS);
}

TEST(the_default_stream_and_the_others_wait_for_each_other)
{
    CUstream s, apart;
    CHECK_EQ(cuStreamCreate(&s, 0), CUDA_SUCCESS);
    CHECK_EQ(cuStreamCreate(&apart, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    CHECK_EQ(launch(slow, s), CUDA_SUCCESS);
    CHECK_EQ(launch(quick, apart), CUDA_SUCCESS);
    CHECK_EQ(cuStreamQuery(s), CUDA_ERROR_NOT_READY); /* that one did not have to wait */
    CHECK_EQ(launch(quick, NULL), CUDA_SUCCESS);
    CHECK_EQ(cuStreamQuery(s), CUDA_SUCCESS);
    CHECK_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
    CHECK_EQ(cuStreamDestroy_v2(s), CUDA_SUCCESS);
    CHECK_EQ(cuStreamDestroy_v2(apart), CUDA_SUCCESS);
}

TEST(graphs_run_as_a_whole)
{
    const CUDA_KERNEL_NODE_PARAMS k = {.function = slow, .grid = {1, 1, 1}, .block = {32, 1, 1}};
    const CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, 2}, CU_MEM_ACCESS_READWRITE};
    CUDA_MEM_ALLOC_NODE_PARAMS a = {
        .pool = {.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = access.location},
        .access = &access,
        .n_access = 1,
        .bytes = 8 << 20};
    size_t n = 0, before, after, total;
    uint64_t reserved = 0;
    CUgraph g, other;
    CUgraphNode node[4];
    CUgraphExec e;
    CHECK_EQ(cuMemGetInfo_v2(&before, &total), CUDA_SUCCESS);
    CHECK_EQ(cuGraphCreate(&g, 0), CUDA_SUCCESS);
    CHECK_EQ(cuGraphCreate(&other, 0), CUDA_SUCCESS);
    CHECK_EQ(cuGraphAddMemAllocNode(&node[0], g, NULL, 0, &a), CUDA_SUCCESS);
    CHECK_EQ(cuGraphAddKernelNode_v2(&node[1], g, &node[0], 1, &k), CUDA_SUCCESS);
    CHECK_EQ(cuGraphAddMemFreeNode(&node[2], g, &node[1], 1, a.ret_pointer), CUDA_SUCCESS);
    CHECK_EQ(cuGraphAddEmptyNode(&node[3], other, &node[0], 1), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQ(cuGraphGetNodes(g, NULL, &n), CUDA_SUCCESS);
    CHECK_EQ(n, 3);
    CHECK_EQ(cuGraphInstantiateWithFlags(&e, g, 0), CUDA_SUCCESS);
    CHECK_EQ(cuGraphDestroy(g), CUDA_SUCCESS); /* what was made of it goes on */
    CHECK_EQ(cuGraphLaunch(e, NULL), CUDA_SUCCESS);
    CHECK_EQ(cuStreamQuery(NULL), CUDA_ERROR_NOT_READY);
    CHECK_EQ(cuGraphLaunch(e, NULL), CUDA_SUCCESS);
    CHECK_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
    CHECK_EQ(cuGraphExecDestroy(e), CUDA_SUCCESS);
    CHECK_EQ(cuGraphLaunch(e, NULL), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQ(cuMemGetInfo_v2(&after, &total), CUDA_SUCCESS);
    CHECK_EQ(before - after, 32 << 20);
    CHECK_EQ(cuDeviceGetGraphMemAttribute(2, 2, &reserved), CUDA_SUCCESS);
    CHECK_EQ(reserved, 32 << 20);
    CHECK_EQ(cuDeviceGraphMemTrim(2), CUDA_SUCCESS);
    CHECK_EQ(cuMemGetInfo_v2(&after, &total), CUDA_SUCCESS);
    CHECK_EQ(after, before);
    CHECK_EQ(cuGraphDestroy(other), CUDA_SUCCESS);
}

TEST(a_stream_that_captures_runs_nothing)
{
    CUstream s;
    CUgraph g;
    size_t n = 0;
    int capturing = -1;
    CHECK_EQ(cuStreamBeginCapture_v2(NULL, 0), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    CHECK_EQ(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    CHECK_EQ(cuStreamEndCapture(s, &g), CUDA_ERROR_ILLEGAL_STATE);
    CHECK_EQ(cuStreamBeginCapture_v2(s, 0), CUDA_SUCCESS);
    CHECK_EQ(cuStreamIsCapturing(s, &capturing), CUDA_SUCCESS);
    CHECK_EQ(capturing, CU_CAPTURE_ACTIVE);
    CHECK_EQ(launch(slow, s), CUDA_SUCCESS);
    CHECK_EQ(launch(quick, s), CUDA_SUCCESS);
    CHECK_EQ(cuStreamSynchronize(s), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    CHECK_EQ(cuStreamEndCapture(s, &g), CUDA_SUCCESS);
    CHECK_EQ(cuStreamQuery(s), CUDA_SUCCESS);
    CHECK_EQ(cuGraphGetNodes(g, NULL, &n), CUDA_SUCCESS);
    CHECK_EQ(n, 2);
    CHECK_EQ(cuGraphDestroy(g), CUDA_SUCCESS);
    CHECK_EQ(cuStreamDestroy_v2(s), CUDA_SUCCESS);
}

static void *hammer(void *arg)
{
    CUstream s;
    intptr_t bad = 0;
    bad += cuCtxSetCurrent(arg) != CUDA_SUCCESS;
    bad += cuStreamCreate(&s, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS;
    for (int i = 0; i < 40 && !bad; i++) {
        CUdeviceptr at;
        uint32_t in = (uint32_t)(uintptr_t)&at + (uint32_t)i, out = 0;
        bad += cuMemAlloc_v2(&at, i % 3 ? 4096 : 3 << 20) != CUDA_SUCCESS;
        bad += cuMemcpyHtoDAsync_v2(at, &in, sizeof(in), s) != CUDA_SUCCESS;
        bad += launch(quick, s) != CUDA_SUCCESS;
        bad += cuMemcpyDtoHAsync_v2(&out, at, sizeof(out), s) != CUDA_SUCCESS;
        bad += cuStreamSynchronize(s) != CUDA_SUCCESS;
        bad += in != out;
        bad += cuMemFree_v2(at) != CUDA_SUCCESS;
    }
    bad += cuStreamDestroy_v2(s) != CUDA_SUCCESS;
    return (void *)bad;
}

TEST(threads_share_a_context)
{
    pthread_t threads[4];
    for (size_t i = 0; i < BH_COUNT_OF(threads); i++)
        CHECK_EQ(pthread_create(&threads[i], NULL, hammer, ctx), 0);
    for (size_t i = 0; i < BH_COUNT_OF(threads); i++) {
        void *bad = NULL;
        CHECK_EQ(pthread_join(threads[i], &bad), 0);
        CHECK(!bad);
    }
}

/* By the time of the fill the fault is over, and the node says with its reply that both are done. */
TEST(a_fault_that_is_over_is_not_missed_by_another_stream)
{
    CUcontext mine;
    CUstream other;
    CUdeviceptr at;
    char seen[16];
    CHECK_EQ(cuCtxCreate_v2(&mine, 0, 2), CUDA_SUCCESS);
    CHECK_EQ(cuMemAlloc_v2(&at, 65536), CUDA_SUCCESS);
    CHECK_EQ(cuStreamCreate(&other, 0), CUDA_SUCCESS);
    CHECK_EQ(launch(fault, other), CUDA_SUCCESS);
    (void)usleep(20000);
    CHECK_EQ(cuMemsetD8Async(at, 1, sizeof(seen), other), CUDA_SUCCESS);
    CHECK_EQ(cuStreamSynchronize(NULL), CUDA_ERROR_ILLEGAL_ADDRESS);
    CHECK_EQ(cuMemcpyDtoH_v2(seen, at, sizeof(seen)), CUDA_ERROR_ILLEGAL_ADDRESS);
    CHECK_EQ(cuCtxDestroy_v2(mine), CUDA_SUCCESS);
    CHECK_EQ(cuCtxSetCurrent(ctx), CUDA_SUCCESS);
}

TEST(a_fault_ends_its_context_and_no_other)
{
    CUcontext other;
    CUdeviceptr at;
    CHECK_EQ(cuCtxCreate_v2(&other, 0, 2), CUDA_SUCCESS);
    CHECK_EQ(launch(fault, NULL), CUDA_SUCCESS);
    CHECK_EQ(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
    CHECK_EQ(cuMemAlloc_v2(&at, 1), CUDA_ERROR_ILLEGAL_ADDRESS);
    CHECK_EQ(launch(quick, NULL), CUDA_ERROR_ILLEGAL_ADDRESS);
    CHECK_EQ(cuCtxDestroy_v2(other), CUDA_SUCCESS);
    CHECK_EQ(cuCtxSetCurrent(ctx), CUDA_SUCCESS);
    CHECK_EQ(launch(quick, NULL), CUDA_SUCCESS);
    CHECK_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
}

TEST(a_lost_gpu_is_a_result_and_not_a_hang)
{
    CUdeviceptr at;
    CUcontext fresh;
    CHECK_EQ(launch(slow, NULL), CUDA_SUCCESS);
    CHECK_EQ(fixture_break("gpu 2 lost"), 0);
    const int rc = cuCtxSynchronize();
    CHECK(rc == CUDA_ERROR_UNKNOWN || rc == CUDA_ERROR_LAUNCH_FAILED);
    CHECK_EQ(cuMemAlloc_v2(&at, 1), rc);                  /* it stays */
    CHECK_EQ(cuCtxCreate_v2(&fresh, 0, 1), CUDA_SUCCESS); /* the GPU beside it goes on */
    CHECK_EQ(cuMemAlloc_v2(&at, 1), CUDA_SUCCESS);
    CHECK_EQ(cuCtxDestroy_v2(fresh), CUDA_SUCCESS);
    CHECK_EQ(cuCtxDestroy_v2(ctx), CUDA_SUCCESS);
    CHECK_EQ(fixture_break("mend"), 0);
}

TEST_MAIN
