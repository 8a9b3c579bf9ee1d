/* SPDX-License-Identifier: Apache-2.0 */
/* usage.c - powers of two by a table of hexadecimal digits, and the one step of a fading account. */
#include "core/sched/usage.h"

#include "core/sched/wide.h"

#define LN2          UINT64_C(0xb17217f7d1cf79ac) /* ln 2, 64 bits behind the point */
#define ONE_OVER_LN2 UINT64_C(0xb8aa3b295c17f0bc) /* 1 / ln 2, 63 bits behind the point */
#define DIGITS       8

/*
 * power[i][c] = 2^(-c / 16^(i + 1)), 64 bits behind the point, rounded to the nearest; the test computes
 * them again.
 */
static const uint64_t power[DIGITS][16] = {
    {0, 0xf5257d152486cc2c, 0xeac0c6e7dd24392f, 0xe0ccdeec2a94e111, 0xd744fccad69d6af4, 0xce248c151f8480e4,
     0xc5672a115506dadd, 0xbd08a39f580c36bf, 0xb504f333f9de6484, 0xad583eea42a14ac6, 0xa5fed6a9b15138ea,
     0x9ef5326091a111ae, 0x9837f0518db8a96f, 0x91c3d373ab11c336, 0x8b95c1e3ea8bd6e7, 0x85aac367cc487b15},
    {0, 0xff4ecb59511ec8a5, 0xfe9e115c7b8f884c, 0xfdedd1b496a89f35, 0xfd3e0c0cf486c175, 0xfc8ec01121e447bb,
     0xfbdfed6ce5f09c49, 0xfb3193cc4227c3f4, 0xfa83b2db722a033a, 0xf9d64a46eb939f35, 0xf92959bb5dd4ba74,
     0xf87ce0e5b2094d9c, 0xf7d0df730ad13bb9, 0xf7255510c4288239, 0xf67a416c733f846e, 0xf5cfa433e6537290},
    {0, 0xfff4e91bff1b8c3e, 0xffe9d2b2f7db2756, 0xffdebcc4e4eb1842, 0xffd3a751c0f7e10c, 0xffc8925986ae3ed1,
     0xffbd7ddc30bb29b9, 0xffb269d9b9cbd4fa, 0xffa756521c8daed2, 0xff9c434553ae6082, 0xff9130b359dbce53,
     0xff861e9c29c4178d, 0xff7b0cffbe159675, 0xff6ffbde117ee04f, 0xff64eb371eaec555, 0xff59db0ae05450ba},
    {0, 0xffff4e8e25879bfa, 0xfffe9d1cc60ddab1, 0xfffdebabe19266e5, 0xfffd3a3b7814eb54, 0xfffc88cb899512bf,
     0xfffbd75c161287e5, 0xfffb25ed1d8cf586, 0xfffa747ea0040664, 0xfff9c3109d77653e, 0xfff911a315e6bcd6,
     0xfff860360951b7ed, 0xfff7aec977b80143, 0xfff6fd5d6119439b, 0xfff64bf1c57529b6, 0xfff59a86a4cb5e56},
    {0, 0xfffff4e8debe025e, 0xffffe9d1bdf703af, 0xffffdeba9dab03ed, 0xffffd3a37dda0313, 0xffffc88c5e84011c,
     0xffffbd753fa8fe02, 0xffffb25e2148f9c0, 0xffffa7470363f451, 0xffff9c2fe5f9edb0, 0xffff9118c90ae5d6,
     0xffff8601ac96dcbf, 0xffff7aea909dd265, 0xffff6fd3751fc6c4, 0xffff64bc5a1cb9d5, 0xffff59a53f94ab93},
    {0, 0xffffff4e8de845ae, 0xfffffe9d1bd1065a, 0xfffffdeba9ba4206, 0xfffffd3a37a3f8b0, 0xfffffc88c58e2a5a,
     0xfffffbd75378d703, 0xfffffb25e163feaa, 0xfffffa746f4fa150, 0xfffff9c2fd3bbef6, 0xfffff9118b28579a,
     0xfffff86019156b3d, 0xfffff7aea702f9e0, 0xfffff6fd34f10381, 0xfffff64bc2df8821, 0xfffff59a50ce87c0},
    {0, 0xfffffff4e8de80c0, 0xffffffe9d1bd01fc, 0xffffffdeba9b83b2, 0xffffffd3a37a05e4, 0xffffffc88c588890,
     0xffffffbd75370bb7, 0xffffffb25e158f5a, 0xffffffa746f41377, 0xffffff9c2fd2980f, 0xffffff9118b11d23,
     0xffffff86018fa2b1, 0xffffff7aea6e28ba, 0xffffff6fd34caf3f, 0xffffff64bc2b363e, 0xffffff59a509bdb8},
    {0, 0xffffffff4e8de808, 0xfffffffe9d1bd011, 0xfffffffdeba9b81b, 0xfffffffd3a37a025, 0xfffffffc88c5882f,
     0xfffffffbd753703a, 0xfffffffb25e15845, 0xfffffffa746f4051, 0xfffffff9c2fd285d, 0xfffffff9118b106a,
     0xfffffff86018f877, 0xfffffff7aea6e085, 0xfffffff6fd34c893, 0xfffffff64bc2b0a2, 0xfffffff59a5098b1},
};

/* a * b, both 64 bits behind the point. */
static uint64_t times(uint64_t a, uint64_t b)
{
    return (uint64_t)(bh_wide_mul(a, b) >> 64);
}

