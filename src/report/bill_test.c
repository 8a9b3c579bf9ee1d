/* SPDX-License-Identifier: Apache-2.0 */
#include "report/bill.h"

#include "base/choice.h"
#include "base/test.h"

#define HOUR_MS UINT64_C(3600000)

static const struct bh_bill_line charges[] = {
    {"red", "cc-1", "ada", "GPU-0", "mig", 428 * HOUR_MS, 1024 * HOUR_MS, 0, 1, 5000},
    {"red", "cc-1", "bob", "GPU-1", "whole", 1000 * HOUR_MS, 0, 1000 * HOUR_MS, 1, 4000},
    {"blue", NULL, "eve", "GPU-1", "whole", 500 * HOUR_MS, 512 * HOUR_MS, 0, 1, 9000},
};

static void bill(struct bh_bill *b, enum bh_bill_by by)
{
    *b = (struct bh_bill){.by = by, .to_ms = 10};
    for (size_t i = 0; i < BH_COUNT_OF(charges); i++)
        bh_bill_add(b, &charges[i]);
}

TEST(lines_are_what_was_asked_for_and_the_sum_stays)
{
    static const struct {
        size_t n;
        const char *first, *asks;
        uint64_t milli_hours;
    } want[BH_BILL_BYS] = {
        [BH_BILL_BY_TENANT] = {2, "red", "tenant", 1428},
        [BH_BILL_BY_COST_CENTER] = {2, "cc-1", "tenant", 1428},
        [BH_BILL_BY_GPU] = {2, "GPU-0", "gpu", 428},
        [BH_BILL_BY_USER] = {3, "red/ada", "user", 428},
        [BH_BILL_BY_MECHANISM] = {2, "mig", "tenant", 428},
        [BH_BILL_BY_BOTH] = {3, "red", "tenant", 428},
    };
    struct bh_arena a = {0};
    for (unsigned by = 0; by < BH_BILL_BYS; by++) {
        struct bh_bill b;
        bill(&b, (enum bh_bill_by)by);
        CHECK_EQ(b.lines.n, want[by].n);
        CHECK_STR(bh_bill_name(&b, &b.lines.at[0], &a), want[by].first);
        CHECK_STR(bh_bill_asks((enum bh_bill_by)by), want[by].asks);
        CHECK_EQ(b.lines.at[0].milli_ms, want[by].milli_hours * HOUR_MS);
        CHECK_EQ(b.all.milli_ms, 1928 * HOUR_MS);
        CHECK_EQ(b.all.lost_milli_ms, 1000 * HOUR_MS);
        CHECK_EQ(b.all.first_ms, 4000);
        bh_bill_fini(&b);
    }
    struct bh_bill b;
    bill(&b, BH_BILL_BY_COST_CENTER);
    CHECK_STR(bh_bill_name(&b, &b.lines.at[1], &a), "none");
    bh_bill_fini(&b);
    bh_arena_fini(&a);
}

TEST(money_is_rounded_down_once_for_each_line)
{
    static const struct bh_bill_prices prices = {"EUR", 2500000, 20000};
    struct bh_arena a = {0};
    struct bh_bill b;
    uint64_t gpu, memory;
    bill(&b, BH_BILL_BY_TENANT);
    CHECK(!bh_bill_cost(&b, &b.lines.at[0], &gpu, &memory));
    CHECK_EQ(gpu + memory, 0);
    b.prices = &prices;
    CHECK(bh_bill_cost(&b, &b.lines.at[0], &gpu, &memory));
    CHECK_EQ(gpu, 1428 * 2500);
    CHECK_EQ(memory, 20000);
    CHECK_STR(bh_bill_money(&a, gpu + memory), "3.590000");
    const struct bh_bill_line little = {.milli_ms = 1, .mib_ms = 1};
    CHECK(bh_bill_cost(&b, &little, &gpu, &memory));
    CHECK_EQ(gpu + memory, 0);
    bh_bill_fini(&b);
    bh_arena_fini(&a);
}

TEST(sums_do_not_run_over)
{
    struct bh_bill b = {.by = BH_BILL_BY_TENANT};
    const struct bh_bill_line most = {.tenant = "a", .milli_ms = UINT64_MAX - 1, .mib_ms = 1};
    bh_bill_add(&b, &most);
    bh_bill_add(&b, &most);
    CHECK_EQ(b.lines.n, 1);
    CHECK_EQ(b.lines.at[0].milli_ms, UINT64_MAX);
    CHECK_EQ(b.lines.at[0].mib_ms, 2);
    bh_bill_fini(&b);
}

/* However rows are grouped, nothing is lost and nothing counted twice. */
TEST(every_way_of_adding_up_comes_to_the_same)
{
    static const char *const words[] = {"a", "b", "c", NULL};
    for (uint64_t seed = 1; seed <= 200; seed++) {
        uint8_t bytes[256];
        struct bh_bill_line some[16];
        uint64_t milli = 0;
        bh_choice_fill(bytes, sizeof(bytes), seed);
        struct bh_choice c = {bytes, sizeof(bytes)};
        for (size_t i = 0; i < BH_COUNT_OF(some); i++) {
            some[i] = (struct bh_bill_line){.tenant = words[bh_choose(&c, 3)],
                                            .cost_center = words[bh_choose(&c, 4)],
                                            .user = words[bh_choose(&c, 3)],
                                            .gpu = words[bh_choose(&c, 3)],
                                            .mechanism = words[bh_choose(&c, 3)],
                                            .milli_ms = bh_choose(&c, 1000)};
            milli += some[i].milli_ms;
        }
        for (unsigned by = 0; by < BH_BILL_BYS; by++) {
            struct bh_bill b = {.by = (enum bh_bill_by)by};
            uint64_t lines = 0;
            for (size_t i = 0; i < BH_COUNT_OF(some); i++)
                bh_bill_add(&b, &some[i]);
            for (size_t i = 0; i < b.lines.n; i++)
                lines += b.lines.at[i].milli_ms;
            CHECK_EQ(lines, milli);
            CHECK_EQ(b.all.milli_ms, milli);
            bh_bill_fini(&b);
        }
    }
}

TEST_MAIN
