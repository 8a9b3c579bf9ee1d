/* SPDX-License-Identifier: Apache-2.0 */
/* culprit_test.c - culprits planted in made-up samples: each is found by its resource, and nobody without evidence. */
#include "core/govern/culprit.h"

#include "base/mem.h"
#include "base/test.h"

enum { N = 40, A = 0, B = 1, C = 2 };

static struct bh_culprit_sample samples[BH_CULPRIT_SAMPLES];
static struct bh_culprit_in in;
static struct bh_culprit_levels levels;
static struct bh_culprit_finding found[BH_CULPRIT_TENANTS];
static uint64_t seed;

/* A few permille to either side, the same in every run. */
static uint32_t noisy(uint32_t v)
{
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    const uint32_t wide = v + (uint32_t)(seed >> 59);
    return wide > 1015 ? 1000 : wide < 15 ? 0 : wide - 15;
}

static void begin(uint32_t n_tenants)
{
    static const char *const names[] = {"train", "serve", "other"};
    seed = 1;
    memset(samples, 0, sizeof(samples));
    in = (struct bh_culprit_in){.n_tenants = n_tenants, .n_samples = N, .samples = samples};
    for (uint32_t i = 0; i < n_tenants; i++)
        in.tenants[i] = (struct bh_culprit_tenant){.id = 7 + 2 * i, .name = names[i]};
    for (uint32_t s = 0; s < N; s++)
        for (uint32_t i = 0; i < BH_CULPRIT_TENANTS; i++)
            samples[s].at[i] = (struct bh_culprit_use){0, BH_CULPRIT_UNKNOWN, 0};
}

/* The level that the card shows: what each has for the time it has. */
static void level(uint32_t s, enum bh_culprit_resource r, uint32_t a, uint32_t b, uint32_t c)
{
    const struct bh_culprit_use *u = samples[s].at;
    samples[s].level[r] =
        noisy((a * u[A].gpu_permille + b * u[B].gpu_permille + c * u[C].gpu_permille) / 1000);
}

static void use(uint32_t s, uint32_t tenant, uint32_t gpu, uint32_t rate)
{
    samples[s].at[tenant] = (struct bh_culprit_use){gpu, rate, 1000};
}

static const char *words(void)
{
    static struct bh_buf out;
    bh_buf_fini(&out);
    bh_buf_init(&out, 8192);
    bh_culprit_levels(&in, &levels);
    bh_culprit_find(&in, &levels, found);
    bh_culprit_report(&in, found, &out);
    return bh_buf_text(&out);
}

TEST(alone_nobody_is_slowed)
{
    begin(1);
    for (uint32_t s = 0; s < N; s++)
        use(s, A, noisy(980), noisy(985));
    CHECK_STR(words(), "");
    CHECK_EQ(found[A].verdict, BH_CULPRIT_NOT_SLOWED);
}

TEST(turns_alone_are_time)
{
    begin(2);
    for (uint32_t s = 0; s < N; s++) {
        use(s, A, noisy(600), BH_CULPRIT_UNKNOWN);
        use(s, B, 390, noisy(390));
        level(s, BH_CULPRIT_DRAM, 100, 100, 0);
    }
    const char *said = words();
    CHECK_EQ(found[B].verdict, BH_CULPRIT_NAMED);
    CHECK_EQ(found[B].resource, BH_CULPRIT_TIME);
    CHECK_EQ(found[B].culprit, A);
    CHECK(strstr(
        said,
        "lease 7 (train): whether a turn of it does less work than it would alone (memory bandwidth, caches, "
        "PCIe, power) cannot be told: it offers no rate of its own\n"));
    CHECK(strstr(
        said,
        "lease 7 (train) slowed lease 9 (serve): it held the card 60 % of the time; serve at 39 % of its own rate\n"));
}

