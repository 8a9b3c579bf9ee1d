/* SPDX-License-Identifier: Apache-2.0 */
/* noise_test.c - neighbours planted in made-up intervals: they are named where the turns show it, and nobody else ever is. */
#include "governor/noise.h"

#include "base/test.h"

#include <stdio.h>

#define STEP_NS (UINT64_C(200) * 1000 * 1000)
enum { A, B, C, ALL = (1 << BH_PRESSURE_N_) - 1 };

static struct bh_noise *noise;
static struct bh_tally heard;
static struct bh_noise_look look;
static struct bh_noise_uses uses[BH_TALLY_LEASES];
static uint32_t n_uses;

static void begin(uint32_t n)
{
    static const char *const names[] = {"train", "serve", "other"};
    bh_noise_free(noise);
    noise = bh_noise_new();
    heard = (struct bh_tally){.at_ns = STEP_NS, .n = n};
    look = (struct bh_noise_look){.sample.dram_permille = 30, .link_kbps = 1000, .limit_mw = 700000};
    for (uint32_t i = 0; i < n; i++) {
        heard.at[i] = (struct bh_tally_line){.lease = 7 + 2 * i,
                                             .held_permille = 330,
                                             .target_permille = 330,
                                             .gpu_permille = 330,
                                             .active = true,
                                             .works_permille = 1000,
                                             .there_permille = 1000};
        if (i < BH_COUNT_OF(names))
            (void)snprintf(heard.at[i].name, sizeof(heard.at[i].name), "%s", names[i]);
    }
}

static void add(void)
{
    heard.at_ns += STEP_NS;
    bh_noise_add(noise, &heard, &look);
}

static const char *words(void)
{
    static struct bh_buf out;
    bh_buf_fini(&out);
    bh_buf_init(&out, 16384);
    n_uses = bh_noise_judge(noise, uses);
    bh_noise_report(noise, &out);
    return bh_buf_text(&out);
}

static void has_part(uint32_t tenant, uint32_t permille)
{
    heard.at[tenant].gpu_permille = heard.at[tenant].held_permille = permille;
    heard.at[tenant].there_permille = heard.at[tenant].works_permille = permille > 0 ? 1000 : 0;
    heard.at[tenant].active = permille > 0;
}

/* A comes and goes, and memory bandwidth with it; B's turns take so long without it and with it. */
static void plant(uint32_t without_ns, uint32_t with_ns)
{
    begin(2);
    heard.at[B].asks_little = true;
    has_part(B, 100);
    for (uint32_t s = 0; s < 60; s++) {
        const bool on = s / 5 % 2;
        has_part(A, on ? 800 : 0);
        heard.at[A].target_permille = 800;
        heard.at[B].turn_ns = on ? with_ns : without_ns;
        look.sample.dram_permille = on ? 700 : 30;
        add();
    }
}

TEST(turns_that_take_longer_beside_a_hog)
{
    plant(100000, 250000);
    const char *said = words();
    CHECK(strstr(said, "lease 7 (train) slowed lease 9 (serve): memory bandwidth 8"));
    CHECK(strstr(said, "serve at 70 % of its own rate\n")); /* between 100 and 40, half of the time each */
    CHECK(!strstr(said, "slowed lease 7"));
}

TEST(turns_as_ever_are_no_slowing_but_the_wait_is_not_seen)
{
    plant(100000, 101000);
    CHECK(strstr(
        words(),
        "lease 9 (serve): whether a turn of it does less work than it would alone (memory bandwidth, caches, PCIe, power) cannot be told"));
    CHECK(!strstr(words(), " slowed lease"));
}

/*
 * B is alone for a while, then A comes and stays, with memory bandwidth or without: B says how much it does for the same
 * time on the card. A's parts change, as turns do that do not fit into an interval.
 */
