/* SPDX-License-Identifier: Apache-2.0 */
/* memory_test.c - memory in every form: what it takes, what is in it, and that it comes back. */
#include "simgpu/cuda/internal.h"
#include "simgpu/cuda/node_fixture.h"

#include <signal.h>
#include <sys/wait.h>

static CUcontext ctx;

static size_t left(void)
{
    size_t free_bytes = 0, total = 0;
    return cuMemGetInfo_v2(&free_bytes, &total) == CUDA_SUCCESS && free_bytes <= total ? free_bytes : 0;
}

TEST(starts)
{
    fixture_begin("h200");
    CHECK_EQ(cuInit(0), CUDA_SUCCESS);
    CHECK_EQ(cuCtxCreate_v2(&ctx, 0, 0), CUDA_SUCCESS);
    CHECK(left() > 0);
}

TEST(small_allocations_share_a_piece)
{
    CUdeviceptr at[64];
    const size_t before = left();
    for (size_t i = 0; i < BH_COUNT_OF(at); i++) {
        CHECK_EQ(cuMemAlloc_v2(&at[i], 1 + i * 511), CUDA_SUCCESS);
        CHECK_EQ(at[i] % 512, 0);
        for (size_t k = 0; k < i; k++)
            CHECK(at[k] + k * 511 < at[i] || at[i] + i * 511 < at[k]);
    }
    CHECK_EQ(before - left(), BH_CU_PAGE);
    for (size_t i = 0; i < BH_COUNT_OF(at); i++)
        CHECK_EQ(cuMemFree_v2(at[i]), CUDA_SUCCESS);
    CHECK_EQ(left(), before);
}

