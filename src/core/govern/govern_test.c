/* SPDX-License-Identifier: Apache-2.0 */
/* govern_test.c - one step at a time: which way of sharing, who is who, what is refused, what is let go. */
#include "core/govern/govern.h"

#include "base/test.h"

#include "core/govern/card_fixture.h"

static struct bh_govern *fresh(void)
{
    struct bh_govern *g = NULL;
    if (bh_govern_new(NULL, &g, NULL) < 0)
        abort();
    return g;
}

static struct bh_govern_asked busy(uint64_t id, uint32_t weight, uint64_t gpu_ns)
{
    return (struct bh_govern_asked){.id = id, .weight = weight, .state = BH_GOVERN_BUSY, .gpu_ns = gpu_ns};
}

static int step(struct bh_govern *g, struct bh_govern_out *out, uint32_t n, const struct bh_govern_asked *at)
{
    struct bh_govern_in in = {.elapsed_us = 5000, .n = n};
    memcpy(in.at, at, n * sizeof(*at));
    return bh_govern_step(g, &in, out, NULL);
}

TEST(settings_are_checked)
{
    struct bh_govern *g = NULL;
    struct bh_govern_config c;
    struct bh_err err;
    bh_govern_config_default(&c);
    c.switch_us = 0;
    CHECK_EQ(bh_govern_new(&c, &g, &err), BH_INVALID);
    CHECK(g == NULL);
    CHECK_EQ(bh_code_exit(err.code), 2);
}

TEST(alone_is_free)
{
    struct bh_govern *g = fresh();
    struct bh_govern_out out = {0};
    const struct bh_govern_asked a[] = {busy(1, 30, 5000000)};
    const int rc = step(g, &out, 1, a);
    bh_govern_free(g);
    CHECK_EQ(rc, 0);
    CHECK_EQ(out.mode, BH_GOVERN_FREE);
    CHECK_EQ(out.at[0].slice_us, 2000);
    CHECK_EQ(out.at[0].paused, 0);
    CHECK_EQ(out.at[0].target_permille, 1000);
    CHECK_EQ(out.at[0].delivered_permille, 1000);
}

TEST(two_by_slices_in_proportion_and_long_enough)
{
    struct bh_govern *g = fresh();
    struct bh_govern_out out = {0};
    const struct bh_govern_asked a[] = {busy(1, 70, 3500000), busy(2, 30, 1500000)};
    const int rc = step(g, &out, 2, a);
    bh_govern_free(g);
    CHECK_EQ(rc, 0);
    CHECK_EQ(out.mode, BH_GOVERN_SLICES);
    CHECK_EQ(out.turns + out.open_loop, 0);
    const uint32_t round = out.at[0].slice_us + out.at[1].slice_us;
    CHECK(out.at[0].slice_us * 30 / 70 - out.at[1].slice_us + 2 <= 4);
    CHECK(2 * 170 * 1000 / round < 30);
}

TEST(a_cap_takes_turns_with_nobody)
{
    struct bh_govern *g = fresh();
    struct bh_govern_out out = {0};
    struct bh_govern_asked a[] = {busy(1, 30, 0)};
    int held = 0, rc = 0;
    a[0].cap_permille = 250;
    for (int i = 0; i < 400 && rc == 0; i++) {
        rc = step(g, &out, 1, a);
        held += !out.at[0].paused;
        a[0].gpu_ns = out.at[0].paused ? 0 : 5000000;
    }
    bh_govern_free(g);
    CHECK_EQ(rc, 0);
    CHECK_EQ(out.mode, BH_GOVERN_TURNS);
    CHECK_EQ(out.at[0].target_permille, 250);
    CHECK(held >= 96 && held <= 106);
}

TEST(one_at_a_time_beside_a_latency_tenant)
{
    struct bh_govern *g = fresh();
    struct bh_govern_out out = {0};
    struct bh_govern_asked a[] = {busy(1, 10, 200000), busy(2, 10, 2000000), busy(3, 10, 2000000)};
    a[0].latency = BH_GOVERN_LATENCY;
    const int rc = step(g, &out, 3, a);
    bh_govern_free(g);
    CHECK_EQ(rc, 0);
    CHECK_EQ(out.mode, BH_GOVERN_BESIDE_LATENCY);
    CHECK(out.turns && out.pause_first);
    CHECK_EQ(out.at[0].paused, 0);
    CHECK_EQ(out.at[1].paused + out.at[2].paused, 1);
    CHECK_EQ(out.at[0].level, 2);
    CHECK_EQ(out.at[1].slice_us, 20);
}