static void plant_word(uint64_t alone, uint64_t beside, uint32_t dram)
{
    begin(2);
    heard.at[B].tells = true;
    heard.at[B].own_p99_us = UINT32_MAX;
    for (uint32_t s = 0; s < 80; s++) {
        const bool on = s >= 30;
        const uint32_t part = on ? 400 + s % 5 * 50 : 0;
        has_part(A, part);
        has_part(B, on ? 1000 - part : 1000);
        heard.at[A].target_permille = on ? 500 : 0;
        heard.at[B].target_permille = on ? 500 : 1000;
        heard.at[A].held_permille = heard.at[A].target_permille; /* over a second */
        heard.at[B].held_permille = heard.at[B].target_permille;
        heard.at[B].gpu_us = (uint64_t)heard.at[B].gpu_permille * 200;
        heard.at[B].own_done += (on ? beside : alone) * heard.at[B].gpu_permille / 1000;
        heard.at[B].own_lines += 2;
        look.sample.dram_permille = on ? dram * part / 1000 : 30;
        add();
    }
}

TEST(a_victim_that_tells_its_rate_is_known_as_one)
{
    plant_word(10000, 6000, 900);
    const char *said = words();
    CHECK(strstr(said,
                 "lease 9 (serve) says of itself: 30000 units a second of card time beside others, 50000 "
                 "alone: a turn does 60 % of the work that it does alone\n"));
    CHECK(strstr(said,
                 "lease 7 (train) slowed lease 9 (serve): memory bandwidth 87 % while it held the card; a "
                 "turn of serve does 60 % of the work that it does alone, by its own word\n"));
    CHECK(!strstr(said, "slowed lease 7"));
}

TEST(time_that_is_another_s_is_no_slowing_of_a_turn)
{
    plant_word(10000, 10000, 900);
    const char *said = words();
    CHECK(strstr(said, "a turn does 100 % of the work that it does alone\n"));
    CHECK(!strstr(said, " slowed lease"));
    CHECK(!strstr(said, "lease 9 (serve): whether a turn of it"));
}

/* It may lie. Nobody is a culprit by that who has nothing high. */
TEST(a_word_alone_accuses_nobody)
{
    plant_word(10000, 100, 30);
    const char *said = words();
    CHECK(strstr(said, "a turn does 1 % of the work that it does alone\n"));
    CHECK(!strstr(said, " slowed lease"));
    CHECK(strstr(
        said, "lease 9 (serve) is slowed beyond its turns; by what cannot be told: no counter shows a full "
              "resource; a turn of serve does 1 % of the work that it does alone, by its own word\n"));
}

/* Longer turns at other times than the hog's are more work, for all that is known. */
TEST(a_hog_that_is_not_there_then_is_not_accused)
{
    begin(2);
    has_part(B, 100);
    for (uint32_t s = 0; s < 60; s++) {
        const bool on = s / 5 % 2;
        has_part(A, on ? 800 : 0);
        heard.at[B].turn_ns = s % 2 ? 250000 : 100000;
        look.sample.dram_permille = on ? 700 : 30;
        add();
    }
    CHECK(!strstr(words(), " slowed lease"));
    CHECK(strstr(
        words(),
        "lease 9 (serve): whether a turn of it does less work than it would alone (memory bandwidth, caches, PCIe, power) cannot be told"));
}

TEST(shares_that_are_kept_slow_nobody)
{
    begin(2);
    for (uint32_t s = 0; s < 40; s++) {
        has_part(A, 700);
        has_part(B, 290);
        heard.at[A].target_permille = 700;
        heard.at[B].target_permille = 300;
        add();
    }
    const char *said = words();
    CHECK(!strstr(said, " slowed lease"));
    CHECK(strstr(
        said,
        "lease 7 (train): whether a turn of it does less work than it would alone (memory bandwidth, caches, PCIe, power) cannot be told"));
    CHECK(!strstr(said, "missing"));
}

TEST(who_has_more_than_its_part_takes_it_from_somebody)
{
    begin(3);
    for (uint32_t s = 0; s < 40; s++) {
        has_part(A, 660);
        has_part(B, 20);
        has_part(C, 300);
        add();
    }
    const char *said = words();
    CHECK(strstr(said,
                 "lease 7 (train) slowed lease 9 (serve): it held the card 66 % of the time, beyond its "
                 "share of 33 %"));
    CHECK(strstr(said, "serve at 6 % of its own rate\n"));
    CHECK(!strstr(said, "lease 11 (other) slowed") && !strstr(said, "slowed lease 11"));
    /* where nobody has more than its part, it went to nobody */
    begin(2);
    for (uint32_t s = 0; s < 40; s++) {
        has_part(A, 330);
        has_part(B, 20);
        add();
    }
    CHECK(!strstr(words(), " slowed lease"));
}

