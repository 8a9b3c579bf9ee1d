/* SPDX-License-Identifier: Apache-2.0 */
#include "store/state_fixture.h"

TEST(usage_is_what_was_granted_to_the_millisecond)
{
    struct fix f;
    bh_store_usages all = {0};
    bh_store_usage_sums sums = {0};
    fix_init(&f);
    f.now = 1000;
    const uint64_t a = fix_active(&f, "red", share_of(GPU_A, "", ""), 300, 10000);
    const uint64_t from_a = f.now;
    const uint64_t b = fix_active(&f, "blue", whole(GPU_B), 0, 0);
    const uint64_t from_b = f.now;
    f.now = 5000;
    CHECK_EQ(fix_end(&f, a), 0);
    const uint64_t to_a = f.now;
    struct bh_store_usage_filter when = {.to_ms = 10000};
    CHECK_EQ(bh_store_usage_sum(f.s, &f.arena, &when, &sums, &f.err), 0);
    CHECK_EQ(sums.n, 2);
    CHECK_STR(sums.at[0].tenant, "blue");
    CHECK_EQ(sums.at[0].milli_ms, 1000 * (10000 - from_b));
    CHECK_EQ(sums.at[0].mib_ms, CARD_MIB * (10000 - from_b));
    CHECK_STR(sums.at[1].tenant, "red");
    CHECK_EQ(sums.at[1].milli_ms, 300 * (to_a - from_a));
    CHECK_EQ(sums.at[1].leases, 1);
    CHECK_EQ(sums.at[1].mechanism, BH_MECH_GATE);
    /* two halves are the whole */
    const uint64_t whole_red = sums.at[1].mib_ms;
    uint64_t halves = 0;
    for (int i = 0; i < 2; i++) {
        sums.n = 0;
        when = (struct bh_store_usage_filter){
            .tenant = "red", .from_ms = i ? 3333 : 0, .to_ms = i ? 10000 : 3333};
        CHECK_EQ(bh_store_usage_sum(f.s, &f.arena, &when, &sums, &f.err), 0);
        CHECK_EQ(sums.n, 1);
        halves += sums.at[0].mib_ms;
    }
    CHECK_EQ(halves, whole_red);
    when = (struct bh_store_usage_filter){.lease = b};
    CHECK_EQ(bh_store_usage_sum(f.s, &f.arena, &when, &sums, &f.err), BH_INVALID);
    CHECK_EQ(bh_store_usage_list(f.s, &f.arena, &when, NULL, &all, &f.err), 0);
    CHECK_EQ(all.n, 1);
    CHECK_EQ(all.at[0].to_ms, 0);
    CHECK_EQ(all.at[0].from_ms, from_b);
    CHECK_STR(all.at[0].slice.gpu, GPU_B);
    all.n = 0;
    when = (struct bh_store_usage_filter){.from_ms = to_a};
    CHECK_EQ(bh_store_usage_list(f.s, &f.arena, &when, NULL, &all, &f.err), 0);
    CHECK_EQ(all.n, 1);
    bh_vec_fini(&all);
    bh_vec_fini(&sums);
    fix_fini(&f);
}

TEST(an_instance_counts_as_what_it_is_of_its_card)
{
    struct fix f;
    bh_store_usage_sums sums = {0};
    fix_init(&f);
    f.now = 1000;
    CHECK_EQ(bh_store_slice_add(f.s, GPU_A, "3g@0", 428, 40000, "MIG-1", 1, &f.err), 0);
    CHECK_EQ(bh_store_slice_add(f.s, GPU_A, "4g@4", 571, 40000, "MIG-2", 1, &f.err), 0);
    CHECK_EQ(bh_store_slice_add(f.s, GPU_B, "0g@0", 0, 1, "", 1, &f.err), BH_INVALID);
    const uint64_t a = fix_active(&f, "red", (struct bh_slice_name){GPU_A, BH_SLICE_MIG, "3g@0", ""}, 0, 0);
    const uint64_t from_a = f.now;
    const uint64_t b = fix_active(&f, "blue", share_of(GPU_A, "", "4g@4"), 500, 10000);
    const uint64_t from_b = f.now;
    CHECK_EQ(fix_broken(f.s), 0);
    CHECK_EQ(number(f.s, "SELECT milli FROM grants ORDER BY id LIMIT 1"), 428);
    f.now = 9000;
    CHECK_EQ(fix_end(&f, a), 0);
    const uint64_t to_a = f.now;
    CHECK_EQ(fix_end(&f, b), 0);
    const uint64_t to_b = f.now;
    const struct bh_store_usage_filter when = {.to_ms = 20000};
    CHECK_EQ(bh_store_usage_sum(f.s, &f.arena, &when, &sums, &f.err), 0);
    CHECK_EQ(sums.n, 2);
    CHECK_EQ(sums.at[0].milli_ms, 285 * (to_b - from_b)); /* a half of 571 */
    CHECK_EQ(sums.at[1].milli_ms, 428 * (to_a - from_a));
    CHECK_EQ(fix_broken(f.s), 0);
    bh_vec_fini(&sums);
    fix_fini(&f);
}

TEST(a_clock_that_goes_back_ends_an_interval_where_it_began)
{
    struct fix f;
    fix_init(&f);
    const uint64_t id = fix_active(&f, "red", whole(GPU_A), 0, 0);
    f.now = 10;
    CHECK_EQ(fix_end(&f, id), 0);
    CHECK_EQ(number(f.s, "SELECT to_ms - from_ms FROM usage"), 0);
    CHECK_EQ(fix_broken(f.s), 0);
    fix_fini(&f);
}

TEST_MAIN