TEST(a_bad_input_changes_nothing)
{
    struct bh_govern *g = fresh();
    struct bh_govern_out out = {.mode = 77};
    struct bh_govern_in in = {.elapsed_us = 5000, .n = 2, .at = {busy(1, 30, 0), busy(1, 30, 0)}};
    struct bh_err err;
    CHECK_EQ(bh_govern_step(g, &in, &out, &err), BH_INVALID);
    CHECK_STR(err.msg, "tenant 1 is given twice");
    in.at[1].id = 0;
    CHECK_EQ(bh_govern_step(g, &in, &out, &err), BH_INVALID);
    in.at[1] = busy(2, 0, 0);
    CHECK_EQ(bh_govern_step(g, &in, &out, &err), BH_INVALID);
    in.at[1] = busy(2, 1, 0);
    in.elapsed_us = 0;
    CHECK_EQ(bh_govern_step(g, &in, &out, &err), BH_INVALID);
    in.elapsed_us = 5000;
    in.n = BH_GOVERN_TENANTS + 1;
    CHECK_EQ(bh_govern_step(g, &in, &out, &err), BH_INVALID);
    CHECK_EQ(out.mode, 77);
    bh_govern_free(g);
}

/* All come, in reverse, all go but one who stays known, and others take all places. */
TEST(members_keep_what_is_known_of_them)
{
    struct bh_govern *g = fresh();
    struct bh_govern_in *in = bh_alloc(1, sizeof(*in));
    struct bh_govern_out *out = bh_alloc(1, sizeof(*out));
    int rc = 0;
    in->elapsed_us = 5000;
    in->n = BH_GOVERN_TENANTS;
    for (uint32_t turn = 0; turn < 20 && rc == 0; turn++) {
        for (uint32_t i = 0; i < in->n; i++)
            in->at[i] = busy(1 + (turn % 2 ? in->n - 1 - i : i), 1, 39062);
        rc = bh_govern_step(g, in, out, NULL);
    }
    const uint32_t before = out->at[0].delivered_permille;
    for (uint32_t i = 0; i < in->n; i++)
        in->at[i] = busy(i ? 1000 + i : 128, 1, i ? 0 : 39062);
    if (rc == 0)
        rc = bh_govern_step(g, in, out, NULL);
    const uint32_t kept = out->at[0].delivered_permille, others = out->at[5].delivered_permille;
    const uint64_t id = out->at[0].id;
    free(in);
    free(out);
    bh_govern_free(g);
    CHECK_EQ(rc, 0);
    CHECK_EQ(id, 128);
    CHECK_EQ(before, 8);
    CHECK_EQ(kept, 8);
    CHECK_EQ(others, 0);
}

TEST(who_stands_behind_one_that_comes_stays_known)
{
    struct bh_govern *g = fresh();
    struct bh_govern_out out = {0};
    const struct bh_govern_asked a[] = {busy(1, 10, 5000000)}, b[] = {busy(2, 10, 0), busy(1, 10, 0)};
    int rc = 0;
    for (int i = 0; i < 100 && rc == 0; i++)
        rc = step(g, &out, 1, a);
    if (rc == 0)
        rc = step(g, &out, 2, b);
    bh_govern_free(g);
    CHECK_EQ(rc, 0);
    CHECK(out.at[1].delivered_permille >= 900);
}

/* Whichever way they share: what is held is what the error is made of. */
TEST(what_is_held_is_told_without_turns_too)
{
    struct bh_govern *g = fresh();
    struct bh_govern_out out = {0};
    struct bh_govern_asked a[] = {busy(1, 70, 3430000), busy(2, 30, 1470000)};
    int rc = 0;
    for (int i = 0; i < 300 && rc == 0; i++)
        rc = step(g, &out, 2, a);
    const struct bh_govern_out slices = out;
    for (int i = 0; i < 300 && rc == 0; i++)
        rc = step(g, &out, 1, a);
    const uint32_t alone = out.at[0].held_permille;
    a[0].latency = BH_GOVERN_LATENCY;
    for (int i = 0; i < 300 && rc == 0; i++)
        rc = step(g, &out, 2, a);
    const uint32_t latency = out.at[0].held_permille;
    bh_govern_free(g);
    CHECK_EQ(rc, 0);
    CHECK_EQ(slices.mode, BH_GOVERN_SLICES);
    CHECK(bh_govern_error(&slices.at[0]) >= -20 && bh_govern_error(&slices.at[1]) >= -20);
    CHECK_EQ(alone, 686);
    CHECK_EQ(latency, 686);
}

