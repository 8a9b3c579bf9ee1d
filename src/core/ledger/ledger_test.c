/* SPDX-License-Identifier: Apache-2.0 */
#include "core/ledger/ledger.h"

#include "base/choice.h"
#include "base/test.h"

static struct bh_policy priced(uint64_t gpu_hour_micro, uint64_t gib_hour_micro, uint32_t borrowed_ppm)
{
    struct bh_policy p = {.prices = {.pos = {.line = 1},
                                     .gpu_hour_micro = gpu_hour_micro,
                                     .memory_gib_hour_micro = gib_hour_micro,
                                     .borrowed_ppm = borrowed_ppm,
                                     .currency = "EUR"}};
    return p;
}

static int add(struct bh_ledger *l, uint32_t tenant, uint32_t milli, uint64_t from, uint64_t to)
{
    return bh_ledger_add(
        l,
        &(struct bh_used){.tenant = tenant, .milli = milli, .mib = milli * 2, .from_ms = from, .to_ms = to},
        0, UINT64_MAX, 0, NULL);
}

TEST(an_hour_of_a_quarter_gpu)
{
    struct bh_ledger l = {0};
    struct bh_ledger_text t;
    uint64_t micro = 0;
    struct bh_policy p = priced(2500000, 20000, 600000);
    CHECK_EQ(bh_ledger_add(
                 &l,
                 &(struct bh_used){.tenant = 3, .milli = 250, .mib = 2048, .from_ms = 1000, .to_ms = 3601000},
                 0, UINT64_MAX, 0, NULL),
             0);
    CHECK_EQ(l.lines.n, 1);
    CHECK_STR(bh_ledger_gpu_seconds(l.milli_ms, &t), "900.000000");
    CHECK_STR(bh_ledger_gpu_hours(l.milli_ms, &t), "0.250");
    CHECK(bh_ledger_price(&p, &l.lines.at[0], &micro));
    CHECK_EQ(micro, 625000 + 40000);
    l.lines.at[0].borrowed = true;
    CHECK(bh_ledger_price(&p, &l.lines.at[0], &micro));
    CHECK_EQ(micro, (625000 + 40000) * 6 / 10);
    p.prices.borrowed_ppm = 0;
    CHECK(bh_ledger_price(&p, &l.lines.at[0], &micro));
    CHECK_EQ(micro, 0);
    p.prices.pos.line = 0;
    CHECK(!bh_ledger_price(&p, &l.lines.at[0], &micro));
    bh_ledger_fini(&l);
}

TEST(open_intervals_end_now_and_a_window_cuts)
{
    struct bh_ledger l = {0};
    const struct bh_used u = {.tenant = 1, .milli = 1000, .from_ms = 100};
    CHECK_EQ(bh_ledger_add(&l, &u, 0, UINT64_MAX, 150, NULL), 0);
    CHECK_EQ((uint64_t)l.milli_ms, 50000);
    CHECK_EQ(bh_ledger_add(&l, &u, 120, 130, 150, NULL), 0);
    CHECK_EQ((uint64_t)l.milli_ms, 60000);
    CHECK_EQ(bh_ledger_add(&l, &u, 150, 200, 150, NULL), 0); /* nothing of it lies there */
    CHECK_EQ((uint64_t)l.milli_ms, 60000);
    CHECK_EQ(l.n, 2);
    bh_ledger_fini(&l);
}

TEST(what_ends_before_it_begins_is_refused)
{
    struct bh_ledger l = {0};
    struct bh_err err = {0};
    CHECK_EQ(
        bh_ledger_add(&l, &(struct bh_used){.milli = 1, .from_ms = 10, .to_ms = 9}, 0, UINT64_MAX, 0, &err),
        BH_INVALID);
    CHECK(strstr(err.msg, "from 10 to 9"));
    CHECK_EQ(bh_ledger_add(&l, &(struct bh_used){.milli = 1, .from_ms = 10}, 0, UINT64_MAX, 9, NULL),
             BH_INVALID);
    CHECK_EQ(bh_ledger_add(&l, &(struct bh_used){.milli = 1, .to_ms = UINT64_MAX}, 0, UINT64_MAX, 0, NULL),
             BH_INVALID);
    CHECK_EQ(l.lines.n, 0);
    bh_ledger_fini(&l);
}

