/* SPDX-License-Identifier: Apache-2.0 */
/* play_test.c - what the library asks of a node is what the recording says it asks of a card. */
#include "simgpu/cuda/internal.h"
#include "simgpu/cuda/node_fixture.h"
#include "simgpu/cuda/replay_fixture.h"

#include "base/sysfile.h"

static struct bh_recording journal;

static int journal_order(uint64_t on)
{
    char body[256];
    return bh_sim_order(&fixture_place, BH_SIM_OP_JOURNAL, on, body, 0, sizeof(body), NULL);
}

static bool journal_read(void)
{
    char path[200];
    char *text = NULL;
    size_t n = 0;
    struct bh_err err = {0};
    bh_recording_fini(&journal);
    (void)snprintf(path, sizeof(path), "%s/journal.rec", fixture_place.folder);
    int rc = bh_sysfile_read(path, (size_t)64 << 20, &text, &n, &err);
    rc = rc < 0 ? rc : bh_recording_parse("journal", text, n, &journal, &err);
    free(text);
    if (rc < 0)
        printf("# %s\n", err.msg);
    return rc == 0;
}

/* All but the objects' numbers, which depend on what a test did before. */
static bool alike(const struct bh_call *a, const struct bh_call *b)
{
    return a->kind == b->kind && a->file == b->file && a->number == b->number && a->bytes == b->bytes &&
           a->what == b->what && a->params == b->params && a->flags == b->flags && a->status == b->status &&
           a->error == b->error && a->size == b->size && a->attr == b->attr && a->attr2 == b->attr2 &&
           a->mflags == b->mflags;
}

/* The next call in a list that counts repetitions; NULL: the end. */
struct walk {
    const struct bh_call *at, *end;
    uint32_t done;
};

static const struct bh_call *next(struct walk *w)
{
    for (; w->at < w->end; w->at++, w->done = 0) {
        const uint32_t times = w->at->times ? w->at->times : 1;
        if (w->at->kind <= BH_CALL_PROCESS || w->at->kind == BH_CALL_CLOSE || w->done >= times)
            continue;
        w->done++;
        return w->at;
    }
    return NULL;
}

/* Everything of the sections, in order, and no more. */
static bool same_as(const char *const *sections, size_t n_sections)
{
    struct walk now = {journal.calls.at, journal.calls.at + journal.calls.n, 0};
    size_t n_calls = 0;
    for (size_t i = 0; i < n_sections; i++) {
        size_t first, n;
        if (!bh_recording_section(bh_cu_recording(), sections[i], &first, &n))
            return false;
        struct walk then = {bh_cu_recording()->calls.at + first, bh_cu_recording()->calls.at + first + n, 0};
        for (const struct bh_call *a = next(&then); a; a = next(&then), n_calls++) {
            const struct bh_call *b = next(&now);
            if (b && alike(a, b))
                continue;
            replay_tell(sections[i], n_calls, a, b);
            return false;
        }
    }
    return n_calls > 0 && !next(&now);
}

TEST(starting_asks_what_the_real_library_asks)
{
    static const char *const sections[] = {"start", "info"};
    size_t left, total;
    CUcontext ctx;
    fixture_begin("h200");
    CHECK_EQ(journal_order(1), 0);
    CHECK_EQ(cuInit(0), CUDA_SUCCESS);
    CHECK_EQ(cuDevicePrimaryCtxRetain(&ctx, 0), CUDA_SUCCESS);
    CHECK_EQ(cuCtxSetCurrent(ctx), CUDA_SUCCESS);
    CHECK_EQ(cuMemGetInfo_v2(&left, &total), CUDA_SUCCESS);
    CHECK_EQ(journal_order(0), 0);
    CHECK(journal_read());
    CHECK(same_as(sections, BH_COUNT_OF(sections)));
}

