/* SPDX-License-Identifier: Apache-2.0 */
/* Thousands of random steps beside a model of the driver: the ledger is never below it, and equal to it once told all. */
#include "base/test.h"
#include "warden/ledger_fixture.h"

enum { BYTES = 6000, SEEDS = 40 };

struct outcome {
    uint64_t steps, granted, refused, settled, digest;
    const char *why;
};

static struct outcome storm_run(uint64_t seed, uint64_t ledger_seed)
{
    static uint8_t bytes[BYTES];
    static struct storm s;
    struct bh_choice c = {bytes, sizeof(bytes)};
    struct outcome o = {0};
    bh_choice_fill(bytes, sizeof(bytes), seed);
    storm_init(&s, &c, ledger_seed);
    for (; c.left && !s.why; o.steps++)
        storm_step(&s);
    uint64_t at = o.steps;
    o.why = storm_end(&s);
    o.granted = s.granted;
    o.refused = s.refused;
    o.settled = s.settled;
    o.digest = s.digest;
    if (o.why)
        printf("# seed %" PRIu64 ", step %" PRIu64 ": %s\n", seed, at, o.why);
    return o;
}

TEST(it_never_falls_below_the_driver_and_agrees_once_told)
{
    struct outcome all = {0};
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct outcome o = storm_run(seed, seed * 7919);
        CHECK(!o.why);
        all.steps += o.steps;
        all.granted += o.granted;
        all.refused += o.refused;
        all.settled += o.settled;
    }
    printf("# %" PRIu64 " steps, %" PRIu64 " granted, %" PRIu64 " settled, %" PRIu64 " refused\n", all.steps,
           all.granted, all.settled, all.refused);
    /* the storm reached what it is about */
    CHECK(all.steps > 50000 && all.granted > 5000 && all.settled > 4000 && all.refused > 500);
}

TEST(the_same_steps_give_the_same_sums_whatever_the_seed_of_the_ledger)
{
    struct outcome a = storm_run(77, 1), b = storm_run(77, 99), other = storm_run(78, 1);
    CHECK(!a.why && !b.why && !other.why);
    CHECK(a.digest == b.digest);
    CHECK(a.digest != other.digest);
}

TEST_MAIN