TEST(what_was_used_meanwhile_is_said)
{
    begin(2);
    for (uint32_t s = 0; s < N; s++) {
        const uint32_t a = 300 + s * 10;
        use(s, A, a, BH_CULPRIT_UNKNOWN);
        use(s, B, 980 - a, 980 - a);
        level(s, BH_CULPRIT_DRAM, 870, 50, 0);
    }
    CHECK(strstr(words(), "it held the card 50 % of the time, with memory bandwidth at 8"));
    CHECK_EQ(found[B].resource, BH_CULPRIT_TIME);
    CHECK_EQ(found[B].most, BH_CULPRIT_DRAM);
    CHECK(found[B].most_permille > 840 && found[B].most_permille < 900);
}

/* The victim gets less than its time is worth, the more the other is there. */
static void plant(enum bh_culprit_resource r, uint32_t own)
{
    begin(3);
    for (uint32_t s = 0; s < N; s++) {
        const uint32_t a = s / 4 % 2 ? 500 : 0, c = s % 3 ? 60 : 140;
        const uint32_t b = 950 - a - c;
        use(s, A, a, BH_CULPRIT_UNKNOWN);
        samples[s].at[A].there_permille = a > 0 ? 1000 : 0;
        use(s, B, b, noisy(b * (a ? 60 : 100) / 100));
        use(s, C, c, BH_CULPRIT_UNKNOWN);
        level(s, BH_CULPRIT_DRAM, r == BH_CULPRIT_DRAM ? own : 100, 100, 900);
        samples[s].level[BH_CULPRIT_PCIE] = r == BH_CULPRIT_PCIE && a ? noisy(own) : noisy(30);
        samples[s].level[BH_CULPRIT_POWER] = r == BH_CULPRIT_POWER ? own * a / 1000 : 0;
    }
}

TEST(a_memory_hog_is_named)
{
    plant(BH_CULPRIT_DRAM, 870);
    const char *said = words();
    CHECK_EQ(found[B].verdict, BH_CULPRIT_NAMED);
    CHECK_EQ(found[B].culprit, A);
    CHECK_EQ(found[B].resource, BH_CULPRIT_DRAM);
    CHECK(strstr(said, "lease 7 (train) slowed lease 9 (serve): memory bandwidth 8"));
    CHECK(strstr(said, " % while it held the card; serve at "));
    CHECK(found[B].level_permille > 830 && found[B].level_permille < 910);
}

TEST(a_pcie_hog_is_named)
{
    plant(BH_CULPRIT_PCIE, 920);
    const char *said = words();
    CHECK_EQ(found[B].verdict, BH_CULPRIT_NAMED);
    CHECK_EQ(found[B].culprit, A);
    CHECK_EQ(found[B].resource, BH_CULPRIT_PCIE);
    CHECK(strstr(said, "lease 7 (train) slowed lease 9 (serve): PCIe "));
    CHECK(strstr(said, " % of the link while it ran"));
}

TEST(a_power_virus_is_named)
{
    plant(BH_CULPRIT_POWER, 1000);
    const char *said = words();
    CHECK_EQ(found[B].verdict, BH_CULPRIT_NAMED);
    CHECK_EQ(found[B].culprit, A);
    CHECK_EQ(found[B].resource, BH_CULPRIT_POWER);
    CHECK(strstr(said, "clocks lowered for power or heat 100 % of the time it held the card"));
}

