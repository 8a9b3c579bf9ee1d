/* SPDX-License-Identifier: Apache-2.0 */
#include "governor/escape.h"

#include "base/test.h"

enum { STEP_US = 5000 };
#define MS UINT64_C(1000000)

static struct bh_seat seat_of(struct bh_channel *at, size_t n, uint8_t run)
{
    struct bh_seat s = {0};
    for (size_t i = 0; i < n; i++)
        at[i] = (struct bh_channel){.run = run};
    s.channels.at = at;
    s.channels.n = n;
    return s;
}

/* Steps with that much of the card; every name is paused again in between. In how many it was to be ended. */
static size_t steps(struct bh_seat *s, size_t n, bool to_pause, uint64_t gpu_ns)
{
    size_t ends = 0;
    for (size_t i = 0; i < n; i++) {
        ends += bh_escape_watch(s, to_pause, gpu_ns, STEP_US);
        for (size_t k = 0; k < s->channels.n; k++)
            s->channels.at[k].run = BH_CHANNEL_PAUSED;
    }
    return ends;
}

TEST(who_is_paused_and_has_the_card_is_paused_again_and_ended_after_a_second)
{
    struct bh_channel at[2];
    struct bh_seat s = seat_of(at, 2, BH_CHANNEL_PAUSED);
    CHECK_EQ(steps(&s, 6, true, 5 * MS), 0); /* of the time before the pause */
    CHECK_EQ(s.escaped_us, 0);
    CHECK(!bh_escape_watch(&s, true, 5 * MS, STEP_US));
    CHECK(at[0].run == BH_CHANNEL_UNSURE && at[1].run == BH_CHANNEL_UNSURE);
    at[0].run = at[1].run = BH_CHANNEL_PAUSED;
    CHECK_EQ(steps(&s, 198, true, 5 * MS), 0);
    CHECK(bh_escape_watch(&s, true, 5 * MS, STEP_US));
    at[0].run = at[1].run = BH_CHANNEL_PAUSED;
    CHECK_EQ(steps(&s, 400, true, 5 * MS), 2); /* said again, once a second */
}

TEST(a_third_of_the_card_is_an_escape_and_noise_is_none)
{
    struct bh_channel at[1];
    struct bh_seat s = seat_of(at, 1, BH_CHANNEL_PAUSED);
    CHECK_EQ(steps(&s, 206, true, 5 * MS / 3), 1);
    CHECK_EQ(steps(&s, 400, true, 5 * MS / 20), 0);
    CHECK_EQ(s.escaped_us, 0);
}

TEST(what_helped_and_what_nobody_knows_ends_nobody)
{
    struct bh_channel at[1];
    struct bh_seat s = seat_of(at, 1, BH_CHANNEL_PAUSED);
    for (int i = 0; i < 20; i++) {
        CHECK_EQ(steps(&s, 150, true, 5 * MS), 0);
        CHECK_EQ(steps(&s, 1, true, 0), 0); /* pausing again has helped */
    }
    CHECK_EQ(steps(&s, 1000, true, BH_GOVERN_NO_SAMPLE), 0);
    CHECK_EQ(steps(&s, 1000, false, 5 * MS), 0); /* it may */
    /* the driver fails to pause it: no fault of the tenant's */
    for (int i = 0; i < 1000; i++) {
        at[0].run = BH_CHANNEL_UNSURE;
        CHECK(!bh_escape_watch(&s, true, 5 * MS, STEP_US));
    }
    struct bh_seat none = {0};
    CHECK(!bh_escape_watch(&none, true, 5 * MS, BH_GOVERN_ELAPSED_MAX_US));
}

TEST(turns_between_do_not_wipe_it_out)
{
    struct bh_channel at[1];
    struct bh_seat s = seat_of(at, 1, BH_CHANNEL_PAUSED);
    size_t ends = 0;
    for (int i = 0; i < 30; i++) {
        ends += steps(&s, 16, true, 5 * MS);
        ends += steps(&s, 2, false, 5 * MS); /* its turn */
    }
    CHECK(ends >= 1);
}

TEST(who_is_to_run_and_has_nothing_is_resumed_again_once_a_second)
{
    struct bh_channel at[2];
    struct bh_seat s = seat_of(at, 2, BH_CHANNEL_RUNS);
    bh_escape_look(&s, true, 1000 * MS);
    bh_escape_look(&s, true, 1999 * MS);
    CHECK_EQ(at[0].run, BH_CHANNEL_RUNS);
    s.busy_ns = 1;
    bh_escape_look(&s, true, 2000 * MS);
    CHECK_EQ(at[0].run, BH_CHANNEL_RUNS);
    bh_escape_look(&s, false, 3000 * MS); /* it waits for its turn */
    CHECK_EQ(at[0].run, BH_CHANNEL_RUNS);
    bh_escape_look(&s, true, 3001 * MS);
    CHECK(at[0].run == BH_CHANNEL_UNSURE && at[1].run == BH_CHANNEL_UNSURE);
    at[0].run = at[1].run = BH_CHANNEL_RUNS;
    bh_escape_look(&s, true, 3500 * MS);
    CHECK_EQ(at[0].run, BH_CHANNEL_RUNS);
}

TEST_MAIN
