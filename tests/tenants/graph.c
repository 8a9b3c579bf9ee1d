/* SPDX-License-Identifier: Apache-2.0 */
/* graph.c - work that was put together first: by nodes, by capture, with memory of its own. */
#include "tenant.h"

#include <stdio.h>

static void run(CUgraph graph, int times)
{
    CUgraphExec exec;
    MUST(cuGraphInstantiateWithFlags, &exec, graph, 0);
    for (int i = 0; i < times; i++)
        MUST(cuGraphLaunch, exec, NULL);
    MUST(cuCtxSynchronize);
    MUST(cuGraphExecDestroy, exec);
    MUST(cuGraphDestroy, graph);
}

static void kernels(const struct tenant *t)
{
    uint64_t ns = 100000;
    void *params[] = {&ns};
    const CUDA_KERNEL_NODE_PARAMS k = {
        .function = t->spin, .grid = {(unsigned)t->sms, 1, 1}, .block = {128, 1, 1}, .params = params};
    CUgraph graph;
    CUgraphNode nodes[3];
    MUST(cuGraphCreate, &graph, 0);
    for (size_t i = 0; i < 3; i++)
        MUST(cuGraphAddKernelNode_v2, &nodes[i], graph, i ? &nodes[i - 1] : NULL, i > 0, &k);
    run(graph, 5);
    printf("kernels ok\n");
}

static void captured(const struct tenant *t)
{
    CUstream stream;
    CUgraph graph;
    MUST(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
    MUST(cuStreamBeginCapture_v2, stream, 0);
    for (int i = 0; i < 4; i++)
        tenant_must(tenant_spin(t, 50000, stream), "cuLaunchKernel");
    MUST(cuStreamEndCapture, stream, &graph);
    run(graph, 3);
    MUST(cuStreamDestroy_v2, stream);
    printf("capture ok\n");
}

/* Memory comes at the first launch, stays with the device when the graph is gone, and goes when it is asked to. */
static void memory(const struct tenant *t)
{
    const CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, t->device}, CU_MEM_ACCESS_READWRITE};
    CUDA_MEM_ALLOC_NODE_PARAMS a = {
        .pool = {.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = access.location},
        .access = &access,
        .n_access = 1,
        .bytes = 256 * MIB};
    CUgraph graph;
    CUgraphNode nodes[2];
    size_t before, during, after, total;
    MUST(cuMemGetInfo_v2, &before, &total);
    MUST(cuGraphCreate, &graph, 0);
    MUST(cuGraphAddMemAllocNode, &nodes[0], graph, NULL, 0, &a);
    MUST(cuGraphAddMemFreeNode, &nodes[1], graph, &nodes[0], 1, a.ret_pointer);
    run(graph, 3);
    MUST(cuMemGetInfo_v2, &during, &total);
    MUST(cuDeviceGraphMemTrim, t->device);
    MUST(cuMemGetInfo_v2, &after, &total);
    printf("memory kept %zu back %zu\n", before - during, after - during);
}

int tenant_graph(const struct tenant *t, int n, char **args)
{
    (void)n;
    (void)args;
    kernels(t);
    captured(t);
    memory(t);
    return 0;
}