/* A hog whose part never changes goes together with nothing, and the bandwidth may as well be the victim's own. */
TEST(who_cannot_be_told_apart_is_not_accused)
{
    begin(3);
    for (uint32_t s = 0; s < N; s++) {
        use(s, A, 300, BH_CULPRIT_UNKNOWN);
        use(s, B, 500, noisy(300));
        use(s, C, 0, BH_CULPRIT_UNKNOWN);
        level(s, BH_CULPRIT_DRAM, 900, 300, 0);
        samples[s].level[BH_CULPRIT_PCIE] = 20;
    }
    const char *said = words();
    CHECK_EQ(found[B].verdict, BH_CULPRIT_SEVERAL);
    CHECK_EQ(found[B].resource, BH_CULPRIT_DRAM);
    CHECK(strstr(said, "slowed lease 9") == NULL);
    CHECK(strstr(
        said,
        "lease 9 (serve) is slowed beyond its turns: memory bandwidth is high, and whose it is cannot be told"));
    /* two that come and go together are no better */
    for (uint32_t s = 0; s < N; s++) {
        const bool on = s % 2;
        use(s, A, 0, BH_CULPRIT_UNKNOWN);
        use(s, C, 0, BH_CULPRIT_UNKNOWN);
        samples[s].at[A].there_permille = samples[s].at[C].there_permille = on ? 1000 : 0;
        samples[s].level[BH_CULPRIT_DRAM] = 20;
        samples[s].level[BH_CULPRIT_PCIE] = on ? 950 : 20;
        use(s, B, 950, on ? 600 : 950);
    }
    (void)words();
    CHECK_EQ(found[B].verdict, BH_CULPRIT_SEVERAL);
    CHECK_EQ(found[B].resource, BH_CULPRIT_PCIE);
    for (uint32_t s = 0; s < N; s++) /* one of them stays: it is the other */
        samples[s].at[C].there_permille = 1000;
    (void)words();
    CHECK_EQ(found[B].verdict, BH_CULPRIT_NAMED);
    CHECK_EQ(found[B].culprit, A);
}

TEST(a_missing_counter_is_named)
{
    plant(BH_CULPRIT_DRAM, 870);
    for (uint32_t s = 0; s < N; s++)
        samples[s].level[BH_CULPRIT_DRAM] = BH_CULPRIT_UNKNOWN;
    const char *said = words();
    CHECK_EQ(found[B].verdict, BH_CULPRIT_MISSING);
    CHECK_EQ(found[B].missing, 1u << BH_CULPRIT_DRAM);
    CHECK(strstr(
        said,
        "lease 9 (serve) is slowed beyond its turns; by what cannot be told, because missing: NVML GPM DRAM_BW_UTIL; serve at"));
    for (uint32_t s = 0; s < N; s++) {
        samples[s].level[BH_CULPRIT_PCIE] = samples[s].level[BH_CULPRIT_POWER] = BH_CULPRIT_UNKNOWN;
        samples[s].at[A].gpu_permille = samples[s].at[B].gpu_permille = BH_CULPRIT_UNKNOWN;
    }
    said = words();
    CHECK_EQ(found[B].verdict, BH_CULPRIT_NO_TIME);
    CHECK(strstr(said, "because GPU time of each tenant is missing"));
}

TEST(no_counter_is_high)
{
    plant(BH_CULPRIT_RESOURCES, 0);
    for (uint32_t s = 0; s < N; s++)
        samples[s].level[BH_CULPRIT_DRAM] = 20;
    CHECK(strstr(words(), "no counter shows a full resource"));
    CHECK_EQ(found[B].verdict, BH_CULPRIT_NONE_FULL);
}

/* A small tenant waits for turns of another: its latency says so, and bandwidth explains nothing more. */
TEST(a_latency_tenant_waits_for_turns)
{
    begin(2);
    in.tenants[B].latency = true;
    in.tenants[B].solo_permille = 50;
    for (uint32_t s = 0; s < N; s++) {
        const uint32_t a = s % 3 ? 800 : 100;
        use(s, A, a, BH_CULPRIT_UNKNOWN);
        use(s, B, 50, noisy(a > 500 ? 150 : 900));
        level(s, BH_CULPRIT_DRAM, 900, 0, 0);
    }
    CHECK(strstr(words(), "lease 7 (train) slowed lease 9 (serve): it held the card 5"));
    CHECK_EQ(found[B].resource, BH_CULPRIT_TIME);
    CHECK_EQ(found[B].most, BH_CULPRIT_DRAM);
}

