/* SPDX-License-Identifier: Apache-2.0 */
#include "simgpu/cuda/internal.h"

#include "base/test.h"

TEST(only_what_was_added_is_live_and_only_as_what_it_is)
{
    static int a, b;
    CHECK(!bh_cu_handle_ok(BH_CU_STREAM, &a));
    CHECK(!bh_cu_handle_ok(BH_CU_STREAM, NULL));
    CHECK(!bh_cu_handle_ok(BH_CU_STREAM, (void *)1));
    bh_cu_handle_add(BH_CU_STREAM, &a);
    CHECK(bh_cu_handle_ok(BH_CU_STREAM, &a));
    CHECK(!bh_cu_handle_ok(BH_CU_EVENT, &a));
    CHECK(!bh_cu_handle_ok(BH_CU_STREAM, &b));
    CHECK(!bh_cu_handle_remove(BH_CU_EVENT, &a));
    CHECK(bh_cu_handle_remove(BH_CU_STREAM, &a));
    CHECK(!bh_cu_handle_remove(BH_CU_STREAM, &a));
    CHECK(!bh_cu_handle_ok(BH_CU_STREAM, &a));
}

TEST(many_come_and_go)
{
    enum { N = 5000 };
    static char things[N];
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < N; i++)
            bh_cu_handle_add(BH_CU_EVENT, &things[i]);
        for (int i = 0; i < N; i += 2)
            CHECK(bh_cu_handle_remove(BH_CU_EVENT, &things[i]));
        for (int i = 0; i < N; i++)
            CHECK_EQ(bh_cu_handle_ok(BH_CU_EVENT, &things[i]), i % 2);
        for (int i = 1; i < N; i += 2)
            CHECK(bh_cu_handle_remove(BH_CU_EVENT, &things[i]));
    }
}

TEST_MAIN
