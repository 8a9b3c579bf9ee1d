/* SPDX-License-Identifier: Apache-2.0 */
#include "simgpu/cuda/internal.h"

#include "base/test.h"

TEST(a_name_may_say_how_long_it_runs)
{
    CHECK_EQ(bh_cu_kernel_ns("foo_250us"), 250000);
    CHECK_EQ(bh_cu_kernel_ns("foo_8ms"), 8000000);
    CHECK_EQ(bh_cu_kernel_ns("a_b_2s"), 2000000000);
    CHECK_EQ(bh_cu_kernel_ns("x_500ns"), 500);
    CHECK_EQ(bh_cu_kernel_ns("x_0us"), 0);
}

TEST(any_other_name_runs_for_ten_microseconds)
{
    static const char *const names[] = {"foo",    "foo_", "foo_8",      "foo_8m", "foo_8msx",
                                        "foo_ms", "8ms",  "foo_8ms_v2", ""};
    for (size_t i = 0; i < BH_COUNT_OF(names); i++)
        CHECK_EQ(bh_cu_kernel_ns(names[i]), 10000);
}

TEST(nothing_is_loaded_before_the_library_is_up)
{
    CUmodule module;
    CUfunction function;
    CHECK_EQ(cuModuleLoadData(&module, ".version 7.0"), CUDA_ERROR_NOT_INITIALIZED);
    CHECK_EQ(cuModuleGetFunction(&function, NULL, "spin"), CUDA_ERROR_NOT_INITIALIZED);
    CHECK_EQ(cuModuleLoad(&module, "/nonexistent"), CUDA_ERROR_FILE_NOT_FOUND);
}

TEST_MAIN