/*
 * 2^(-x), x = fraction / 2^64. In units of 2^-64 off by at most: 8 table entries a half each, 8 products one
 * each, the low half as 1 - y ln 2 one for its product and a quarter for the square that is left out; and x
 * itself was rounded down by at most one, which is ln 2 of the result. Together less than 15.
 */
static uint64_t power_of(uint64_t fraction)
{
    /*
     * Ones, for 1, is one unit less than 1: it stands for the empty product and costs no more than a
     * product.
     */
    uint64_t v = UINT64_MAX;
    for (unsigned i = 0; i < DIGITS; i++) {
        const unsigned digit = (unsigned)(fraction >> (60 - 4 * i)) & 15;
        if (digit)
            v = v == UINT64_MAX ? power[i][digit] : times(v, power[i][digit]);
    }
    const uint64_t low = fraction & UINT32_MAX;
    return v - times(v, times(low, LN2));
}

void bh_decay(uint64_t dt_ms, uint64_t half_life_ms, uint64_t *ret_factor, unsigned *ret_shift)
{
    const uint64_t halvings = dt_ms / half_life_ms, rest_ms = dt_ms % half_life_ms;
    uint64_t unused;
    *ret_shift = halvings < 128 ? (unsigned)halvings : 128;
    *ret_factor = rest_ms ? power_of(bh_wide_div((bh_u128)rest_ms << 64, half_life_ms, &unused)) : 0;
}

static bh_u128 fade(bh_u128 v, uint64_t factor, unsigned shift)
{
    if (shift >= 128)
        return 0;
    if (factor)
        v = bh_wide_mul((uint64_t)(v >> 64), factor) + (bh_wide_mul((uint64_t)v, factor) >> 64);
    return v >> shift;
}

static bh_u128 capped(bh_u128 v)
{
    const bh_u128 most = (bh_u128)BH_USAGE_MAX << 64;
    return v < most ? v : most;
}

static bh_u128 level_of(uint64_t rate_milli, uint64_t half_life_ms)
{
    const bh_u128 product = bh_wide_mul(rate_milli, half_life_ms);
    if (product >= BH_USAGE_MAX)
        return (bh_u128)BH_USAGE_MAX << 64;
    return capped(bh_wide_mul((uint64_t)product, ONE_OVER_LN2) << 1);
}

static bh_u128 value_of(const struct bh_usage *u)
{
    return (bh_u128)u->whole << 64 | u->part;
}

static void set_value(struct bh_usage *u, bh_u128 v)
{
    v = capped(v);
    u->whole = (uint64_t)(v >> 64);
    u->part = (uint64_t)v;
}

void bh_usage_settle(struct bh_usage *u, uint64_t half_life_ms, uint64_t now_ms)
{
    if (now_ms <= u->at_ms)
        return;
    const uint64_t dt_ms = now_ms - u->at_ms;
    const bh_u128 before = value_of(u);
    u->at_ms = now_ms;
    if (!half_life_ms) {
        const bh_u128 ran = bh_wide_mul(u->rate_milli, dt_ms);
        set_value(u, ran >= BH_USAGE_MAX ? (bh_u128)BH_USAGE_MAX << 64 : before + (ran << 64));
        return;
    }
    const bh_u128 level = level_of(u->rate_milli, half_life_ms);
    uint64_t factor;
    unsigned shift;
    bh_decay(dt_ms, half_life_ms, &factor, &shift);
    set_value(u, before >= level ? level + fade(before - level, factor, shift)
                                 : level - fade(level - before, factor, shift));
}

uint64_t bh_usage_at(const struct bh_usage *u, uint64_t half_life_ms, uint64_t now_ms)
{
    struct bh_usage copy = *u;
    bh_usage_settle(&copy, half_life_ms, now_ms);
    return copy.whole;
}

void bh_usage_faster(struct bh_usage *u, uint64_t half_life_ms, uint64_t now_ms, uint64_t more_milli)
{
    bh_usage_settle(u, half_life_ms, now_ms);
    u->rate_milli += more_milli;
}

void bh_usage_slower(struct bh_usage *u, uint64_t half_life_ms, uint64_t now_ms, uint64_t less_milli)
{
    bh_usage_settle(u, half_life_ms, now_ms);
    u->rate_milli -= less_milli < u->rate_milli ? less_milli : u->rate_milli;
}

void bh_usage_add(struct bh_usage *u, uint64_t half_life_ms, uint64_t now_ms, uint64_t amount)
{
    bh_usage_settle(u, half_life_ms, now_ms);
    set_value(u, value_of(u) + ((bh_u128)(amount < BH_USAGE_MAX ? amount : BH_USAGE_MAX - 1) << 64));
}

void bh_usage_give(struct bh_usage *u, uint64_t half_life_ms, uint64_t now_ms, uint64_t amount)
{
    bh_usage_settle(u, half_life_ms, now_ms);
    const bh_u128 v = value_of(u), back = (bh_u128)amount << 64;
    set_value(u, v > back ? v - back : 0);
}

uint64_t bh_usage_faded(uint64_t amount, uint64_t half_life_ms, uint64_t dt_ms)
{
    uint64_t factor;
    unsigned shift;
    if (!half_life_ms)
        return amount;
    bh_decay(dt_ms, half_life_ms, &factor, &shift);
    return (uint64_t)(fade((bh_u128)amount << 64, factor, shift) >> 64);
}

uint64_t bh_usage_level(uint64_t rate_milli, uint64_t half_life_ms)
{
    return (uint64_t)(level_of(rate_milli, half_life_ms) >> 64);
}
