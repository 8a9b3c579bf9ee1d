/* SPDX-License-Identifier: Apache-2.0 */
/* fill.c - take memory in one way until there is no more, and say how much that was. */
#include "fill.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static int by_plain(struct fill *f, uint64_t bytes)
{
    CUdeviceptr at;
    (void)f;
    return cuda.cuMemAlloc_v2(&at, bytes);
}

static int by_pitch(struct fill *f, uint64_t bytes)
{
    CUdeviceptr at;
    size_t pitch;
    (void)f;
    return cuda.cuMemAllocPitch_v2(&at, &pitch, MIB, bytes / MIB, 4);
}

/* released: the handle goes while the mapping stays. */
static int vmm(const struct fill *f, uint64_t bytes, bool released)
{
    const CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                      .location = {CU_MEM_LOCATION_TYPE_DEVICE, f->t->device}};
    const CUmemAccessDesc access = {prop.location, CU_MEM_ACCESS_READWRITE};
    CUmemGenericAllocationHandle handle;
    CUdeviceptr at;
    int rc = cuda.cuMemAddressReserve(&at, bytes, 0, 0, 0);
    if (rc)
        return rc;
    rc = cuda.cuMemCreate(&handle, bytes, &prop, 0);
    if (rc) {
        (void)cuda.cuMemAddressFree(at, bytes);
        return rc;
    }
    rc = cuda.cuMemMap(at, bytes, 0, handle, 0);
    rc = rc ? rc : cuda.cuMemSetAccess(at, bytes, &access, 1);
    if (!rc && released)
        rc = cuda.cuMemRelease(handle);
    return rc;
}

static int by_vmm(struct fill *f, uint64_t bytes)
{
    return vmm(f, bytes, false);
}

static int by_vmm_released(struct fill *f, uint64_t bytes)
{
    return vmm(f, bytes, true);
}

static int by_async(struct fill *f, uint64_t bytes)
{
    CUdeviceptr at;
    (void)f;
    int rc = cuda.cuMemAllocAsync(&at, bytes, NULL);
    return rc ? rc : cuda.cuStreamSynchronize(NULL);
}

static int by_pool(struct fill *f, uint64_t bytes)
{
    const CUmemPoolProps props = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                  .location = {CU_MEM_LOCATION_TYPE_DEVICE, f->t->device}};
    CUdeviceptr at;
    int rc = f->pool ? CUDA_SUCCESS : cuda.cuMemPoolCreate(&f->pool, &props);
    rc = rc ? rc : cuda.cuMemAllocFromPoolAsync(&at, bytes, f->pool, NULL);
    return rc ? rc : cuda.cuStreamSynchronize(NULL);
}

static int by_array(struct fill *f, uint64_t bytes)
{
    const CUDA_ARRAY_DESCRIPTOR what = {
        .width = 16384, .height = bytes / (16384 * sizeof(float)), .format = CU_FORMAT_FLOAT, .channels = 1};
    CUarray array;
    (void)f;
    return cuda.cuArrayCreate_v2(&array, &what);
}

static int by_array3d(struct fill *f, uint64_t bytes)
{
    const CUDA_ARRAY3D_DESCRIPTOR what = {.width = 1024,
                                          .height = 1024,
                                          .depth = bytes / (sizeof(float) << 20),
                                          .format = CU_FORMAT_FLOAT,
                                          .channels = 1};
    CUarray array;
    (void)f;
    return cuda.cuArray3DCreate_v2(&array, &what);
}

/* A graph that asks for memory and does not give it back. */
static int by_graph(struct fill *f, uint64_t bytes)
{
    const CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, f->t->device}, CU_MEM_ACCESS_READWRITE};
    CUDA_MEM_ALLOC_NODE_PARAMS params = {
        .pool = {.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = access.location},
        .access = &access,
        .n_access = 1,
        .bytes = bytes};
    CUgraph graph;
    CUgraphNode node;
    CUgraphExec exec;
    int rc = cuda.cuGraphCreate(&graph, 0);
    rc = rc ? rc : cuda.cuGraphAddMemAllocNode(&node, graph, NULL, 0, &params);
    rc = rc ? rc : cuda.cuGraphInstantiateWithFlags(&exec, graph, 0);
    rc = rc ? rc : cuda.cuGraphLaunch(exec, NULL);
    return rc ? rc : cuda.cuCtxSynchronize();
}