TEST(large_allocations_are_whole_pieces)
{
    CUdeviceptr at, base;
    size_t pitch, size;
    const size_t before = left();
    CHECK_EQ(cuMemAlloc_v2(&at, BH_CU_PAGE + 1), CUDA_SUCCESS);
    CHECK_EQ(before - left(), 2 * BH_CU_PAGE);
    CHECK_EQ(cuMemGetAddressRange_v2(&base, &size, at + 100), CUDA_SUCCESS);
    CHECK_EQ(base, at);
    CHECK_EQ(size, BH_CU_PAGE + 1);
    CHECK_EQ(cuMemFree_v2(at + 512), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQ(cuMemFree_v2(at), CUDA_SUCCESS);
    CHECK_EQ(cuMemFree_v2(at), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQ(cuMemFree_v2(0), CUDA_SUCCESS);
    CHECK_EQ(cuMemAllocPitch_v2(&at, &pitch, 5000, 1000, 4), CUDA_SUCCESS);
    CHECK_EQ(pitch, 5120);
    CHECK_EQ(before - left(), 6291456); /* as it was recorded */
    CHECK_EQ(cuMemFree_v2(at), CUDA_SUCCESS);
    CHECK_EQ(cuMemAlloc_v2(&at, 0), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQ(cuMemAlloc_v2(&at, before + BH_GIB), CUDA_ERROR_OUT_OF_MEMORY);
    CHECK_EQ(left(), before);
}

TEST(a_host_that_follows_a_device_pointer_ends)
{
    CUdeviceptr at;
    int status = 0;
    CHECK_EQ(cuMemAlloc_v2(&at, BH_CU_PAGE), CUDA_SUCCESS);
    pid_t pid = fork();
    if (pid == 0) {
        (void)signal(SIGSEGV, SIG_DFL);
        _exit(*(volatile char *)(uintptr_t)at);
    }
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK(WIFSIGNALED(status));
    CHECK_EQ(WTERMSIG(status), SIGSEGV);
    CHECK_EQ(cuMemFree_v2(at), CUDA_SUCCESS);
}

TEST(contents_go_in_and_come_out)
{
    enum { N = 300000 };
    static uint8_t in[N], out[N];
    CUdeviceptr a, b;
    for (size_t i = 0; i < N; i++)
        in[i] = (uint8_t)(i * 7 + i / 251);
    CHECK_EQ(cuMemAlloc_v2(&a, N), CUDA_SUCCESS);
    CHECK_EQ(cuMemAlloc_v2(&b, N), CUDA_SUCCESS);
    CHECK_EQ(cuMemcpyHtoD_v2(a, in, N), CUDA_SUCCESS);
    CHECK_EQ(cuMemcpyDtoD_v2(b, a, N), CUDA_SUCCESS);
    CHECK_EQ(cuMemcpyDtoH_v2(out, b, N), CUDA_SUCCESS);
    CHECK_EQ(memcmp(in, out, N), 0);
    CHECK_EQ(cuMemsetD8_v2(b + 10, 0xee, 20), CUDA_SUCCESS);
    CHECK_EQ(cuMemsetD32_v2(b + 40, 0x01020304, 2), CUDA_SUCCESS);
    CHECK_EQ(cuMemsetD16_v2(b + 48, 0x0a0b, 1), CUDA_SUCCESS);
    CHECK_EQ(cuMemcpy((CUdeviceptr)(uintptr_t)out, b, 64), CUDA_SUCCESS);
    CHECK_EQ(out[9], in[9]);
    CHECK_EQ(out[10], 0xee);
    CHECK_EQ(out[29], 0xee);
    CHECK_EQ(out[30], in[30]);
    CHECK_EQ(out[40], 4);
    CHECK_EQ(out[47], 1);
    CHECK_EQ(out[48], 0x0b);
    CHECK_EQ(out[50], in[50]);
    CHECK_EQ(cuMemcpyHtoD_v2(a, in, N + 4096), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQ(cuMemcpyHtoD_v2(16, in, 1), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQ(cuMemsetD32_v2(b + 1, 0, 1), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQ(cuMemFree_v2(a), CUDA_SUCCESS);
    CHECK_EQ(cuMemFree_v2(b), CUDA_SUCCESS);
}

TEST(addresses_and_memory_come_apart)
{
    const CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                      .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    const CUmemAccessDesc access = {prop.location, CU_MEM_ACCESS_READWRITE};
    CUmemGenericAllocationHandle one, two, kept;
    const size_t before = left(), part = 4 * BH_CU_PAGE;
    CUdeviceptr at;
    uint8_t byte = 0;
    CHECK_EQ(cuMemAddressReserve(&at, 2 * part, 0, 0, 0), CUDA_SUCCESS);
    CHECK_EQ(left(), before);
    CHECK_EQ(cuMemCreate(&one, part, &prop, 0), CUDA_SUCCESS);
    CHECK_EQ(cuMemCreate(&two, part, &prop, 0), CUDA_SUCCESS);
    CHECK_EQ(before - left(), 2 * part);
    CHECK_EQ(cuMemMap(at, part, 0, one, 0), CUDA_SUCCESS);
    CHECK_EQ(cuMemMap(at, part, 0, two, 0), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQ(cuMemMap(at + part, part, 0, two, 0), CUDA_SUCCESS);
    CHECK_EQ(cuMemSetAccess(at, 2 * part, &access, 1), CUDA_SUCCESS);
    CHECK_EQ(cuMemsetD8_v2(at + part - 100, 7, 200), CUDA_SUCCESS); /* over the seam */
    CHECK_EQ(cuMemcpyDtoH_v2(&byte, at + part + 99, 1), CUDA_SUCCESS);
    CHECK_EQ(byte, 7);
    CHECK_EQ(cuMemRelease(one), CUDA_SUCCESS); /* mapped, so it stays */
    CHECK_EQ(before - left(), 2 * part);
    CHECK_EQ(cuMemRetainAllocationHandle(&kept, (void *)(uintptr_t)at), CUDA_SUCCESS);
    CHECK_EQ(cuMemUnmap(at, part), CUDA_SUCCESS);
    CHECK_EQ(before - left(), 2 * part);
    CHECK_EQ(cuMemRelease(kept), CUDA_SUCCESS);
    CHECK_EQ(cuMemRelease(kept), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQ(before - left(), part);
    CHECK_EQ(cuMemcpyDtoH_v2(&byte, at, 1), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQ(cuMemAddressFree(at, 2 * part), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQ(cuMemUnmap(at + part, part), CUDA_SUCCESS);
    CHECK_EQ(cuMemRelease(two), CUDA_SUCCESS);
    CHECK_EQ(cuMemAddressFree(at, 2 * part), CUDA_SUCCESS);
    CHECK_EQ(left(), before);
}

TEST(pools_grow_keep_and_give_back)
{
    const CUmemPoolProps props = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                  .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    const size_t before = left();
    uint64_t value = UINT64_MAX, keep = 0;
    CUmemoryPool pool, standard;
    CUdeviceptr a, b;
    CHECK_EQ(cuMemPoolCreate(&pool, &props), CUDA_SUCCESS);
    CHECK_EQ(cuMemPoolSetAttribute(pool, CU_POOL_RELEASE_THRESHOLD, &value), CUDA_SUCCESS);
    CHECK_EQ(cuMemAllocFromPoolAsync(&a, 8 << 20, pool, NULL), CUDA_SUCCESS);
    CHECK_EQ(cuMemAllocFromPoolAsync(&b, 8 << 20, pool, NULL), CUDA_SUCCESS);
    CHECK_EQ(before - left(), 32 << 20);
    CHECK_EQ(cuMemPoolGetAttribute(pool, CU_POOL_USED_CURRENT, &value), CUDA_SUCCESS);
    CHECK_EQ(value, 16 << 20);
    CHECK_EQ(cuMemFreeAsync(a, NULL), CUDA_SUCCESS);
    CHECK_EQ(cuMemFreeAsync(a, NULL), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQ(cuMemFreeAsync(b, NULL), CUDA_SUCCESS);
    CHECK_EQ(cuStreamSynchronize(NULL), CUDA_SUCCESS);
    CHECK_EQ(before - left(), 32 << 20); /* it may keep all it has */
    CHECK_EQ(cuMemPoolSetAttribute(pool, CU_POOL_RELEASE_THRESHOLD, &keep), CUDA_SUCCESS);
    CHECK_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
    CHECK_EQ(left(), before);
    CHECK_EQ(cuMemAllocFromPoolAsync(&a, 40 << 20, pool, NULL), CUDA_SUCCESS);
    CHECK_EQ(before - left(), 64 << 20);
    CHECK_EQ(cuMemPoolDestroy(pool), CUDA_SUCCESS); /* ends with its last allocation */
    CHECK_EQ(cuMemPoolTrimTo(pool, 0), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQ(cuMemFreeAsync(a, NULL), CUDA_SUCCESS);
    CHECK_EQ(left(), before);
    CHECK_EQ(cuDeviceGetDefaultMemPool(&standard, 0), CUDA_SUCCESS);
    CHECK_EQ(cuMemPoolDestroy(standard), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQ(cuMemAllocAsync(&a, 1000, NULL), CUDA_SUCCESS);
    CHECK_EQ(cuMemFree_v2(a), CUDA_SUCCESS);
    CHECK_EQ(cuMemPoolTrimTo(standard, 0), CUDA_SUCCESS);
    CHECK_EQ(left(), before);
}

TEST(arrays_take_what_their_sides_say)
{
    const CUDA_ARRAY_DESCRIPTOR flat = {4096, 1024, CU_FORMAT_FLOAT, 1};
    const CUDA_ARRAY3D_DESCRIPTOR deep = {256, 256, 64, CU_FORMAT_FLOAT, 1, 0}, odd = {16, 1, 1, 0x99, 1, 0};
    CUDA_ARRAY_MEMORY_REQUIREMENTS needs;
    const size_t before = left();
    CUarray a, b;
    CHECK_EQ(cuArrayCreate_v2(&a, &flat), CUDA_SUCCESS);
    CHECK_EQ(cuArray3DCreate_v2(&b, &deep), CUDA_SUCCESS);
    CHECK_EQ(before - left(), 32 << 20);
    CHECK_EQ(cuArrayGetMemoryRequirements(&needs, a, 0), CUDA_SUCCESS);
    CHECK_EQ(needs.size, 16 << 20);
    CHECK_EQ(cuArray3DCreate_v2(&b, &odd), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQ(cuArrayDestroy(a), CUDA_SUCCESS);
    CHECK_EQ(cuArrayDestroy(a), CUDA_ERROR_INVALID_HANDLE);
    CHECK_EQ(cuArrayDestroy(b), CUDA_SUCCESS);
    CHECK_EQ(left(), before);
}

TEST(managed_memory_is_the_host_s_too_and_counts_when_the_card_uses_it)
{
    const size_t before = left(), n = 8 * BH_CU_PAGE;
    CUdeviceptr at;
    uint32_t managed = 0;
    CHECK_EQ(cuMemAllocManaged(&at, n, CU_MEM_ATTACH_GLOBAL), CUDA_SUCCESS);
    CHECK_EQ(left(), before);
    memset((void *)(uintptr_t)at, 5, 4096);
    CHECK_EQ(cuMemsetD8_v2(at + 1, 6, 1), CUDA_SUCCESS);
    CHECK_EQ(((uint8_t *)(uintptr_t)at)[0], 5);
    CHECK_EQ(((uint8_t *)(uintptr_t)at)[1], 6);
    CHECK_EQ(before - left(), n);
    CHECK_EQ(cuPointerGetAttribute(&managed, CU_POINTER_IS_MANAGED, at), CUDA_SUCCESS);
    CHECK_EQ(managed, 1);
    CHECK_EQ(cuMemPrefetchAsync(at, n, 0, NULL), CUDA_SUCCESS);
    CHECK_EQ(cuMemAdvise(at, n, 1, 0), CUDA_SUCCESS);
    CHECK_EQ(cuMemFree_v2(at), CUDA_SUCCESS);
    CHECK_EQ(left(), before);
    CHECK_EQ(cuMemAllocManaged(&at, n, 0), CUDA_ERROR_INVALID_VALUE);
}

TEST(pinned_memory_is_made_or_registered)
{
    static char own[10000];
    void *at = NULL;
    CUdeviceptr seen;
    unsigned type = 0;
    const size_t before = left();
    CHECK_EQ(cuMemAllocHost_v2(&at, 4 << 20), CUDA_SUCCESS);
    memset(at, 1, 4 << 20);
    CHECK_EQ(cuMemHostGetDevicePointer_v2(&seen, at, 0), CUDA_SUCCESS);
    CHECK_EQ(cuPointerGetAttribute(&type, CU_POINTER_MEMORY_TYPE, seen), CUDA_SUCCESS);
    CHECK_EQ(type, CU_MEMORYTYPE_HOST);
    CHECK_EQ(cuMemHostUnregister(at), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
    CHECK_EQ(cuMemFreeHost(at), CUDA_SUCCESS);
    CHECK_EQ(cuMemHostRegister_v2(own, sizeof(own), 0), CUDA_SUCCESS);
    CHECK_EQ(cuMemHostRegister_v2(own, sizeof(own), 0), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
    CHECK_EQ(cuMemFreeHost(own), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQ(cuMemHostUnregister(own), CUDA_SUCCESS);
    CHECK_EQ(left(), before); /* none of it is the card's */
}

TEST(a_context_takes_its_memory_along)
{
    CUcontext other;
    CUdeviceptr at;
    void *pinned;
    const uint64_t before = fixture_held().bytes;
    CHECK_EQ(cuCtxCreate_v2(&other, 0, 0), CUDA_SUCCESS);
    CHECK_EQ(cuMemAlloc_v2(&at, 100), CUDA_SUCCESS);
    CHECK_EQ(cuMemAlloc_v2(&at, 64 << 20), CUDA_SUCCESS);
    CHECK_EQ(cuMemAllocManaged(&at, 64 << 20, CU_MEM_ATTACH_GLOBAL), CUDA_SUCCESS);
    CHECK_EQ(cuMemHostAlloc(&pinned, 100, 0), CUDA_SUCCESS);
    CHECK_EQ(cuCtxDestroy_v2(other), CUDA_SUCCESS);
    CHECK_EQ(fixture_held().bytes, before);
    CHECK_EQ(cuMemFree_v2(at), CUDA_ERROR_INVALID_VALUE);
}

TEST(the_driver_s_refusal_is_out_of_memory)
{
    CUdeviceptr at;
    CHECK_EQ(fixture_break("calls fail 51 every 1"), 0);
    CHECK_EQ(cuMemAlloc_v2(&at, BH_GIB), CUDA_ERROR_OUT_OF_MEMORY);
    CHECK_EQ(fixture_break("mend"), 0);
    CHECK_EQ(cuMemAlloc_v2(&at, BH_GIB), CUDA_SUCCESS);
    CHECK_EQ(cuMemFree_v2(at), CUDA_SUCCESS);
}

TEST_MAIN
