/* SPDX-License-Identifier: Apache-2.0 */
#include "core/model/partition.h"

#include "base/test.h"
#include "core/model/tables.h"

/* Bits of the module ids given, ended by 0. */
static uint32_t modules(const int *ids)
{
    uint32_t m = 0;

    for (; *ids; ids++)
        m |= 1U << (*ids - 1);
    return m;
}
#define MODULES(...) modules((const int[]){__VA_ARGS__, 0})

TEST(hopper_pairs_are_not_neighbours)
{
    const struct bh_fabric_platform *p = bh_fabric_platform_find("Hopper");

    CHECK(p);
    CHECK_EQ(p->n, 15);
    CHECK_EQ(bh_fabric_partition_find(p, MODULES(1, 2, 3, 4, 5, 6, 7, 8))->id, 0);
    CHECK_EQ(bh_fabric_partition_find(p, MODULES(1, 3))->id, 3);
    CHECK_EQ(bh_fabric_partition_find(p, MODULES(1, 3))->nvlinks_per_gpu, 18);
    CHECK_EQ(bh_fabric_partition_find(p, MODULES(8))->nvlinks_per_gpu, 0);
    CHECK(!bh_fabric_partition_find(p, MODULES(1, 2)));
    CHECK(!bh_fabric_partition_find(p, MODULES(1, 2, 3)));
    CHECK(!bh_fabric_partition_find(p, MODULES(1, 5)));
    CHECK(!bh_fabric_partition_find(p, MODULES(9)));
    CHECK(!bh_fabric_partition_find(p, 0));
    CHECK(!bh_fabric_partition_find(p, UINT32_MAX));
}

TEST(blackwell_is_cut_another_way)
{
    const struct bh_fabric_platform *p = bh_fabric_platform_find("blackwell");

    CHECK(p);
    CHECK_EQ(bh_fabric_partition_find(p, MODULES(1, 2))->id, 4);
    CHECK(!bh_fabric_partition_find(p, MODULES(1, 3)));
    CHECK(bh_fabric_platform_find("Blackwell Ultra")->partitions == p->partitions);
}

TEST(boards_of_sixteen)
{
    const struct bh_fabric_platform *ampere = bh_fabric_platform_find("Ampere");
    const struct bh_fabric_platform *volta = bh_fabric_platform_find("Volta");

    CHECK_EQ(bh_fabric_partition_find(ampere, 0xffff)->id, 0);
    CHECK_EQ(bh_fabric_partition_find(ampere, MODULES(1, 2, 3, 4, 13, 14, 15, 16))->id, 5);
    CHECK_EQ(bh_fabric_partition_find(volta, MODULES(1, 4, 6, 7))->nvlinks_per_gpu, 5);
    CHECK(!bh_fabric_partition_find(volta, MODULES(1, 2)));
}

TEST(an_architecture_without_a_switch_has_no_partitions)
{
    CHECK(!bh_fabric_platform_find("Ada"));
    CHECK(!bh_fabric_platform_find(""));
    CHECK(!bh_fabric_platform_find("Hopper "));
}

TEST(every_platform_is_whole_and_joins_a_model)
{
    for (size_t i = 0; i < bh_fabric_platform_count; i++) {
        const struct bh_fabric_platform *p = &bh_fabric_platforms[i];
        uint32_t all = 0, alone = 0;
        bool joined = false;

        for (size_t k = 0; k < p->n; k++) {
            uint32_t m = p->partitions[k].modules;

            all |= m;
            alone |= __builtin_popcount(m) == 1 ? m : 0;
            CHECK(bh_fabric_partition_find(p, m) == &p->partitions[k]);
            CHECK_EQ(p->partitions[k].nvlinks_per_gpu == 0, __builtin_popcount(m) == 1);
        }
        CHECK_EQ(all, alone);
        CHECK(bh_fabric_partition_find(p, all));
        for (size_t k = 0; k < bh_gpu_model_count; k++)
            joined = joined || strcmp(bh_gpu_models[k].arch, p->arch) == 0;
        CHECK(joined);
    }
}

TEST_MAIN