TEST(missing_counters_are_named_with_the_reason)
{
    plant(100000, 250000);
    bh_noise_look_none(&look, "no library");
    CHECK_EQ(look.sample.missing, ALL);
    for (uint32_t s = 0; s < BH_CULPRIT_SAMPLES; s++) {
        heard.at[B].turn_ns = s % 10 < 5 ? 100000 : 250000;
        has_part(A, s % 10 < 5 ? 0 : 800);
        add();
    }
    const char *said = words();
    CHECK(!strstr(said, " slowed lease"));
    CHECK(strstr(
        said,
        "what else slows them cannot be told, because missing: NVML GPM SM_UTIL, NVML GPM DRAM_BW_UTIL, "
        "NVML GPM PCIE_RX_PER_SEC, NVML GPM PCIE_TX_PER_SEC, nvmlDeviceGetPowerUsage, "
        "nvmlDeviceGetCurrentClocksEventReasons (no library)\n"));
}

/* ---- what each uses, and who has the time ---- */

/* What a card shows by the time that two have of it: levels of each, in permille. */
static void show(const uint32_t dram[2], const uint32_t mw[2], uint64_t reasons)
{
    const uint64_t a = heard.at[A].gpu_permille, b = heard.at[B].gpu_permille;
    look.sample.sm_permille = (uint32_t)((a + b) * 98 / 100);
    look.sample.dram_permille = (uint32_t)((dram[A] * a + dram[B] * b) / 1000);
    look.sample.power_mw = (uint32_t)((mw[A] * a + mw[B] * b + 100000 * (1000 - a - b)) / 1000);
    look.sample.clock_reasons = reasons;
}

/* B is alone for a while; then A comes, and they take turns of 32 ms, which do not fit into an interval. */
static void plant_hog(const uint32_t dram[2], const uint32_t mw[2], uint32_t kbps, uint64_t reasons)
{
    begin(2);
    for (uint32_t s = 0; s < 60; s++) {
        heard.at[A].target_permille = s < 10 ? 0 : 500;
        heard.at[B].target_permille = s < 10 ? 1000 : 500;
        const uint32_t a = s < 10 ? 0 : 420 + s % 4 * 46;
        has_part(A, a);
        has_part(B, s < 10 ? 1000 : 980 - a);
        heard.at[A].held_permille = s < 10 ? 0 : 490;
        heard.at[B].held_permille = s < 10 ? 1000 : 490;
        look.sample.pcie_rx_kbps = s < 10 ? 10 : kbps;
        show(dram, mw, a ? reasons : 0);
        add();
    }
}

static const struct bh_noise_uses *uses_of(uint64_t lease)
{
    static const struct bh_noise_uses none;
    for (uint32_t i = 0; i < n_uses; i++)
        if (uses[i].lease == lease)
            return &uses[i];
    return &none;
}

static bool near(uint32_t v, uint32_t want)
{
    return v + 50 >= want && v <= want + 50;
}

TEST(a_hog_within_its_share_is_named_with_what_it_uses)
{
    plant_hog((const uint32_t[]){920, 40}, (const uint32_t[]){450000, 420000}, 10, 0);
    const char *text = words();
    CHECK(strstr(text, "lease 7 (train): memory bandwidth 9"));
    CHECK(strstr(text, "lease 7 (train) has 49 % of the card's time, within its share of 50 %, with memory "
                       "bandwidth at 9"));
    CHECK(strstr(text,
                 "; lease 9 (serve) could use it: it has 49 %, and runs at that part of its own speed at "
                 "most\n"));
    CHECK(strstr(text, "lease 9 (serve): whether a turn of it does less work than it would alone"));
    CHECK(!strstr(text, " slowed lease") && !strstr(text, "beyond"));
    CHECK(near(uses_of(7)->permille[BH_CULPRIT_DRAM], 920));
    CHECK(near(uses_of(9)->permille[BH_CULPRIT_DRAM], 40));
    CHECK(near(uses_of(7)->permille[BH_CULPRIT_TIME], 980));
    CHECK(near(uses_of(7)->permille[BH_CULPRIT_WATTS], 643));
}

