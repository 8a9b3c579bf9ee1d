/* SPDX-License-Identifier: Apache-2.0 */
/* A storm of comings and goings, orders, lies and failures: whatever is paused is known, and at the end nobody is. */
#include "base/own_fds_fixture.h"
#include "base/test.h"
#include "governor/storm_fixture.h"

enum { BYTES = 20000, SEEDS = 40 };

TEST(nobody_is_ever_left_paused)
{
    static uint8_t bytes[BYTES];
    static struct storm s;
    uint64_t steps = 0, paused = 0, failures = 0, ends = 0, joins = 0, orders = 0;
    const size_t files = own_fds();
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct bh_choice c = {bytes, sizeof(bytes)};
        bh_choice_fill(bytes, sizeof(bytes), seed);
        storm_init(&s, &c);
        for (; c.left && !s.why; steps++)
            storm_step(&s);
        const char *why = storm_end(&s);
        if (why)
            printf("# seed %" PRIu64 ", step %" PRIu64 ": %s\n", seed, steps, why);
        CHECK(!why);
        paused += s.seen_paused;
        failures += s.failures;
        ends += s.ends;
        joins += s.joins;
        orders += s.orders;
    }
    CHECK_EQ(own_fds(), files);
    printf("# %" PRIu64 " steps, %" PRIu64 " joins, %" PRIu64 " orders, %" PRIu64 " failures, %" PRIu64
           " ends, %" PRIu64 " times somebody was seen paused\n",
           steps, joins, orders, failures, ends, paused);
    /* the storm reached what it is about */
    CHECK(steps > 10000 && joins > 1000 && orders > 1000 && failures > 300 && ends > 100 && paused > 5000);
}

TEST_MAIN