TEST(the_right_one_of_two_batch_tenants)
{
    begin(3);
    for (uint32_t s = 0; s < N; s++) {
        const uint32_t a = s % 2 ? 450 : 50, c = s % 4 < 2 ? 250 : 150;
        const uint32_t b = 980 - a - c;
        use(s, A, a, BH_CULPRIT_UNKNOWN);
        use(s, B, b, b);
        use(s, C, c, BH_CULPRIT_UNKNOWN);
    }
    (void)words();
    CHECK_EQ(found[B].resource, BH_CULPRIT_TIME);
    CHECK_EQ(found[B].culprit, A);
}

TEST(one_that_starves_lacks_time)
{
    begin(2);
    for (uint32_t s = 0; s < N; s++) {
        use(s, A, noisy(980), BH_CULPRIT_UNKNOWN);
        use(s, B, 0, 0);
        level(s, BH_CULPRIT_DRAM, 900, 0, 0);
    }
    (void)words();
    CHECK_EQ(found[B].verdict, BH_CULPRIT_NAMED);
    CHECK_EQ(found[B].resource, BH_CULPRIT_TIME);
    CHECK_EQ(found[B].culprit, A);
}

TEST(few_samples_tell_nothing)
{
    begin(2);
    for (uint32_t s = 0; s < N; s++) {
        use(s, A, 500, BH_CULPRIT_UNKNOWN);
        use(s, B, 400, 300);
    }
    in.n_samples = BH_CULPRIT_FEW - 1;
    (void)words();
    CHECK_EQ(found[B].verdict, BH_CULPRIT_NO_RATE);
    in.n_samples = 0;
    CHECK(strstr(words(), "cannot be told"));
}

/* ---- what each uses, without any rate ---- */

static uint32_t level_of(enum bh_culprit_resource r, uint32_t tenant, bool *ret_told)
{
    static struct bh_culprit_levels l;
    bh_culprit_levels(&in, &l);
    *ret_told = l.told_apart[r][tenant];
    return l.at[r][tenant];
}

static bool near(uint32_t v, uint32_t want)
{
    return v + 50 >= want && v <= want + 50;
}

/* Turns that do not fit into an interval: that alone tells two apart that always share alike. */
TEST(turns_tell_apart_and_slices_do_not)
{
    bool told;
    begin(2);
    for (uint32_t s = 0; s < N; s++) {
        const uint32_t a = 420 + s % 5 * 40;
        use(s, A, a, BH_CULPRIT_UNKNOWN);
        use(s, B, 980 - a, BH_CULPRIT_UNKNOWN);
        level(s, BH_CULPRIT_TIME, 980, 970, 0);
        level(s, BH_CULPRIT_DRAM, 920, 60, 0);
        level(s, BH_CULPRIT_WATTS, 930, 500, 0);
    }
    CHECK(near(level_of(BH_CULPRIT_TIME, A, &told), 980) && told);
    CHECK(near(level_of(BH_CULPRIT_DRAM, A, &told), 920) && told);
    CHECK(near(level_of(BH_CULPRIT_DRAM, B, &told), 60) && told);
    CHECK(near(level_of(BH_CULPRIT_WATTS, A, &told), 930) && told);
    CHECK(near(level_of(BH_CULPRIT_WATTS, B, &told), 500) && told);
    for (uint32_t s = 0; s < N; s++) {
        use(s, A, noisy(490), BH_CULPRIT_UNKNOWN);
        use(s, B, noisy(490), BH_CULPRIT_UNKNOWN);
        level(s, BH_CULPRIT_DRAM, 920, 60, 0);
    }
    (void)level_of(BH_CULPRIT_DRAM, A, &told);
    CHECK(!told);
    for (uint32_t s = 0; s < 4; s++) { /* a few without it are enough */
        use(s, A, 0, BH_CULPRIT_UNKNOWN);
        use(s, B, 980, BH_CULPRIT_UNKNOWN);
        level(s, BH_CULPRIT_DRAM, 920, 60, 0);
    }
    CHECK(near(level_of(BH_CULPRIT_DRAM, A, &told), 920) && told);
    CHECK(near(level_of(BH_CULPRIT_DRAM, B, &told), 60) && told);
}

