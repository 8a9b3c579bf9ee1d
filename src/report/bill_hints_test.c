/* SPDX-License-Identifier: Apache-2.0 */
#include "report/bill.h"

#include "base/test.h"

#define HOUR_MS UINT64_C(3600000)

TEST(what_idles_and_who_needs_more)
{
    static const struct bh_bill_quota quotas[] = {
        {"red", 2000, 2000, 3},        /* has all of it and waits */
        {"blue", 2000, 0, 0},          /* has next to nothing of it */
        {"green", 1000, 1000, 0},      /* is fine */
        {"grey", UINT64_MAX, 1000, 5}, /* nothing is reserved */
        {"new", 0, 0, 1},              /* waits for what others leave, and has nothing */
    };
    static const struct bh_bill_lease leases[] = {
        {"L1", "red", 900000}, {"L2", "green", 3}, {"L3", "green", UINT64_MAX}};
    static const struct bh_bill_line charges[] = {
        {"red", NULL, NULL, NULL, "whole", 2000 * 10 * HOUR_MS, 0, 0, 1, HOUR_MS},
        {"blue", NULL, NULL, NULL, "whole", 500 * 10 * HOUR_MS, 0, 0, 1, HOUR_MS},
        {"green", NULL, NULL, NULL, "whole", 500 * 10 * HOUR_MS, 0, 0, 1, HOUR_MS}};
    struct bh_arena a = {0};
    bh_bill_sentences said = {0};
    struct bh_bill b = {.by = BH_BILL_BY_TENANT,
                        .to_ms = 11 * HOUR_MS}; /* ten hours since the first record */
    for (size_t i = 0; i < BH_COUNT_OF(charges); i++)
        bh_bill_add(&b, &charges[i]);
    bh_bill_hints(&b, &(struct bh_bill_facts){quotas, BH_COUNT_OF(quotas), leases, BH_COUNT_OF(leases)}, &a,
                  &said);
    CHECK_EQ(said.n, 5);
    CHECK_STR(said.at[0],
              "red needs more: 3 jobs of it wait while it has 2 GPUs, all that is reserved for it.");
    CHECK_STR(said.at[1],
              "blue has 2 GPUs reserved and was given 0.5 of them on average: a smaller quota would do.");
    CHECK_STR(said.at[2],
              "new needs more: 1 job of it waits while it has 0 GPUs, all that is reserved for it.");
    CHECK_STR(said.at[3], "L2 of green computes nothing now (under 1 % of a GPU): it is idle, and charged.");
    CHECK_STR(said.at[4],
              "Of 1 of 3 active leases it is unknown whether they compute: nothing measures them.");
    /* less than an hour tells nothing of a reservation, and no record at all neither */
    said.n = 0;
    b.to_ms = HOUR_MS + 1;
    bh_bill_hints(&b, &(struct bh_bill_facts){quotas + 1, 1, NULL, 0}, &a, &said);
    CHECK_EQ(said.n, 0);
    struct bh_bill none = {.to_ms = 100 * HOUR_MS};
    bh_bill_hints(&none, &(struct bh_bill_facts){quotas + 1, 1, NULL, 0}, &a, &said);
    CHECK_EQ(said.n, 0);
    bh_bill_fini(&b);
    bh_vec_fini(&said);
    bh_arena_fini(&a);
}

TEST_MAIN
