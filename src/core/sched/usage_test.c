/* SPDX-License-Identifier: Apache-2.0 */
/* usage_test.c - the decay against a series in 128 bits, and the account against the equation it solves. */
#include "core/sched/usage.h"

#include "base/choice.h"
#include "base/test.h"
#include "core/sched/wide.h"

#define DAY_MS (UINT64_C(86400) * 1000)

static uint64_t draw64(struct bh_choice *c, unsigned bits)
{
    uint64_t v = (uint64_t)bh_choose(c, UINT32_MAX) << 32 | bh_choose(c, UINT32_MAX);
    return bits ? v >> (64 - bits) : 0;
}

/* Products of numbers with 126 bits behind the point. */
static bh_u128 times126(bh_u128 a, bh_u128 b)
{
    const struct bh_u256 p = bh_wide_mul2(a, b);
    return p.high << 2 | p.low >> 126;
}

#define LN2_126 (((bh_u128)0x2c5c85fdf473de6a << 64) | 0xf278ece600fcbdab)
#define OLN_126 (((bh_u128)0x5c551d94ae0bf85d << 64) | 0xdf43ff68348e9f44)

static bh_u128 ratio126(uint64_t a, uint64_t b) /* a < b */
{
    const bh_u128 high = ((bh_u128)a << 64) / b, rest = ((bh_u128)a << 64) % b;
    return high << 62 | (rest << 62) / b;
}

/* exp(-x ln 2) by its series. */
static bh_u128 decay126(uint64_t rest, uint64_t half_life)
{
    const bh_u128 z = times126(ratio126(rest, half_life), LN2_126), one = (bh_u128)1 << 126;
    bh_u128 plus = one, minus = 0, term = one;
    for (unsigned n = 1; n < 48; n++) {
        term = times126(term, z) / n;
        *(n % 2 ? &minus : &plus) += term;
    }
    return plus - minus;
}

static uint64_t distance(bh_u128 a, bh_u128 b)
{
    const bh_u128 d = a > b ? a - b : b - a;
    return d > UINT64_MAX ? UINT64_MAX : (uint64_t)d;
}

TEST(wide_numbers_agree_with_the_compilers)
{
    uint8_t bytes[65536];
    bh_choice_fill(bytes, sizeof(bytes), 7);
    struct bh_choice c = {bytes, sizeof(bytes)};
    for (int i = 0; i < 2000; i++) {
        const uint64_t d = draw64(&c, 1 + bh_choose(&c, 64)) | 1, high = draw64(&c, bh_choose(&c, 65)) % d;
        const bh_u128 n = (bh_u128)high << 64 | draw64(&c, 64);
        uint64_t rest;
        CHECK(bh_wide_div(n, d, &rest) == (uint64_t)(n / d));
        CHECK(rest == (uint64_t)(n % d));
    }
    const bh_u128 most = ~(bh_u128)0;
    CHECK(bh_wide_mul2(most, most).high == most - 1);
    CHECK(bh_wide_mul2(most, most).low == 1);
    CHECK_EQ(bh_wide_scale(UINT64_MAX, 3, 3), UINT64_MAX);
    CHECK_EQ(bh_wide_scale(UINT64_MAX, 3, 2), UINT64_MAX);
    CHECK_EQ(bh_wide_scale(UINT64_C(1) << 40, UINT64_C(1) << 40, UINT64_C(1) << 50), 1 << 30);
}

TEST(ratios_compare_without_rounding)
{
    const struct bh_ratio third = {1, 3}, more = {((bh_u128)1 << 100) + 1, (bh_u128)3 << 100};
    const struct bh_ratio infinite = {1, 0}, nothing = {0, 5};
    CHECK_EQ(bh_ratio_cmp(third, more), -1);
    CHECK_EQ(bh_ratio_cmp(third, (struct bh_ratio){(bh_u128)1 << 120, (bh_u128)3 << 120}), 0);
    CHECK_EQ(bh_ratio_cmp(infinite, more), 1);
    CHECK_EQ(bh_ratio_cmp(infinite, infinite), 0);
    CHECK_EQ(bh_ratio_cmp(nothing, third), -1);
}

TEST(each_entry_of_the_table)
{
    const uint64_t half_life = UINT64_C(1) << 32;
    for (unsigned bit = 0; bit < 32; bit += 4)
        for (uint64_t digit = 1; digit < 16; digit++) {
            uint64_t factor;
            unsigned shift;
            bh_decay(digit << bit, half_life, &factor, &shift);
            CHECK_EQ(shift, 0);
            CHECK(distance(factor, (decay126(digit << bit, half_life) + ((bh_u128)1 << 61)) >> 62) <= 1);
        }
}

TEST(any_fraction_is_as_exact_as_promised)
{
    uint8_t bytes[1 << 17];
    bh_choice_fill(bytes, sizeof(bytes), 11);
    struct bh_choice c = {bytes, sizeof(bytes)};
    uint64_t worst = 0;
    for (int i = 0; i < 4000; i++) {
        const uint64_t half_life = 1 + draw64(&c, 1 + bh_choose(&c, 62)), dt = draw64(&c, bh_choose(&c, 63));
        uint64_t factor;
        unsigned shift;
        bh_decay(dt, half_life, &factor, &shift);
        CHECK_EQ(shift, dt / half_life < 128 ? dt / half_life : 128);
        CHECK_EQ(factor == 0, dt % half_life == 0);
        if (!factor)
            continue;
        const uint64_t off = distance(factor, decay126(dt % half_life, half_life) >> 62);
        worst = off > worst ? off : worst;
    }
    printf("# 2^-x is off by at most %" PRIu64 " x 2^-64\n", worst);
    CHECK(worst < 16);
    CHECK(worst > 0); /* the comparison sees the last bits */
}