/* What was measured on a card: its turns are its own, a tenth of each is work, and beside others it visits for 4 %. */
TEST(a_tenant_that_rests_in_its_turns_is_light)
{
    struct bh_govern *g = fresh();
    struct bh_govern_out out = {0};
    struct bh_govern_asked a[] = {busy(1, 50, 4700000), busy(2, 50, 200000)};
    int rc = 0, turns = 0, beside = 0;
    for (int i = 0; i < 1400 && rc == 0; i++) {
        rc = step(g, &out, 2, a);
        const bool alone = out.at[0].paused, use_known = i >= 200;
        a[0] = busy(1, 50, out.at[0].paused ? 0 : out.at[1].paused ? 5000000 : 4700000);
        a[1] = busy(2, 50, out.at[1].paused ? 0 : !alone ? 215000 : use_known ? 500000 : 5000000);
        turns += i < 200 && out.turns;
        beside += i >= 400 && out.at[1].light && !out.at[1].paused && !out.at[0].paused;
    }
    bh_govern_free(g);
    CHECK_EQ(rc, 0);
    CHECK(turns > 50);   /* that is where it went as long as all it had counted */
    CHECK(beside > 940); /* of 1000 */
    CHECK_EQ(out.mode, BH_GOVERN_FREE);
    CHECK(out.at[0].target_permille >= 880 && out.at[1].target_permille <= 120);
}

TEST(settled_is_a_second_without_anything_new)
{
    struct bh_govern *g = fresh();
    struct bh_govern_out out = {0};
    struct bh_govern_asked a[] = {busy(1, 70, 3430000), busy(2, 30, 1470000)};
    int rc = 0, early = 0;
    for (int i = 0; i < 400 && rc == 0; i++) {
        rc = step(g, &out, 2, a);
        early += i < 200 && out.settled;
    }
    const bool settled = out.settled && out.mode == BH_GOVERN_SLICES;
    a[1].weight = 31;
    if (rc == 0)
        rc = step(g, &out, 2, a);
    const bool changed = !out.settled;
    a[1].cap_permille = 100; /* so they take turns */
    bool in_turns = false;
    for (int i = 0; i < 400 && rc == 0; i++) {
        rc = step(g, &out, 2, a);
        in_turns |= out.settled;
    }
    bh_govern_free(g);
    CHECK_EQ(rc, 0);
    CHECK(early == 0 && settled && changed && !in_turns);
}

enum { MANY = 12 };

/* So many steps of 5 ms, in which one of many has so much of what it should; whether it is settled then. */
static bool settled_after(struct bh_govern *g, struct bh_govern_out *out, int steps, uint32_t one,
                          uint64_t permille)
{
    struct bh_govern_asked a[MANY];
    for (uint32_t i = 0; i < MANY; i++)
        a[i] = busy(i + 1, 10, 408 * (i == one ? permille : 1000));
    for (int i = 0; i < steps; i++)
        if (step(g, out, MANY, a) < 0)
            abort();
    return out->settled;
}

TEST(many_are_settled_though_they_are_corrected_but_not_if_one_has_too_little)
{
    struct bh_govern *g = fresh();
    struct bh_govern_out out = {0};
    const bool early = settled_after(g, &out, 599, 0, 900);
    const bool corrected = settled_after(g, &out, 400, 0, 900);
    const uint32_t corrections = out.at[0].corrections;
    for (int i = 0; i < 200 && settled_after(g, &out, 1, 1, 0); i++) {
    }
    const bool short_of = !out.settled && out.mode == BH_GOVERN_SLICES;
    bh_govern_free(g);
    CHECK(!early && corrected);
    CHECK(corrections >= 2);
    CHECK(short_of);
}

TEST(looking_does_not_help_many_that_are_not_seen)
{
    struct bh_govern *g = fresh();
    struct bh_govern_out out = {0};
    struct bh_govern_asked a[BH_GOVERN_FEW + 1];
    for (uint32_t i = 0; i < BH_GOVERN_FEW + 1; i++)
        a[i] = (struct bh_govern_asked){.id = i + 1, .weight = 10, .gpu_ns = BH_GOVERN_NO_SAMPLE};
    int rc = 0;
    for (int i = 0; i < 1000 && rc == 0; i++)
        rc = step(g, &out, BH_GOVERN_FEW + 1, a);
    bh_govern_free(g);
    CHECK_EQ(rc, 0);
    CHECK(out.open_loop && out.settled);
    CHECK_EQ(out.mode, BH_GOVERN_SLICES);
}

TEST(who_runs_though_paused_is_named)
{
    struct bh_govern *g = fresh();
    struct bh_govern_out out = {0};
    struct bh_govern_asked a[] = {busy(1, 30, 5000000)};
    int rc = 0, named = 0;
    a[0].cap_permille = 100;
    for (int i = 0; i < 40 && rc == 0; i++) {
        rc = step(g, &out, 1, a);
        named += out.at[0].escaped;
    }
    a[0].cap_permille = 0;
    for (int i = 0; i < 2 && rc == 0; i++)
        rc = step(g, &out, 1, a);
    const bool still = out.at[0].escaped;
    bh_govern_free(g);
    CHECK_EQ(rc, 0);
    CHECK(named > 0);
    CHECK(!still); /* it may run now */
}

TEST_MAIN