TEST(a_power_virus_by_what_it_draws_and_by_clocks)
{
    plant_hog((const uint32_t[]){40, 40}, (const uint32_t[]){690000, 400000}, 10, 0);
    CHECK(strstr(words(), "within its share of 50 %, with power at 9"));
    CHECK(near(uses_of(7)->permille[BH_CULPRIT_WATTS], 985));
    CHECK(near(uses_of(9)->permille[BH_CULPRIT_WATTS], 571));
    CHECK_EQ(uses_of(7)->permille[BH_CULPRIT_POWER] > 900, false);
    plant_hog((const uint32_t[]){40, 40}, (const uint32_t[]){500000, 400000}, 10, 4);
    CHECK(strstr(words(), "with clocks lowered for power or heat at "));
    CHECK(uses_of(7)->permille[BH_CULPRIT_POWER] > 900);
}

/* It copies beside the other's turns and is never on the multiprocessors: nobody lacks time, and it is named all the same. */
TEST(a_pcie_hog_that_has_no_turns)
{
    begin(2);
    for (uint32_t s = 0; s < 40; s++) {
        has_part(A, 0);
        heard.at[A].there_permille = s < 10 ? 0 : 1000;
        has_part(B, 1000);
        heard.at[B].target_permille = 1000;
        look.sample.pcie_rx_kbps = s < 10 ? 5 : 860;
        add();
    }
    const char *text = words();
    CHECK(strstr(text, "lease 7 (train): PCIe 86 % of the link while it is there"));
    CHECK(strstr(text, "PCIe 1 % of the link") || strstr(text, "PCIe 0 % of the link"));
    CHECK(!strstr(text, " slowed lease") && !strstr(text, "could use it"));
    CHECK(near(uses_of(7)->permille[BH_CULPRIT_PCIE], 860));
    CHECK_EQ(uses_of(7)->permille[BH_CULPRIT_DRAM], BH_CULPRIT_UNKNOWN); /* it has no turns to tell by */
}

/* A hog that takes no time of the card is no company by which a word could be judged. */
TEST(a_victim_beside_one_that_only_copies_was_alone)
{
    begin(2);
    heard.at[B].tells = true;
    heard.at[B].own_p99_us = UINT32_MAX;
    for (uint32_t s = 0; s < 60; s++) {
        has_part(A, 0);
        heard.at[A].there_permille = s < 30 ? 0 : 1000;
        has_part(B, 1000);
        heard.at[B].target_permille = 1000;
        heard.at[B].gpu_us = 200000;
        heard.at[B].own_done += s < 30 ? 10000 : 5000;
        heard.at[B].own_lines += 2;
        look.sample.pcie_rx_kbps = s < 30 ? 5 : 860;
        add();
    }
    CHECK(strstr(words(), "lease 9 (serve): whether a turn of it does less work"));
    CHECK(strstr(words(), "it tells its own rate, but did not work beside others for long enough"));
    CHECK(!strstr(words(), "was not alone"));
}

/* Half a minute of the same tells nothing new, and what was seen before it is not forgotten for that. */
TEST(what_was_seen_without_a_neighbour_is_kept)
{
    begin(2);
    for (uint32_t s = 0; s < 400; s++) {
        has_part(A, s < 10 ? 0 : 490);
        has_part(B, s < 10 ? 980 : 490);
        show((const uint32_t[]){900, 50}, (const uint32_t[]){400000, 400000}, 0);
        add();
    }
    (void)words();
    CHECK(near(uses_of(7)->permille[BH_CULPRIT_DRAM], 900));
    CHECK(near(uses_of(9)->permille[BH_CULPRIT_DRAM], 50));
    begin(2); /* and where nobody was ever away, it says so */
    for (uint32_t s = 0; s < 60; s++) {
        has_part(A, 490);
        has_part(B, 490);
        show((const uint32_t[]){900, 50}, (const uint32_t[]){400000, 400000}, 0);
        add();
    }
    CHECK(
        strstr(words(),
               "lease 7 (train): multiprocessors, memory bandwidth, PCIe, clocks lowered for power or heat, "
               "power: not told apart from its neighbours'"));
    CHECK_EQ(uses_of(7)->permille[BH_CULPRIT_DRAM], BH_CULPRIT_UNKNOWN);
    CHECK(strstr(words(), "has 49 % of the card's time, beyond its share of 33 %; lease 9"));
}