TEST(lines_are_in_order)
{
    struct bh_ledger l = {0};
    CHECK_EQ(add(&l, 2, 10, 0, 10), 0);
    CHECK_EQ(add(&l, 1, 10, 0, 10), 0);
    CHECK_EQ(bh_ledger_add(&l, &(struct bh_used){.tenant = 1, .milli = 1, .borrowed = true, .to_ms = 1}, 0,
                           UINT64_MAX, 0, NULL),
             0);
    bh_ledger_sort(&l);
    CHECK_EQ(l.lines.n, 3);
    CHECK_EQ(l.lines.at[0].tenant, 1);
    CHECK(!l.lines.at[0].borrowed && l.lines.at[1].borrowed);
    CHECK_EQ(l.lines.at[2].tenant, 2);
    bh_ledger_fini(&l);
}

TEST(the_largest_numbers_do_not_overflow)
{
    struct bh_ledger l = {0};
    struct bh_ledger_text t;
    uint64_t micro = 0;
    struct bh_policy p = priced(UINT64_MAX, UINT64_MAX, 1000000);
    for (int i = 0; i < 4; i++)
        CHECK_EQ(bh_ledger_add(
                     &l, &(struct bh_used){.milli = UINT32_MAX, .mib = UINT32_MAX, .to_ms = BH_LEDGER_MS_MAX},
                     0, UINT64_MAX, 0, NULL),
                 0);
    CHECK_STR(bh_ledger_gpu_seconds(l.milli_ms, &t), "158456324991635187022488.928260");
    CHECK(bh_ledger_price(&p, &l.lines.at[0], &micro));
    CHECK(micro == UINT64_MAX);
    bh_ledger_fini(&l);
}

/* What random intervals of random tenants sum to, kept by an independent count of every millisecond. */
TEST(the_sums_of_the_tenants_are_what_was_granted)
{
    enum { TENANTS = 5, SPAN = 200, ROUNDS = 400 };
    uint8_t bytes[512];
    for (uint64_t seed = 0; seed < ROUNDS; seed++) {
        bh_choice_fill(bytes, sizeof(bytes), seed);
        struct bh_choice c = {bytes, sizeof(bytes)};
        struct bh_ledger l = {0}, cut = {0};
        uint64_t granted[SPAN] = {0}, all = 0, window_from = bh_choose(&c, SPAN),
                 window_to = window_from + bh_choose(&c, SPAN);
        bh_u128 sum = 0, memory_sum = 0;
        for (uint32_t n = bh_choose(&c, 30); n; n--) {
            struct bh_used u = {.tenant = bh_choose(&c, TENANTS),
                                .mechanism = (uint8_t)bh_choose(&c, 3),
                                .borrowed = bh_choose(&c, 2),
                                .milli = bh_choose(&c, 1001),
                                .mib = bh_choose(&c, 1000),
                                .from_ms = bh_choose(&c, SPAN)};
            u.to_ms = u.from_ms + 1 + bh_choose(&c, SPAN);
            for (uint64_t ms = u.from_ms; ms < u.to_ms && ms < SPAN; ms++)
                granted[ms] += u.milli;
            CHECK_EQ(bh_ledger_add(&l, &u, window_from, window_to, 0, NULL), 0);
            /* Cut somewhere, in time and in amount: no sum may change. */
            const uint64_t at = u.from_ms + 1 + bh_choose(&c, (uint32_t)(u.to_ms - u.from_ms));
            const uint32_t part = bh_choose(&c, u.milli + 1);
            struct bh_used x = u, y = u, z = u;
            x.to_ms = y.from_ms = at;
            x.milli = part;
            x.mib = 0;
            z.to_ms = at;
            z.milli = u.milli - part;
            CHECK_EQ(bh_ledger_add(&cut, &x, window_from, window_to, 0, NULL), 0);
            CHECK_EQ(bh_ledger_add(&cut, &z, window_from, window_to, 0, NULL), 0);
            CHECK_EQ(bh_ledger_add(&cut, &y, window_from, window_to, 0, NULL), 0);
        }
        for (uint32_t t = 0; t < TENANTS; t++) {
            bh_u128 milli, mib, cut_milli, cut_mib;
            bh_ledger_tenant(&l, t, &milli, &mib);
            bh_ledger_tenant(&cut, t, &cut_milli, &cut_mib);
            CHECK(milli == cut_milli && mib == cut_mib);
            sum += milli;
            memory_sum += mib;
        }
        CHECK(sum == l.milli_ms && memory_sum == l.mib_ms && sum == cut.milli_ms);
        if (window_to <= SPAN) {
            for (uint64_t ms = window_from; ms < window_to; ms++)
                all += granted[ms];
            CHECK(all == sum);
        }
        bh_ledger_fini(&l);
        bh_ledger_fini(&cut);
    }
}

TEST_MAIN