/* An empty card draws power too, and that is nobody's. */
TEST(what_an_empty_card_draws_is_nobodys)
{
    bool told;
    begin(1);
    for (uint32_t s = 0; s < N; s++) {
        const uint32_t a = s * 20;
        use(s, A, a, BH_CULPRIT_UNKNOWN);
        samples[s].level[BH_CULPRIT_WATTS] = (700 * a + 120 * (1000 - a)) / 1000;
    }
    CHECK(near(level_of(BH_CULPRIT_WATTS, A, &told), 700) && told);
}

TEST(alone_all_of_it_is_its_own)
{
    bool told;
    begin(1);
    for (uint32_t s = 0; s < N; s++) {
        use(s, A, 1000, BH_CULPRIT_UNKNOWN);
        level(s, BH_CULPRIT_DRAM, 850, 0, 0);
        samples[s].level[BH_CULPRIT_PCIE] = 730;
        samples[s].level[BH_CULPRIT_WATTS] = BH_CULPRIT_UNKNOWN;
    }
    CHECK(near(level_of(BH_CULPRIT_DRAM, A, &told), 850) && told);
    CHECK(near(level_of(BH_CULPRIT_PCIE, A, &told), 730) && told);
    CHECK_EQ(level_of(BH_CULPRIT_WATTS, A, &told), BH_CULPRIT_UNKNOWN);
    CHECK(!told);
}

TEST(no_time_at_all_and_every_place_taken)
{
    static struct bh_culprit_levels l;
    bool told;
    begin(2); /* nobody ever held the card, and it shows bandwidth all the same */
    for (uint32_t s = 0; s < N; s++)
        samples[s].level[BH_CULPRIT_DRAM] = 900;
    CHECK_EQ(level_of(BH_CULPRIT_DRAM, A, &told), 0);
    CHECK(!told);
    in.n_samples = 0;
    bh_culprit_levels(&in, &l);
    CHECK_EQ(l.missing, (1u << BH_CULPRIT_RESOURCES) - 1);
    CHECK_EQ(bh_culprit_most(&l, A), BH_CULPRIT_TIME);
    begin(2);
    in.n_tenants = BH_CULPRIT_TENANTS;
    in.n_samples = BH_CULPRIT_SAMPLES;
    for (uint32_t s = 0; s < BH_CULPRIT_SAMPLES; s++)
        for (uint32_t i = 0; i < BH_CULPRIT_TENANTS; i++) {
            use(s, i, s % BH_CULPRIT_TENANTS == i ? 900 : 3, BH_CULPRIT_UNKNOWN);
            samples[s].level[BH_CULPRIT_DRAM] = s % BH_CULPRIT_TENANTS == 5 ? 850 : 50;
        }
    bh_culprit_levels(&in, &l);
    CHECK(near(l.at[BH_CULPRIT_DRAM][5], 940) && l.told_apart[BH_CULPRIT_DRAM][5]);
    CHECK(near(l.at[BH_CULPRIT_DRAM][6], 50));
    CHECK_EQ(bh_culprit_most(&l, 5), BH_CULPRIT_DRAM);
    CHECK_EQ(bh_culprit_most(&l, 6), BH_CULPRIT_TIME);
}