/* The account's value, 64 bits behind the point, from the equation with 126 bits. */
static bh_u128 solved(const struct bh_usage *u, uint64_t half_life, uint64_t dt)
{
    const bh_u128 before = (bh_u128)u->whole << 64 | u->part;
    const struct bh_u256 p = bh_wide_mul2(bh_wide_mul(u->rate_milli, half_life), OLN_126);
    const bh_u128 level = p.high << 66 | p.low >> 62;
    const bh_u128 gap = before > level ? before - level : level - before;
    const struct bh_u256 left = bh_wide_mul2(gap, decay126(dt % half_life, half_life));
    const bh_u128 faded = dt / half_life < 128 ? (left.high << 2 | left.low >> 126) >> (dt / half_life) : 0;
    return before > level ? level + faded : level - faded;
}

TEST(an_account_follows_the_equation)
{
    uint8_t bytes[1 << 17];
    bh_choice_fill(bytes, sizeof(bytes), 13);
    struct bh_choice c = {bytes, sizeof(bytes)};
    for (int i = 0; i < 3000; i++) {
        const uint64_t half_life = 1 + draw64(&c, 1 + bh_choose(&c, 34)), dt = draw64(&c, bh_choose(&c, 37));
        struct bh_usage u = {draw64(&c, bh_choose(&c, 62)), draw64(&c, 64), draw64(&c, bh_choose(&c, 28)),
                             1000};
        const bh_u128 want = solved(&u, half_life, dt);
        const uint64_t bound =
            u.whole / 2 + bh_usage_level(u.rate_milli, half_life) / 2 + 1; /* halved: no overflow */
        bh_usage_settle(&u, half_life, 1000 + dt);
        const bh_u128 got = (bh_u128)u.whole << 64 | u.part, off = got > want ? got - want : want - got;
        CHECK(off >> 1 <= (bh_u128)bound << 4);
        CHECK_EQ(u.at_ms, 1000 + dt);
    }
}

TEST(many_small_steps_are_one_step)
{
    const uint64_t half_life = 7 * DAY_MS;
    struct bh_usage one = {.whole = 5000000000, .rate_milli = 8000}, many = one;
    bh_usage_settle(&one, half_life, 100000 * UINT64_C(977));
    for (uint64_t i = 1; i <= 100000; i++)
        bh_usage_settle(&many, half_life, i * 977);
    CHECK(distance((bh_u128)one.whole << 64 | one.part, (bh_u128)many.whole << 64 | many.part) >> 32 <
          UINT64_C(1) << 32); /* less than one millionth of a GPU second after 100,000 steps */
}

TEST(a_half_life_halves)
{
    CHECK_EQ(bh_usage_faded(UINT64_C(1) << 40, 3600000, 3 * UINT64_C(3600000)), UINT64_C(1) << 37);
    CHECK_EQ(bh_usage_faded(UINT64_MAX, 1000, 64000), 0);
    CHECK_EQ(bh_usage_faded(UINT64_MAX, 1000, UINT64_MAX), 0);
    CHECK_EQ(bh_usage_faded(12345, 0, 1000000), 12345);
    struct bh_usage u = {.whole = 4096};
    bh_usage_settle(&u, 500, 500);
    CHECK_EQ(u.whole, 2048);
    CHECK_EQ(bh_usage_at(&u, 500, 1500), 512);
    CHECK_EQ(u.whole, 2048); /* looking changes nothing */
}

TEST(a_rate_for_ever_settles_at_its_level)
{
    struct bh_usage u = {0};
    bh_usage_faster(&u, DAY_MS, 0, 8000);
    bh_usage_settle(&u, DAY_MS, 200 * DAY_MS);
    const uint64_t level = bh_usage_level(8000, DAY_MS);
    CHECK(level - u.whole <= 1);
    CHECK_EQ(level, UINT64_C(997190812262)); /* 8000 * 86400000 / ln 2 = 997190812262.45 */
    bh_usage_slower(&u, DAY_MS, 200 * DAY_MS, 8000);
    bh_usage_settle(&u, DAY_MS, 201 * DAY_MS);
    CHECK(distance(u.whole, level / 2) <= 1);
}

TEST(edges)
{
    struct bh_usage u = {.rate_milli = 3, .at_ms = 100};
    bh_usage_settle(&u, 0, 1100); /* nothing fades */
    CHECK_EQ(u.whole, 3000);
    bh_usage_settle(&u, 0, 50); /* time does not run backwards */
    CHECK_EQ(u.whole, 3000);
    CHECK_EQ(u.at_ms, 1100);
    bh_usage_add(&u, 0, 1100, 500);
    CHECK_EQ(u.whole, 3500);
    bh_usage_give(&u, 0, 1100, 4000);
    CHECK_EQ(u.whole, 0);
    bh_usage_slower(&u, 0, 1100, 7);
    CHECK_EQ(u.rate_milli, 0);
    bh_usage_add(&u, 0, 1100, UINT64_MAX);
    bh_usage_add(&u, 0, 1100, UINT64_MAX);
    CHECK(u.whole == BH_USAGE_MAX);
    CHECK(bh_usage_level(UINT64_MAX, UINT64_MAX) == BH_USAGE_MAX);
    struct bh_usage fast = {.rate_milli = UINT64_MAX};
    bh_usage_settle(&fast, 0, UINT64_MAX);
    CHECK(fast.whole == BH_USAGE_MAX);
}

TEST_MAIN
