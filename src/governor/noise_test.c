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

static void begin(uint32_t n)
{
    static const char *const names[] = {"train", "serve", "other"};
    bh_noise_free(noise);
    noise = bh_noise_new();
    heard = (struct bh_tally){.at_ns = STEP_NS, .n = n};
    look = (struct bh_noise_look){.sample.dram_permille = 30, .link_kbps = 1000};
    for (uint32_t i = 0; i < n; i++) {
        heard.at[i] = (struct bh_tally_line){.lease = 7 + 2 * i,
                                             .held_permille = 330,
                                             .target_permille = 330,
                                             .gpu_permille = 330,
                                             .running = true};
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
    bh_noise_report(noise, &out);
    return bh_buf_text(&out);
}

static void has_part(uint32_t tenant, uint32_t permille)
{
    heard.at[tenant].gpu_permille = heard.at[tenant].held_permille = permille;
    heard.at[tenant].running = permille > 0;
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
    CHECK(strstr(words(), "lease 9 (serve): whether it is slowed cannot be told"));
    CHECK(!strstr(words(), " slowed lease"));
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
    CHECK(strstr(words(), "lease 9 (serve): whether it is slowed cannot be told"));
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
    CHECK(strstr(said, "lease 7 (train): whether it is slowed cannot be told"));
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
    CHECK(strstr(said, "lease 7 (train) slowed lease 9 (serve): it held the card 66 % of the time"));
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
    CHECK(strstr(said,
                 "what else slows them cannot be told, because missing: NVML GPM DRAM_BW_UTIL, NVML GPM "
                 "PCIE_RX_PER_SEC, NVML GPM PCIE_TX_PER_SEC, nvmlDeviceGetCurrentClocksEventReasons (no "
                 "library)\n"));
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