/* Numbers that no card has: nothing overflows, and levels keep their bounds. */
TEST(hostile_numbers)
{
    static struct bh_culprit_levels l;
    begin(3);
    for (uint32_t s = 0; s < N; s++) {
        use(s, A, UINT32_MAX - 1, UINT32_MAX - 1);
        use(s, B, s % 2 ? BH_CULPRIT_UNKNOWN : 0, BH_CULPRIT_UNKNOWN);
        samples[s].at[C].there_permille = UINT32_MAX - 1;
        for (unsigned r = 0; r < BH_CULPRIT_RESOURCES; r++)
            samples[s].level[r] = s % 3 ? UINT32_MAX - 1 : 0;
    }
    bh_culprit_levels(&in, &l);
    for (unsigned r = 0; r < BH_CULPRIT_RESOURCES; r++)
        for (uint32_t i = 0; i < in.n_tenants; i++)
            CHECK(l.at[r][i] <= 1000);
    (void)words();
    CHECK_EQ(bh_culprit_watts(3, 0), BH_CULPRIT_UNKNOWN);
    CHECK_EQ(bh_culprit_watts(BH_CULPRIT_UNKNOWN, 700000), BH_CULPRIT_UNKNOWN);
    CHECK_EQ(bh_culprit_watts(900000, 700000), 1000);
    CHECK_EQ(bh_culprit_watts(350000, 700000), 500);
}

/* Most samples are of when B was alone: what it says of beside is what counts. */
TEST(a_worth_of_its_own_is_believed_of_itself)
{
    begin(2);
    for (uint32_t s = 0; s < N; s++) {
        const bool on = s >= N - 10;
        use(s, A, on ? 400 + s % 3 * 100 : 0, BH_CULPRIT_UNKNOWN);
        use(s, B, on ? 600 - s % 3 * 100 : 1000, on ? 300 : 1000);
        level(s, BH_CULPRIT_DRAM, 900, 30, 0);
        samples[s].level[BH_CULPRIT_PCIE] = samples[s].level[BH_CULPRIT_POWER] = 0;
    }
    in.tenants[B].tells = true;
    CHECK(!strstr(words(), " slowed lease 9 (serve): memory"));
    in.tenants[B].worth_permille = 600;
    CHECK(strstr(words(), "lease 7 (train) slowed lease 9 (serve): memory bandwidth "));
    CHECK(strstr(words(), "; a turn of serve does 60 % of the work that it does alone, by its own word\n"));
    in.tenants[B].worth_permille = 970;
    CHECK(!strstr(words(), " slowed lease 9 (serve): memory"));
}

TEST(one_that_tells_and_was_never_alone_is_said)
{
    begin(2);
    for (uint32_t s = 0; s < N; s++) {
        use(s, A, 500, BH_CULPRIT_UNKNOWN);
        use(s, B, 500, BH_CULPRIT_UNKNOWN);
    }
    in.tenants[B].tells = true;
    CHECK(strstr(
        words(),
        "lease 9 (serve): whether a turn of it does less work than it would alone (memory bandwidth, caches, "
        "PCIe, power) cannot be told: it tells its own rate, but was not alone on the card for long enough\n"));
    CHECK(strstr(words(), "cannot be told: it offers no rate of its own\n")); /* the other */
    in.tenants[B].was_alone = true; /* then it is the company that is missing */
    CHECK(strstr(words(), "it tells its own rate, but did not work beside others for long enough"));
    CHECK(!strstr(words(), "was not alone"));
}

TEST(raw_numbers_become_levels)
{
    CHECK_EQ(bh_culprit_pcie(10, 500, 1000), 500);
    CHECK_EQ(bh_culprit_pcie(4000000000u, 1, 1000), 1000);
    CHECK_EQ(bh_culprit_pcie(1, BH_CULPRIT_UNKNOWN, 1000), BH_CULPRIT_UNKNOWN);
    CHECK_EQ(bh_culprit_pcie(1, 1, 0), BH_CULPRIT_UNKNOWN);
    CHECK_EQ(bh_culprit_power(0), 0);
    CHECK_EQ(bh_culprit_power(1), 0); /* it idles */
    CHECK_EQ(bh_culprit_power(4), 1000);
    CHECK_EQ(bh_culprit_power(0x40), 1000);
    CHECK_EQ(bh_culprit_power(0x10), 0);
}

TEST_MAIN