static int by_managed(struct fill *f, uint64_t bytes)
{
    const CUmemLocation where = {CU_MEM_LOCATION_TYPE_DEVICE, f->t->device};
    CUdeviceptr at;
    int rc = cuda.cuMemAllocManaged(&at, bytes, CU_MEM_ATTACH_GLOBAL);
    rc = rc ? rc : cuda.cuMemPrefetchAsync_v2(at, bytes, where, 0, NULL); /* it takes room where it is used */
    return rc ? rc : cuda.cuCtxSynchronize();
}

/* Bytes are what a context takes away from what is free. Each has a few open files. */
static int by_contexts(struct fill *f, uint64_t bytes)
{
    struct rlimit files;
    CUcontext ctx;
    (void)bytes;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < files.rlim_max) {
        files.rlim_cur = files.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &files);
    }
    return cuda.cuCtxCreate_v2(&ctx, 0, f->t->device);
}

static const struct {
    const char *name;
    fill_fn *fn;
    uint64_t piece;
} paths[] = {
    {"plain", by_plain, GIB},
    {"small", by_plain, 2 * MIB},
    {"pitch", by_pitch, GIB},
    {"vmm", by_vmm, GIB},
    {"vmm-released", by_vmm_released, GIB},
    {"async", by_async, GIB},
    {"pool", by_pool, GIB},
    {"array", by_array, 256 * MIB},
    {"array3d", by_array3d, 256 * MIB},
    {"graph", by_graph, GIB},
    {"managed", by_managed, GIB},
    {"contexts", by_contexts, 0},
    {"module", fill_by_module, 256 * MIB},
    {"heap", fill_by_heap, GIB},
    {"stack", fill_by_stack, GIB},
    {"ipc", fill_by_ipc, GIB},
    {"import", fill_by_import, GIB},
    {"external", fill_by_external, GIB},
};

/* `ready`, and then only when a byte comes: several of them start together. false: there will be none. */
static bool wait_for_byte(const char *say)
{
    char byte;
    printf("%s\n", say);
    (void)fflush(stdout);
    return read(STDIN_FILENO, &byte, 1) == 1;
}

/* fill PATH [LIMIT [SECONDS|wait]]: LIMIT bytes at most, held for so long; managed memory never more than is free,
 * whatever was asked. With `wait` it begins at a byte on its input and holds on until the next one, or the end. */
int tenant_fill(const struct tenant *t, int n, char **args)
{
    struct fill f = {.t = t};
    uint64_t limit = UINT64_MAX, got = 0, seconds = 0;
    size_t before, after, total, i = 0, pieces = 0;
    const bool wait = n == 3 && strcmp(args[2], "wait") == 0;
    while (n >= 1 && i < sizeof(paths) / sizeof(paths[0]) && strcmp(paths[i].name, args[0]) != 0)
        i++;
    if (n < 1 || n > 3 || i == sizeof(paths) / sizeof(paths[0]) ||
        (n >= 2 && !tenant_size(args[1], &limit)) || (n == 3 && !wait && !tenant_number(args[2], &seconds))) {
        fprintf(stderr, "usage: tenant fill PATH [LIMIT [SECONDS|wait]]\n");
        return 2;
    }
    if (wait && !wait_for_byte("ready"))
        return 1;
    MUST(cuMemGetInfo_v2, &before, &total);
    if (paths[i].fn == by_managed)
        limit = limit < before ? limit : before;
    int rc = CUDA_SUCCESS;
    while (rc == CUDA_SUCCESS && paths[i].piece <= limit - got) {
        rc = paths[i].fn(&f, paths[i].piece);
        pieces += rc == CUDA_SUCCESS;
        got += rc == CUDA_SUCCESS ? paths[i].piece : 0;
    }
    MUST(cuCtxSetCurrent, t->ctx);
    MUST(cuMemGetInfo_v2, &after, &total);
    printf("path %s\nfree %zu\ngot %llu\npieces %zu\ntaken %zu\nerror %d %s\n", args[0], before,
           (unsigned long long)got, pieces, before - after, rc, tenant_error(rc));
    (void)fflush(stdout);
    if (wait)
        (void)wait_for_byte("held");
    (void)sleep((unsigned)seconds);
    return 0;
}