TEST(memory_is_asked_for_as_the_real_library_does)
{
    static const char *const sections[] = {"alloc-64m", "free-64m", "alloc-small", "free-small", "pitch",
                                           "array",     "vmm",      "vmm-release", "pool",       "own-pool",
                                           "host",      "stream",   "event"};
    const CUDA_ARRAY_DESCRIPTOR flat = {4096, 1024, CU_FORMAT_FLOAT, 1};
    const CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                      .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    const CUmemAccessDesc access = {prop.location, CU_MEM_ACCESS_READWRITE};
    const CUmemPoolProps props = {.type = prop.type, .location = prop.location};
    CUmemGenericAllocationHandle handle;
    CUdeviceptr at, two;
    CUmemoryPool pool;
    CUstream stream;
    CUevent event;
    CUarray array;
    size_t pitch;
    void *pinned;
    CHECK_EQ(journal_order(1), 0);
    CHECK_EQ(cuMemAlloc_v2(&at, 64 << 20) | cuMemFree_v2(at), 0);
    CHECK_EQ(cuMemAlloc_v2(&at, 4096) | cuMemAlloc_v2(&two, 4096), 0);
    CHECK_EQ(cuMemFree_v2(at) | cuMemFree_v2(two), 0);
    CHECK_EQ(cuMemAllocPitch_v2(&at, &pitch, 5000, 1000, 4) | cuMemFree_v2(at), 0);
    CHECK_EQ(cuArrayCreate_v2(&array, &flat) | cuArrayDestroy(array), 0);
    CHECK_EQ(cuMemAddressReserve(&at, 32 << 20, 0, 0, 0) | cuMemCreate(&handle, 32 << 20, &prop, 0), 0);
    CHECK_EQ(cuMemMap(at, 32 << 20, 0, handle, 0) | cuMemSetAccess(at, 32 << 20, &access, 1), 0);
    CHECK_EQ(cuMemRelease(handle) | cuMemUnmap(at, 32 << 20) | cuMemAddressFree(at, 32 << 20), 0);
    CHECK_EQ(cuMemAllocAsync(&at, 8 << 20, NULL) | cuMemFreeAsync(at, NULL) | cuStreamSynchronize(NULL), 0);
    CHECK_EQ(cuMemPoolCreate(&pool, &props) | cuMemAllocFromPoolAsync(&at, 8 << 20, pool, NULL), 0);
    CHECK_EQ(cuMemFreeAsync(at, NULL) | cuStreamSynchronize(NULL) | cuMemPoolDestroy(pool), 0);
    CHECK_EQ(cuMemAllocHost_v2(&pinned, 4 << 20) | cuMemFreeHost(pinned), 0);
    CHECK_EQ(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) | cuStreamDestroy_v2(stream), 0);
    CHECK_EQ(cuEventCreate(&event, 0) | cuEventRecord(event, NULL) | cuEventDestroy_v2(event), 0);
    CHECK_EQ(journal_order(0), 0);
    CHECK(journal_read());
    CHECK(same_as(sections, BH_COUNT_OF(sections)));
}

TEST(a_second_context_and_its_end_too)
{
    static const char *const sections[] = {"second-context", "second-context-end"};
    CUcontext second;
    CHECK_EQ(journal_order(1), 0);
    CHECK_EQ(cuCtxCreate_v2(&second, 0, 0), CUDA_SUCCESS);
    CHECK_EQ(cuCtxDestroy_v2(second), CUDA_SUCCESS);
    CHECK_EQ(journal_order(0), 0);
    CHECK(journal_read());
    CHECK(same_as(sections, BH_COUNT_OF(sections)));
}

TEST(nothing_is_left_of_a_context_that_ended)
{
    struct bh_sim_held held;
    CHECK_EQ(cuDevicePrimaryCtxRelease_v2(0), CUDA_SUCCESS);
    held = fixture_held();
    CHECK_EQ(held.channels, 0);
    CHECK_EQ(held.groups, 0);
    bh_recording_fini(&journal);
}

TEST_MAIN
