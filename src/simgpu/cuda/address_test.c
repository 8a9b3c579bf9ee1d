/* SPDX-License-Identifier: Apache-2.0 */
#include "simgpu/cuda/internal.h"

#include "base/test.h"

TEST(addresses_are_aligned_distinct_and_used_again)
{
    uint64_t a = bh_cu_va_take(1, 0), b = bh_cu_va_take(3 * BH_CU_PAGE, 0),
             c = bh_cu_va_take(BH_CU_PAGE, 64 * BH_CU_PAGE);
    CHECK(a && b && c);
    CHECK_EQ(a % BH_CU_PAGE, 0);
    CHECK_EQ(b - a, BH_CU_PAGE);
    CHECK_EQ(c % (64 * BH_CU_PAGE), 0);
    bh_cu_va_give(b, 3 * BH_CU_PAGE);
    CHECK_EQ(bh_cu_va_take(2 * BH_CU_PAGE, 0), b);
    bh_cu_va_give(b, 2 * BH_CU_PAGE);
    bh_cu_va_give(a, 1);
    bh_cu_va_give(c, BH_CU_PAGE);
    CHECK_EQ(bh_cu_va_take(128 * BH_CU_PAGE, 0), a); /* everything between them is one gap again */
    bh_cu_va_give(a, 128 * BH_CU_PAGE);
    CHECK_EQ(bh_cu_va_take(UINT64_C(1) << 60, 0), 0);
}

TEST(an_address_finds_its_allocation)
{
    struct bh_cu_alloc got;
    for (uint64_t i = 0; i < 100; i++) /* out of order */
        bh_cu_alloc_add(
            &(struct bh_cu_alloc){.base = (i * 37 % 100 + 1) * 4096, .size = 1000, .flags = (unsigned)i});
    for (uint64_t i = 1; i <= 100; i++) {
        CHECK(bh_cu_alloc_find(i * 4096 + 999, &got));
        CHECK_EQ(got.base, i * 4096);
        CHECK(!bh_cu_alloc_find(i * 4096 + 1000, &got));
    }
    CHECK(!bh_cu_alloc_take(4097, &got));
    for (uint64_t i = 100; i >= 1; i--)
        CHECK(bh_cu_alloc_take(i * 4096, &got));
    CHECK(!bh_cu_alloc_find(4096, &got));
}

TEST(allocations_of_a_context_are_found_without_an_address)
{
    struct CUctx_st *mine = (struct CUctx_st *)16, *other = (struct CUctx_st *)32;
    struct bh_cu_alloc got;
    for (uint64_t i = 1; i <= 10; i++)
        bh_cu_alloc_add(&(struct bh_cu_alloc){.base = i * 4096, .size = 1, .ctx = i % 2 ? mine : other});
    for (int i = 0; i < 5; i++) {
        CHECK(bh_cu_alloc_take_of(mine, &got));
        CHECK(got.ctx == mine);
    }
    CHECK(!bh_cu_alloc_take_of(mine, &got));
    for (int i = 0; i < 5; i++)
        CHECK(bh_cu_alloc_take_of(other, &got));
}

TEST(managed_memory_is_counted_once_a_gpu)
{
    struct bh_cu_alloc got;
    bh_cu_alloc_add(&(struct bh_cu_alloc){.base = 4096, .size = 1});
    CHECK(bh_cu_alloc_touch(4096, 3));
    CHECK(!bh_cu_alloc_touch(4096, 3));
    CHECK(bh_cu_alloc_touch(4096, 0));
    CHECK(!bh_cu_alloc_touch(8192, 0));
    CHECK(bh_cu_alloc_take(4096, &got));
}

TEST(what_is_behind_an_address)
{
    struct bh_cu_mem one = {.handle = 1}, two = {.handle = 2};
    struct bh_cu_back got;
    bh_cu_back_add(8192, 4096, &two, 0);
    bh_cu_back_add(4096, 4096, &one, 512);
    CHECK(bh_cu_back_find(8191, &got));
    CHECK(got.mem == &one && got.offset == 512);
    CHECK(bh_cu_back_find(8192, &got));
    CHECK(got.mem == &two);
    CHECK(bh_cu_back_overlaps(0, 4097));
    CHECK(!bh_cu_back_overlaps(0, 4096));
    CHECK(!bh_cu_back_overlaps(12288, 4096));
    CHECK(!bh_cu_back_take(4096, 4095, &got)); /* not all of it is inside */
    CHECK(bh_cu_back_take(4096, 8192, &got));
    CHECK(got.mem == &one);
    CHECK(bh_cu_back_take(4096, 8192, &got));
    CHECK(got.mem == &two);
    CHECK(!bh_cu_back_take(4096, 8192, &got));
}

TEST_MAIN