TEST(who_is_at_its_cap_or_has_all_lacks_nothing)
{
    begin(2);
    heard.at[A].target_permille = 750;
    heard.at[B].cap_permille = heard.at[B].target_permille = 250;
    for (uint32_t s = 0; s < 20; s++) {
        has_part(A, 740);
        has_part(B, 248);
        add();
    }
    const char *text = words();
    CHECK(!strstr(text, "lease 9 (serve) could use it"));
    CHECK(strstr(text, "lease 9 (serve) has 25 % of the card's time, within its share of 25 %; lease 7"));
    has_part(A, 0);
    has_part(B, 950);
    add();
    CHECK(!strstr(words(), "could use it"));
}

TEST(one_tenant_is_told_and_nobody_is_blamed)
{
    begin(1);
    for (uint32_t s = 0; s < 20; s++) {
        has_part(A, 1000);
        look.sample.dram_permille = 800;
        add();
    }
    CHECK_STR(words(), "");
    CHECK(n_uses == 1 && near(uses_of(7)->permille[BH_CULPRIT_DRAM], 800));
}

/* A process without a share fills the card: its bandwidth is not put on those who have one. */
TEST(a_stranger_is_nobody_here)
{
    plant_hog((const uint32_t[]){100, 40}, (const uint32_t[]){400000, 400000}, 10, 0);
    for (uint32_t s = 0; s < 60; s++) {
        has_part(A, s % 2 ? 300 : 100);
        has_part(B, 100);
        look.sample.sm_permille = 990;
        look.sample.dram_permille = 950;
        add();
    }
    const char *text = words();
    CHECK(strstr(text, "somebody without a share works on the card, too"));
    CHECK(near(uses_of(7)->permille[BH_CULPRIT_DRAM], 100));
}

TEST(hostile_numbers_stay_in_bounds)
{
    begin(2);
    for (uint32_t s = 0; s < 60; s++) {
        has_part(A, s % 2 ? UINT32_MAX - 1 : 0);
        has_part(B, s % 3 ? BH_CULPRIT_UNKNOWN : 0);
        heard.at[A].target_permille = heard.at[B].cap_permille = UINT32_MAX - 1;
        heard.at[A].turn_ns = s % 2 ? UINT32_MAX : 1;
        look.sample.dram_permille = look.sample.sm_permille = look.sample.pcie_rx_kbps = UINT32_MAX - 1;
        look.sample.power_mw = UINT32_MAX - 1;
        add();
    }
    (void)words();
    for (uint32_t i = 0; i < n_uses; i++)
        for (unsigned r = 0; r < BH_CULPRIT_RESOURCES; r++)
            CHECK(uses[i].permille[r] <= 1000 || uses[i].permille[r] == BH_CULPRIT_UNKNOWN);
}

TEST(few_intervals_and_fresh_ones_say_nothing)
{
    begin(2);
    for (uint32_t s = 0; s + 1 < BH_CULPRIT_FEW; s++)
        add();
    heard.fresh = true;
    for (uint32_t s = 0; s < 20; s++)
        add();
    CHECK_STR(words(), "");
    heard.fresh = false;
    add();
    CHECK(*words());
    heard.at_ns += 100 * STEP_NS; /* another story */
    add();
    CHECK_STR(words(), "");
}

TEST(who_is_gone_is_not_spoken_of_and_gives_its_place_up)
{
    plant(100000, 250000);
    heard.n = 1;
    add();
    const char *said = words();
    CHECK(!strstr(said, "lease 9"));
    begin(BH_TALLY_LEASES);
    for (uint32_t s = 0; s < 20; s++)
        add();
    CHECK(strstr(words(), "lease 69:"));
    heard.at[BH_TALLY_LEASES - 1].lease = 1000;
    add();
    CHECK(!strstr(words(), "lease 69:") && strstr(words(), "lease 1000:"));
    CHECK(!strstr(words(), "more than"));
    heard.left_out = true;
    add();
    CHECK(strstr(words(), "more than 32 leases: the others cannot be told apart\n"));
}

TEST(ends)
{
    bh_noise_free(noise);
    noise = NULL;
    CHECK_STR(bh_pressure_counter(BH_PRESSURE_DRAM), "NVML GPM DRAM_BW_UTIL");
}

TEST_MAIN
