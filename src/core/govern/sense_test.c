/* SPDX-License-Identifier: Apache-2.0 */
/* sense_test.c - what is concluded from samples and flags, and what is not. */
#include "core/govern/govern_inside.h"

#include "base/test.h"

#include "core/govern/card_fixture.h"

static void sense_after(struct bh_govern *g, uint32_t us, enum bh_govern_state state, uint64_t gpu_ns)
{
    struct bh_govern_in in = {.elapsed_us = us, .n = 1};
    in.at[0] = (struct bh_govern_asked){.id = 1, .weight = 1, .state = (uint8_t)state, .gpu_ns = gpu_ns};
    bh_sense(g, &in);
}

static void sense(struct bh_govern *g, enum bh_govern_state state, uint64_t gpu_ns)
{
    sense_after(g, 5000, state, gpu_ns);
}

static struct bh_govern *one(void)
{
    const struct bh_govern_asked a = {.id = 1, .weight = 1};
    struct bh_govern *g = NULL;
    if (bh_govern_new(NULL, &g, NULL) < 0)
        abort();
    bh_sense_join(&g->at[0], &a);
    g->n = 1;
    return g;
}

TEST(a_seldom_sample_covers_the_time_since_the_last)
{
    struct bh_govern *g = one();
    for (int i = 0; i < 19; i++)
        sense(g, BH_GOVERN_BUSY, BH_GOVERN_NO_SAMPLE);
    sense(g, BH_GOVERN_BUSY, 50000000);
    const struct bh_member m = g->at[0];
    bh_govern_free(g);
    CHECK(m.seen && m.has_sample);
    CHECK_EQ(m.span_ns, 100000000);
    CHECK_EQ(m.sample_ns, 50000000);
}

TEST(a_counter_that_outruns_time_is_cut)
{
    struct bh_govern *g = one();
    sense(g, BH_GOVERN_BUSY, UINT64_MAX - 1);
    const struct bh_member m = g->at[0];
    bh_govern_free(g);
    CHECK_EQ(m.sample_ns, 7000000);
}

TEST(without_samples_it_goes_blind_and_counts_as_busy)
{
    struct bh_govern *g = one();
    sense(g, BH_GOVERN_IDLE, 0);
    const bool seen = g->at[0].seen, active = g->at[0].active;
    for (int i = 0; i < 200; i++)
        sense(g, BH_GOVERN_UNKNOWN, BH_GOVERN_NO_SAMPLE);
    const struct bh_member m = g->at[0];
    bh_govern_free(g);
    CHECK(seen && !active);
    CHECK(!m.seen && m.active);
}

TEST(idle_after_a_while_and_back_at_once)
{
    struct bh_govern *g = one();
    sense(g, BH_GOVERN_BUSY, 5000000);
    const bool came = g->at[0].returned;
    for (int i = 0; i < 39; i++)
        sense(g, BH_GOVERN_IDLE, 0);
    const bool still = g->at[0].active;
    sense(g, BH_GOVERN_IDLE, 0);
    const bool idle = !g->at[0].active;
    sense(g, BH_GOVERN_UNKNOWN, 100);
    const bool soon = g->at[0].active && !g->at[0].returned;
    for (int i = 0; i < 100; i++)
        sense(g, BH_GOVERN_IDLE, 0);
    sense(g, BH_GOVERN_BUSY, 0);
    const bool back = g->at[0].active && g->at[0].returned;
    bh_govern_free(g);
    CHECK(came && still && idle);
    CHECK(soon); /* away too short to be served first */
    CHECK(back);
}

TEST(paused_is_not_idle)
{
    struct bh_govern *g = one();
    sense(g, BH_GOVERN_BUSY, 5000000);
    g->at[0].paused = true;
    for (int i = 0; i < 400; i++)
        sense(g, BH_GOVERN_IDLE, 0);
    const bool active = g->at[0].active;
    bh_govern_free(g);
    CHECK(active);
}

TEST(a_window_is_a_second)
{
    struct bh_govern *g = one();
    for (int i = 0; i < 1000; i++)
        sense(g, BH_GOVERN_BUSY, i < 600 ? 5000000 : 1000000);
    const int64_t got = g->at[0].gpu.sum, over = g->time.sum;
    bh_govern_free(g);
    CHECK(over >= 950 * BH_MS && over <= 1050 * BH_MS);
    CHECK_EQ(got * 5, over);
}

TEST(a_window_is_a_second_however_far_apart_looks_are)
{
    static const uint32_t apart_us[] = {5000, 40000, 50000, 99000, 125000, 250000};
    for (size_t k = 0; k < BH_COUNT_OF(apart_us); k++) {
        struct bh_govern *g = one();
        for (uint32_t us = 0; us < 6000000; us += apart_us[k])
            sense_after(g, apart_us[k], BH_GOVERN_BUSY, (us < 4900000 ? UINT64_C(1000) : 200) * apart_us[k]);
        const int64_t got = g->at[0].gpu.sum, over = g->time.sum;
        for (int i = 0; i < 5; i++) /* one that was kept waiting, and then as ever */
            sense_after(g, i ? 5000 : 9000000, BH_GOVERN_BUSY, 0);
        const int64_t late = g->time.sum;
        bh_govern_free(g);
        CHECK(over >= 950 * BH_MS - apart_us[k] * BH_US && over <= 1000 * BH_MS + apart_us[k] * BH_US);
        CHECK_EQ(got * 5, over);
        CHECK(late > 0 && late <= 9100 * BH_MS);
    }
}

TEST(a_small_need_is_a_small_demand)
{
    struct bh_member m = {.active = true};
    CHECK_EQ(bh_sense_demand(&m), BH_FAIR_WHOLE);
    m.alone_known = true;
    m.alone_ppm = 43000;
    CHECK(bh_sense_demand(&m) >= 43000 && bh_sense_demand(&m) <= 60000);
    m.alone_ppm = 250000; /* light stays light a little longer */
    CHECK_EQ(bh_sense_demand(&m), BH_FAIR_WHOLE);
    m.light = true;
    CHECK(bh_sense_demand(&m) < 300000);
    m.active = false;
    CHECK_EQ(bh_sense_demand(&m), 0);
}

TEST_MAIN
