/* SPDX-License-Identifier: Apache-2.0 */
#include "simgpu/cuda/internal.h"

#include "base/test.h"

static void *find(const char *name, int version, int want)
{
    int found = -1;
    void *at = bh_cu_proc_find(name, version, &found);
    return found == want ? at : NULL;
}

static bool is(void *at, void (*symbol)(void))
{
    return at && memcmp(&at, &symbol, sizeof(at)) == 0;
}

TEST(a_caller_gets_the_version_it_was_built_for)
{
    CHECK(is(find("cuMemAlloc", 12000, CU_PROC_FOUND), (void (*)(void))cuMemAlloc_v2));
    CHECK(is(find("cuCtxCreate", 11000, CU_PROC_FOUND), (void (*)(void))cuCtxCreate_v2));
    CHECK(is(find("cuCtxCreate", 11040, CU_PROC_FOUND), (void (*)(void))cuCtxCreate_v3));
    CHECK(is(find("cuCtxCreate", 13000, CU_PROC_FOUND), (void (*)(void))cuCtxCreate_v4));
    CHECK(is(find("cuGraphInstantiate", 11040, CU_PROC_FOUND), (void (*)(void))cuGraphInstantiate_v2));
    CHECK(is(find("cuGraphInstantiate", 12000, CU_PROC_FOUND), (void (*)(void))cuGraphInstantiateWithFlags));
    CHECK(is(find("cuMemAdvise", 12010, CU_PROC_FOUND), (void (*)(void))cuMemAdvise));
    CHECK(is(find("cuMemAdvise", 12020, CU_PROC_FOUND), (void (*)(void))cuMemAdvise_v2));
}

TEST(too_old_and_unknown_are_told_apart)
{
    int found = -1;
    CHECK(!bh_cu_proc_find("cuMemAlloc", 3000, &found));
    CHECK_EQ(found, CU_PROC_TOO_OLD);
    CHECK(!bh_cu_proc_find("cuMemAlloc_v2", 12000, &found)); /* versions are no part of a name */
    CHECK_EQ(found, CU_PROC_NOT_FOUND);
    CHECK(!bh_cu_proc_find("cuNothing", 12000, &found));
    CHECK_EQ(found, CU_PROC_NOT_FOUND);
}

TEST(the_list_is_sorted_by_name_then_version)
{
    static const struct {
        const char *name;
        int version;
    } rows[] = {
#define PROC(name_, symbol_, version_) {#name_, version_},
#include "simgpu/cuda/procs.def"
#undef PROC
    };
    for (size_t i = 1; i < BH_COUNT_OF(rows); i++) {
        const int order = strcasecmp(rows[i - 1].name, rows[i].name);
        if (order > 0 || (order == 0 && rows[i - 1].version >= rows[i].version))
            printf("# %s\n", rows[i].name);
        CHECK(order < 0 || (order == 0 && rows[i - 1].version < rows[i].version));
    }
}

TEST(the_interface_answers_as_the_vendor_s)
{
    void *at = NULL;
    int found = -1;
    CHECK_EQ(cuGetProcAddress_v2("cuInit", &at, 12000, 0, &found), CUDA_SUCCESS);
    CHECK(is(at, (void (*)(void))cuInit));
    CHECK_EQ(cuGetProcAddress_v2("cuNothing", &at, 12000, 0, &found), CUDA_SUCCESS);
    CHECK(!at);
    CHECK_EQ(found, CU_PROC_NOT_FOUND);
    CHECK_EQ(cuGetProcAddress("cuNothing", &at, 12000, 0), CUDA_ERROR_NOT_FOUND);
    CHECK_EQ(cuGetProcAddress(NULL, &at, 12000, 0), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQ(cuGetExportTable(NULL, NULL), CUDA_ERROR_NOT_SUPPORTED);
}

TEST_MAIN
